"""How fast this machine can read the weights at all: a decode step reads each of them once, so it cannot be quicker."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from treefill import _kernels
from treefill.benchmarks.rounds import Spread
from treefill.engine.native import step_weights


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Reading what a decode step reads of the weights."""

    n_bytes: int
    n_threads: int
    ms: Spread
    """Its quickest is the limit: whatever made another slower, was not the memory."""
    gb_per_s: float
    """At its quickest."""


class WeightsReader:
    """Reads the weights as a decode step does, on as many threads as it has."""

    def __init__(self, weights: Mapping[str, NDArray[Any]], instruction_set: str) -> None:
        self._read = step_weights(weights, instruction_set)
        self.n_bytes = sum(values.nbytes for values in self._read)
        self.n_threads = _kernels.threads()
        self.read_ms()  # the first time it may come from the disk

    def read_ms(self) -> float:
        """Milliseconds to read all of it once."""
        began = time.perf_counter()
        _kernels.read_through(self._read)
        return (time.perf_counter() - began) * 1000

    def bandwidth(self, ms: Spread) -> Bandwidth:
        """What came of several readings."""
        return Bandwidth(self.n_bytes, self.n_threads, ms, self.n_bytes / ms.low / 1e6)
