"""The native engine's logits at every position, for comparing it with others."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from treefill.engine.api import CancelFlag, TokenId
from treefill.engine.backend import LOGITS_AT_ONCE
from treefill.engine.native.load import load_backend
from treefill.models import ModelFiles


class NativeLogits:
    """One model whose logits are asked for text by text: token by token, which gives the bits of any batch."""

    def __init__(self, name: str, files: ModelFiles, n_context: int, kv_cache_type: str) -> None:
        self.name = name
        self._backend = load_backend(files, n_context, kv_cache_type=kv_cache_type)

    def logits(self, ids: Sequence[TokenId]) -> Iterator[NDArray[np.float32]]:
        """The logits after each of `ids`, in pieces [n, V] of up to `LOGITS_AT_ONCE` positions."""
        self._backend.forget()
        self._backend.begin([], "")
        for start in range(0, len(ids), LOGITS_AT_ONCE):
            yield np.stack([self._after(token) for token in ids[start : start + LOGITS_AT_ONCE]])

    def _after(self, token: TokenId) -> NDArray[np.float32]:
        logits = self._backend.evaluate([token], CancelFlag())
        assert logits is not None, "nobody has set the flag"
        return logits
