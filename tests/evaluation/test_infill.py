"""Holes filled through the product's journey by an engine that says what the test tells it to."""

import threading
from collections.abc import Callable

from treefill.engine.api import CancelFlag
from treefill.evaluation.holes import Hole, Problem, Variant, make_hole, schedule
from treefill.evaluation.infill import Run, fill_holes, header_of
from treefill.evaluation.results import Row

from tests.evaluation.problems import ADD, ONE_LINE
from tests.helpers.scripted_engine import ScriptedEngine


def hole_of(problem: Problem, line: int, variant: Variant = Variant.WHOLE) -> Hole:
    hole = make_hole(problem, line, variant, 0)
    assert hole is not None
    return hole


def always(problem: Problem, file: str) -> bool:
    return True


def rows_of(*scripts: str, arms: tuple[str, ...] = ("plain",), hole: Hole | None = None) -> list[Row]:
    holes = [hole or hole_of(ONE_LINE, 2)]
    return list(fill_holes(holes, arms, ScriptedEngine(*scripts)))


def test_the_missing_text_passes_and_is_exact() -> None:
    (row,) = rows_of("return 2 * n\n")

    assert (row.passed, row.exact, row.declined, row.text) == (True, True, None, "return 2 * n")


def test_other_text_that_passes_the_tests_is_not_exact() -> None:
    (row,) = rows_of("return n + n\n")

    assert (row.passed, row.exact) == (True, False)


def test_wrong_text_fails() -> None:
    (row,) = rows_of("return n\n")

    assert (row.passed, row.exact, row.text) == (False, False, "return n")


def test_declining_inserts_nothing_and_says_why() -> None:
    (row,) = rows_of("")

    assert (row.passed, row.exact, row.declined, row.text) == (False, False, "empty", "")


def test_text_that_writes_the_rest_of_the_line_again_does_not_double_it() -> None:
    """`result += int([[number]])`: the model closes the bracket that stands right of the cursor."""
    (row,) = rows_of("number)\n", hole=hole_of(ADD, 7, Variant.RIGHT))

    assert (row.passed, row.exact, row.cut) == (True, True, "brackets")
    assert (row.text, row.n_replaced) == ("number", 0)


def test_tokens_are_counted() -> None:
    """One character is one token here; the arms' prompts are the same up to the blanks before the cursor."""
    plain, line = rows_of("return 2 * n\n", arms=("plain", "line"))
    n_decoded = len("return 2 * n\n")

    assert (plain.n_reused_tokens, plain.n_new_tokens) == (0, n_decoded)
    assert plain.n_evaluated == plain.n_prompt_tokens + n_decoded
    assert line.n_reused_tokens == 1 + len("def double(n):\n")  # the control token before the prefix


def test_arms_that_come_to_the_same_prompt_share_one_decoding() -> None:
    engine = ScriptedEngine("return 2 * n\n")
    first, again = fill_holes([hole_of(ONE_LINE, 2)], ("line", "line"), engine)

    assert len(engine.requests) == 1
    assert first == again


def test_every_arm_sees_the_same_hole_through_its_own_prompt() -> None:
    engine = ScriptedEngine("return 2 * n\n")
    rows = list(fill_holes([hole_of(ONE_LINE, 2)], ("plain", "line", "lines-3"), engine))

    assert [row.arm for row in rows] == ["plain", "line", "lines-3"]
    assert all(row.exact for row in rows)
    middles = [engine.middle_of(request) for request in engine.requests]
    assert middles == ["", "    ", "def double(n):\n    "]


def test_rows_that_are_done_are_not_made_again() -> None:
    holes = list(schedule([ADD, ONE_LINE]))
    everything = list(fill_holes(holes, ("plain", "line"), ScriptedEngine("x = 1\n"), judge=always))
    done = [row.key for row in everything[:5]]
    run = Run()
    rest = list(fill_holes(holes, ("plain", "line"), ScriptedEngine("x = 1\n"), done, judge=always, run=run))

    assert [row.key for row in rest] == [row.key for row in everything[5:]]
    assert run.n_skipped == 5


def test_each_different_file_is_judged_once() -> None:
    judged: list[str] = []

    def judge(problem: Problem, file: str) -> bool:
        judged.append(file)
        return True

    hole = hole_of(ONE_LINE, 2)
    rows = list(fill_holes([hole], ("plain", "line", "lines-3"), ScriptedEngine("return 1\n"), judge=judge))

    assert len(rows) == 3
    assert judged == [ONE_LINE.file, "def double(n):\n    return 1\n"]


def test_a_problem_whose_own_solution_fails_is_left_out_and_named() -> None:
    run = Run()
    engine = ScriptedEngine("return 1\n")
    holes = [hole_of(ADD, 3), hole_of(ADD, 4), hole_of(ONE_LINE, 2)]
    judge: Callable[[Problem, str], bool] = lambda problem, file: problem is not ADD  # noqa: E731
    rows = list(fill_holes(holes, ("plain",), engine, judge=judge, run=run))

    assert [row.task for row in rows] == [ONE_LINE.task]
    assert run.unsound == [ADD.task]


def test_a_run_that_is_cancelled_ends_without_a_half_row() -> None:
    cancel = CancelFlag()
    engine = ScriptedEngine("return 2 * n\n")
    rows = fill_holes([hole_of(ONE_LINE, 2)] * 3, ("plain",), engine, cancel=cancel, judge=always)
    got = [next(rows)]
    cancel.cancel()
    got += list(rows)

    assert all(row.exact for row in got)
    assert len(got) < 3
    assert not [
        thread for thread in threading.enumerate() if "treefill-judge" in thread.name and not thread.daemon
    ]


def test_the_header_names_what_a_row_depends_on() -> None:
    header = header_of(ScriptedEngine("", n_context=2048))

    assert (header.model, header.engine) == ("script", "scripted")
    assert header.settings["n_context"] == 2048
    assert header.settings["mode"] == "line"
