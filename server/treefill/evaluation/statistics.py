"""Rows of a results file summed up: shares, percentiles, and paired differences with intervals.

Arms are compared on the holes that all of them have filled. The holes of one problem are alike, so an
interval comes from drawing whole problems again and again (a cluster bootstrap), not single holes. The
draws are seeded.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treefill.evaluation.holes import VARIANTS
from treefill.evaluation.results import Row

N_DRAWS = 10_000
SEED = 20_260
ALL = "all"
"""Stands for every variant together."""

_Place = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Summary:
    """One arm on the holes of one variant, or of all."""

    arm: str
    variant: str
    n: int
    passed: float
    """Share of the holes, 0 to 1."""
    exact: float
    declined: float


@dataclass(frozen=True, slots=True)
class Difference:
    """An arm less the baseline on the same holes: shares, with the bounds of a 95 % interval."""

    arm: str
    baseline: str
    variant: str
    n: int
    passed: float
    passed_low: float
    passed_high: float
    exact: float
    exact_low: float
    exact_high: float


def arms_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """The arms there are, in the order of their first rows."""
    return tuple(dict.fromkeys(row.arm for row in rows))


def common_rows(rows: Sequence[Row], arms: Sequence[str]) -> list[Row]:
    """The rows of `arms` on the holes that all of them have."""
    by_place: dict[_Place, set[str]] = defaultdict(set)
    for row in rows:
        by_place[_place(row)].add(row.arm)
    wanted = frozenset(arms)
    return [row for row in rows if row.arm in wanted and wanted <= by_place[_place(row)]]


def summarise(rows: Sequence[Row], arms: Sequence[str]) -> list[Summary]:
    """Each arm by variant, and over all."""
    return [
        _summary(arm, variant, found)
        for variant in (*VARIANTS, ALL)
        for arm in arms
        if (found := [row for row in rows if row.arm == arm and variant in (row.variant, ALL)])
    ]


def compare(rows: Sequence[Row], arms: Sequence[str], baseline: str) -> list[Difference]:
    """Each other arm less the baseline, by variant and over all. `rows` are common to the arms."""
    return [
        _difference(arm, baseline, variant, found)
        for variant in (*VARIANTS, ALL)
        for arm in arms
        if arm != baseline and (found := [row for row in rows if variant in (row.variant, ALL)])
    ]


def bootstrap_interval(differences: Sequence[float], clusters: Sequence[str]) -> tuple[float, float]:
    """The 95 % interval of the mean of `differences`, drawing whole clusters with replacement."""
    names, members = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.bincount(members, weights=np.asarray(differences, np.float64))  # [C]
    counts = np.bincount(members)  # [C]
    drawn = np.random.default_rng(SEED).integers(len(names), size=(N_DRAWS, len(names)))  # [draws, C]
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def _place(row: Row) -> _Place:
    return (row.task, row.line, row.variant)


def _summary(arm: str, variant: str, rows: Sequence[Row]) -> Summary:
    return Summary(
        arm=arm,
        variant=variant,
        n=len(rows),
        passed=_share(row.passed for row in rows),
        exact=_share(row.exact for row in rows),
        declined=_share(row.declined is not None for row in rows),
    )


def _share(facts: Iterable[bool]) -> float:
    return float(np.mean(list(facts)))


def _difference(arm: str, baseline: str, variant: str, rows: Sequence[Row]) -> Difference:
    ours = {_place(row): row for row in rows if row.arm == arm}
    theirs = {_place(row): row for row in rows if row.arm == baseline}
    tasks = [place[0] for place in ours]
    passed = [float(row.passed) - float(theirs[place].passed) for place, row in ours.items()]
    exact = [float(row.exact) - float(theirs[place].exact) for place, row in ours.items()]
    return Difference(
        arm,
        baseline,
        variant,
        len(ours),
        _mean(passed),
        *bootstrap_interval(passed, tasks),
        _mean(exact),
        *bootstrap_interval(exact, tasks),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(np.asarray(values, np.float64)))


def percentiles(values: Sequence[int]) -> NDArray[np.float64]:
    """Median, 95th percentile and maximum."""
    return np.percentile(np.asarray(values, np.float64), (50, 95, 100))
