"""Choosing a token from logits."""

import numpy as np
import pytest
from treefill.engine.api import Sampling
from treefill.engine.sampler import choose

LOGITS = np.array([0.0, 3.0, 2.0, -np.inf, 2.5], dtype=np.float32)


def drawn(sampling: Sampling, allowed: list[int] | None = None) -> set[int]:
    random = np.random.default_rng(0)
    ids = None if allowed is None else np.array(allowed)
    return {choose(LOGITS, sampling, random, ids) for _ in range(400)}


def test_greedy_takes_the_likeliest_and_the_first_of_equals() -> None:
    assert drawn(Sampling()) == {1}
    assert choose(np.array([1, 2, 2], np.float32), Sampling(), np.random.default_rng(0)) == 1


def test_a_barred_token_is_never_drawn() -> None:
    assert drawn(Sampling(temperature=50.0)) == {0, 1, 2, 4}


@pytest.mark.parametrize("temperature", [1e-40, 1e-300, 5e-324])
def test_a_tiny_temperature_is_as_good_as_greedy(temperature: float) -> None:
    assert drawn(Sampling(temperature=temperature)) == {1}
    assert drawn(Sampling(temperature=temperature, top_p=0.9)) == {1}


def test_top_k_keeps_the_likeliest() -> None:
    assert drawn(Sampling(temperature=5.0, top_k=2)) == {1, 4}


def test_top_p_keeps_what_reaches_the_share() -> None:
    assert drawn(Sampling(temperature=1.0, top_p=0.5)) == {1, 4}
    assert drawn(Sampling(temperature=1.0, top_p=0.0)) == {1}


@pytest.mark.parametrize("top_k", [0, 3, 300, 5000])
@pytest.mark.parametrize("top_p", [0.01, 0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("spread", [0.0, 0.1, 3.0])
def test_what_is_drawn_is_what_ordering_the_whole_vocabulary_leaves(
    top_k: int, top_p: float, spread: float
) -> None:
    logits = np.random.default_rng(0).normal(0, spread, 2000).round(1).astype(np.float32)  # many are equal
    sampling = Sampling(temperature=0.8, top_k=top_k, top_p=top_p)
    order = np.argsort(-logits, kind="stable")[: top_k or None]
    shares = np.exp(logits[order].astype(np.float64) / 0.8)
    before = np.cumsum(shares / shares.sum()) - shares / shares.sum()
    left = set(order[before < top_p] if top_p < 1 else order)

    random = np.random.default_rng(1)
    seen = {choose(logits, sampling, random) for _ in range(300)}

    assert seen <= left
    assert len(left) > 30 or seen == left


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0)])
def test_only_allowed_tokens_are_chosen(sampling: Sampling) -> None:
    assert drawn(sampling, allowed=[0, 2]) <= {0, 2}
    assert drawn(sampling, allowed=[0]) == {0}


def test_frequencies_follow_the_temperature() -> None:
    random = np.random.default_rng(1)
    logits = np.log(np.array([0.5, 0.3, 0.2], dtype=np.float32))
    draws = [choose(logits, Sampling(temperature=1.0), random) for _ in range(4000)]

    assert np.bincount(draws) / 4000 == pytest.approx([0.5, 0.3, 0.2], abs=0.03)
