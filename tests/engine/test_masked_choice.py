"""The decode loop under a mask: the tokens that it would write without one, chosen another way."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from treefill.engine.api import CancelFlag, Finish, GenerateRequest, Generation, Sampling
from treefill.engine.generate import Generator
from treefill.engine.sampler import MAX_CANDIDATES, candidates, candidates_under
from treefill.engine.session import Session

from tests.engine.test_guard import BYTES, END, LETTERS, NEVER, PROMPT, Random, Rule, letters_at
from tests.helpers.scripted_backend import ScriptedBackend


def words_of(allowed: set[int], n_tokens: int = BYTES.n_tokens) -> NDArray[np.uint32]:
    bits = np.zeros(-(-n_tokens // 32) * 32, np.bool_)
    bits[list(allowed)] = True
    return np.packbits(bits, bitorder="little").view(np.uint32)


def written(
    backend: ScriptedBackend, rule: Rule, mask: Callable[[], NDArray[np.uint32] | None] | None, **more: object
) -> Generation:
    request = GenerateRequest(PROMPT, guard=rule, mask=mask, **more)  # type: ignore[arg-type]
    return Generator(Session(backend), BYTES, backend.n_context, NEVER).generate(request, CancelFlag())


def rule_and_mask(seed: int, extra: set[int]) -> tuple[Rule, Callable[[], NDArray[np.uint32]]]:
    """A rule that allows some letters at each place, and its mask with some more."""
    rule = Rule(letters_at(seed), lambda text: len(text) % 3 == 0)

    def mask() -> NDArray[np.uint32]:
        may_come = {letter for letter in LETTERS if rule.is_fine(rule.text + bytes([letter]))}
        return words_of(may_come | extra)

    return rule, mask


@given(
    st.integers(0, 1 << 30),
    st.integers(0, 1 << 30),
    st.sampled_from([0.0, 0.7, 1.5]),
    st.sampled_from([0, 3]),
    st.sets(st.sampled_from(list(LETTERS))),
)
def test_a_mask_changes_no_token(
    seed: int, rule_seed: int, temperature: float, top_k: int, extra: set[int]
) -> None:
    """Also where it allows what the guard does not."""
    sampling = Sampling(temperature, top_k, seed=seed)
    rule, mask = rule_and_mask(rule_seed, extra)
    alone = written(
        Random(seed), Rule(rule.is_fine, rule.may_stop), None, sampling=sampling, max_new_tokens=12
    )
    masked = written(Random(seed), rule, mask, sampling=sampling, max_new_tokens=12)

    assert (masked.token_ids, masked.finish) == (alone.token_ids, alone.finish)
    assert (masked.n_guarded, masked.n_refused_first) == (alone.n_guarded, alone.n_refused_first)
    assert masked.n_undone == alone.n_undone
    assert masked.n_masked == masked.n_new_tokens + (masked.finish is Finish.END)
    assert alone.n_masked == 0


def test_where_no_mask_is_known_the_guard_alone_decides() -> None:
    rule, _ = rule_and_mask(5, set())
    alone = written(Random(3), Rule(rule.is_fine, rule.may_stop), None, max_new_tokens=9)
    unknown = written(Random(3), rule, lambda: None, max_new_tokens=9)

    assert unknown.token_ids == alone.token_ids
    assert unknown.n_masked == 0


def test_under_a_mask_the_guard_is_asked_about_what_is_taken_alone() -> None:
    rule, mask = rule_and_mask(11, set())
    generation = written(Random(2), rule, mask, max_new_tokens=8)

    assert [*rule.asked] == [bytes([token]) for token in generation.token_ids]


def test_the_end_is_the_guards_to_allow_whatever_the_mask_says() -> None:
    rule = Rule(lambda text: text in (b"", b"a", b"ab"), lambda text: text == b"ab")
    script = {0: [ord("a")], 1: [END, ord("b")], 2: [END]}
    backend = ScriptedBackend(lambda ids: script[len(ids) - len(PROMPT)], width=BYTES.n_tokens)
    generation = written(backend, rule, lambda: words_of({ord("a"), ord("b")}), max_new_tokens=9)

    assert (generation.text, generation.finish) == ("ab", Finish.END)


@given(st.integers(0, 1 << 30), st.sampled_from([40, 300, 900]), st.sampled_from([0.02, 0.3, 1.0]))
def test_candidates_under_a_mask_keep_their_numbers(seed: int, n_tokens: int, density: float) -> None:
    random = np.random.default_rng(seed)
    logits = random.normal(0, 2, n_tokens).round(1).astype(np.float32)  # some are equal
    allowed = set(np.flatnonzero(random.random(n_tokens) < density).tolist())
    expected = [
        (number, token)
        for number, token in enumerate(candidates(logits, Sampling(), random))
        if token in allowed
    ]

    found = [*candidates_under(logits, Sampling(), random, words_of(allowed, n_tokens))]

    assert found == expected
    assert all(number < MAX_CANDIDATES for number, _ in found)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nothing_comes_of_a_mask_that_allows_nothing(temperature: float) -> None:
    logits = np.arange(64, dtype=np.float32)

    assert [
        *candidates_under(logits, Sampling(temperature), np.random.default_rng(0), words_of(set(), 64))
    ] == []


def test_a_mask_that_is_made_while_the_model_computes_is_used() -> None:
    rule, mask = rule_and_mask(7, set())
    asked: list[bytes] = []

    def made_meanwhile() -> NDArray[np.uint32] | None:
        asked.append(rule.text)
        return mask() if asked.count(rule.text) == 2 else None

    alone = written(Random(4), rule_and_mask(7, set())[0], None, max_new_tokens=6)
    masked = written(Random(4), rule, made_meanwhile, max_new_tokens=6)

    assert masked.token_ids == alone.token_ids
    assert masked.n_masked == masked.n_new_tokens + (masked.finish is Finish.END)
    assert max(asked.count(text) for text in asked) <= 3, (
        "twice a place, and once more where a token was taken back"
    )


def test_a_mask_that_is_known_is_asked_for_once() -> None:
    rule, mask = rule_and_mask(7, set())
    asked: list[bytes] = []

    def noted() -> NDArray[np.uint32]:
        asked.append(rule.text)
        return mask()

    generation = written(Random(4), rule, noted, max_new_tokens=6)

    assert generation.n_undone == 0
    assert len(asked) == len(set(asked)) == generation.n_masked
