"""Packed token masks over logits: written into them, or read beside them to find the likeliest token that is allowed.

A mask has one bit a token, in 32-bit words: bit t % 32 of word t // 32 says that token t is allowed, the layout of
xgrammar and llguidance. A vocabulary of 151,936 is 19 kB so, where a boolean mask would be 152 kB and a float mask
twice or four times that; neither is ever in memory here. A program takes a run of words, each of its warps one word at
a time, a lane a bit: the lane writes -inf where its bit is off (`apply_mask`) or reads a logit where it is on
(`masked_argmax`). So neighbouring lanes touch neighbouring columns, and what need not be touched is not: neither
kernel reads a forbidden logit, nor writes an allowed one. (With several neighbouring columns a lane, as reads of 16
bytes would have it, writes under a mask fall apart into single ones, with gaps between the lanes.)

Ids from `n_tokens` on are the model's unused tail, beyond the tokenizer's last id: always forbidden, whatever the mask
says, also in rows without a mask.
"""

import math

import torch
import triton
import triton.language as tl
from treefill.gpu.checks import FLOATS, check_runs_here, check_tensor
from treefill.gpu.launch import Kernel, Launch, launch_on

NO_MASK = -1
"""In `mask_of_row`: everything but the tail is allowed in this row."""
NOTHING = -1
"""From `masked_argmax`: no token is allowed, or none of those that are has a logit above -inf."""

APPLY = Kernel(registers_beside_elements=20, registers_per_element=1)
ARGMAX = Kernel(registers_beside_elements=20, registers_per_element=1.5, shared_bytes_per_warp=8)
_WARPS_OF_BEST = 4
"""One program reads a row's some hundred blocks."""


def apply_mask(
    logits: torch.Tensor,
    masks: torch.Tensor,
    n_tokens: int,
    mask_of_row: torch.Tensor | None = None,
    *,
    launch: Launch | None = None,
) -> None:
    """Set the logits of forbidden tokens to -inf, in place.

    `logits` [n, V] float16, bfloat16 or float32; `masks` [m, W] int32 or uint32, W at least n_tokens/32. Row i has
    mask i, so that m is n; or `mask_of_row` [n] int32 names each row's mask, `NO_MASK` for none; rows may share one. An
    index that names no mask reads none and forbids the whole row. `launch` is for measuring another than the
    device's own. Raises `TypeError` and `ValueError`.
    """
    _check(logits, masks, n_tokens, mask_of_row)
    n_rows, n_columns = logits.shape
    if logits.numel() == 0:
        return
    launch = launch or launch_on(logits.device, APPLY, n_rows, n_columns, logits.element_size())
    _apply_kernel[(launch.n_blocks,)](
        logits,
        _signed(masks),
        mask_of_row,
        n_columns,
        n_tokens,
        *masks.shape,
        BLOCK_WORDS=launch.block // 32,
        STEP_WORDS=launch.step // 32,
        num_warps=launch.n_warps,
    )


def masked_argmax(
    logits: torch.Tensor,
    masks: torch.Tensor,
    n_tokens: int,
    mask_of_row: torch.Tensor | None = None,
    *,
    launch: Launch | None = None,
) -> torch.Tensor:
    """The allowed token of the highest logit in each row, int32 [n]: of equals the lowest id, `NOTHING` for none.

    Arguments as for `apply_mask`; the logits stay as they are. NaN is never chosen, nor is -inf.
    """
    _check(logits, masks, n_tokens, mask_of_row)
    n_rows, n_columns = logits.shape
    best = torch.full((n_rows,), NOTHING, dtype=torch.int32, device=logits.device)
    if logits.numel() == 0:
        return best
    launch = launch or launch_on(logits.device, ARGMAX, n_rows, n_columns, logits.element_size())
    n_blocks = launch.n_blocks // n_rows
    # First the best of every block, then the best of a row's blocks: rows are few and long, so one program a row would
    # leave most of the device idle.
    scores = torch.empty((n_rows, n_blocks), dtype=torch.float32, device=logits.device)
    ids = torch.empty((n_rows, n_blocks), dtype=torch.int32, device=logits.device)
    _best_of_block_kernel[(launch.n_blocks,)](
        logits,
        _signed(masks),
        mask_of_row,
        scores,
        ids,
        n_columns,
        n_tokens,
        *masks.shape,
        BLOCK_WORDS=launch.block // 32,
        STEP_WORDS=launch.step // 32,
        num_warps=launch.n_warps,
    )
    _best_of_row_kernel[(n_rows,)](
        scores,
        ids,
        best,
        n_blocks,
        BLOCK=triton.next_power_of_2(n_blocks),
        num_warps=_WARPS_OF_BEST,
    )
    return best


def _check(
    logits: torch.Tensor, masks: torch.Tensor, n_tokens: int, mask_of_row: torch.Tensor | None
) -> None:
    check_tensor(logits, "logits", dtypes=FLOATS, n_dimensions=2)
    check_runs_here(logits, "logits")
    check_tensor(masks, "masks", dtypes=(torch.int32, torch.uint32), n_dimensions=2, device=logits.device)
    n_rows, n_columns = logits.shape
    n_masks, n_words = masks.shape
    if not 0 <= n_tokens <= n_columns:
        raise ValueError(f"n_tokens: expected 0 to {n_columns}, the logits' width, got {n_tokens}.")
    if n_words < math.ceil(n_tokens / 32):
        raise ValueError(
            f"masks: expected at least {math.ceil(n_tokens / 32)} words for {n_tokens} tokens, got {n_words}."
        )
    if mask_of_row is None:
        if n_masks != n_rows:
            raise ValueError(
                f"masks: expected one for each of {n_rows} rows, got {n_masks}; name each row's in mask_of_row."
            )
        return
    check_tensor(mask_of_row, "mask_of_row", dtypes=(torch.int32,), n_dimensions=1, device=logits.device)
    if len(mask_of_row) != n_rows:
        raise ValueError(f"mask_of_row: expected {n_rows} numbers, one a row, got {len(mask_of_row)}.")


def _signed(masks: torch.Tensor) -> torch.Tensor:
    """The same words as int32, as the kernels read them."""
    return masks.view(torch.int32)


@triton.jit
def _allowed(
    masks: tl.tensor,
    mask_of_row: tl.tensor,
    row: tl.tensor,
    words: tl.tensor,
    n_tokens: tl.tensor,
    n_masks: tl.tensor,
    n_words: tl.tensor,
) -> tl.tensor:
    """Which columns of `words` [W] a row allows: [W, 32]."""
    mask = row if mask_of_row is None else tl.load(mask_of_row + row).to(tl.int64)
    is_there = (mask >= 0) & (mask < n_masks)
    bits = tl.load(masks + mask * n_words + words, mask=(words < n_words) & is_there, other=0)
    bits = tl.where(mask == -1, -1, bits)  # no mask: all bits on
    lanes = tl.arange(0, 32)
    is_on = ((bits[:, None] >> lanes[None, :]) & 1) != 0
    return is_on & (words[:, None] * 32 + lanes[None, :] < n_tokens)


@triton.jit
def _apply_kernel(
    logits: tl.tensor,  # *[n, V]
    masks: tl.tensor,  # *int32 [m, W]
    mask_of_row: tl.tensor,  # *int32 [n], or None
    n_columns: tl.tensor,
    n_tokens: tl.tensor,
    n_masks: tl.tensor,
    n_words: tl.tensor,
    BLOCK_WORDS: tl.constexpr,
    STEP_WORDS: tl.constexpr,
) -> None:
    n_blocks = tl.cdiv(n_columns, BLOCK_WORDS * 32)
    row = (tl.program_id(0) // n_blocks).to(tl.int64)  # times the width it may pass 31 bits
    first_word = tl.program_id(0) % n_blocks * BLOCK_WORDS
    for step in tl.static_range(0, BLOCK_WORDS, STEP_WORDS):
        words = first_word + step + tl.arange(0, STEP_WORDS)
        columns = words[:, None] * 32 + tl.arange(0, 32)[None, :]
        is_allowed = _allowed(masks, mask_of_row, row, words, n_tokens, n_masks, n_words)
        is_forbidden = (columns < n_columns) & ~is_allowed
        tl.store(logits + row * n_columns + columns, float("-inf"), mask=is_forbidden)


@triton.jit
def _best_of_block_kernel(
    logits: tl.tensor,  # *[n, V]
    masks: tl.tensor,  # *int32 [m, W]
    mask_of_row: tl.tensor,  # *int32 [n], or None
    scores: tl.tensor,  # *float32 [n, blocks]
    ids: tl.tensor,  # *int32 [n, blocks]
    n_columns: tl.tensor,
    n_tokens: tl.tensor,
    n_masks: tl.tensor,
    n_words: tl.tensor,
    BLOCK_WORDS: tl.constexpr,
    STEP_WORDS: tl.constexpr,
) -> None:
    n_blocks = tl.cdiv(n_columns, BLOCK_WORDS * 32)
    row = (tl.program_id(0) // n_blocks).to(tl.int64)
    first_word = tl.program_id(0) % n_blocks * BLOCK_WORDS
    best = tl.full((STEP_WORDS, 32), float("-inf"), tl.float32)
    best_ids = tl.full((STEP_WORDS, 32), 2147483647, tl.int32)  # the last int32: nothing
    for step in tl.static_range(0, BLOCK_WORDS, STEP_WORDS):
        words = first_word + step + tl.arange(0, STEP_WORDS)
        columns = words[:, None] * 32 + tl.arange(0, 32)[None, :]
        is_allowed = _allowed(masks, mask_of_row, row, words, n_tokens, n_masks, n_words)
        found = tl.load(logits + row * n_columns + columns, mask=is_allowed, other=float("-inf"))
        is_better = found.to(tl.float32) > best  # NaN is above nothing, and of equals the first stays
        best = tl.where(is_better, found.to(tl.float32), best)
        best_ids = tl.where(is_better, columns, best_ids)
    score = tl.max(tl.max(best, axis=1), axis=0)
    best_ids = tl.where(best == score, best_ids, 2147483647)
    tl.store(scores + tl.program_id(0), score)
    tl.store(ids + tl.program_id(0), tl.min(tl.min(best_ids, axis=1), axis=0))


@triton.jit
def _best_of_row_kernel(
    scores: tl.tensor,  # *float32 [n, blocks]
    ids: tl.tensor,  # *int32 [n, blocks]
    best_ids: tl.tensor,  # *int32 [n]
    n_blocks: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    blocks = tl.arange(0, BLOCK)
    found = tl.load(scores + row * n_blocks + blocks, mask=blocks < n_blocks, other=float("-inf"))
    at = tl.load(ids + row * n_blocks + blocks, mask=blocks < n_blocks, other=2147483647)
    best = tl.min(tl.where(found == tl.max(found, axis=0), at, 2147483647), axis=0)
    tl.store(best_ids + row, tl.where(best == 2147483647, -1, best))
