"""Additive attention masks for batches of unequal lengths: padding and causality, for prompts that come in chunks.

A batch has a chunk of `lengths[r]` new tokens in each row r, after the `pasts[r]` tokens that its cache holds. Query i
of row r sees the row's keys 0 to pasts[r] + i, and no padding. With right padding a row's keys begin at column 0; with
left padding they end at the last one, and so do its queries:

    lengths (2, 3), pasts (2, 0), 3 queries, 4 keys; x: seen, .: hidden, o: see below

    right   x x x .    x . . .        left   o . . .    . x . .
            x x x x    x x . .               x x x .    . x x .
            o . . .    x x x .               x x x x    . x x x

A query of padding sees column 0 alone. Nothing of it is used, but if it saw nothing its softmax would be NaN, and NaN
in its keys and values of the next layer would pass on to every row's real queries: zero times NaN is NaN.

Masks are written by one kernel into memory that was taken once (`AttentionMasks`), and kept there until it is needed:
a batch of the same lengths, pasts, shape and type is not built twice. Positions are counted in int32 whatever the
mask's type is (`mask_dtype`).
"""

import math
import struct
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import torch
import triton
import triton.language as tl
import xxhash
from treefill.gpu.checks import FLOATS, check_runs_here, check_tensor
from treefill.gpu.launch import Kernel, Launch, launch_on

FLOAT16_COUNTS_TO = 2048
"""The first whole number whose successor float16 lacks: 2,048 + 1 is 2,048 in it."""

ROW_ALIGNMENT = 16
"""Elements that a row of a mask is rounded up to. torch's memory-efficient attention wants strides in multiples of 8,
and copies a mask that has others."""

_MOST = 1 << 30
"""Positions that the kernel, which counts in int32, can still add a block to."""
_MEMORY_ALIGNMENT = 256  # bytes, as of CUDA's own allocations
WRITE = Kernel(registers_beside_elements=20, registers_per_element=1, bytes_at_once=16)


class Padding(Enum):
    """Where the tokens that fill up a row stand."""

    RIGHT = "right"
    LEFT = "left"


def mask_dtype(n_keys: int, model_dtype: torch.dtype, *, adds_any_float: bool = False) -> torch.dtype:
    """The type of a mask over `n_keys` keys: float16 below 2,048 of them, where attention takes it; else the model's.

    0 and -inf are exact in every type, so a narrow one saves memory and loses nothing in the mask itself. But what is
    summed in it stops growing at 2,048: that many equal keys give a softmax's denominator of 2,048, and one more
    changes nothing. So from there on a model in float16 gets its masks in float32, to which adding them takes its
    scores as well; bfloat16 and float32 models get their own type.

    torch's `scaled_dot_product_attention` takes masks of the model's type or float32 and no others, so float16 is
    for models in float16. An attention that adds the mask to its scores itself takes any: `adds_any_float`.
    """
    if n_keys < FLOAT16_COUNTS_TO and (adds_any_float or model_dtype is torch.float16):
        return torch.float16
    return torch.bfloat16 if model_dtype is torch.bfloat16 else torch.float32


@dataclass(frozen=True, slots=True)
class AttentionBatch:
    """Everything that a mask's contents depend on, but for its type. Raises `ValueError` for what does not fit."""

    lengths: tuple[int, ...]
    """New tokens of each row, 0 to `n_queries`."""
    pasts: tuple[int, ...]
    """Tokens of each row that are in the cache already."""
    n_queries: int
    """L: the longest row's new tokens, or more."""
    n_keys: int
    """S: the longest row's tokens, old and new, or more."""
    padding: Padding = Padding.RIGHT
    is_finite: bool = False
    """Hidden keys get the type's lowest number instead of -inf."""

    def __post_init__(self) -> None:
        if len(self.lengths) != len(self.pasts):
            raise ValueError(f"pasts: expected {len(self.lengths)}, one a row, got {len(self.pasts)}.")
        if not (1 <= self.n_queries <= _MOST and 1 <= self.n_keys <= _MOST):
            raise ValueError(
                f"n_queries and n_keys: expected 1 to {_MOST}, got {self.n_queries} and {self.n_keys}."
            )
        for row, (length, past) in enumerate(zip(self.lengths, self.pasts, strict=True)):
            if not (0 <= length <= self.n_queries and past >= 0 and past + length <= self.n_keys):
                raise ValueError(
                    f"row {row}: expected at most {self.n_queries} new tokens and {self.n_keys} in all, got "
                    f"{length} after {past}."
                )

    def hidden_value(self, dtype: torch.dtype) -> float:
        """What is added to the score of a key that is not seen."""
        return torch.finfo(dtype).min if self.is_finite else -math.inf


def write_attention_mask(out: torch.Tensor, batch: AttentionBatch, *, launch: Launch | None = None) -> None:
    """Fill `out` [n, 1, L, S] with 0 where a query sees a key, elsewhere with what hides it.

    `out` is float16, bfloat16 or float32, and contiguous. `launch` is for measuring another than the device's own.
    Raises `TypeError` and `ValueError`.
    """
    check_tensor(out, "out", dtypes=FLOATS, n_dimensions=4)
    shape = (len(batch.lengths), 1, batch.n_queries, batch.n_keys)
    if tuple(out.shape) != shape:
        raise ValueError(f"out: expected the shape {list(shape)}, got {list(out.shape)}.")
    _write(out, batch, launch)


class AttentionMasks:
    """Masks in memory of a fixed size, taken once: the least recently used ones make room for new ones.

    A mask is a view of that memory, and torch has no read-only ones. It is good until a later call of `get`
    builds another, and must not be written to; where torch sees that it was, all are built anew (`n_spoilt`). Kernels
    that read it must be queued on the stream on which `get` is called. Not safe to call from two threads at once.
    """

    def __init__(self, n_bytes: int, device: torch.device | str = "cuda") -> None:
        self.n_built = 0
        self.n_reused = 0
        self.n_spoilt = 0
        """How often a mask was found written to by others."""
        with torch.inference_mode(False):  # its tensors do not count how often they are written to
            self._memory = torch.empty(n_bytes, dtype=torch.uint8, device=device)
        self._version = self._memory._version
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()

    @property
    def n_bytes_used(self) -> int:
        """How much of the memory holds masks."""
        return sum(kept.end - kept.start for kept in self._kept.values())

    def get(self, batch: AttentionBatch, dtype: torch.dtype) -> torch.Tensor:
        """The mask of a batch, [n, 1, L, S], kept from before or built now.

        Raises `ValueError` for one that is larger than all of the memory, and what `write_attention_mask` raises.
        """
        self._forget_if_spoilt()
        key = _digest(batch, dtype)
        kept = self._kept.get(key)
        if kept is not None and (kept.batch, kept.dtype) == (batch, dtype):  # a hash is not the thing itself
            self._kept.move_to_end(key)
            self.n_reused += 1
            return kept.mask
        self._kept.pop(key, None)
        kept = self._build(batch, dtype)
        self._kept[key] = kept
        self.n_built += 1
        return kept.mask

    def _build(self, batch: AttentionBatch, dtype: torch.dtype) -> "_Kept":
        row_stride = _rounded_up(batch.n_keys, ROW_ALIGNMENT)
        n_elements = len(batch.lengths) * batch.n_queries * row_stride
        n_bytes = n_elements * dtype.itemsize
        start = self._room_for(_rounded_up(n_bytes, _MEMORY_ALIGNMENT))
        shape = (len(batch.lengths), 1, batch.n_queries, row_stride)
        with torch.inference_mode(
            False
        ):  # in it, views of another type do not count how often they are written to
            mask = self._memory[start : start + n_bytes].view(dtype).view(shape)
        _write(mask, batch)
        kept = mask[..., : batch.n_keys]
        return _Kept(batch, dtype, start, start + _rounded_up(n_bytes, _MEMORY_ALIGNMENT), kept)

    def _room_for(self, n_bytes: int) -> int:
        """Where so many bytes are free, after dropping what was used least recently until there are."""
        if n_bytes > len(self._memory):
            raise ValueError(
                f"This attention mask takes {n_bytes} bytes and there are {len(self._memory)}; "
                "give AttentionMasks more, or cut the batch into smaller chunks."
            )
        while (start := _first_gap(self._kept.values(), n_bytes, len(self._memory))) is None:
            self._kept.popitem(last=False)
        return start

    def _forget_if_spoilt(self) -> None:
        if self._memory._version != self._version:
            self._kept.clear()
            self._version = self._memory._version
            self.n_spoilt += 1


@dataclass(frozen=True, slots=True)
class _Kept:
    """One mask and where it lies."""

    batch: AttentionBatch
    dtype: torch.dtype
    start: int
    end: int
    mask: torch.Tensor


def _first_gap(kept: Iterable["_Kept"], n_bytes: int, n_all: int) -> int | None:
    """The first place between others where so many bytes are free, or None."""
    begin = 0
    for start, end in sorted((each.start, each.end) for each in kept):
        if start - begin >= n_bytes:
            return begin
        begin = end
    return begin if n_all - begin >= n_bytes else None


def _digest(batch: AttentionBatch, dtype: torch.dtype) -> bytes:
    """What equal masks are found by."""
    head = (batch.n_queries, batch.n_keys, batch.padding is Padding.LEFT, batch.is_finite, len(batch.lengths))
    numbers = struct.pack(f"<{len(head) + 2 * len(batch.lengths)}q", *head, *batch.lengths, *batch.pasts)
    return xxhash.xxh3_128_digest(numbers + str(dtype).encode())


def _write(out: torch.Tensor, batch: AttentionBatch, launch: Launch | None = None) -> None:
    """Fill contiguous `out` [n, 1, L, row_stride]: what is beyond S in a row is hidden, too."""
    check_runs_here(out, "out")
    if out.numel() == 0:
        return
    n_rows, _, n_queries, row_stride = out.shape
    rows = torch.tensor([batch.lengths, batch.pasts], dtype=torch.int32, device=out.device)  # [2, n]
    launch = launch or launch_on(out.device, WRITE, n_rows * n_queries, row_stride, out.element_size())
    _write_kernel[(launch.n_blocks,)](
        out,
        rows,
        n_rows,
        n_queries,
        batch.n_keys,
        row_stride,
        batch.hidden_value(out.dtype),
        IS_LEFT=batch.padding is Padding.LEFT,
        BLOCK=launch.block,
        num_warps=launch.n_warps,
    )


def _rounded_up(n: int, step: int) -> int:
    return -(-n // step) * step


@triton.jit
def _write_kernel(
    out: tl.tensor,  # *[n, 1, L, row_stride]
    rows: tl.tensor,  # *int32 [2, n]: lengths, pasts
    n_rows: tl.tensor,
    n_queries: tl.tensor,
    n_keys: tl.tensor,
    row_stride: tl.tensor,
    hidden: tl.tensor,  # float32
    IS_LEFT: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    n_blocks = tl.cdiv(row_stride, BLOCK)
    line = tl.program_id(0) // n_blocks  # one query of one row
    row = line // n_queries
    length = tl.load(rows + row)
    past = tl.load(rows + n_rows + row)
    query = line % n_queries
    first_key = 0
    if IS_LEFT:
        query = query - (n_queries - length)
        first_key = n_keys - past - length
    is_padding = (query < 0) | (query >= length)
    first_key = tl.where(is_padding, 0, first_key)
    n_seen = tl.where(is_padding, 1, past + query + 1)
    keys = tl.program_id(0) % n_blocks * BLOCK + tl.arange(0, BLOCK)
    is_seen = (keys >= first_key) & (keys < first_key + n_seen)
    added = tl.where(is_seen, 0.0, hidden)
    tl.store(
        out + line.to(tl.int64) * row_stride + keys, added.to(out.dtype.element_ty), mask=keys < row_stride
    )
