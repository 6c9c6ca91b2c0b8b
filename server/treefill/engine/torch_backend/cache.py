"""Keys and values in memory that grows by doubling, so that a token appends in place and a crop moves a number.

transformers' own DynamicCache copies the whole cache for every token.
"""

from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from treefill.engine.api import CancelFlag

_FIRST_CAPACITY = 512  # tokens


class AppendableLayer(CacheLayerMixin):  # type: ignore[misc]
    """One layer's keys and values: buffers of [1, heads, capacity, head_dim], filled up to `length`."""

    is_sliding = False
    is_croppable = True

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Take shapes and types from the first keys and values."""
        self.keys = _buffer_like(key_states, _FIRST_CAPACITY)
        self.values = _buffer_like(value_states, _FIRST_CAPACITY)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append [1, heads, n, head_dim]; all keys and values so far, as views."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[-2]
        if end > self.keys.shape[-2]:
            self.keys = _grown(self.keys, self.length, end)
            self.values = _grown(self.values, self.length, end)
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many keys a query of this length will see, and where they begin."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """Tokens held."""
        return self.length

    def get_max_length(self) -> int:
        """No bound of its own."""
        return -1


class Interrupted(Exception):
    """The flag was set between two layers."""


class AppendableCache(Cache):  # type: ignore[misc]
    """All layers' keys and values; and the place where a flag is read between two layers."""

    def __init__(self, n_layers: int) -> None:
        super().__init__(layers=[AppendableLayer() for _ in range(n_layers)])
        self.cancel: CancelFlag | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append one layer's keys and values. Raises `Interrupted` when the flag is set."""
        # Every architecture's every layer comes by here, so no hook into a model's modules is needed.
        if self.cancel is not None and self.cancel.is_cancelled:
            raise Interrupted
        keys, values = super().update(key_states, value_states, layer_idx, *args, **kwargs)
        return keys, values

    def keep(self, n_tokens: int) -> None:
        """Forget everything after the first `n_tokens`."""
        for layer in self.layers:
            layer.length = min(layer.length, n_tokens)


def _buffer_like(states: torch.Tensor, capacity: int) -> torch.Tensor:
    batch, heads, n_tokens, head_dim = states.shape
    return states.new_empty(batch, heads, max(capacity, n_tokens), head_dim)


def _grown(buffer: torch.Tensor, length: int, needed: int) -> torch.Tensor:
    grown = _buffer_like(buffer, max(needed, 2 * buffer.shape[-2]))
    grown[:, :, :length] = buffer[:, :, :length]
    return grown
