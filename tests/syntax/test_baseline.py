"""What counts against a text that is put into another one."""

import time

import pytest
from treefill.syntax import baseline as baseline_module
from treefill.syntax.baseline import Baseline, Verdict
from treefill.syntax.languages import Language, language_by_id


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_module, "TIME_LIMIT_S", 60.0)


def verdict(buffer: str, said: str, language_id: str, n_replaced: int = 0) -> Verdict:
    offset = buffer.index("‸")
    baseline = Baseline.of(buffer.replace("‸", ""), offset, language_by_id(language_id), "some/file")
    assert isinstance(baseline, Baseline)
    return baseline.verdict(offset, offset + n_replaced, said)


def test_a_fault_that_was_there_before_does_not_count() -> None:
    found = verdict("int a = ;\nint b = ‸;\n", "1", "c")

    assert (found.n_faults, found.complaint) == (1, "")


def test_a_new_one_does() -> None:
    found = verdict("int a = ;\nint b = 1;\n‸\n", "int c = ;", "c")

    assert found.complaint


def test_something_wrong_weighs_more_than_something_missing() -> None:
    assert verdict("int b = 2 ‸\n", "/ );", "c").complaint == "'/ )' has no place there"


def test_a_fault_may_not_swallow_what_follows() -> None:
    below = "def f(a):\n    return a\n\n\n" * 20

    assert verdict("x = ‸\n" + below, '"""', "python").complaint
    assert verdict("x = ‸\n" + below, '"', "python").complaint


def test_a_line_end_that_is_missing_beside_another_fault_counts() -> None:
    """The grammar hides line ends: where one is missing no node says so."""
    buffer = "async def f(a):\n    x = 1\n    sep =‸'\n    n = len(sep)\n    return n\n"

    assert verdict(buffer, " await a.readuntil(b)", "python").complaint


def test_what_is_replaced_is_gone() -> None:
    assert verdict("int a = f(‸);\n", "1, 2)", "c", n_replaced=1).complaint == ""
    assert verdict("int a = f(‸);\n", "1, 2)", "c", n_replaced=0).complaint


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_any_line_ending_and_any_letters_will_do(ending: str) -> None:
    buffer = f's = "🙂é"{ending}def f():{ending}    ‸{ending}'

    assert verdict(buffer, f't = "🙂"{ending}    return t', "python").complaint == ""


def test_a_large_file_is_judged_by_what_is_around_the_cursor() -> None:
    unit = "int f(int a) {\n    return a;\n}\n\n"
    buffer = unit * 5_000 + "int b‸;\n\n" + unit * 5_000

    assert verdict(buffer, " = 1", "c") == Verdict(n_faults=0)
    assert verdict(buffer, " = (1", "c").complaint


def test_without_a_grammar_nothing_is_told() -> None:
    assert Baseline.of("x", 0, Language("brainfuck"), "a") == "There is no grammar for brainfuck."


def test_time_that_others_take_of_the_machine_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_module, "TIME_LIMIT_S", 0.15)
    baseline = Baseline.of("f()\n" * 2000, 0, language_by_id("python"), "some/file")
    assert isinstance(baseline, Baseline)
    time.sleep(0.2)

    assert baseline.verdict(0, 0, "x = 1\n") == Verdict()
