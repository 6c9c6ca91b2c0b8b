"""The grammar at a cursor: what may come there, and where it may end. `‸` is the cursor.

Of what is said there: `+` it may come and the document is whole with it, `~` it may come and more must follow,
`-` it may not come. A line that begins a block may end there, since its body is written next.
"""

from dataclasses import replace
from itertools import count
from time import thread_time

import pytest
from treefill.completion.notebook import code_of
from treefill.errors import GrammarError
from treefill.syntax import matcher as matcher_module
from treefill.syntax.languages import Grammar, language_by_id
from treefill.syntax.matcher import MAX_BLANK_RUN, MAX_LINE_FEEDS, MAX_WORK_S, Matcher, OutOfReach, matcher_at
from treefill.text import Document


def found_at(buffer: str, language: str, dialect: str | None = None) -> Matcher | OutOfReach:
    offset = buffer.index("‸")
    return matcher_at(buffer.replace("‸", ""), offset, language_by_id(language), dialect)


def at(buffer: str, language: str = "python", dialect: str | None = None) -> Matcher:
    found = found_at(buffer, language, dialect)
    assert isinstance(found, Matcher), found
    return found


def verdict(buffer: str, said: str, language: str, dialect: str | None = None) -> str:
    guard = at(buffer, language, dialect)
    assert not guard.gave_up
    if not guard.allows(said.encode()):
        return "-"
    return "+" if guard.may_end(said.encode()) else "~"


def rows(table: str) -> list[tuple[str, str]]:
    """Lines of a verdict and what is said, `⏎` for a line feed."""
    return [(line.strip()[0], line.strip()[2:].replace("⏎", "\n")) for line in table.strip().splitlines()]


PYTHON = {
    "def area(w, h):\n‸\narea(2, 3)\n": """
        -:area(w
        +:    area(w, h)
        +:⏎    return w
        ~:# a word
    """,
    "class A:\n‸": """
        -:x = 1
        +:    x = 1
        +:    def f(self):
        ~:    def f(self)
    """,
    'try:\n    open("f")\n‸': """
        -:print(1)
        ~:    more()
        +:except OSError:
        ~:except OSError
        +:except OSError:⏎    pass
        +:finally:⏎    pass
    """,
    "def f():\n    ‸": """
        +:return 1
        +:return
        ~:return (
        ~:return 'a
    """,
    "x = f(‸)\n": """
        +:1
        +:1)
        -:1))
        -:]
        ~:[1,
    """,
    "x = ‸\n": """
        -:)
        ~:f(1,
        +:[1,⏎   2]
        +:'é'
        ~:'é
    """,
    "if a:\n    b\n‸": """
        +:else:
        ~:else
        +:else:⏎    c
        +:c
        -:    \x20 c
    """,
    "for x in y:\n    if x:\n        break\n    ‸\n": """
        +:else:⏎        pass
        +:z = 1
        -:except:
    """,
    "try:\n    try:\n        ‸\n        a\n    finally:\n        b\nexcept E:\n    c\n": """
        +:more()
        ~:more(
        +:if more:
    """,
    "try:\n    ‸\n    a\nb = 1\n": """
        ~:more()
    """,
    'def f():\n    ‸\n    more words\n    """\n    return 1\n': """
        +:'''Some.'''
        ~:'''Some.
        +:"\""Some
    """,
    "d = {\n    'a': (1,‸\n    'b': (3, 4),\n}\ne = 1\n": """
        ~:2
        +:2),
    """,
}
C = {
    "int f(void) {\n  return ‸\n}\n": """
        +:0;
        ~:0
        -:)
        ~:g(0
        ~:"a
    """,
    "int f(int a) {\n  if (a) { g(); }\n  ‸\n}\n": """
        +:else { h(); }
        +:return 1;
        -:case 1:
    """,
    "int f(int a) {\n  switch (a) {\n    ‸\n  }\n}\n": """
        +:case 1: break;
        +:default: return 2;
        -:]
    """,
    "int a[] = {1, ‸};\n": """
        +:2
        +:2}
        +:2};
        -:2)
    """,
    "MODULE_LICENSE(\"GPL\")\nstatic int a;\nint b = ‸;\n": """
        +:a
        -:;)
    """,
}  # fmt: skip
CPP = {
    "int limit =\n#if defined(FAST)\n    16\n#else\n    64\n#endif\n    ;\nint half = limit ‸": """
        +:/ 2;
        ~:/ 2
        -:/ );
        -:/ )
    """,
    "class W : public QObject {\n    Q_OBJECT\npublic slots:\n    void f();\n    int g() { return ‸ }\n};": """
        +:0;
        ~:0
        +:0; }
        -:0)
    """,
    "std::vector<int> v{1, ‸};\n": """
        +:2
        +:2}
        -:2]
    """,
    "auto f = [](int a) { ‸ };\n": """
        +:return a;
        ~:return a
        -:)
    """,
    'auto s = R"x(‸': """
        ~:a " ) b
        +:a)x";
    """,
}
SQL = {
    "SELECT ‸ FROM t;": """
        +:a
        +:a, b
        +:*
        -:)
    """,
    "SELECT a FROM t ‸;": """
        ~:WHERE
        +:WHERE b = 1
        +:ORDER BY a
        ~:WHERE (b = 1
    """,
    'CREATE TABLE t (a int);\n\\echo Use "CREATE EXTENSION x (" here\nSELECT ‸;': """
        +:1
        -:)
    """,
}
JSON = {
    '{"a": ‸}': """
        +:1
        +:-1.5e3
        -:01
        ~:1.
        +:1}
        +:true, "b": []
        ~:tru
        -:]
        ~:"a
    """,
    '{"a": [1, ‸]}': """
        +:2
        +:2]
        +:2]}
        -:2}
    """,
    '{"a": {"b": {"c": [‸': """
        ~:1,
        +:1
        +:1]}}}
        -:1]}}}}
    """,
    '{\n  "a": {\n    "b": 1,\n    ‸\n  }\n}\n': """
        +:"c": null
        ~:"c":
        -:c
    """,
}
LONG_IF = "function f(a) {\n  if (a) {\n" + "    g(1);\n" * 300 + "  }"
LONG_COMMENT = "\n\n/**\n" + " * It has {braces} and words.\n" * 80 + " */\n"
LONG_JSX = "const x = (\n  <a>\n" + "    <b/>\n" * 300
JAVASCRIPT = {
    LONG_IF + " ‸\n}\n": """
        +:else { g(); }
        +:else if (a) { g(); }
        -:catch (e) {}
        +:g();
    """,
    LONG_IF + " el‸\n}\n": """
        +:se { g(); }
    """,
    LONG_IF + " else if (b) {\n    ‸\n  }\n}\n": """
        +:g();
        +:g();⏎  } else {⏎    g();
        -:g();⏎  } catch {⏎    g();
    """,
    "import {\n  a\n} from 'b'" + LONG_COMMENT + "export function f(\n  c = ‸\n) {\n  g()\n}\n": """
        +:1,
        +:(1)
        -:;
    """,
    "function f() {\n  ‸\n}\n": """
        +:return 1;
        ~:const a = {
        +:const a = {}
        -:)
    """,
    "const s = `a ${‸}`;\n": """
        +:b
        +:b}
        -:b)
        ~:f(b
    """,
    "f(`a ‸\n it's; ${b(`c`)} (\n`, 1);\nlet d = `e`;\n": """
        +:it
        +:${b}
        ~:${b
        +:` + c + `
    """,
    "let x = {a: ‸};\nlet y = {};\n": """
        +:1
        +:1}
        ~:{
        -:)
    """,
    "f(() => {\n  ‸\n});\n": """
        +:g();
        -:]
    """,
    "let r = ‸;\n": """
        +:/[(/]+/g
        ~:/[(
        +:a / b
    """,
}
TYPESCRIPT = {
    "import type {\n  A,\n} from './a'"
    + LONG_COMMENT
    + "export function f<\n  B = ‸\n>(\n  c: B,\n): void {}\n": """
        +:A<A>,
        ~:A<A
        -:;
    """,
    "import { a } from './a'"
    + LONG_COMMENT
    + "export function f<T>({\n  a,\n}: {\n  ‸\n}) {\n  g()\n}\n": """
        +:a: string
        +:b:⏎    | readonly [...A<T>]
        -:g() +
    """,
    "interface A { ‸ }\n": """
        +:a: string
        ~:a:
        +:a?: number; b: A[]
        -:)
    """,
    "const x: ‸ = 1;\n": """
        +:number
        +:Map<string, A>
        ~:Map<string
        -:)
    """,
}
TSX = {
    LONG_JSX
    + "    <C>\n      {d => {\n        let e = {};\n        if (d && ‸\n      }}\n    </C>\n  </a>\n)\n": """
        +:d.e) { f(); }
        +:'s' in d) {⏎  e = d.s;⏎}
        -:]
    """,
    "const x = <div>‸</div>;\n": """
        +:a
        +:{b}
        ~:{b
        +:<br/>
    """,
}
TABLES = {
    "python": PYTHON, "c": C, "cpp": CPP, "sql": SQL, "json": JSON, "javascript": JAVASCRIPT,
    "typescript": TYPESCRIPT, "typescriptreact": TSX,
}  # fmt: skip


@pytest.mark.parametrize(
    ("language", "buffer", "expected", "said"),
    [
        pytest.param(language, buffer, expected, said, id=f"{language}: {buffer[-24:]!r} {said!r}")
        for language, table in TABLES.items()
        for buffer, lines in table.items()
        for expected, said in rows(lines)
    ],
)
def test_what_may_come_and_where_it_may_end(language: str, buffer: str, expected: str, said: str) -> None:
    assert verdict(buffer, said, language) == expected


@pytest.mark.parametrize("language", sorted(TABLES))
def test_piece_by_piece_is_the_same_as_at_once(language: str) -> None:
    """The model's tokens are what they are: each byte may be one."""
    for buffer, lines in TABLES[language].items():
        for expected, said in rows(lines):
            guard = at(buffer, language)
            taken = [guard.accept(bytes([byte])) for byte in said.encode()]

            assert all(taken) is (expected != "-"), said
            if all(taken):
                assert guard.can_stop() is (expected == "+"), said


@pytest.mark.parametrize(
    ("dialect", "said", "expected"),
    [
        ("postgres", "a::int", "+"),
        ("postgres", "FROM t", "-"),
        ("sql", "a::int", "+"),
    ],
)
def test_a_dialect_is_the_one_that_is_asked_for(dialect: str, said: str, expected: str) -> None:
    assert verdict("SELECT ‸;", said, "sql", dialect) == expected


def test_a_dialect_that_is_not_known_is_an_error() -> None:
    with pytest.raises(GrammarError, match="There is no grammar 'klingon' for sql"):
        found_at("SELECT ‸;", "sql", "klingon")


def test_a_dialect_is_told_by_the_statements_around() -> None:
    script = (
        "DO $$ BEGIN RAISE NOTICE 'x'; END $$;\nCREATE INDEX CONCURRENTLY i ON t USING gin (a);\nSELECT ‸;"
    )

    assert verdict(script, "FROM t", "sql") == "-", "PostgreSQL's grammar knows that a column is missing"


@pytest.mark.parametrize(
    ("buffer", "language", "reason"),
    [
        ("anything ‸", "plaintext", "There is no grammar for plaintext."),
        ("x = ) ‸", "python", "The grammar cannot read the statement that the cursor is in."),
        ("int a = 1 2 ‸", "c", "The grammar cannot read the statement that the cursor is in."),
        ("int x = f(" + "1, " * 30_000 + "‸", "c", "too long"),
    ],
)
def test_where_the_grammar_does_not_reach_it_says_why(buffer: str, language: str, reason: str) -> None:
    found = found_at(buffer, language)

    assert isinstance(found, OutOfReach)
    assert reason in found.reason


def test_a_wheel_that_is_not_there_is_an_error() -> None:
    klingon = replace(language_by_id("go"), grammars=(Grammar("klingon", "tree-sitter-klingon", "1.0", 15),))

    with pytest.raises(GrammarError, match="The grammar klingon is not installed"):
        matcher_at("x := ", 5, klingon)


@pytest.mark.parametrize("depth", [480, 500, 520, 600])
def test_a_nesting_that_is_too_deep_kills_nobody(depth: int) -> None:
    """The grammar's own scanner ends the process there: it is not asked, and everything is allowed."""
    lines = "".join(" " * level + "while t:\n" for level in range(depth)) + " " * depth + '"s"‸'
    guard = at(lines)

    assert guard.allows(b" + 1")
    assert guard.may_end(b" + 1")
    assert ("too deeply" in guard.gave_up) is (depth > 510)


@pytest.mark.parametrize(
    ("buffer", "language", "said", "expected"),
    [
        # A scope that the grammar can't read is one that says nothing.
        ("FOREACH(int a, b) {\n  ‸\n}\n", "cpp", "return a;", "+"),
        ("FOREACH(int a, b) {\n  ‸\n}\n", "cpp", "return );", "-"),
        ("#define X(a) \\\n  foo(a) {\nint g() {\n  ‸\n}\n", "cpp", "return 1;", "+"),
        ("EXPORT(int) api f(int a) {\n  return ‸\n}\n", "c", "a;", "+"),
        ("EXPORT(int) api f(int a) {\n  return ‸\n}\n", "c", "]", "-"),
        # What is wrong elsewhere has no say.
        ("def broken(:\n    )\n\ndef f():\n    return ‸\n", "python", "1", "+"),
        ("def broken(:\n    )\n\ndef f():\n    return ‸\n", "python", ")", "-"),
        ("let = = 3;\nfunction f() {\n  ‸\n}\n", "javascript", "return 1;", "+"),
        ("SELEC a FRM;\nSELECT ‸;", "sql", "1", "+"),
    ],
)
def test_what_it_cannot_read_round_the_cursor_silences_nothing(
    buffer: str, language: str, said: str, expected: str
) -> None:
    assert verdict(buffer, said, language) == expected


def test_what_is_taken_back_was_never_there() -> None:
    guard = at("x = ‸\n")
    assert guard.accept(b"f(")
    assert guard.accept(b"1")
    assert not guard.accept(b"]")
    assert not guard.can_stop()

    guard.rollback(1)
    assert guard.accept(b"a]") is False
    assert guard.accept(b"[2]")
    guard.rollback(2)

    assert not guard.allows(b")")
    assert guard.accept(b"(1)")
    assert guard.can_stop()
    guard.rollback(99)
    assert guard.accept(b"1")
    assert guard.can_stop()


def test_asking_changes_nothing() -> None:
    guard = at('{"a": ‸}', "json")
    for said in (b"1", b"]", b'"x"', b"[", b"1}"):
        guard.allows(said)
        guard.may_end(said)

    assert guard.accept(b"[")
    assert guard.allows(b"]")
    assert guard.accept(b"]")
    assert guard.can_stop()


def test_half_a_character_may_come_where_a_whole_one_may() -> None:
    first, rest = "é".encode()[:1], "é".encode()[1:]
    for buffer, is_fine in (
        ("x = 'a‸'\n", True),
        ("x = ‸\n", True),
        ("x = 1 # ‸\n", True),
        ("x = 1‸\n", False),
    ):
        guard = at(buffer)

        assert guard.accept(first), "Python's scanner has not decided yet what it will be"
        assert guard.accept(rest) is is_fine, buffer


@pytest.mark.parametrize(
    ("buffer", "language", "forced"),
    [
        ('{"a": tru‸}', "json", b"e"),
        ('{"a": n‸}', "json", b"ull"),
        ("x = ‸\n", "python", b""),
        ("class A ‸", "python", b""),
    ],
)
def test_what_must_come_is_told_as_far_as_there_is_one_way(buffer: str, language: str, forced: bytes) -> None:
    assert at(buffer, language).forced() == forced


def test_blanks_do_not_go_on_for_ever() -> None:
    guard = at("x = [‸]\n")
    assert guard.accept(b" " * MAX_BLANK_RUN)
    assert not guard.accept(b" ")
    assert guard.accept(b"1,")
    assert guard.accept(b"\n" * MAX_LINE_FEEDS)
    assert not guard.allows(b"\n")
    assert guard.allows(b"    ")
    assert guard.accept(b"    ")
    assert not guard.accept(b"\n")
    assert guard.accept(b"2")
    assert guard.accept(b"\n")


def test_a_tables_place_is_shared() -> None:
    loaded = matcher_module.load(language_by_id("json").grammars[0])
    matcher_module.prepare(language_by_id("json"))

    assert matcher_module.tables(loaded) is matcher_module.tables(loaded)
    matcher_module.prepare(language_by_id("plaintext"))


@pytest.mark.parametrize(
    ("cell", "said", "expected"),
    [
        ("%timeit f(\nx = ‸\n", "1", "+"),
        ("%timeit f(\nx = ‸\n", ")", "-"),
        ("!pip install 'a\nif x:\n‸\n", "    y", "+"),
        ("!pip install 'a\nif x:\n‸\n", "y", "-"),
    ],
)
def test_lines_that_speak_to_a_notebook_are_no_code(cell: str, said: str, expected: str) -> None:
    offset = cell.index("‸")
    document = Document("a.ipynb", cell.replace("‸", ""), "python", True)
    guard = matcher_at(code_of(document), offset, language_by_id("python"))

    assert isinstance(guard, Matcher)
    is_allowed = guard.allows(said.encode())
    assert (is_allowed, is_allowed and guard.may_end(said.encode())) == (expected != "-", expected == "+")


@pytest.mark.parametrize(
    ("buffer", "said"),
    [
        ("x = ‸", "1  # note:"),
        ("x = ‸\n", "1  # note:"),
        ("if x‸\n", ":  # why"),
        ('df = f(\n    {"a": 1},\n    ‸\n)', "b"),
        ('x = {\n "a": 1,\n "b": ‸\n}', "2"),
        ("foo(‸\n    1)", ""),
        ("x = ‸\n    1,\n]", "["),
    ],
)
def test_a_python_file_need_not_end_with_a_line_end(buffer: str, said: str) -> None:
    assert at(buffer).may_end(said.encode())


def test_what_was_only_tried_switches_nothing_off() -> None:
    guard = at("‸", "typescript")
    guard.allows(b"(a," * 200)

    assert not guard.allows(b") ) )")
    assert not guard.gave_up


def test_a_language_whose_layout_nobody_has_described_is_out_of_reach() -> None:
    python = language_by_id("python")
    bare = replace(python, skeleton=replace(python.skeleton, fillers=(), stand_ins=()))
    found = matcher_at("x = ", 4, bare)

    assert isinstance(found, OutOfReach)
    assert "not known" in found.reason


def test_what_a_cursor_hangs_on_is_read_for_a_while_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock that is a millisecond later at each look.
    clock = count()
    monkeypatch.setattr(matcher_module, "thread_time", lambda: next(clock) / 1000)

    assert isinstance(found_at("int f() {\n  return ‸;\n}\n", "c"), Matcher)
    assert found_at("{" * 400 + "‸", "c") == OutOfReach(
        "The grammar takes too long to read what the cursor hangs on."
    )


@pytest.mark.parametrize("text", ["{" * 5_000, "(" * 20_000, "[" * 20_000, "x = " + "(a, " * 8_000])
@pytest.mark.parametrize("language", ["c", "cpp", "javascript", "typescript", "json", "python", "sql"])
def test_brackets_without_end_take_no_more_time_than_is_allowed(language: str, text: str) -> None:
    found_at("‸", language)  # the first use of a grammar takes longer
    started = thread_time()
    found_at(text + "‸", language)

    assert thread_time() - started < 5 * MAX_WORK_S
