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

class Decoder:
    """A decoder of the Llama family with its key/value cache. Not safe to call from two threads at once."""

    def __init__(
        self,
        n_heads: int,
        n_kv_heads: int,
        head_dim: int,
        n_ffn: int,
        norm_epsilon: float,
        embedding: NDArray[np.uint16],  # [V, H], the bits of float16
        layers: list[dict[str, NDArray[np.float32] | Int8Linear]],
        norm: NDArray[np.float32],  # [H]
        head: Int8Linear,  # [V, H]
        cos: NDArray[np.float32],  # [n_context, head_dim / 2]
        sin: NDArray[np.float32],
    ) -> None:
        """A layer has input_norm, query, key, value, output, post_norm, gate, up and down.

        Raises `ValueError` when the shapes do not belong together.
        """

    def evaluate(self, ids: NDArray[np.int32], cancel: memoryview, logits: NDArray[np.float32]) -> bool:
        """Append 1 to 64 tokens to the cache and write the logits [V] after the last. The GIL is released.

        The first byte of `cancel` is read before each layer: when it is not 0, returns False and the cache is as it
        was. Raises `ValueError` for a token that is not in the vocabulary, or more than the cache holds.
        """

    def crop(self, n_tokens: int) -> None:
        """Keep the first `n_tokens` of the cache."""

    @property
    def length(self) -> int:
        """Tokens in the cache."""
