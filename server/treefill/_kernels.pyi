"""The native module (kernels/bindings.cc): int8 products on the CPU's best instruction set."""

import numpy as np
from numpy.typing import NDArray

def instruction_sets() -> list[str]:
    """What this machine runs, the quickest first: some of amx, avx512vnni, avx2, and always scalar."""

def instruction_set() -> str:
    """The one in use. Raises `ValueError` when TREEFILL_ISA names one that is not available."""

def use_instruction_set(name: str) -> None:
    """Use another from now on; an empty name goes back to the default. Raises `ValueError`."""

def threads() -> int:
    """How many threads share a product, the calling one included."""

def set_threads(n_threads: int) -> None:
    """Share products among this many threads; 0 chooses. Raises `ValueError`."""

class Int8Linear:
    """One int8 matrix, multiplied where it lies (it may be a mapped file)."""

    def __init__(
        self,
        q: NDArray[np.int8],  # [N/16, K/64, 16, 16, 4]
        scale: NDArray[np.uint16],  # [N/16, K/64, 16], the bits of float16
        sum: NDArray[np.int16],  # [N/16, K/64, 16]
        bias: NDArray[np.float32] | None,  # [N]
        n_inputs: int,
        n_outputs: int,
    ) -> None:
        """Raises `ValueError` when the shapes do not belong together."""

    def forward(self, x: int, n_rows: int, y: int) -> None:
        """Multiply float32 [n_rows, n_inputs] at address `x` into float32 [n_rows, n_outputs] at address `y`.

        The caller checks both arrays (contiguous, of these shapes and of float32). The GIL is released.
        """

    @property
    def n_inputs(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...
