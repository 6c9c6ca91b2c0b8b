"""Hostile texts for a language: what `checks.py` feeds to whatever reads code.

Random bytes, real files with slips, tokens in any order, things nested and repeated far beyond reason; and edits of all
of these. Every text comes from a seed. What becomes of a text is not decided here.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from random import Random

from treefill.evaluation.mutants import mutate
from treefill.evaluation.real_files import gather
from treefill.syntax.grammars import load
from treefill.syntax.languages import Language

ROOT = Path(__file__).resolve().parents[2]
N_FILES = 60
MAX_WINDOW_CHARS = 6_000
MAX_REPEATED_BYTES = 400_000
"""A nested or repeated thing is written until the text is about so long."""
N_DEEPEST = 100_000

STRANGE = [
    b"\0",
    b"\r",
    b"\r\n",
    b"\n",
    b"\t",
    b"\f",
    b"\v",
    b"\\",
    b"\\\n",
    b"\\\r\n",
    b"\xef\xbb\xbf",
    b"\xff",
]
STRANGE += [b"\x80", b"\xe2\x80", b"\xf0\x9d", b"\xed\xa0\xbd", b"\xc0\xaf", b"\xf4\x90\x80\x80"]
STRANGE += [character.encode() for character in "é𝔘\u2028\u2029\u00a0\u0085\u3000\ufeffⅫ٣ªͰ"]
WORDS = [
    b"a",
    b"x1",
    b"_",
    b"A",
    b"1",
    b"0",
    b"1.5",
    b"0x1F",
    b"1e5",
    b"'a'",
    b'"b"',
    b"''",
    b'"',
    b"'",
    b"aB9" * 9,
]
MARKS = b"() [] {} ( ) [ ] { } ; , . : ? ! = == => -> :: ... < > / * # @ $ ` | & - + ~ % ^".split()

NESTED: dict[str, list[tuple[str, str, str]]] = {
    "python": [
        ('f"{', "x", '}"'),
        ("f'''{", "x", "}'''"),
        ("lambda: ", "x", ""),
        ("not ", "x", ""),
        ("x if y else ", "z", ""),
        ("x = ", "1", ""),
        ("a ** ", "b", ""),
        ("await ", "x", ""),
        ("x[", "1", "]"),
        ("f(", "", ")"),
        ("{1: ", "2", "}"),
        ("if x: ", "pass", ""),
    ],
    "c": [
        ("if (x) ", ";", ""),
        ("if (x) a(); else ", ";", ""),
        ("while (1) {", "", "}"),
        ("struct a { ", "int x;", "} b;"),
        ("(int) ", "1", ""),
        ("x ? 1 : ", "2", ""),
        ("#if X\n", "int a;", "\n#endif\n"),
        ("*", "p", ""),
        ("int x = ", "1;", ""),
        ("f(", "1", ")"),
    ],
    "cpp": [
        ("if (x) a(); else ", ";", ""),
        ('R"x(', "a", ')x"'),
        ("[&](auto x) { ", "", "}"),
        ("template <typename T, ", "int N>", ""),
        ("std::vector<", "int", ">"),
        ("namespace a { ", "", "}"),
        ("a::", "b", ""),
        ("a < ", "b", ""),
        ("#if X\n", "int a;", "\n#endif\n"),
        ("f(a * ", "b", ")"),
    ],
    "json": [('{"a": ', "1", "}"), ("[", "1", "]"), ("[1, ", "2", "]"), ("-", "1", "")],
    "javascript": [
        ("`${", "x", "}`"),
        ("<a>", "x", "</a>"),
        ("<a b={", "x", "}/>"),
        ("x => ", "x", ""),
        ("function f() {", "", "}"),
        ("x ? 1 : ", "2", ""),
        ("if (x) y; else ", "z", ""),
        ("a = ", "b", ""),
        ("typeof ", "x", ""),
        ("({a: ", "1", "})"),
        ("x\n/*c*/", "", ""),
        ("x /*c\n*/ ", "", ""),
        ("new ", "x", ""),
    ],
    "typescript": [
        ("`${", "x", "}`"),
        ("a<", "b", ">"),
        ("let x: A<", "b", ">"),
        ("(x: any) => ", "x", ""),
        ("type A = B extends C ? D : ", "E", ""),
        ("x ? 1 : ", "2", ""),
        ("<T>(", "x", ")"),
        ("class A { f() {", "", "}}"),
        ("x\n/*c*/", "", ""),
        ("f(<", "x", ">)"),
        ("type T = ", "x", ""),
        ("{a: ", "b", "}"),
    ],
    "sql": [
        ("select (", "1", ")"),
        ("select * from (", "select 1", ") a"),
        ("case when a then ", "1", " end"),
        ("$a$ ", "x", " $a$"),
        ("not ", "a", ""),
        ("a and ", "b", ""),
        ("select 1 union ", "select 2", ""),
        ("/*", "", "*/"),
        ("begin ", "", " end;"),
        ("- ", "1", ""),
    ],
}
NESTED["typescriptreact"] = [*NESTED["typescript"], ("<a>", "x", "</a>"), ("<a b={", "x", "}/>")]
BRACKETS = [("(", "", ")"), ("[", "", "]"), ("{", "", "}"), ("([{", "", "}])"), ("(", "", ""), ("", "", ")")]

REPEATED: dict[str, list[str]] = {
    "python": [
        "'\\",
        "\\\n",
        "# c\n",
        "\t",
        "if x:\n",
        "x\n",
        "@a\n",
        "(\n",
        '"""',
        "f'{",
        "\f ",
        "else:\n",
        "a.b",
    ],
    "sql": ["$a", "$a$", "$a$b$c", "/*", "'", "''", "--", "a,", "\\x\n", "$$;", "; ", "select ", "E'", "$"],
}
REPEATED_ANYWHERE = [
    "/[",
    "/",
    'R"',
    'R"x(',
    "`",
    "${",
    "else;",
    "#if\n",
    "#else\n",
    "#endif\n",
    "#a\\\n",
    "/*",
    "*/",
]
REPEATED_ANYWHERE += [
    "//",
    "\\",
    "'",
    '"',
    "a",
    "0",
    " ",
    "\n",
    "\r",
    "a ",
    "a;",
    "a,",
    "}",
    "} ",
    "/*\n*/ ",
    "$",
    "<",
    "é",
]
REPEATED_ANYWHERE += [
    "ABC(",
    "ABC ",
    "__A",
    "1.",
    "/*/",
    "/* ",
    "x\n",
    "=> ",
    "?.",
    "?",
    ":",
    "\n\n",
    "{\n",
    ")\n",
    "-->",
    "<!--",
]


class Texts:
    """One language's texts."""

    def __init__(self, language: Language, random: Random) -> None:
        self.language = language
        self.random = random

    def text(self) -> tuple[str, bytes]:
        """What kind of text it is, and the text."""
        kinds: list[tuple[Callable[[], bytes], int]] = [
            (self.some_bytes, 2),
            (self.part_of_file, 6),
            (self.mutant, 6),
            (self.tokens, 6),
            (self.nested, 3),
            (self.repeated, 2),
        ]
        make = self.random.choices([kind for kind, _ in kinds], [share for _, share in kinds])[0]
        text = make()
        return make.__name__, self.edited(text) if self.random.random() < 0.3 else text

    def piece(self) -> bytes:
        """Something short, as a token of a model's is."""
        pool = self.random.choices(
            [self.words, WORDS, MARKS, STRANGE, [b" ", b"\n", b"    ", b"\n    "]], [5, 2, 3, 1, 3]
        )
        return self.random.choice(pool[0])

    def some_bytes(self) -> bytes:
        """Any bytes at all, or characters from all over Unicode."""
        n = self.random.choice([0, 1, 3, 30, 300, 3000])
        if self.random.random() < 0.5:
            return self.random.randbytes(n)
        return "".join(
            chr(self.random.choice([self.random.randrange(0xD800), 10, 32])) for _ in range(n)
        ).encode()

    def part_of_file(self) -> bytes:
        """Lines of a real file, or all of a short one."""
        return self._window().encode()

    def mutant(self) -> bytes:
        """The same with slips."""
        return mutate(self._window(), self.random).encode()

    def tokens(self) -> bytes:
        """The grammar's own words in any order."""
        n = self.random.choice([1, 3, 10, 40, 200])
        blanks = self.random.choice([[b" "], [b"", b" "], [b" ", b"\n", b"\n  ", b"\n\t", b"\r\n"]])
        return b"".join(self.piece() + self.random.choice(blanks) for _ in range(n))

    def nested(self) -> bytes:
        """Something in itself, many times, closed or not."""
        begin, middle, end = self.random.choice([*NESTED.get(self.language.id, []), *BRACKETS])
        depth = self._depth(len(begin) + len(end))
        if self.language.id == "python" and self.random.random() < 0.3:
            return self.blocks(min(depth, 1_500))
        n_closed = self.random.choice([0, depth, depth, self.random.randint(0, depth), depth + 1])
        before = self.random.choice(["", "", "x = ", "a;", "\n", "("])
        return (before + begin * depth + middle + end * n_closed).encode()

    def blocks(self, depth: int) -> bytes:
        """Python's blocks in blocks, and what may come after them."""
        step = self.random.choice([" ", "\t", "  "])
        lines = [step * level + "while t:\n" for level in range(depth)]
        last = self.random.choice(["pass\n", "'", '"""', "x = '''\n", "f'{", "", "(\n", "\\\n"])
        return ("".join(lines) + step * depth + last).encode()

    def repeated(self) -> bytes:
        """One thing after the other."""
        what = self.random.choice([*REPEATED.get(self.language.id, []), *REPEATED_ANYWHERE])
        before, after = (
            self.random.choice(["", "", "x", "'", '"', "/*", "(", "{\n", "\n", "# ", "`"]) for _ in range(2)
        )
        return (before + what * self._depth(len(what)) + after).encode()

    def edited(self, text: bytes) -> bytes:
        """Bytes put in, taken out or replaced at a few places."""
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randint(0, len(text))
            end = min(len(text), at + self.random.choice([0, 0, 1, 1, 5, 100]))
            more = b"".join(self.piece() for _ in range(self.random.choice([0, 1, 1, 3])))
            text = text[:at] + more + text[end:]
        return text

    @cached_property
    def words(self) -> list[bytes]:
        """What the grammars' tokens are called, which mostly is how they are written."""
        names: set[str] = set()
        for grammar in self.language.grammars:
            tables = load(grammar).language
            for number in range(tables.node_kind_count):
                name = tables.node_kind_for_id(number) or ""
                names.add(name.removeprefix("kw_").removeprefix("keyword_"))
        return [name.encode() for name in sorted(names)]

    @cached_property
    def files(self) -> list[str]:
        """Real ones, and what this repository has."""
        found = [document.text for document in islice(gather(self.language.id).documents(), N_FILES)]
        own = sorted(path for suffix in self.language.suffixes for path in _own_files(suffix))
        return [*found, *(path.read_text("utf-8", errors="replace") for path in own[:20])] or ["x\n"]

    def _window(self) -> str:
        file = self.random.choice(self.files)
        if len(file) <= MAX_WINDOW_CHARS and self.random.random() < 0.7:
            return file
        start = file.rfind("\n", 0, self.random.randrange(len(file) + 1)) + 1
        return file[start : start + self.random.choice([100, 1_000, MAX_WINDOW_CHARS])]

    def _depth(self, n_bytes: int) -> int:
        depth = self.random.choice([2, 10, 100, 300, 520, 1_000, 10_000, N_DEEPEST])
        return min(depth, MAX_REPEATED_BYTES // max(1, n_bytes))


def _own_files(suffix: str) -> Iterator[Path]:
    for folder in ("examples", "server", "kernels", "extension/src", "tests/golden"):
        yield from (ROOT / folder).rglob(f"*{suffix}")
