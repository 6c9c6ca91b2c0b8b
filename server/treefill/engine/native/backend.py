"""The native decoder as a `Backend`: what is computed comes from it, what is cached where from the tree of prompts."""

from collections.abc import Sequence

import numpy as np

from treefill import _kernels
from treefill.engine.api import CancelFlag, TokenId
from treefill.engine.backend import PREFILL_CHUNK, Logits
from treefill.engine.prefix_tree import PrefixTree
from treefill.errors import EngineError


class NativeBackend:
    """`engine.backend.Backend` over a decoder and its blocks."""

    name = "int8"

    def __init__(
        self,
        decoder: _kernels.Decoder,
        cache: _kernels.KvBlocks,
        tree: PrefixTree,
        n_context: int,
        n_logits: int,
    ) -> None:
        self.n_context = n_context
        self._decoder: _kernels.Decoder | None = decoder
        self._cache: _kernels.KvBlocks | None = cache
        self._tree = tree
        self._n_logits = n_logits

    def begin(self, ids: Sequence[TokenId], salt: str) -> int:
        """Make the longest beginning of `ids` that any block holds the sequence; how many tokens that is."""
        if self._cache is None:
            raise EngineError("The model could not be run: the engine is closed.")
        copy = self._tree.begin(ids, salt)
        if copy is not None:
            self._cache.copy(copy.source, copy.target, copy.n_tokens)
        return self._tree.n_tokens

    def evaluate(
        self, ids: Sequence[TokenId], cancel: CancelFlag, wants_logits: bool = True
    ) -> Logits | None:
        """Append tokens; float32 logits [V] after the last one, or None when interrupted."""
        if self._decoder is None:
            raise EngineError("The model could not be run: the engine is closed.")
        if not 0 < len(ids) <= PREFILL_CHUNK:
            raise ValueError(f"evaluate takes 1 to {PREFILL_CHUNK} tokens")
        if self._tree.n_tokens + len(ids) > self.n_context:
            raise ValueError(f"a sequence has at most {self.n_context} tokens")
        self._tree.make_room(len(ids))
        logits = np.empty((int(wants_logits), self._n_logits), np.float32)
        sequence = (np.array(self._tree.blocks, np.int32), self._tree.n_tokens, len(ids), int(wants_logits))
        if not self._decoder.evaluate(np.asarray(ids, np.int32), [sequence], cancel.cell, logits):
            return None
        self._tree.append(ids)
        return logits.reshape(-1)

    def forget(self) -> None:
        """Empty the cache."""
        self._tree.forget()

    def close(self) -> None:
        """Drop the decoder, its cache and its view of the weights."""
        self._decoder = self._cache = None
