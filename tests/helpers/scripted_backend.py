"""A backend whose logits are a pure function of the tokens in its cache, so that a cache that lies is noticed."""

from collections.abc import Callable, Sequence

import numpy as np
from treefill.engine.api import CancelFlag, TokenId
from treefill.engine.backend import PREFILL_CHUNK, Logits

Script = Callable[[tuple[TokenId, ...]], TokenId]
"""All tokens so far → the likeliest next one."""


class ScriptedBackend:
    name = "scripted"

    def __init__(self, script: Script, width: int = 300, n_context: int = 512) -> None:
        self.n_context = n_context
        self.evaluated: list[TokenId] = []
        """Every token evaluated, over all requests."""
        self.fails_after: int | None = None
        self._script = script
        self._width = width
        self._cache: list[TokenId] = []

    def evaluate(self, ids: Sequence[TokenId], cancel: CancelFlag) -> Logits | None:
        assert 1 <= len(ids) <= PREFILL_CHUNK
        if self.fails_after is not None and len(self.evaluated) >= self.fails_after:
            raise RuntimeError("out of memory")
        self._cache.extend(ids)
        self.evaluated.extend(ids)
        logits = np.linspace(
            0.5, 0, self._width, dtype=np.float32
        )  # lower ids first, where the script is barred
        logits[self._script(tuple(self._cache))] = 1
        return logits

    def crop(self, n_tokens: int) -> None:
        assert n_tokens <= len(self._cache)
        del self._cache[n_tokens:]

    def close(self) -> None:
        self._cache.clear()
