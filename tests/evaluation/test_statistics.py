"""Shares, percentiles, and paired differences with intervals over problems."""

import numpy as np
import pytest
from treefill.evaluation.results import Row
from treefill.evaluation.statistics import ALL, bootstrap_interval, common_rows, compare, summarise

from tests.evaluation.test_results import a_row


def rows_for(arm: str, passed: list[bool], variant: str = "whole") -> list[Row]:
    return [
        a_row(line, arm, task=f"Small/{line // 2}", passed=is_passed, exact=is_passed, variant=variant)
        for line, is_passed in enumerate(passed)
    ]


def test_only_holes_that_all_arms_have_are_compared() -> None:
    rows = [*rows_for("plain", [True, False, True]), *rows_for("line", [True, True])]
    common = common_rows(rows, ["plain", "line"])

    assert [(row.arm, row.line) for row in common] == [("plain", 0), ("plain", 1), ("line", 0), ("line", 1)]


def test_an_arm_is_summed_up_by_variant_and_over_all() -> None:
    rows = [
        *rows_for("plain", [True, False]),
        *rows_for("plain", [True, True], variant="typed"),
    ]
    found = {summary.variant: summary for summary in summarise(rows, ["plain"])}

    assert {name: (summary.n, summary.passed) for name, summary in found.items()} == {
        "whole": (2, 0.5),
        "typed": (2, 1.0),
        ALL: (4, 0.75),
    }
    assert found[ALL].declined == 0


def test_a_difference_is_paired_by_hole() -> None:
    rows = [*rows_for("plain", [True, False, False, False]), *rows_for("line", [True, True, True, False])]
    difference = compare(rows, ["plain", "line"], "plain")[-1]

    assert (difference.arm, difference.baseline, difference.variant, difference.n) == (
        "line",
        "plain",
        ALL,
        4,
    )
    assert difference.passed == 0.5
    assert difference.passed_low <= 0.5 <= difference.passed_high


def test_arms_that_answer_alike_differ_by_nothing() -> None:
    rows = [*rows_for("plain", [True, False, True]), *rows_for("line", [True, False, True])]
    difference = compare(rows, ["plain", "line"], "plain")[-1]

    assert (difference.passed, difference.passed_low, difference.passed_high) == (0, 0, 0)


class TestInterval:
    def test_it_is_the_same_each_time(self) -> None:
        values, clusters = [1.0, 0.0, -1.0, 1.0], ["a", "a", "b", "c"]

        assert bootstrap_interval(values, clusters) == bootstrap_interval(values, clusters)

    def test_it_comes_near_the_textbooks_where_each_hole_is_a_problem_of_its_own(self) -> None:
        values = np.random.default_rng(1).choice([-1.0, 0.0, 1.0], size=400)
        low, high = bootstrap_interval(list(values), [str(number) for number in range(400)])
        half = 1.96 * values.std() / 20

        assert low == pytest.approx(values.mean() - half, abs=0.01)
        assert high == pytest.approx(values.mean() + half, abs=0.01)

    def test_holes_of_one_problem_that_move_together_make_it_wider(self) -> None:
        by_problem = np.random.default_rng(2).choice([0.0, 1.0], size=40)
        values = list(np.repeat(by_problem, 10))
        apart = bootstrap_interval(values, [str(number) for number in range(400)])
        together = bootstrap_interval(values, [str(number // 10) for number in range(400)])

        assert together[1] - together[0] > 2 * (apart[1] - apart[0])

    def test_problems_of_unequal_size_weigh_by_their_holes(self) -> None:
        low, high = bootstrap_interval([1.0] * 9 + [0.0], ["a"] * 9 + ["b"])

        assert (low, high) == (0.0, 1.0)
