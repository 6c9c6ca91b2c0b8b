"""The native decoder as a `Backend`."""

from collections.abc import Sequence

import numpy as np

from treefill import _kernels
from treefill.engine.api import CancelFlag, TokenId
from treefill.engine.backend import Logits
from treefill.errors import EngineError


class NativeBackend:
    """`engine.backend.Backend` over a decoder."""

    name = "int8"

    def __init__(self, decoder: _kernels.Decoder, n_context: int, n_logits: int) -> None:
        self.n_context = n_context
        self._decoder: _kernels.Decoder | None = decoder
        self._n_logits = n_logits

    def evaluate(self, ids: Sequence[TokenId], cancel: CancelFlag) -> Logits | None:
        """Append tokens to the cache; float32 logits [V] after the last one, or None when interrupted."""
        logits = np.empty(self._n_logits, np.float32)
        is_done = self._open().evaluate(np.asarray(ids, np.int32), cancel.cell, logits)
        return logits if is_done else None

    def crop(self, n_tokens: int) -> None:
        """Keep the first `n_tokens` of the cache."""
        self._open().crop(n_tokens)

    def close(self) -> None:
        """Drop the decoder, its cache and its view of the weights."""
        self._decoder = None

    def _open(self) -> _kernels.Decoder:
        if self._decoder is None:
            raise EngineError("The model could not be run: the engine is closed.")
        return self._decoder
