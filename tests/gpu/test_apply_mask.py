"""Token masks on the GPU's kernels, under Triton's interpreter, against their plain twins."""

import math
import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from treefill.gpu import apply_mask, masked_argmax, reference
from treefill.gpu.launch import Launch

NUMBERS = [0.0, -0.0, 1.0, 1.0, -1.0, 2.5, 6e-8, math.inf, -math.inf, math.nan]
"""Equal ones, both zeros, float16's smallest, and what is no number."""
DTYPES = st.sampled_from([torch.float16, torch.bfloat16, torch.float32])


def a_launch(n_rows: int, row_length: int, words_at_once: int, n_steps: int) -> Launch:
    """A small one, so that a short row has several blocks of several steps."""
    block = 32 * words_at_once * n_steps
    return Launch(block, 32 * words_at_once, words_at_once, n_rows * math.ceil(row_length / block))


LAUNCHES = st.none() | st.tuples(st.sampled_from([1, 2]), st.sampled_from([1, 2, 4]))


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    n_rows, n_columns = draw(st.integers(1, 4)), draw(st.integers(1, 150))
    n_tokens = draw(st.integers(0, n_columns))
    has_index = draw(st.booleans())
    n_masks = draw(st.integers(0, 3)) if has_index else n_rows
    n_words = math.ceil(n_tokens / 32) + draw(st.integers(0, 1))
    random = torch.Generator().manual_seed(draw(st.integers(0, 1 << 30)))
    density = draw(st.sampled_from([0.0, 0.03, 0.5, 0.9, 1.0]))
    bits = torch.rand((n_masks, n_words, 32), generator=random) < density
    words = (bits.long() << torch.arange(32)).sum(2)
    picked = torch.randint(len(NUMBERS), (n_rows, n_columns), generator=random)
    launch = draw(LAUNCHES)
    return {
        "logits": torch.tensor(NUMBERS)[picked].to(draw(DTYPES)),
        "masks": words.to(torch.uint32).view(draw(st.sampled_from([torch.uint32, torch.int32]))),
        "n_tokens": n_tokens,
        "mask_of_row": torch.randint(-2, 4, (n_rows,), generator=random, dtype=torch.int32)
        if has_index
        else None,
        "launch": launch and a_launch(n_rows, n_columns, *launch),
    }


def bits_of(numbers: torch.Tensor) -> list[list[int]]:
    """To compare NaN with NaN and tell the zeros apart."""
    return numbers.view(torch.int32 if numbers.dtype is torch.float32 else torch.int16).tolist()


@settings(max_examples=30)
@given(case=cases())
def test_the_kernel_writes_what_its_twin_writes(case: dict[str, Any]) -> None:
    launch = case.pop("launch")
    expected = case | {"logits": case["logits"].clone()}
    apply_mask(**case, launch=launch)
    reference.apply_mask(**expected)

    assert bits_of(case["logits"]) == bits_of(expected["logits"])


@settings(max_examples=30)
@given(case=cases())
def test_the_kernel_finds_what_its_twin_finds(case: dict[str, Any]) -> None:
    launch, before = case.pop("launch"), case["logits"].clone()
    found = masked_argmax(**case, launch=launch)

    assert found.dtype is torch.int32
    assert found.tolist() == reference.masked_argmax(**case).tolist()
    assert bits_of(case["logits"]) == bits_of(before)


@pytest.mark.parametrize("words_at_once", [None, 256])
def test_a_whole_vocabulary(words_at_once: int | None) -> None:
    """The width of Qwen's models, whose tokenizer ends 271 ids earlier."""
    n_rows, width, n_tokens = 2, 151_936, 151_665
    random = torch.Generator().manual_seed(3)
    logits = torch.randn((n_rows, width), generator=random).to(torch.bfloat16)
    logits[:, n_tokens:] = 100  # the tail would win
    masks = torch.randint(-(1 << 31), 1 << 31, (n_rows, width // 32), generator=random).to(torch.int32)
    launch = words_at_once and a_launch(n_rows, width, words_at_once, 4)
    expected = logits.clone()
    reference.apply_mask(expected, masks, n_tokens)
    best = masked_argmax(logits, masks, n_tokens, launch=launch or None)
    apply_mask(logits, masks, n_tokens, launch=launch or None)

    assert torch.equal(logits, expected)
    assert best.tolist() == [int((row == row.max()).nonzero()[0]) for row in expected]
    assert logits[:, n_tokens:].isneginf().all()


def test_bit_t_of_word_t_32_is_token_t() -> None:
    """Written out by hand, so that kernel and twin cannot be wrong together."""
    logits = torch.zeros((1, 70))
    masks = torch.tensor([[1 << 5, -(1 << 31), 1 << 3]], dtype=torch.int32)  # tokens 5, 63 and 67
    apply_mask(logits, masks, 66)

    assert (logits[0] == 0).nonzero().ravel().tolist() == [5, 63]


def test_rows_share_masks_and_rows_without_one_lose_their_tail_alone() -> None:
    logits = torch.arange(5.0).repeat(3, 1)
    masks = torch.tensor([[0b00110]], dtype=torch.int32)
    mask_of_row = torch.tensor([0, -1, 0], dtype=torch.int32)
    best = masked_argmax(logits, masks, 4, mask_of_row)
    apply_mask(logits, masks, 4, mask_of_row)

    assert best.tolist() == [2, 3, 2]
    assert logits.isfinite().tolist() == [
        [False, True, True, False, False],
        [True, True, True, True, False],
        [False, True, True, False, False],
    ]


def test_an_index_of_no_mask_forbids_the_row_and_reads_nothing() -> None:
    logits = torch.zeros((3, 40))
    masks = torch.full((1, 2), -1, dtype=torch.int32)
    mask_of_row = torch.tensor([1, -2, 2_000_000_000], dtype=torch.int32)
    best = masked_argmax(logits, masks, 40, mask_of_row)
    apply_mask(logits, masks, 40, mask_of_row)

    assert best.tolist() == [-1, -1, -1]
    assert logits.isneginf().all()


def test_of_equal_logits_the_lowest_id_wins_across_blocks_and_steps() -> None:
    logits = torch.zeros((1, 300), dtype=torch.float16)
    for first_allowed in (0, 31, 32, 100, 299):
        bits = (torch.arange(320) >= first_allowed).view(10, 32).long()
        masks = (bits << torch.arange(32)).sum(1)[None].to(torch.uint32)
        for shape in ((1, 1), (1, 2), (2, 2), (2, 4)):
            found = masked_argmax(logits, masks, 300, launch=a_launch(1, 300, *shape))

            assert found.tolist() == [first_allowed]


@pytest.mark.parametrize("shape", [(0, 40), (0, 0), (2, 0)])
def test_no_rows_or_no_columns(shape: tuple[int, int]) -> None:
    logits = torch.zeros(shape)
    masks = torch.zeros((shape[0], 2), dtype=torch.int32)
    apply_mask(logits, masks, shape[1])

    assert masked_argmax(logits, masks, shape[1]).tolist() == [-1] * shape[0]


GOOD: dict[str, Any] = {
    "logits": torch.zeros(2, 40),
    "masks": torch.zeros(2, 2, dtype=torch.int32),
    "n_tokens": 40,
}


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (
            {"logits": torch.zeros(40, 2).T},
            ValueError,
            "logits: expected contiguous memory, got the shape [2, 40] with strides [1, 2]; "
            "pass what .contiguous() gives.",
        ),
        (
            {"masks": torch.zeros(2, 4, dtype=torch.int32)[:, ::2]},
            ValueError,
            "masks: expected contiguous memory, got the shape [2, 2] with strides [4, 2]; "
            "pass what .contiguous() gives.",
        ),
        (
            {"mask_of_row": torch.zeros(4, dtype=torch.int32)[::2]},
            ValueError,
            "mask_of_row: expected contiguous memory, got the shape [2] with strides [2]; "
            "pass what .contiguous() gives.",
        ),
        (
            {"logits": torch.zeros(2, 40, dtype=torch.float64)},
            TypeError,
            "logits: expected float16 or bfloat16 or float32, got float64.",
        ),
        ({"logits": torch.zeros(40)}, ValueError, "logits: expected 2 dimensions, got the shape [40]."),
        (
            {"masks": torch.ones(2, 40, dtype=torch.bool)},
            TypeError,
            "masks: expected int32 or uint32, got bool.",
        ),
        ({"n_tokens": 41}, ValueError, "n_tokens: expected 0 to 40, the logits' width, got 41."),
        ({"n_tokens": -1}, ValueError, "n_tokens: expected 0 to 40, the logits' width, got -1."),
        (
            {"masks": torch.zeros(2, 1, dtype=torch.int32)},
            ValueError,
            "masks: expected at least 2 words for 40 tokens, got 1.",
        ),
        (
            {"masks": torch.zeros(1, 2, dtype=torch.int32)},
            ValueError,
            "masks: expected one for each of 2 rows, got 1; name each row's in mask_of_row.",
        ),
        (
            {"mask_of_row": torch.zeros(3, dtype=torch.int32)},
            ValueError,
            "mask_of_row: expected 2 numbers, one a row, got 3.",
        ),
        (
            {"mask_of_row": torch.zeros(2, dtype=torch.int64)},
            TypeError,
            "mask_of_row: expected int32, got int64.",
        ),
        (
            {"masks": torch.zeros(2, 2, dtype=torch.int32, device="meta")},
            ValueError,
            "masks: expected a tensor on cpu, got one on meta; move it there.",
        ),
    ],
)
@pytest.mark.parametrize("function", [apply_mask, masked_argmax])
def test_what_does_not_fit_is_refused_in_one_sentence(
    function: Any, wrong: dict[str, Any], error: type[Exception], message: str
) -> None:
    function(**GOOD)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        function(**GOOD | wrong)
