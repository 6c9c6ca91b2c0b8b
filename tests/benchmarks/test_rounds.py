"""Taking turns, and what is said of several measurements."""

import pytest
from treefill.benchmarks.rounds import Spread, percentile, take_turns


def test_turns_are_taken_in_one_run_and_the_order_changes_from_round_to_round() -> None:
    order: list[str] = []

    def action(name: str, ms: float) -> float:
        order.append(name)
        return ms + len(order)

    found = take_turns([lambda: action("a", 0), lambda: action("b", 100)], 4)

    assert "".join(order) == "abbaabba"
    assert found == [Spread(4.5, 1, 8, 4), Spread(104.5, 102, 107, 4)]


def test_a_spread_of_times_is_one_of_rates_the_other_way_round() -> None:
    spread = Spread.of([20.0, 10.0, 40.0]).map(lambda ms: 1000 / ms)

    assert spread == Spread(50.0, 25.0, 100.0, 3)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([5.0], 50, 5.0),
        ([1.0, 2.0], 50, 1.0),
        ([3.0, 1.0, 2.0], 50, 2.0),
        (list(range(1, 101)), 95, 95),
        (list(range(1, 21)), 95, 19),
        ([1.0, 2.0, 3.0], 95, 3.0),
    ],
)
def test_so_many_percent_do_not_exceed_a_percentile(
    values: list[float], percent: float, expected: float
) -> None:
    assert percentile(values, percent) == expected
