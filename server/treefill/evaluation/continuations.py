"""How a text that was broken off may go on: pieces to try until the whole parses. Plain data, by language.

The pieces are what a search puts together (`mask_exam.py`). They know no grammar; a piece that fits nowhere costs time.
"""

from collections.abc import Mapping
from types import MappingProxyType

# fmt: off
_CHARACTERS = (
    b"\x80", b"\xa9", b"\xa0\x80", b"\xbf\xbd", b"\x9f\x98\x80", b"\x98\x80", b"\x90\x80", b"\xbd",
)
"""Ends of characters that a token broke off."""
_BRACES = (
    b"a", b" a", b"0", b" ", b"\n", b";", b" ;", b",", b"a;", b" a;", b"(", b")", b"()", b"();", b"() {}",
    b")", b");", b"{}", b" {}", b"}", b"};", b"}\n", b"]", b"];", b">", b"> a", b":", b": a", b"= 0;",
    b" = 0;", b"'", b'"', b'";', b"*/", b"*/ a", b"\\n", b"n", b".a", b"(a)", b"(a) {}", b"(a) a;",
    b"a() {}", b" a() {}", b" a = 0;", b"a a;", b"a {}", b" a {}", b"\nendif", b"endif\n", b"\n#endif\n",
    b"else", b"#endif\n", b"'a'", b"a'", b'a"', b"/", b"f", b"break;", b" : 0", b"? a : a;", b"0;", b"=0",
    b"=> a", b"`", b"${a}`", b"a>", b"</a>", b"/>", b"<a>",
)
_SNIPPETS: Mapping[str, tuple[bytes, ...]] = MappingProxyType(
    {
        "python": (
            b"a", b" a", b"0", b" ", b"\n", b":", b": pass", b":\n    pass\n", b" pass", b"(", b")", b"()",
            b"():", b"]", b"}", b",", b", a", b"=0", b" = 0", b"= 0", b"'", b'"', b'"""', b"'''", b"' a",
            b'" a', b"\\\n a", b" a: pass", b" a:\n    pass\n", b"(a): pass", b" a(): pass",
            b" a in a: pass", b" a in a", b" in a", b" import a", b"import a", b" as a", b" if a else a",
            b" else a", b"else: a", b" for a in a", b".a", b"n", b" 0", b"in a", b"s a", b"t a", b"r a",
            b"d a", b"\nexcept: pass\n", b"\nfinally: pass\n", b"/", b"f a: a", b"a = 0", b"\na", b"a: a",
            b"a): pass", b"a))", b"a]", b"a}", b"a'", b'a"', b'a"""', b"\\n", b"=a", b" + a",
        ),
        "json": (
            b"1", b"0", b" ", b"\n", b",", b":", b'"', b'":', b'": 1', b'"a"', b'"a": 1', b'": 1}', b"]",
            b"}", b"{}", b"[]", b": 1", b", 1", b', "a": 1', b"true", b"rue", b"ue", b"e", b"alse", b"lse",
            b"se", b"ull", b"ll", b"l", b"null", b"\\n", b"n", b"0000", b"000", b"00", b".0", b"e1", b"+1",
            b"*/", b"/", b"/\n", b"-1", b"u0000",
        ),
        "sql": (
            b"a", b" a", b"0", b" ", b"\n", b";", b",", b", a", b"(", b")", b"()", b"(a)", b" (a)",
            b"(a int)", b"'", b'"', b"$$", b"$a$", b"*/", b"' ", b"=", b"= a", b" = a", b"a = a", b" AS a",
            b" FROM a", b" WHERE a", b"SELECT a", b" SELECT a", b" AS SELECT a", b" TABLE a (a int)",
            b" a (a int)", b" INTO a VALUES (a)", b" VALUES (a)", b" SET a = a", b" BY a", b" JOIN a ON a",
            b" ON a", b" END", b" THEN a END", b" IN (a)", b" NULL", b" NOT NULL", b" int", b" text",
            b" a int", b" AND a", b" TO a", b" TYPE text", b" COLUMN a", b" EXISTS a", b"*", b" a.a", b".a",
            b"::int", b"a;", b"ON a", b"OM a", b"E a", b"T a", b"]", b"}", b"::",
        ),
    }
)
# fmt: on


def snippets(language: str) -> tuple[bytes, ...]:
    """Pieces for that language, the empty one first."""
    return tuple(dict.fromkeys((b"", *_SNIPPETS.get(language, _BRACES), *_CHARACTERS)))


def closers(prefix: bytes) -> tuple[bytes, ...]:
    r"""Ends for the brackets that are open in `prefix`, strings and comments read as text: from the innermost on.

    >>> closers(b"f({[")[-1]
    b']})'
    """
    pairs = {ord("("): b")", ord("["): b"]", ord("{"): b"}"}
    is_end = {value[0] for value in pairs.values()}
    waiting: list[bytes] = []
    for byte in prefix:
        if byte in pairs:
            waiting.append(pairs[byte])
        elif byte in is_end and waiting:
            waiting.pop()
    end = b"".join(reversed(waiting))
    semicolons = b"".join(each + (b";" if each in b")}" else b"") for each in reversed(waiting))
    return tuple(dict.fromkeys((b"", end + b";", semicolons, end)))
