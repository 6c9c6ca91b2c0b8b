"""Choosing the next token from the logits: greedy, or drawn after temperature, top-k and top-p."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from treefill import _kernels
from treefill.engine.api import Sampling, TokenId
from treefill.engine.backend import Logits

Ids = NDArray[np.int64]


MAX_CANDIDATES = 256
"""So many tokens are offered for one place; a model that wants none of them there has nothing to say."""


def candidates(
    logits: Logits, sampling: Sampling, random: np.random.Generator, allowed: Ids | None = None
) -> Iterator[TokenId]:
    """Token ids in the order in which they would be chosen, each in case those before it may not be taken.

    Among `allowed` where given (ascending ids, at least one). Greedy, the first that may be taken is the one of the
    highest logit that may: what masking all others would give. Drawn, the ones that temperature, top-k and top-p leave
    of the model's own distribution are drawn without putting back, which is the law of that distribution given that
    the token may be taken; when all of them are used up, the others come by their logits.
    """
    scores = logits if allowed is None else logits[allowed]
    for position in islice(_positions(scores, sampling, random), MAX_CANDIDATES):
        if scores[position] == -np.inf:
            return
        yield position if allowed is None else int(allowed[position])


def candidates_under(
    logits: Logits, sampling: Sampling, random: np.random.Generator, words: NDArray[np.uint32]
) -> Iterator[tuple[int, TokenId]]:
    """Those of `candidates` that a mask `[ceil(V / 32)]` allows, each with its number there.

    Greedy, the first costs one look at the mask and the logits, however many are forbidden before it.
    """
    if sampling.temperature > 0:
        for number, token in enumerate(candidates(logits, sampling, random)):
            if words[token // 32] >> np.uint32(token % 32) & 1:
                yield number, token
        return
    words = words.copy()
    while (token := int(_kernels.masked_argmax(logits, words)[0])) >= 0:
        number = _n_before(logits, token)
        if number >= MAX_CANDIDATES:
            return
        yield number, token
        words[token // 32] &= ~np.uint32(1 << token % 32)


def choose(
    logits: Logits, sampling: Sampling, random: np.random.Generator, allowed: Ids | None = None
) -> TokenId:
    """One token id, among `allowed` where given (ascending ids, at least one)."""
    return next(candidates(logits, sampling, random, allowed))


def _n_before(logits: Logits, token: TokenId) -> int:
    """How many tokens come before it by their logits, of equals those with lower ids."""
    if token == int(logits.argmax()):
        return 0  # nearly always, and then it need not be counted
    value = logits[token]
    return int(np.count_nonzero(logits > value) + np.count_nonzero(logits[:token] == value))


def _positions(scores: Logits, sampling: Sampling, random: np.random.Generator) -> Iterator[int]:
    if sampling.temperature <= 0:
        yield int(scores.argmax())
        yield from _largest(scores, MAX_CANDIDATES)[1:].tolist()
        return
    kept = _likeliest(scores, sampling)
    weights = _softmax(scores[kept], sampling.temperature)
    for _ in range(min(len(kept), MAX_CANDIDATES)):
        total = weights.sum()
        if not total > 0:
            break
        drawn = int(random.choice(len(kept), p=weights / total))
        weights[drawn] = 0
        yield int(kept[drawn])
    others = _largest(scores, min(len(scores), len(kept) + MAX_CANDIDATES))
    yield from others[~np.isin(others, kept)].tolist()


def _likeliest(scores: Logits, sampling: Sampling) -> Ids:
    """Positions that top-k and top-p leave. Top-p counts after temperature, as elsewhere."""
    if sampling.top_k > 0:
        order = _largest(scores, sampling.top_k)
        return order[: _n_reaching(sampling.top_p, _softmax(scores[order], sampling.temperature))]
    if sampling.top_p < 1:
        return _nucleus(scores, sampling)
    return np.arange(len(scores))


def _nucleus(scores: Logits, sampling: Sampling) -> Ids:
    """The likeliest that together reach top-p: seldom more than some hundred, so the whole is not put in order."""
    probabilities = _softmax(scores, sampling.temperature)
    n = 256
    while True:
        order = _largest(scores, n)
        n_kept = _n_reaching(sampling.top_p, probabilities[order])
        if n_kept < n or n >= len(scores):
            return order[:n_kept]
        n *= 16


def _largest(scores: Logits, n: int) -> Ids:
    """Positions of the `n` largest, the largest first and of equals the first; all where there are fewer."""
    if n >= len(scores):
        return np.argsort(-scores, kind="stable")
    least = np.partition(scores, len(scores) - n)[len(scores) - n]
    positions = np.flatnonzero(scores >= least)
    return positions[np.argsort(-scores[positions], kind="stable")][:n]


def _n_reaching(share: float, probabilities: NDArray[np.float64]) -> int:
    """How many of the first are needed, at least one, until they have that share."""
    if share >= 1:
        return len(probabilities)
    n_before = np.cumsum(probabilities) - probabilities
    return int(np.count_nonzero(n_before < max(share, 1e-9)))


def _softmax(scores: Logits, temperature: float) -> NDArray[np.float64]:
    """Probabilities; the best score is taken off first, so that a tiny temperature overflows nothing."""
    with np.errstate(over="ignore"):  # to minus infinity, whose exponential is the 0 that is meant
        exponentials = np.exp((scores.astype(np.float64) - float(scores.max())) / temperature)
    probabilities: NDArray[np.float64] = exponentials / exponentials.sum()
    return probabilities
