"""Choosing the next token from the logits: greedy, or drawn after temperature, top-k and top-p."""

import numpy as np
from numpy.typing import NDArray

from treefill.engine.api import Sampling, TokenId
from treefill.engine.backend import Logits

Ids = NDArray[np.int64]


def choose(
    logits: Logits, sampling: Sampling, random: np.random.Generator, allowed: Ids | None = None
) -> TokenId:
    """One token id, among `allowed` where given (ascending ids, at least one)."""
    ids = np.arange(len(logits)) if allowed is None else allowed
    scores = logits if allowed is None else logits[allowed]
    if sampling.temperature <= 0:
        return int(ids[scores.argmax()])
    kept = _likeliest(scores, sampling)
    return int(ids[random.choice(kept, p=_softmax(scores[kept], sampling.temperature))])


def _likeliest(scores: Logits, sampling: Sampling) -> Ids:
    """Positions that top-k and top-p leave, likeliest first. Top-p counts after temperature, as elsewhere."""
    order = np.argsort(-scores, kind="stable")
    if sampling.top_k > 0:
        order = order[: sampling.top_k]
    if sampling.top_p < 1:
        probabilities = _softmax(scores[order], sampling.temperature)
        n_before = np.cumsum(probabilities) - probabilities
        order = order[n_before < max(sampling.top_p, 1e-9)]
    return order


def _softmax(scores: Logits, temperature: float) -> NDArray[np.float64]:
    """Probabilities; the best score is taken off first, so that a tiny temperature overflows nothing."""
    with np.errstate(over="ignore"):  # to minus infinity, whose exponential is the 0 that is meant
        exponentials = np.exp((scores.astype(np.float64) - float(scores.max())) / temperature)
    probabilities: NDArray[np.float64] = exponentials / exponentials.sum()
    return probabilities
