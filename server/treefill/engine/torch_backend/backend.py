"""A transformers causal language model as a `Backend`."""

from collections.abc import Sequence
from typing import Any

import torch

from treefill.engine.api import CancelFlag, TokenId
from treefill.engine.backend import Logits
from treefill.engine.prefix_tree import n_common
from treefill.engine.torch_backend.cache import AppendableCache, Interrupted


class TorchBackend:
    """`engine.backend.Backend` over a loaded model."""

    def __init__(self, name: str, model: Any, n_context: int) -> None:
        self.name = name
        self.n_context = n_context
        self._model = model
        self._cache = AppendableCache(model.config.num_hidden_layers)
        self._cached: list[TokenId] = []
        self._salt = ""

    def begin(self, ids: Sequence[TokenId], salt: str) -> int:
        """Crop the one sequence that is kept to what it shares with `ids`; how many tokens that is."""
        n_shared = n_common(self._cached, ids) if salt == self._salt else 0
        self._salt = salt
        self._crop(n_shared)
        return n_shared

    def evaluate(
        self, ids: Sequence[TokenId], cancel: CancelFlag, wants_logits: bool = True
    ) -> Logits | None:
        """Append tokens to the cache; float32 logits [V] after the last one, or None when interrupted."""
        n_before = self._cache.get_seq_length()
        self._cache.cancel = cancel
        try:
            with torch.inference_mode():
                out = self._model(
                    input_ids=torch.tensor([list(ids)], device=self._model.device),  # [1, n]
                    cache=self._cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
                logits: Logits = out.logits[0, -1].float().cpu().numpy()
        except Interrupted:
            self._cache.keep(n_before)
            return None
        self._cached.extend(ids)
        return logits

    def forget(self) -> None:
        """Empty the cache."""
        self._crop(0)

    def _crop(self, n_tokens: int) -> None:
        del self._cached[n_tokens:]
        self._cache.keep(n_tokens)

    def close(self) -> None:
        """Drop the model and its cache."""
        self._model = None
        self._cache = AppendableCache(0)
