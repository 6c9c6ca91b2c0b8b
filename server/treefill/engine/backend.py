"""What a library that runs a model must offer the engine; the rest of `engine` sees no more of it.

A backend holds one sequence: the keys and values of the tokens evaluated so far. `session` decides what is in it.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from treefill.engine.api import CancelFlag, TokenId

Logits = NDArray[np.float32]
"""[V]: one number a token id; may be wider than the vocabulary."""

PREFILL_CHUNK = 64
"""Most tokens evaluated in one call, so that a layer is soon done and a cancelled prefill stops."""


LOGITS_AT_ONCE = 128
"""Positions whose logits are handed over in one piece, where they are asked for at every position: 80 MB for a
vocabulary of 152,000."""


class Backend(Protocol):
    """One loaded model with one key/value cache. Not safe to call from two threads at once."""

    name: str
    n_context: int

    def evaluate(self, ids: Sequence[TokenId], cancel: CancelFlag) -> Logits | None:
        """Append 1 to `PREFILL_CHUNK` tokens to the cache; logits after the last one. The caller may change them.

        None where the flag was found set on the way, which is looked at before every layer: the cache then holds what
        it held before.
        """
        ...

    def crop(self, n_tokens: int) -> None:
        """Keep the first `n_tokens` of the cache."""
        ...

    def close(self) -> None:
        """Free the model."""
        ...
