"""How far a model is from float32: perplexity, Kullback-Leibler divergence, agreement on the likeliest token.

Logits come in pieces of some positions, all models in step, so that no more than one piece of each is in
memory. Who computes them is not known here.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from treefill.engine.api import TokenId
from treefill.evaluation.texts import Window

MAX_PERPLEXITY_CHANGE = 0.002
MAX_DIVERGENCE = 0.0015
"""What int8 may lose against float32."""
N_AT_ONCE = 32
"""Positions compared at once: 40 MB in double precision for a vocabulary of 152,000, some copies of it."""
ALL = "all"
"""Stands for every language together."""

Logits = NDArray[np.float32]


class LogitsModel(Protocol):
    """A model that gives logits at every position."""

    name: str

    def logits(self, ids: Sequence[TokenId]) -> Iterator[Logits]:
        """Logits after each of `ids`, in pieces [n, V]; all models cut their pieces alike."""
        ...


@dataclass(frozen=True, slots=True)
class Fidelity:
    """One model against the reference on one language's text, or on all."""

    model: str
    language: str
    n: int
    """Predicted tokens."""
    reference_perplexity: float
    perplexity: float
    change: float
    """Of the perplexity: 0.001 is a tenth of a percent more."""
    change_error: float
    """Half of the 95 % interval of `change`, tokens taken as independent."""
    divergence: float
    """Mean Kullback-Leibler divergence from the reference, in nats."""
    agreement: float
    """Share of positions whose likeliest token is the reference's."""

    @property
    def is_within_targets(self) -> bool:
        """True where perplexity and divergence are what int8 must reach."""
        return abs(self.change) <= MAX_PERPLEXITY_CHANGE and self.divergence <= MAX_DIVERGENCE


@dataclass(slots=True)
class Sums:
    """Sums over positions, from which a `Fidelity` is made."""

    n: int = 0
    reference_loss: float = 0.0
    loss: float = 0.0
    squared_change: float = 0.0
    """Of the loss, token by token."""
    divergence: float = 0.0
    n_agreed: int = 0

    def add(self, other: "Sums") -> None:
        """Add another piece's sums."""
        self.n += other.n
        self.reference_loss += other.reference_loss
        self.loss += other.loss
        self.squared_change += other.squared_change
        self.divergence += other.divergence
        self.n_agreed += other.n_agreed


def measure(
    windows: Iterable[Window],
    reference: LogitsModel,
    models: Sequence[LogitsModel],
    on_window: Callable[[Window], None] = lambda window: None,
) -> list[Fidelity]:
    """Compare each model with the reference, by language and over all."""
    sums: dict[tuple[str, str], Sums] = {}
    for window in windows:
        for model, found in zip(models, _window_sums(window, reference, models), strict=True):
            for language in (window.language, ALL):
                sums.setdefault((model.name, language), Sums()).add(found)
        on_window(window)
    languages = [*dict.fromkeys(language for _, language in sums if language != ALL), ALL]
    return [
        _fidelity(model.name, language, sums[model.name, language])
        for language in languages
        for model in models
        if (model.name, language) in sums
    ]


def compare(reference: Logits, other: Logits, targets: NDArray[np.int64]) -> Sums:
    """Compare logits [n, V] at positions whose next tokens are `targets` [n]."""
    log_p, log_q = _log_softmax(reference), _log_softmax(other)
    rows = np.arange(len(targets))
    change = log_p[rows, targets] - log_q[rows, targets]
    divergence = np.einsum("nv,nv->n", np.exp(log_p), log_p - log_q, dtype=np.float64)
    return Sums(
        n=len(targets),
        reference_loss=float(-log_p[rows, targets].sum()),
        loss=float(-log_q[rows, targets].sum()),
        squared_change=float((change**2).sum()),
        divergence=float(divergence.sum()),
        n_agreed=int((reference.argmax(1) == other.argmax(1)).sum()),
    )


def _window_sums(window: Window, reference: LogitsModel, models: Sequence[LogitsModel]) -> list[Sums]:
    totals = [Sums() for _ in models]
    streams = [model.logits(window.ids) for model in (reference, *models)]
    start = 0
    for expected, *others in zip(*streams, strict=True):
        targets = np.asarray(
            window.ids[start + 1 : start + 1 + len(expected)], np.int64
        )  # one less at the end
        for total, logits in zip(totals, others, strict=True):
            for at in range(0, len(targets), N_AT_ONCE):
                rows = slice(at, min(at + N_AT_ONCE, len(targets)))
                total.add(compare(expected[rows], logits[rows], targets[rows]))
        start += len(expected)
    return totals


def _log_softmax(logits: Logits) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64) - logits.max(1, keepdims=True)
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return result


def _fidelity(model: str, language: str, sums: Sums) -> Fidelity:
    mean_change = (sums.loss - sums.reference_loss) / sums.n
    variance = max(0.0, sums.squared_change / sums.n - mean_change**2)
    return Fidelity(
        model=model,
        language=language,
        n=sums.n,
        reference_perplexity=math.exp(sums.reference_loss / sums.n),
        perplexity=math.exp(sums.loss / sums.n),
        change=math.expm1(mean_change),
        change_error=1.96 * math.sqrt(variance / sums.n),
        divergence=sums.divergence / sums.n,
        agreement=sums.n_agreed / sums.n,
    )
