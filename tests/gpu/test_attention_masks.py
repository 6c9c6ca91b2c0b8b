"""Attention masks for batches of unequal lengths, built by the kernel under Triton's interpreter."""

import math
import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention
from treefill.gpu import AttentionBatch, AttentionMasks, Padding, mask_dtype, reference, write_attention_mask
from treefill.gpu.launch import Launch

DTYPES = [torch.float16, torch.bfloat16, torch.float32]


@st.composite
def batches(draw: st.DrawFn) -> AttentionBatch:
    n_queries = draw(st.integers(1, 5))
    rows = draw(st.lists(st.tuples(st.integers(0, n_queries), st.integers(0, 7)), max_size=3))
    longest = max((length + past for length, past in rows), default=0)
    return AttentionBatch(
        lengths=tuple(length for length, _ in rows),
        pasts=tuple(past for _, past in rows),
        n_queries=n_queries,
        n_keys=max(1, longest + draw(st.integers(0, 3))),
        padding=draw(st.sampled_from(Padding)),
        is_finite=draw(st.booleans()),
    )


def shape_of(batch: AttentionBatch) -> tuple[int, int, int, int]:
    return len(batch.lengths), 1, batch.n_queries, batch.n_keys


def twin(batch: AttentionBatch, dtype: torch.dtype) -> torch.Tensor:
    mask = torch.full(shape_of(batch), math.nan, dtype=dtype)
    reference.write_attention_mask(mask, batch)
    return mask


@settings(max_examples=25)
@given(batch=batches(), dtype=st.sampled_from(DTYPES), block=st.sampled_from([None, 2, 8]))
def test_the_kernel_writes_what_its_twin_writes(
    batch: AttentionBatch, dtype: torch.dtype, block: int | None
) -> None:
    n_rows, _, n_queries, n_keys = shape_of(batch)
    launch = block and Launch(block, block, 1, n_rows * n_queries * math.ceil(n_keys / block))
    mask = torch.full(shape_of(batch), math.nan, dtype=dtype)
    write_attention_mask(mask, batch, launch=launch or None)

    assert torch.equal(mask, twin(batch, dtype))


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        (Padding.RIGHT, ["xxx.", "xxxx", "o...", "x...", "xx..", "xxx."]),
        (Padding.LEFT, ["o...", "xxx.", "xxxx", ".x..", ".xx.", ".xxx"]),
    ],
)
def test_the_picture_in_the_module(padding: Padding, expected: list[str]) -> None:
    """Written out by hand, so that kernel and twin cannot be wrong together."""
    batch = AttentionBatch((2, 3), (2, 0), n_queries=3, n_keys=4, padding=padding)
    mask = torch.empty(shape_of(batch))
    write_attention_mask(mask, batch)
    sees = [[character != "." for character in line] for line in expected]

    assert (mask == 0).view(6, 4).tolist() == sees
    assert mask[mask != 0].isneginf().all()


@pytest.mark.parametrize("padding", Padding)
@pytest.mark.parametrize("is_finite", [True, False])
def test_a_row_in_a_batch_attends_as_it_does_alone(padding: Padding, is_finite: bool) -> None:
    """Chunks after caches of other lengths, an empty row among them; what stands in the padding changes nothing."""
    lengths, pasts = (3, 1, 0, 4), (5, 0, 0, 2)
    batch = AttentionBatch(lengths, pasts, n_queries=5, n_keys=11, padding=padding, is_finite=is_finite)
    random = torch.Generator().manual_seed(1)
    q = torch.randn((4, 2, 5, 8), generator=random)
    k, v = torch.randn((2, 4, 2, 11, 8), generator=random)
    mask = torch.empty(shape_of(batch))
    write_attention_mask(mask, batch)
    together = scaled_dot_product_attention(q, k, v, attn_mask=mask)

    assert together.isfinite().all()
    for row, (length, past) in enumerate(zip(lengths, pasts, strict=True)):
        is_left = padding is Padding.LEFT
        first_q, first_k = (5 - length, 11 - past - length) if is_left else (0, 0)
        keys = slice(first_k, first_k + past + length)
        for i in range(length):
            seen = slice(keys.start, keys.start + past + i + 1)
            query = slice(first_q + i, first_q + i + 1)
            alone = scaled_dot_product_attention(q[row, :, query], k[row, :, seen], v[row, :, seen])

            torch.testing.assert_close(together[row, :, query], alone)


@pytest.mark.parametrize("dtype", DTYPES)
def test_finite_masks_hide_with_the_lowest_number(dtype: torch.dtype) -> None:
    batch = AttentionBatch((2,), (0,), n_queries=2, n_keys=3, is_finite=True)
    mask = torch.empty(shape_of(batch), dtype=dtype)
    write_attention_mask(mask, batch)

    assert mask[mask != 0].tolist() == [torch.finfo(dtype).min] * 3


class TestType:
    def test_float16_counts_to_2048(self) -> None:
        """Why the limit is where it is: a sum of ones in float16 stands still there."""
        limit = torch.tensor(2048, dtype=torch.float16)

        assert limit + 1 == limit
        assert limit - 1 + 1 == limit
        assert limit - 1 != limit
        assert torch.arange(2049).to(torch.float16).unique().numel() == 2049
        assert torch.arange(2050).to(torch.float16).unique().numel() == 2049

    def test_the_kernel_counts_on_whatever_the_mask_is_made_of(self) -> None:
        batch = AttentionBatch((2,), (2048,), n_queries=2, n_keys=2051)
        mask = torch.empty(shape_of(batch), dtype=torch.float16)
        write_attention_mask(mask, batch)

        assert (mask[0, 0] == 0).sum(1).tolist() == [2049, 2050]

    @pytest.mark.parametrize(
        ("n_keys", "model", "expected"),
        [
            (1, torch.float16, torch.float16),
            (2047, torch.float16, torch.float16),
            (2048, torch.float16, torch.float32),
            (2047, torch.bfloat16, torch.bfloat16),
            (2048, torch.bfloat16, torch.bfloat16),
            (2047, torch.float32, torch.float32),
            (2048, torch.float32, torch.float32),
        ],
    )
    def test_it_is_one_that_attention_takes(
        self, n_keys: int, model: torch.dtype, expected: torch.dtype
    ) -> None:
        assert mask_dtype(n_keys, model) is expected

        q, k = torch.ones((1, 1, 1, 8), dtype=model), torch.ones((1, 1, n_keys, 8), dtype=model)
        mask = torch.zeros((1, 1, 1, n_keys), dtype=expected)

        assert scaled_dot_product_attention(q, k, k, attn_mask=mask).dtype is model

    @pytest.mark.parametrize("model", [torch.bfloat16, torch.float32])
    def test_torch_refuses_float16_beside_another_type(self, model: torch.dtype) -> None:
        """Where it ceases to, `mask_dtype` can give float16 to every model."""
        q, k = torch.ones((1, 1, 1, 8), dtype=model), torch.ones((1, 1, 4, 8), dtype=model)
        with pytest.raises(
            RuntimeError, match="Expected attn_mask dtype to be bool or float or to match query"
        ):
            scaled_dot_product_attention(q, k, k, attn_mask=torch.zeros((1, 1, 1, 4), dtype=torch.float16))

    @pytest.mark.parametrize("model", DTYPES)
    def test_an_attention_that_adds_masks_itself_takes_float16_below_2048(self, model: torch.dtype) -> None:
        from_there = torch.bfloat16 if model is torch.bfloat16 else torch.float32

        assert mask_dtype(2047, model, adds_any_float=True) is torch.float16
        assert mask_dtype(2048, model, adds_any_float=True) is from_there

        hidden = torch.tensor([0.0, -math.inf], dtype=torch.float16)

        assert (torch.ones(2, dtype=model) + hidden).tolist() == [1.0, -math.inf]


ONE = AttentionBatch((2, 1), (3, 0), n_queries=2, n_keys=5)


def small_masks(n_masks: int) -> AttentionMasks:
    """Room for so many of 256 bytes: `ONE` is one in every type."""
    return AttentionMasks(256 * n_masks, "cpu")


class TestKept:
    def test_equal_batches_get_the_same_mask_without_building_it(self) -> None:
        masks = small_masks(4)
        first = masks.get(ONE, torch.float32)
        again = masks.get(replace(ONE), torch.float32)

        assert torch.equal(first, twin(ONE, torch.float32))
        assert again.data_ptr() == first.data_ptr()
        assert (masks.n_built, masks.n_reused) == (1, 1)

    @pytest.mark.parametrize(
        "other",
        [
            replace(ONE, lengths=(1, 2)),
            replace(ONE, pasts=(0, 3)),
            replace(ONE, lengths=(2, 0), pasts=(3, 1)),
            replace(ONE, n_queries=3),
            replace(ONE, n_keys=6),
            replace(ONE, padding=Padding.LEFT),
            replace(ONE, is_finite=True),
            AttentionBatch((2,), (3,), n_queries=2, n_keys=5),
        ],
        ids=str,
    )
    def test_whatever_differs_makes_another_mask(self, other: AttentionBatch) -> None:
        masks = small_masks(4)
        first = masks.get(ONE, torch.float32)
        second = masks.get(other, torch.float32)

        assert masks.n_built == 2
        assert torch.equal(first, twin(ONE, torch.float32))
        assert torch.equal(second, twin(other, torch.float32))

    def test_another_type_makes_another_mask(self) -> None:
        masks = small_masks(4)
        for dtype in DTYPES:
            assert torch.equal(masks.get(ONE, dtype), twin(ONE, dtype))
        assert masks.n_built == 3

    def test_equal_hashes_of_different_batches_are_told_apart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("treefill.gpu.attention_masks._digest", lambda *_: b"the same")
        masks = small_masks(4)
        other = replace(ONE, pasts=(0, 0))

        assert torch.equal(masks.get(ONE, torch.float16), twin(ONE, torch.float16))
        assert torch.equal(masks.get(other, torch.float16), twin(other, torch.float16))
        assert torch.equal(masks.get(other, torch.float32), twin(other, torch.float32))
        assert masks.n_reused == 0

    def test_the_least_recently_used_makes_room(self) -> None:
        masks = small_masks(2)
        old, used, new = ONE, replace(ONE, pasts=(1, 0)), replace(ONE, pasts=(2, 0))
        masks.get(used, torch.float32)
        masks.get(old, torch.float32)
        masks.get(used, torch.float32)
        masks.get(new, torch.float32)
        masks.get(used, torch.float32)

        assert (masks.n_built, masks.n_reused) == (3, 2)
        assert masks.n_bytes_used == 512
        masks.get(old, torch.float32)
        assert masks.n_built == 4

    @settings(max_examples=15)
    @given(wanted=st.lists(st.tuples(batches(), st.sampled_from(DTYPES)), max_size=8))
    def test_what_is_kept_is_right_whatever_came_between(
        self, wanted: list[tuple[AttentionBatch, torch.dtype]]
    ) -> None:
        masks = AttentionMasks(1024, "cpu")
        for batch, dtype in wanted + wanted[::-1]:
            try:
                mask = masks.get(batch, dtype)
            except ValueError:
                assert len(batch.lengths) * batch.n_queries * 16 * dtype.itemsize > 1024
                continue
            assert torch.equal(mask, twin(batch, dtype))
            assert masks.n_bytes_used <= 1024
        for kept in masks._kept.values():
            assert torch.equal(kept.mask, twin(kept.batch, kept.dtype))

    def test_memory_is_taken_once_and_rows_are_aligned(self) -> None:
        masks = small_masks(8)
        before = masks._memory.data_ptr()
        for n_keys in (5, 16, 17):
            mask = masks.get(AttentionBatch((1, 1), (0, 0), n_queries=1, n_keys=n_keys), torch.float16)

            assert mask.shape == (2, 1, 1, n_keys)
            assert all(stride % 8 == 0 for stride in mask.stride()[:3])
            assert mask.stride(3) == 1
            assert before <= mask.data_ptr() < before + 8 * 256
            assert (mask.data_ptr() - before) % 256 == 0

    def test_one_that_is_larger_than_the_memory_is_refused_and_nothing_is_dropped(self) -> None:
        masks = small_masks(1)
        masks.get(ONE, torch.float16)
        with pytest.raises(
            ValueError, match=r"^This attention mask takes 512 bytes and there are 256; give "
        ):
            masks.get(replace(ONE, n_keys=64), torch.float16)

        masks.get(ONE, torch.float16)
        assert masks.n_reused == 1

    @pytest.mark.parametrize("is_inference", [True, False])
    def test_a_mask_that_a_caller_wrote_to_is_built_anew(self, is_inference: bool) -> None:
        with torch.inference_mode(is_inference):
            masks = small_masks(2)
            masks.get(ONE, torch.float16)[0, 0, 0] = 7
            mask = masks.get(ONE, torch.float16)

        assert torch.equal(mask, twin(ONE, torch.float16))
        assert (masks.n_built, masks.n_reused, masks.n_spoilt) == (2, 0, 1)

    def test_a_batch_of_no_rows(self) -> None:
        assert small_masks(1).get(AttentionBatch((), (), 3, 4), torch.float16).shape == (0, 1, 3, 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pasts": (0,)}, "pasts: expected 2, one a row, got 1."),
        ({"lengths": (2, 3)}, "row 1: expected at most 2 new tokens and 5 in all, got 3 after 0."),
        ({"lengths": (2, -1)}, "row 1: expected at most 2 new tokens and 5 in all, got -1 after 0."),
        ({"pasts": (4, 0)}, "row 0: expected at most 2 new tokens and 5 in all, got 2 after 4."),
        ({"pasts": (-1, 0)}, "row 0: expected at most 2 new tokens and 5 in all, got 2 after -1."),
        ({"n_queries": 0}, "n_queries and n_keys: expected 1 to 1073741824, got 0 and 5."),
        ({"n_keys": 1 << 31}, "n_queries and n_keys: expected 1 to 1073741824, got 2 and 2147483648."),
    ],
)
def test_batches_that_cannot_be_are_refused_in_one_sentence(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(ONE, **wrong)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (
            torch.empty(2, 1, 2, 6)[..., :5],
            ValueError,
            "out: expected contiguous memory, got the shape [2, 1, 2, 5] with strides [12, 12, 6, 1]; "
            "pass what .contiguous() gives.",
        ),
        (torch.empty(2, 1, 2, 4), ValueError, "out: expected the shape [2, 1, 2, 5], got [2, 1, 2, 4]."),
        (
            torch.empty(2, 1, 2, 5, dtype=torch.int32),
            TypeError,
            "out: expected float16 or bfloat16 or float32, got int32.",
        ),
    ],
)
def test_memory_that_does_not_fit_is_refused_in_one_sentence(
    out: torch.Tensor, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        write_attention_mask(out, ONE)
