"""G15: what would take the process down is told before the parser sees it."""

import subprocess
import sys

import pytest
from treefill.syntax.hazards import hazard
from treefill.syntax.languages import Grammar, language_by_id

(PYTHON,) = language_by_id("python").grammars
POSTGRES, SQL = language_by_id("sql").grammars


def nested(depth: int, end: str = '"s"') -> str:
    return "\n".join(" " * i + "while t:" for i in range(depth)) + "\n" + " " * depth + end


@pytest.mark.parametrize("depth", [*range(480, 521), 600])
def test_g15_deep_nesting_is_refused(depth: int) -> None:
    assert "383 different indentations" in hazard(nested(depth), PYTHON)


@pytest.mark.parametrize("text", [nested(100), nested(383), "x = 1\n", "if x:\r\n    y\r\n" * 1000])
def test_what_people_write_is_not(text: str) -> None:
    assert hazard(text, PYTHON) == ""


def test_indentation_that_adds_up_over_continued_lines_is_counted() -> None:
    text = "".join(" " * 30 + "\\\n" + " " * (i % 7) + "while t:\n" for i in range(400))

    assert hazard(text, PYTHON)


def test_indentation_beyond_sixteen_bits_is_refused() -> None:
    assert hazard("if x:\n" + " " * 66_000 + "y", PYTHON)


def test_a_nul_is_no_text_of_any_language() -> None:
    assert "NUL" in hazard("a\0b", POSTGRES)


@pytest.mark.parametrize(
    ("n_letters", "is_refused"), [(0, False), (4, False), (13, False), (14, True), (22, True)]
)
def test_a_long_tag_of_a_dollar_quote_is_refused_where_the_scanner_writes_past_it(
    n_letters: int, is_refused: bool
) -> None:
    text = f"SELECT ${'a' * n_letters}$x${'a' * n_letters}$;"

    assert bool(hazard(text, SQL)) is is_refused
    assert not hazard(text, POSTGRES)


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        (PYTHON, nested(383, 'f"{' * 300)),
        (PYTHON, nested(382, 'f"{' * 255)),
        (PYTHON, nested(383)),
        (SQL, "\n".join("SELECT $" + "a" * n + "$x$" + "a" * n + "$;" for n in range(14)) * 20),
        (POSTGRES, "\n".join("SELECT $" + "a" * n + "$x$" + "a" * n + "$;" for n in range(99))),
    ],
    ids=["strings", "fewer", "blocks", "tags", "postgres"],
)
def test_what_is_let_through_is_survived(grammar: Grammar, text: str) -> None:
    assert not hazard(text, grammar)
    script = (
        "import sys, importlib, tree_sitter as t; m = importlib.import_module(sys.argv[1]);"
        "t.Parser(t.Language(m.language())).parse(sys.stdin.buffer.read())"
    )
    module = grammar.package.replace("-", "_")
    subprocess.run([sys.executable, "-c", script, module], input=text.encode(), check=True, timeout=60)
