"""A transformers causal language model as a `Backend`."""

from collections.abc import Sequence
from typing import Any

import torch

from treefill.engine.api import CancelFlag, TokenId
from treefill.engine.backend import Logits
from treefill.engine.torch_backend.cache import AppendableCache, Interrupted


class TorchBackend:
    """`engine.backend.Backend` over a loaded model."""

    def __init__(self, name: str, model: Any, n_context: int) -> None:
        self.name = name
        self.n_context = n_context
        self._model = model
        self._cache = AppendableCache(model.config.num_hidden_layers)

    def evaluate(self, ids: Sequence[TokenId], cancel: CancelFlag) -> Logits | None:
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
                return logits
        except Interrupted:
            self._cache.keep(n_before)
            return None

    def crop(self, n_tokens: int) -> None:
        """Keep the first `n_tokens` of the cache."""
        self._cache.keep(n_tokens)

    def close(self) -> None:
        """Drop the model and its cache."""
        self._model = None
        self._cache = AppendableCache(0)
