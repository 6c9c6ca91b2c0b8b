"""What a decode step reads of the weights, and reading it before the first step does.

A weight file is mapped, so its bytes come from the disk when they are first looked at. Read through at once, and told
how far, that is a wait that can be shown; left to the first request, it is one that looks like a slow model.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefill import _kernels

_READ = (".weight.q", ".weight.scale")
"""What a step reads, whatever multiplies; of the embedding it reads one row."""
_SUMS = ".weight.sum"
_WITHOUT_SUMS = ("avx2", "neon", "scalar")
"""Instruction sets that multiply signed bytes and don't need the sums (docs/int8.md)."""
_N_PIECES = 20


def step_weights(weights: Mapping[str, NDArray[Any]], instruction_set: str) -> list[NDArray[np.uint8]]:
    """The bytes of every array that a decode step reads, in the file's order."""
    suffixes = _READ if instruction_set in _WITHOUT_SUMS else (*_READ, _SUMS)
    return [values.reshape(-1).view(np.uint8) for name, values in weights.items() if name.endswith(suffixes)]


def read_weights(weights: Mapping[str, NDArray[Any]], tell_share: Callable[[float], None]) -> None:
    """Read what steps will read, in some twenty pieces; `tell_share` is told the share that is read, from 0 to 1."""
    arrays = step_weights(weights, _kernels.instruction_set())
    n_bytes = sum(array.nbytes for array in arrays)
    piece: list[NDArray[np.uint8]] = []
    n_read = n_told = 0
    for array in arrays:
        piece.append(array)
        n_read += array.nbytes
        if (n_read - n_told) * _N_PIECES >= n_bytes or n_read == n_bytes:
            _kernels.read_through(piece)
            tell_share(n_read / n_bytes)
            piece, n_told = [], n_read
