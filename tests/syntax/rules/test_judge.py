"""What trees are called in each language: a forbidden call, name and string is found, and what is allowed is not."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from treefill.syntax.grammars import load
from treefill.syntax.languages import Language, language_by_id, languages
from treefill.syntax.rules.guard import RuleGuard
from treefill.syntax.rules.kinds import kinds_in
from treefill.syntax.rules.lexemes import Kind, calls_in, lead_start, lexemes
from treefill.syntax.rules.read import rules_from
from treefill.syntax.rules.ruling import Place, Ruling

CALLS = {
    "c": "void g(void) { ‸danger(1)‸; }",
    "cpp": "void g() { ‸danger(1)‸; }",
    "cmake": "‸danger(1)‸\n",
    "csharp": "class A { void G() { ‸danger(1)‸; } }",
    "css": ".a { width: ‸danger(1px)‸; }",
    "dart": "void main() { ‸danger(1)‸; }",
    "elixir": "x = ‸danger(1)‸\n",
    "go": "package a\nfunc g() { ‸danger(1)‸ }",
    "java": "class A { void g() { ‸danger(1)‸; } }",
    "javascript": "let x = ‸danger(1)‸;",
    "kotlin": "fun g() { ‸danger(1)‸ }",
    "latex": "‸\\danger{1}‸\n",
    "lua": "‸danger(1)‸\n",
    "objective-c": "void g() { ‸danger(1)‸; }",
    "php": "<?php ‸danger(1)‸;",
    "python": "x = ‸danger(1)‸\n",
    "r": "x <- ‸danger(1)‸\n",
    "ruby": "x = ‸danger(1)‸\n",
    "rust": "fn g() { ‸danger(1)‸; }",
    "scala": "object A { ‸danger(1)‸ }",
    "shellscript": "‸danger 1‸\n",
    "sql": "SELECT ‸danger(1)‸ FROM t;",
    "swift": "‸danger(1)‸\n",
    "terraform": "a = ‸danger(1)‸\n",
    "typescript": "let x = ‸danger<number>(1)‸;",
    "typescriptreact": "let x = ‸danger(1)‸;",
    "zig": "fn g() void { ‸danger(1)‸; }",
}
"""Code of each language in which what is put in is a call."""
PATHS = [
    ("java", "class A { void g() { ‸a.b.danger(1)‸; } }", r"a\.b\.danger"),
    ("java", "class A { void g() { ‸new Danger(1)‸; } }", "Danger"),
    ("javascript", "let x = ‸new Danger(1)‸;", "Danger"),
    ("rust", 'fn g() { ‸danger!("x")‸; }', "danger!"),
    ("rust", "fn g() { ‸a::danger(1)‸; }", "a::danger"),
    ("ruby", "‸a.danger 1‸\n", r"a\.danger"),
    ("php", "<?php ‸$a->danger(1)‸;", r"\$a->danger"),
    ("python", "x = ‸(a\n   .danger)(1)‸\n", r"\(a\.danger\)"),
    ("python", "x = danger‸(1)‸\n", "danger"),
    ("cpp", "void g() { ‸a::danger<int>(1)‸; }", "a::danger<int>"),
]
STRINGS = {
    "c": 'char *s = ‸"danger"‸;',
    "cpp": 'auto s = ‸R"(danger)"‸;',
    "csharp": 'class A { string s = ‸"danger"‸; }',
    "go": "package a\nvar s = ‸`danger`‸",
    "java": 'class A { String s = ‸"danger"‸; }',
    "javascript": "let s = ‸'danger'‸;",
    "json": '{"a": ‸"danger"‸}',
    "kotlin": 'val s = ‸"danger"‸',
    "lua": "s = ‸'danger'‸\n",
    "python": "s = ‸rb'''danger'''‸\n",
    "ruby": "s = ‸'danger'‸\n",
    "rust": 'fn g() { let s = ‸"danger"‸; }',
    "shellscript": "s=‸'danger'‸\n",
    "sql": "SELECT ‸'danger'‸;",
    "toml": "a = ‸'danger'‸\n",
    "typescript": "let s = ‸`danger`‸;",
    "yaml": "a: ‸'danger'‸\n",
    "html": "<a b=‸'danger'‸></a>",
    "xml": "<a b=‸'danger'‸/>",
}


def judged(language: str, code: str, rules: str) -> str:
    """What is said of the code between the marks; empty where nothing is."""
    before, text, after = code.split("‸")
    place = Place.of(before + after, len(before), languages()[language], rules_from(rules.encode(), "r"))
    breach = Ruling(place, f"judge.{language}").breach(0, text)
    return breach.sentence if breach else ""


@pytest.mark.parametrize("language", CALLS)
def test_a_call_and_a_name_are_found_in_each_language(language: str) -> None:
    name = r"\\danger" if language == "latex" else "danger"
    call = rf"[[rule]]{chr(10)}name = 'x'{chr(10)}calls.forbid = ['{name}(<number>)?']"

    assert "a call of" in judged(language, CALLS[language], call)
    assert judged(language, CALLS[language], call.replace("danger", "dang")) == ""
    if language not in ("shellscript", "css", "cmake"):  # whose names are others
        names = call.replace("calls", "names")
        assert "the name" in judged(language, CALLS[language], names)
        assert judged(language, CALLS[language], names.replace("danger", "dang")) == ""


@pytest.mark.parametrize(("language", "code", "callee"), PATHS)
def test_what_is_called_is_written_as_it_is(language: str, code: str, callee: str) -> None:
    assert judged(language, code, f"[[rule]]\nname = 'x'\ncalls.forbid = ['{callee}']") != ""
    assert judged(language, code, f"[[rule]]\nname = 'x'\ncalls.allow = ['{callee}']") == ""
    assert judged(language, code, "[[rule]]\nname = 'x'\ncalls.allow = ['other']") != ""


@pytest.mark.parametrize("language", STRINGS)
def test_a_string_is_found(language: str) -> None:
    rule = "[[rule]]\nname = 'x'\nstrings.forbid = ['danger']"

    assert "the string" in judged(language, STRINGS[language], rule)
    assert judged(language, STRINGS[language].replace("danger", "harmless"), rule) == ""


def test_what_was_there_before_is_nobodys_fault() -> None:
    rule = "[[rule]]\nname = 'x'\ncalls.forbid = ['danger']\nnames.forbid = ['danger']\nstrings.forbid = ['danger']"

    assert judged("python", "danger(‸x‸, 'danger')\n", rule) == ""
    assert judged("python", "danger(1); x = ‸1‸; danger(2)\n", rule) == ""


def test_kinds_that_were_begun_before() -> None:
    rule = "[[rule]]\nname = 'x'\nlanguages = ['python']\nkinds.forbid = ['class_definition', 'global']"

    assert judged("python", "class A:\n    ‸x = 1‸\n", rule) == ""
    assert judged("python", "class ‸A:\n    x = 1‸\n", rule) != ""
    assert judged("python", "def f():\n    global ‸x‸\n", rule) == "", "the word was there"
    assert judged("python", "def f():\n    ‸global ‸x\n", rule) != ""


@pytest.mark.parametrize(
    "language", [each for each in languages().values() if each.grammars], ids=lambda each: each.id
)
def test_the_kinds_that_a_folder_names_are_the_grammars(language: Language) -> None:
    known = kinds_in(language).all
    kinds = language.kinds
    named = {*kinds.identifiers, *kinds.fields_of_calls, *kinds.strings, *kinds.comments, *kinds.docstrings}
    fields = {name for name in kinds.fields_of_calls.values() if name}

    assert named <= known
    assert all(
        any(load(each).language.field_id_for_name(name) for each in language.grammars) for name in fields
    )


def test_keywords_are_no_names() -> None:
    python, sql = kinds_in(languages()["python"]), kinds_in(languages()["sql"])

    assert {"if", "global", "None", "lambda"} <= python.keywords
    assert not {"identifier", "string", "block", "call"} & python.keywords
    assert python.words_of("global_statement") == {"global"}
    assert "select" in sql.keywords


@pytest.mark.parametrize(
    ("language", "text", "words", "strings"),
    [
        ("python", "x = f'a{b}' + y  # z", ["x", "y"], ["a{b}"]),
        ("python", '"""a\n"b" \'c"""', [], ['a\n"b" \'c']),
        ("python", r"'a\'b' c", ["c"], [r"a\'b"]),
        ("rust", "fn f<'a>(x: &'a str) { '{' }", ["fn", "f", "a", "x", "a", "str"], []),
        ("sql", "SELECT 'it''s', \"a\" -- b", ["SELECT"], ["it''s", "a"]),
        ("javascript", "$x = `a\nb`; // c", ["$x"], ["a\nb"]),
        ("c", "/* a */ b /* c", ["b"], []),
    ],
)
def test_words_and_strings_without_a_tree(
    language: str, text: str, words: list[str], strings: list[str]
) -> None:
    found = lexemes(text, languages()[language])

    assert "".join(each.text for each in found) == text
    assert [each.text for each in found if each.kind is Kind.WORD] == words
    assert [each.inside for each in found if each.kind is Kind.STRING] == strings


def test_calls_without_a_tree() -> None:
    python = languages()["python"]

    def calls(text: str) -> list[str]:
        return [call.callee for call in calls_in(lexemes(text, python), python)]

    assert calls("a.b (c(1)) + 'd(2)'  # e(3)") == ["a.b", "c"]
    assert calls("def f(a): g(a)") == ["g"]


def test_a_lead_begins_in_code() -> None:
    python = languages()["python"]

    assert lead_start("a\nb = 1", python) == 2
    assert lead_start('a\nb = """c\nd', python) == 2
    assert lead_start('a\nb = """\n', python) == 2
    assert lead_start('a\n"""b"""\n', python) == 10
    assert lead_start("a\n# b\n", python) == 6
    assert lead_start('"""a\n"""; b = """c\nd', python) == 0


def test_the_guard_takes_back_what_it_took() -> None:
    rule = "[[rule]]\nname = 'x'\ncalls.forbid = ['eval']"
    guard = RuleGuard(Place.of("x = ", 4, languages()["python"], rules_from(rule.encode(), "r")))

    assert guard.accept(b"eval")
    assert guard.can_stop()
    assert not guard.accept(b"(")
    assert not guard.allows(b"uate"), "what does not end as it would is no other name"
    guard.rollback(1)
    assert guard.accept(b"eval")
    assert guard.accept(b"uate(")
    assert [breach.rule for breach in guard.refused] == ["x"]


def test_half_a_character_is_waited_for() -> None:
    rule = "[[rule]]\nname = 'x'\nnames.allow = ['[a-zä]+']"
    guard = RuleGuard(Place.of("x = ", 4, languages()["python"], rules_from(rule.encode(), "r")))

    assert guard.accept(b"a" + "ä".encode()[:1])
    assert guard.accept("ä".encode()[1:])
    assert not guard.allows("é".encode())


def test_a_header_is_written_without_the_model_where_there_is_no_choice() -> None:
    rule = "[[rule]]\nname = 'x'\nlanguages = ['python']\nheader.lines = ['# Copyright \\d{4} Acme', '# MIT']"
    guard = RuleGuard(Place.of("", 0, languages()["python"], rules_from(rule.encode(), "r")))

    assert guard.forced() == b"# Copyright "
    assert guard.accept(b"# Copyright 2026")
    assert not guard.can_stop()
    assert guard.forced() == b" Acme\n"
    assert guard.accept(b" A")
    assert guard.forced() == b"cme\n"
    assert guard.accept(b"cme\n")
    assert guard.forced() == b"# MIT"
    assert guard.accept(b"# MIT")
    assert guard.can_stop()
    assert guard.accept(b"\nimport os")


ALL_RULES = r"""
[[rule]]
name = "calls"
calls.forbid = ['eval', 'a\.b']
[[rule]]
name = "names"
names.allow = ['[a-z]+', 'B\w*']
[[rule]]
name = "strings"
strings.forbid = ['ab?.*']
docs.begins = ['[A-Z]']
[[rule]]
name = "kinds"
languages = ["python", "c", "javascript"]
kinds.forbid = ["if", "comment"]
header.lines = ['# a\d']
[[rule]]
name = "sql"
sql = "read-only"
"""
TEXTS = st.lists(
    st.sampled_from(
        [
            "eval",
            "a",
            ".",
            "b",
            "(",
            ")",
            "'",
            '"',
            '"""',
            "\n",
            " ",
            "    ",
            "#",
            "/*",
            "*/",
            "//",
            "--",
            ";",
            "if",
            "$$",
            "\\",
            "A",
            "ab",
            "é",
            "😀",
            "\ud800",
            "\x00",
            "`",
            "{",
            "}",
            "SELECT",
            "INTO",
            "def f():",
            "=",
            "1",
        ]
    ),
    max_size=12,
).map("".join)


@given(
    st.sampled_from(
        ["python", "c", "javascript", "sql", "rust", "markdown", "haskell", "plaintext", "html", "json"]
    ),
    TEXTS,
    st.lists(TEXTS, max_size=4),
    TEXTS,
)
@example("sql", "SELECT a, ", ["b"], ", c INTO d")
def test_any_text_is_judged_and_what_is_taken_back_is_as_if_it_had_never_been(
    language_id: str, before: str, pieces: list[str], after: str
) -> None:
    language = language_by_id(language_id)
    place = Place.of(before + after, len(before), language, rules_from(ALL_RULES.encode(), "r"))
    guard = RuleGuard(place)
    taken = ""
    for piece in pieces:
        data = piece.encode(errors="replace")
        was_allowed = guard.allows(data)
        assert guard.accept(data) == was_allowed
        if not was_allowed:
            continue
        taken += piece
        guard.rollback(1)
        assert guard.accept(data)
    guard.can_stop()
    guard.without_torn(taken)
    breach = Ruling(place, f"any.{language_id}").breach(0, taken)

    assert breach is None or 0 <= breach.at <= len(taken)
    assert breach is None or breach.sentence.startswith("The rule “")
