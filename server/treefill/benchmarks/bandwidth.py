"""How fast this machine can read the weights at all: a decode step reads each of them once, so it cannot be quicker."""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefill.benchmarks.rounds import Spread

PIECE_BYTES = 16_000_000
"""What one thread takes at a time: so much that Python's own work between two pieces does not show."""
_WORD = np.dtype(np.int32)
READ_SUFFIXES = (".weight.q", ".weight.scale")
"""What a decode step reads of a weight file, whatever multiplies; of the embedding it reads one row."""
SUMS = ".weight.sum"
WITHOUT_SUMS = ("avx2", "scalar")
"""Instruction sets that multiply signed bytes and don't need the sums (docs/int8.md)."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Reading what a decode step reads of the weights."""

    n_bytes: int
    n_threads: int
    """The number that read quickest."""
    ms: Spread
    """Its quickest is the limit: whatever made another slower, was not the memory."""
    gb_per_s: float
    """At its quickest."""


class WeightsReader:
    """Reads the weights as a decode step does, with the number of threads that suits this machine."""

    def __init__(self, weights: Mapping[str, NDArray[Any]], instruction_set: str) -> None:
        suffixes = READ_SUFFIXES if instruction_set in WITHOUT_SUMS else (*READ_SUFFIXES, SUMS)
        read = [values for name, values in weights.items() if name.endswith(suffixes)]
        self._pieces = _pieces(read)
        self.n_bytes = sum(values.nbytes for values in read)
        self._read_ms(1)  # the first time it may come from the disk
        numbers = range(1, (os.cpu_count() or 1) + 2)
        found = {n_threads: min(self._read_ms(n_threads) for _ in range(3)) for n_threads in numbers}
        self.n_threads = min(found, key=lambda n_threads: found[n_threads])

    def read_ms(self) -> float:
        """Milliseconds to read all of it once."""
        return self._read_ms(self.n_threads)

    def bandwidth(self, ms: Spread) -> Bandwidth:
        """What came of several readings."""
        return Bandwidth(self.n_bytes, self.n_threads, ms, self.n_bytes / ms.low / 1e6)

    def _read_ms(self, n_threads: int) -> float:
        left = iter(self._pieces)  # whoever is free takes the next

        def work() -> None:
            for piece in left:
                np.maximum.reduce(piece)  # numpy lets go of Python's lock meanwhile

        threads = [threading.Thread(target=work) for _ in range(n_threads)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (time.perf_counter() - began) * 1000


def _pieces(arrays: Sequence[NDArray[Any]]) -> list[NDArray[np.int32]]:
    """All of it as whole numbers, a few bytes at the arrays' ends left out."""
    n_words = PIECE_BYTES // _WORD.itemsize
    pieces: list[NDArray[np.int32]] = []
    for array in arrays:
        flat = array.reshape(-1).view(np.uint8)
        words = flat[: len(flat) - len(flat) % _WORD.itemsize].view(_WORD)
        pieces += [words[start : start + n_words] for start in range(0, len(words), n_words)]
    return pieces
