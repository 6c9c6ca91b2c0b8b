"""Perplexity, divergence and agreement against twins that are written out by hand."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from treefill.evaluation.fidelity import ALL, Fidelity, Sums, compare, measure
from treefill.evaluation.report import fidelity_json, fidelity_markdown
from treefill.evaluation.texts import Window

Array = NDArray[np.float32]


class Table:
    """A model that looks its logits up by token."""

    def __init__(self, name: str, logits: Array, n_at_once: int = 3) -> None:
        self.name = name
        self._logits = logits
        self._n_at_once = n_at_once

    def logits(self, ids: Sequence[int]) -> Iterator[Array]:
        for start in range(0, len(ids), self._n_at_once):
            yield self._logits[list(ids[start : start + self._n_at_once])]


def random_logits(seed: int, n: int = 7, v: int = 7) -> Array:
    return np.random.default_rng(seed).normal(size=(n, v)).astype(np.float32)


def softmax(row: Array) -> list[float]:
    powers = [math.exp(float(value)) for value in row]
    return [power / sum(powers) for power in powers]


def by_hand(reference: Array, other: Array, targets: Sequence[int]) -> Sums:
    sums = Sums()
    for p_logits, q_logits, target in zip(reference, other, targets, strict=True):
        p, q = softmax(p_logits), softmax(q_logits)
        change = math.log(p[target]) - math.log(q[target])
        sums.add(
            Sums(
                n=1,
                reference_loss=-math.log(p[target]),
                loss=-math.log(q[target]),
                squared_change=change**2,
                divergence=sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)),
                n_agreed=int(np.argmax(p_logits) == np.argmax(q_logits)),
            )
        )
    return sums


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(2, 40))
def test_sums_are_those_of_the_readable_twin(seed: int, n: int, v: int) -> None:
    reference, other = random_logits(seed, n, v), random_logits(seed + 1, n, v)
    targets = np.random.default_rng(seed).integers(v, size=n)
    found, expected = compare(reference, other, targets), by_hand(reference, other, list(targets))

    assert (found.n, found.n_agreed) == (expected.n, expected.n_agreed)
    assert found.reference_loss == pytest.approx(expected.reference_loss)
    assert found.loss == pytest.approx(expected.loss)
    assert found.squared_change == pytest.approx(expected.squared_change)
    assert found.divergence == pytest.approx(expected.divergence, abs=1e-9)


def test_large_logits_do_not_overflow() -> None:
    logits = np.array([[10_000.0, 0.0]], np.float32)

    assert compare(logits, logits, np.array([0])).loss == 0.0


def test_a_model_differs_from_itself_by_nothing() -> None:
    logits = random_logits(1)
    (line, total) = measure(
        [Window("python", "a.py", (1, 2, 3, 4, 5))], Table("a", logits), [Table("b", logits)]
    )

    assert (line.n, line.change, line.divergence, line.agreement) == (4, 0.0, 0.0, 1.0)
    assert total.language == ALL
    assert line.is_within_targets


def test_every_token_but_a_windows_first_is_predicted_across_pieces() -> None:
    """Pieces of three positions, windows of four and five tokens: no target may be lost where pieces meet."""
    reference, other = random_logits(1), random_logits(2)
    windows = [Window("python", "a.py", (1, 2, 3, 4)), Window("cpp", "b.cc", (6, 5, 4, 3, 2))]
    found = {line.language: line for line in measure(windows, Table("a", reference), [Table("b", other)])}
    python = by_hand(reference[[1, 2, 3]], other[[1, 2, 3]], [2, 3, 4])
    cpp = by_hand(reference[[6, 5, 4, 3]], other[[6, 5, 4, 3]], [5, 4, 3, 2])

    assert {name: line.n for name, line in found.items()} == {"python": 3, "cpp": 4, ALL: 7}
    assert found["python"].perplexity == pytest.approx(math.exp(python.loss / 3))
    assert found["cpp"].divergence == pytest.approx(cpp.divergence / 4)
    both = (python.loss + cpp.loss) / 7
    assert found[ALL].perplexity == pytest.approx(math.exp(both))
    assert found[ALL].reference_perplexity == pytest.approx(
        math.exp((python.reference_loss + cpp.reference_loss) / 7)
    )


def test_models_are_told_apart_and_windows_announced() -> None:
    seen: list[Window] = []
    window = Window("python", "a.py", (1, 2, 3))
    models = [Table("int8", random_logits(2)), Table("bitsandbytes", random_logits(3))]
    found = measure([window], Table("float32", random_logits(1)), models, seen.append)

    assert [(line.model, line.language) for line in found] == [
        ("int8", "python"),
        ("bitsandbytes", "python"),
        ("int8", ALL),
        ("bitsandbytes", ALL),
    ]
    assert seen == [window]


def test_models_that_cut_their_pieces_otherwise_are_not_compared() -> None:
    logits = random_logits(1)

    with pytest.raises(ValueError, match="zip"):
        measure(
            [Window("python", "a.py", (1, 2, 3, 4))], Table("a", logits), [Table("b", logits, n_at_once=4)]
        )


@pytest.mark.parametrize(
    ("change", "divergence", "is_within"),
    [(0.002, 0.0015, True), (-0.0021, 0.0, False), (0.0, 0.0016, False)],
)
def test_targets(change: float, divergence: float, is_within: bool) -> None:
    line = Fidelity("int8", ALL, 5000, 7.0, 7.0, change, 0.001, divergence, 0.986)

    assert line.is_within_targets is is_within


def test_the_report_shows_percent_and_its_error() -> None:
    line = Fidelity("int8", ALL, 5000, 7.143, 7.1401, -0.0004, 0.0013, 0.00104, 0.986)

    assert "| -0.040 ± 0.130 % | 0.00104 | 98.60 % |" in fidelity_markdown([line])
    assert fidelity_json([line])[0]["is_within_targets"] is True
