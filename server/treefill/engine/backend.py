"""What a library that runs a model must offer the engine; the rest of `engine` sees no more of it."""

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
    """One loaded model, its key/value cache, and the one sequence in it that is being extended.

    Not safe to call from two threads at once.
    """

    name: str
    n_context: int

    def begin(self, ids: Sequence[TokenId], salt: str) -> int:
        """Make the longest beginning of `ids` that the cache holds the sequence; how many tokens that is.

        It is what would be computed: tokens are compared, and nothing is found under another `salt`.
        """
        ...

    def evaluate(
        self, ids: Sequence[TokenId], cancel: CancelFlag, wants_logits: bool = True
    ) -> Logits | None:
        """Append 1 to `PREFILL_CHUNK` tokens to the sequence; logits after the last one. The caller may change them.

        They are empty where they are not wanted. None where the flag was found set on the way, which is looked at
        before every layer: the sequence is then what it was before.
        """
        ...

    def forget(self) -> None:
        """Empty the cache."""
        ...

    def close(self) -> None:
        """Free the model."""
        ...
