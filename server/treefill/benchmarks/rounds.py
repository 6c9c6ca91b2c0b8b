"""Taking turns: what is compared runs in one process of one run, A B A B …, so that other work hits all alike."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Spread:
    """Several measurements of one thing."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def map(self, change: Callable[[float], float]) -> "Spread":
        """The same of a monotonic function of each value: milliseconds as tokens a second, say."""
        low, high = sorted((change(self.low), change(self.high)))
        return Spread(change(self.median), low, high, self.n)


def take_turns(actions: Sequence[Callable[[], float]], n_rounds: int) -> list[Spread]:
    """Each action's values, all of them once a round; every other round in the opposite order."""
    values: list[list[float]] = [[] for _ in actions]
    numbers = list(range(len(actions)))
    for n_round in range(n_rounds):
        for number in numbers if n_round % 2 == 0 else reversed(numbers):
            values[number].append(actions[number]())
    return [Spread.of(found) for found in values]


def load_average() -> float:
    """Processes that wanted a core in the last minute."""
    return round(float(psutil.getloadavg()[0]), 2)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent of all do not exceed."""
    ordered = sorted(values)
    n_below = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(n_below) - 1)]
