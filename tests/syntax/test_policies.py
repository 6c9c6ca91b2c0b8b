"""What a language forbids and its grammar lets pass."""

import ast
import warnings

import pytest
from treefill.syntax.grammars import load
from treefill.syntax.languages import language_by_id
from treefill.syntax.parse import Parsed, encoded, parse
from treefill.syntax.policies import Splice, complaint_of


def complaint(buffer: str, said: str, language_id: str) -> str:
    """What the rules say of `said` at the cursor of a buffer; the grammar is not asked."""
    left, right = buffer.split("‸")

    def parsed(text: str) -> Parsed:
        result = parse(encoded(text), load(language_by_id(language_id).grammars[0]))
        assert result is not None
        return result

    start, end = len(encoded(left)), len(encoded(left + said))
    return complaint_of(Splice(parsed(left + right), parsed(left + said + right), start, 0, end), language_id)


@pytest.mark.parametrize(
    ("buffer", "said", "word"),
    [
        ("def f():\n‸\nx = 1\n", "x = 2", "indented block"),
        ("x = 1\n‸\ny = 2\n", "def f():\nz = 1", "indented block"),
        ("if a:\n        b\n‸\n", "    c", "unindent"),
        ("if a:\n        b\n‸\n", "\tc", "inconsistent use of tabs"),
        ("x = 1\n‸", "    y = 2", "unexpected indent"),
        ("f(‸)\n", "a=1, b", "positional argument"),
        ("x = 1\n‸\n", "f() = 3", "cannot assign"),
        ("x = ‸\n", '"é', "unterminated string"),
    ],
)
def test_python_is_read_by_pythons_own_parser(buffer: str, said: str, word: str) -> None:
    assert word in complaint(buffer, said, "python")


@pytest.mark.parametrize(
    ("buffer", "said"),
    [
        ("def f():\n    ‸\n", "return 1"),
        ("x = ‸\n", "1"),
        ("x = ‸\n", "f(1,"),  # goes on below
        ("x = f(‸\n", "1, 2"),  # the user has still to close it
        ("for i in ‸\n", "x:"),  # the body comes next
        ('print "a"\nx = ‸\n', "1"),  # the file is for another Python
        ("if a:\n\tb\n        c\nx = ‸\n", "1"),
        ("class A:\n    def f(self):\n        ‸\n\n    def g(self):\n        pass\n", "return 'é'"),
        ("try:\n    a\n‸\n", "finally:\n    b"),
        ('s = """\n‸\n"""\n', "def f():"),
        ("@‸\ndef f(): ...\n", "cache"),
        ("\ufeffx = ‸\n", "1"),
        ("x = ‸\r\ny = 2\r\n", "[1,\r\n     2]"),
        ("x = ‸\n", "'\\d'"),  # a warning is no error
        ("x = ‸\n", "(" * 80 + "1" + ")" * 80),
        ("x = ‸\n", "-" * 5_000 + "1"),  # too deep for Python's parser: it has nothing to say
    ],
)
def test_what_python_takes_or_took_badly_before_is_fine(buffer: str, said: str) -> None:
    assert complaint(buffer, said, "python") == ""


@pytest.mark.parametrize(
    ("buffer", "said", "is_empty"),
    [
        ("SELECT ‸", "FROM t;", True),
        ("SELECT * ‸", "FROM WHERE x;", True),
        ("SELECT a FROM t ‸", "WHERE ORDER BY a;", True),
        ("SELECT a FROM t WHERE (a IN (SELECT b FROM u ‸", "WHERE ))", True),
        ("SELECT ‸", "'SELECT FROM' FROM t;", False),
        ("-- select from\nSELECT ‸", "a FROM t WHERE a = 1 ORDER BY a;", False),
        ("UPDATE t ‸", "SET a = 1 WHERE b;", False),
        ("SELECT FROM t;\nSELECT ‸;", "a", False),
    ],
)
def test_sql_clauses_hold_something(buffer: str, said: str, is_empty: bool) -> None:
    assert (complaint(buffer, said, "sql") == "a clause is empty") is is_empty


@pytest.mark.parametrize(
    ("buffer", "said", "is_stray"),
    [
        ("int f(int a) { ‸ }", "case 1: return 2;", True),
        ("int f(int a) { ‸ }", "default: return 2;", True),
        ("int f(int a) { switch (a) { ‸ } }", "case 1: return 2;", False),
        ("int f(int a) { ‸ }", "switch (a) { case 1: { return 2; } default: return 3; }", False),
        ("int f(int a) { case 1: return 2; ‸ }", "int lower_case = 1;", False),
    ],
)
@pytest.mark.parametrize("language_id", ["c", "cpp"])
def test_a_case_belongs_into_a_switch(buffer: str, said: str, is_stray: bool, language_id: str) -> None:
    assert bool(complaint(buffer, said, language_id)) is is_stray


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "1e9", "-0.5E-3"])
def test_a_number_of_json_is_fine(number: str) -> None:
    assert complaint('{"a": ‸}', number, "json") == ""


@pytest.mark.parametrize("number", ["1.", "1.e5"])
def test_a_number_of_javascript_is_not(number: str) -> None:
    assert complaint('{"a": ‸}', number, "json") == "a number is not one of JSON's"


@pytest.mark.parametrize(
    ("buffer", "said"),
    [
        ("x = 1  ‸\ny = 2\n", "# note:"),
        ("def f():\n    x = 1\n    ‸\n    return x\n", "# The rest:"),
        ("x = 1\r\n‸\r\ny = 2\r\n", "# The rest:"),
        ("‸\n", "if x:  # why"),
        ("def f():\n    ‸\n    return 1\n", "for x in y:"),
    ],
)
def test_a_colon_at_a_lines_end_is_no_fault(buffer: str, said: str) -> None:
    """A comment's is nothing, and below a block's head the body is still to come."""
    assert complaint(buffer, said, "python") == ""


def test_pythons_warnings_about_a_completion_are_dropped_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor are the process's filters put back as they were: another thread may have changed them meanwhile."""
    monkeypatch.delattr(warnings, "catch_warnings")
    monkeypatch.setattr(warnings, "filters", [])
    warnings.simplefilter("error")
    for _ in range(2):
        assert complaint("x = ‸\n", r"'\d'", "python") == ""
        # Somebody else's filter comes before ours.
        warnings.filterwarnings("error", category=ImportWarning)

    assert complaint("x = ‸\n", r"'\d'", "python") == ""
    assert len(warnings.filters) == 3, "ours is there once"
    with pytest.raises(SyntaxError, match="invalid escape sequence"):
        ast.parse(r"x = '\d'")
