"""What is asked of logits under a token mask, against plain twins, and every instruction set against every other."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from treefill import _kernels

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint32]

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, -1e-42, 3e38, -3e38, -1e30], np.float32)
V = 151_936


def packed(allowed: Bools) -> Words:
    """[..., V] → [..., ceil(V / 32)], with the bits set that no token has."""
    n_words = -(-allowed.shape[-1] // 32)
    bits = np.ones((*allowed.shape[:-1], n_words * 32), np.bool_)
    bits[..., : allowed.shape[-1]] = allowed
    return np.packbits(bits, axis=-1, bitorder="little").view("<u4").reshape(*allowed.shape[:-1], n_words)


def masked(logits: Floats, allowed: Bools) -> Floats:
    """What the kernels never write: minus infinity where nothing may be taken."""
    return np.where(allowed & ~np.isnan(logits), logits, np.float32(-np.inf))


def argmax_twin(logits: Floats, allowed: Bools) -> NDArray[np.int32]:
    scores = masked(logits, allowed)
    if scores.shape[1] == 0:
        return np.full(len(scores), -1, np.int32)
    return np.where(scores.max(axis=1) > -np.inf, scores.argmax(axis=1), -1).astype(np.int32)


def top_k_twin(logits: Floats, allowed: Bools, k: int) -> tuple[NDArray[np.int32], Floats]:
    tokens, values = np.full((len(logits), k), -1, np.int32), np.full((len(logits), k), -np.inf, np.float32)
    for row, scores in enumerate(masked(logits, allowed)):
        order = np.argsort(-scores, kind="stable")[:k]
        order = order[scores[order] > -np.inf]
        tokens[row, : len(order)], values[row, : len(order)] = order, logits[row, order]
    return tokens, values


def log_sum_exp_twin(logits: Floats, allowed: Bools) -> NDArray[np.float64]:
    scores = masked(logits, allowed).astype(np.float64)
    highest = scores.max(axis=1, initial=-np.inf)
    shift = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(shift + np.log(np.exp(scores - shift[:, None]).sum(axis=1)))


@dataclass(frozen=True)
class Batch:
    logits: Floats  # [n, V]
    allowed: Bools  # [n, V], or [V] for all rows

    @property
    def masks(self) -> Words:
        return packed(self.allowed)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    n_rows, n_tokens = draw(st.integers(0, 5)), draw(st.integers(0, 1200))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (n_rows, n_tokens)
    logits = random.normal(size=shape).astype(np.float32) * np.float32(
        draw(st.sampled_from([0, 0.01, 4, 60]))
    )
    if draw(st.booleans()):  # ties
        logits = np.round(logits)
    is_special = random.random(shape) < draw(st.sampled_from([0, 0.01, 0.3, 1]))
    kinds = draw(st.lists(st.sampled_from(SPECIAL.tolist()), min_size=1, max_size=4))
    logits[is_special] = random.choice(np.array(kinds, np.float32), is_special.sum())
    allowed = random.random(n_tokens if draw(st.booleans()) else shape) < draw(
        st.sampled_from([0, 0.01, 0.5, 0.95, 1])
    )
    return Batch(logits, allowed)


@pytest.fixture(params=_kernels.instruction_sets())
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    _kernels.use_instruction_set(request.param)
    yield request.param
    _kernels.use_instruction_set("")


@pytest.fixture
def default_threads() -> Iterator[None]:
    yield
    _kernels.set_threads(0)


@given(batch=batches(), k=st.sampled_from([0, 1, 2, 7, 50, 300, 1500]))
@example(batch=Batch(np.zeros((0, V), np.float32), np.ones(V, np.bool_)), k=1)
@example(batch=Batch(np.zeros((2, 0), np.float32), np.ones((2, 0), np.bool_)), k=3)
@example(batch=Batch(np.arange(4000, dtype=np.float32)[None], np.ones(4000, np.bool_)), k=10)
@example(batch=Batch(-np.arange(4000, dtype=np.float32)[None] // 7, np.ones(4000, np.bool_)), k=10)
def test_every_instruction_set_gives_what_the_twins_give(batch: Batch, k: int) -> None:
    sums = []
    for name in _kernels.instruction_sets():
        _kernels.use_instruction_set(name)
        tokens, values = _kernels.masked_top_k(batch.logits, batch.masks, k)
        expected_tokens, expected_values = top_k_twin(batch.logits, batch.allowed, k)

        np.testing.assert_array_equal(
            _kernels.masked_argmax(batch.logits, batch.masks), argmax_twin(batch.logits, batch.allowed)
        )
        np.testing.assert_array_equal(tokens, expected_tokens)
        assert values.tobytes() == expected_values.tobytes()
        sums.append(_kernels.masked_log_sum_exp(batch.logits, batch.masks))
    _kernels.use_instruction_set("")

    assert len({answer.tobytes() for answer in sums}) == 1
    expected = log_sum_exp_twin(batch.logits, batch.allowed)
    np.testing.assert_allclose(sums[0], expected, rtol=2.0**-24, atol=1.5e-6)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("spread", [0.0, 1e-3, 3.0, 9.0])
@pytest.mark.parametrize("offset", [-11.3, 0.0, 7.7])
def test_log_sum_exp_is_as_near_as_it_says_over_a_whole_vocabulary(spread: float, offset: float) -> None:
    """With many equal logits far below the highest, every rounding is the same, and they add up."""
    random = np.random.default_rng(5)
    logits = (random.normal(size=(1, V)) * spread + offset).astype(np.float32)
    logits[0, 7] = 1.3
    allowed = random.random((1, V)) < 0.95

    answer = _kernels.masked_log_sum_exp(logits, packed(allowed)).astype(np.float64)

    np.testing.assert_allclose(answer, log_sum_exp_twin(logits, allowed), rtol=2.0**-24, atol=1.5e-6)


@pytest.mark.usefixtures("instruction_set", "default_threads")
@pytest.mark.parametrize("is_one_mask", [True, False])
def test_many_rows_on_several_threads_give_what_each_gives_alone(is_one_mask: bool) -> None:
    random = np.random.default_rng(3)
    logits = random.normal(size=(8, V)).astype(np.float32)
    allowed = random.random(V if is_one_mask else (8, V)) < 0.2
    masks = packed(allowed)
    _kernels.set_threads(3)

    together = (
        _kernels.masked_argmax(logits, masks),
        *_kernels.masked_top_k(logits, masks, 20),
        _kernels.masked_log_sum_exp(logits, masks),
    )

    for row in range(8):
        mask = masks if is_one_mask else masks[row]
        alone = (
            _kernels.masked_argmax(logits[row], mask),
            *_kernels.masked_top_k(logits[row], mask, 20),
            _kernels.masked_log_sum_exp(logits[row], mask),
        )
        for all_rows, one in zip(together, alone, strict=True):
            assert all_rows[row].tobytes() == one[0].tobytes()


def test_masks_of_torch_are_read_where_they_lie() -> None:
    """Libraries of grammars keep the words as int32, which torch has had for longer."""
    logits = torch.tensor([[1.0, 5.0, 3.0], [1.0, 5.0, 3.0]])
    masks = torch.tensor([[0b101], [-1]], dtype=torch.int32)

    assert _kernels.masked_argmax(logits, masks).tolist() == [2, 1]


def test_what_is_asked_for_is_not_written_to() -> None:
    logits, masks = np.zeros((2, 40), np.float32), np.full((2, 2), 7, np.uint32)
    logits.flags.writeable = masks.flags.writeable = False

    assert _kernels.masked_argmax(logits, masks).tolist() == [0, 0]


GOOD = np.zeros((2, 40), np.float32)
MASKS = np.zeros((2, 2), np.uint32)


@pytest.mark.parametrize(
    ("logits", "masks", "message"),
    [
        (GOOD.astype(np.float64), MASKS, "^logits must be of float32; convert it first$"),
        (GOOD.astype(">f4"), MASKS, "^logits must be an array of numbers in this machine's byte order$"),
        ([0.0], MASKS, "^logits must be an array of numbers in this machine's byte order$"),
        (GOOD, MASKS.astype(np.int64), "^masks must be of uint32 or int32; convert it first$"),
        (GOOD, np.ones((2, 40), np.bool_), "^masks must be of uint32 or int32; convert it first$"),
        (GOOD[:, ::2], MASKS, "^logits is not contiguous; copy it first$"),
        (GOOD.T, MASKS, "^logits is not contiguous; copy it first$"),
        (GOOD, np.zeros((2, 4), np.uint32)[:, :2], "^masks is not contiguous; copy it first$"),
        (
            np.frombuffer(bytes(321), np.uint8)[1:].view(np.float32),
            MASKS[0],
            "^logits is not aligned; copy it",
        ),
        (GOOD[None], MASKS, r"^logits has shape \[1, 2, 40\], expected one row or rows$"),
        (np.float32(1), MASKS, r"^logits (has shape \[\], expected one row|must be an array of numbers)"),
        (
            GOOD,
            np.zeros((3, 2), np.uint32),
            r"^masks has shape \[3, 2\], expected \[2, 2\] or \[2\] for logits",
        ),
        (
            GOOD,
            np.zeros(3, np.uint32),
            r"^masks has shape \[3\], expected \[2, 2\] or \[2\] for logits of shape",
        ),
        (
            GOOD[0],
            MASKS,
            r"^masks has shape \[2, 2\], expected \[1, 2\] or \[2\] for logits of shape \[40\]$",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_a_sentence(
    logits: object, masks: object, message: str
) -> None:
    for ask in (
        _kernels.masked_argmax,
        _kernels.masked_log_sum_exp,
        lambda *given: _kernels.masked_top_k(*given, 3),
    ):
        with pytest.raises(ValueError, match=message):
            ask(logits, masks)


@pytest.mark.parametrize("k", [-1, 2**40])
def test_a_k_that_cannot_be_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=r"^k is .*, expected 0 to 2\^30$"):
        _kernels.masked_top_k(GOOD, MASKS, k)
