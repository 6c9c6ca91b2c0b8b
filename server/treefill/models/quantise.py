"""float32 matrices to int8 blocks and back.

A matrix W [N outputs, K inputs] is cut into groups of 64 inputs of one output. Each group has one float16
scale, and its 64 values become integers from -127 to 127. Sixteen outputs by 64 inputs make a block of 1,024
bytes, laid out as [16 quads of inputs][16 outputs][4 adjacent inputs]: an AMX tile, each row of which is an
operand of VNNI's multiply-add. The sum of each group stands beside it, because that instruction multiplies
unsigned by signed: a kernel adds 128 to its activations and takes 128 times the sum off again.

`dequantise_linear` is the readable inverse, and the meaning of the format. Nothing here touches files.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

OUTPUTS = 16
"""Outputs in a block."""
GROUP = 64
"""Inputs in a block: the group that shares a scale."""
QUAD = 4
"""Adjacent inputs that one multiply-add takes."""
_CHUNK_VALUES = 1 << 19
"""Matrices are worked through in pieces of about this many values, which stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class QuantisedLinear:
    """The int8 form of one matrix."""

    q: NDArray[np.int8]  # [N16, K64, 16 quads, 16 outputs, 4 inputs]
    """q[n16, k64, j, o, i] belongs to W[n16*16 + o, k64*64 + 4*j + i]."""
    scale: NDArray[np.float16]  # [N16, K64, 16]
    """What one step is worth, by output and group; 0 for a group of zeros."""
    sum: NDArray[np.int16]  # [N16, K64, 16]
    """The sum of the group's 64 integers."""
    shape: tuple[int, int]
    """The true [N, K]; what the blocks hold beyond it is zero."""


def quantise_linear(w: NDArray[np.float32]) -> QuantisedLinear:
    """Quantise a whole matrix [N, K]. Every value must be finite and below float16's range times 127."""
    n, k = w.shape
    out = empty_linear(n, k)
    for start, stop in row_chunks(n, k):
        quantise_rows(w[start:stop], out, start)
    return out


def dequantise_linear(linear: QuantisedLinear) -> NDArray[np.float32]:
    """The matrix [N, K] that the blocks stand for."""
    n16, k64 = linear.scale.shape[:2]
    by_output = linear.q.transpose(0, 3, 1, 2, 4).reshape(n16 * OUTPUTS, k64, GROUP)
    scale = linear.scale.transpose(0, 2, 1).reshape(n16 * OUTPUTS, k64, 1).astype(np.float32)
    n, k = linear.shape
    return (by_output * scale).reshape(n16 * OUTPUTS, k64 * GROUP)[:n, :k]


def n_blocks(n: int, k: int) -> tuple[int, int]:
    """[N16, K64] for a matrix [N, K]."""
    return -(-n // OUTPUTS), -(-k // GROUP)


def empty_linear(n: int, k: int) -> QuantisedLinear:
    """Room for a matrix [N, K], to be filled by `quantise_rows`."""
    n16, k64 = n_blocks(n, k)
    return QuantisedLinear(
        q=np.empty((n16, k64, GROUP // QUAD, OUTPUTS, QUAD), np.int8),
        scale=np.empty((n16, k64, OUTPUTS), np.float16),
        sum=np.empty((n16, k64, OUTPUTS), np.int16),
        shape=(n, k),
    )


def row_chunks(n: int, k: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows, whole blocks each but the last, that `quantise_rows` takes at its quickest."""
    step = max(OUTPUTS, _CHUNK_VALUES // k // OUTPUTS * OUTPUTS)
    for start in range(0, n, step):
        yield start, min(start + step, n)


def quantise_rows(w: NDArray[np.float32], out: QuantisedLinear, start: int) -> None:
    """Quantise rows [start, start + len(w)) into `out`; `start` is a multiple of 16."""
    assert start % OUTPUTS == 0
    assert w.shape[1] == out.shape[1]
    groups = _padded_groups(w)  # [n16, 16 outputs, K64, 64]
    absmax = np.maximum(groups.max(-1), -groups.min(-1))
    scale = (absmax / np.float32(127)).astype(np.float16)  # [n16, 16, K64]
    divisor = np.where(scale == 0, np.float32(np.inf), scale.astype(np.float32))  # value / inf is 0
    steps = np.divide(groups, divisor[..., None], out=groups)
    np.rint(steps, out=steps)  # halves to even
    # A scale that float16 rounded down lets the largest value reach 128 or, where it is subnormal, more.
    np.clip(steps, -127, 127, out=steps)
    n16 = steps.shape[0]
    blocks = slice(start // OUTPUTS, start // OUTPUTS + n16)
    out.scale[blocks] = scale.transpose(0, 2, 1)
    out.sum[blocks] = steps.sum(-1).transpose(0, 2, 1)  # exact: whole numbers far below 2**24
    # Four bytes move as one word, which makes the transposition several times quicker.
    quads = steps.astype(np.int8).view(np.int32)  # [n16, 16 outputs, K64, 16 quads]
    out.q.view(np.int32)[blocks, ..., 0] = quads.transpose(0, 2, 3, 1)


def _padded_groups(w: NDArray[np.float32]) -> NDArray[np.float32]:
    n, k = w.shape
    n16, k64 = n_blocks(n, k)
    padded = np.zeros((n16 * OUTPUTS, k64 * GROUP), np.float32)
    padded[:n, :k] = w
    return padded.reshape(n16, OUTPUTS, k64, GROUP)
