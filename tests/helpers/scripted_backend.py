"""A backend whose logits are a pure function of the tokens in its cache, so that a cache that lies is noticed."""

from collections.abc import Callable, Sequence

import numpy as np
from treefill.engine.api import CancelFlag, TokenId
from treefill.engine.backend import PREFILL_CHUNK, Logits
from treefill.engine.prefix_tree import n_common

Script = Callable[[tuple[TokenId, ...]], TokenId | Sequence[TokenId]]
"""All tokens so far → the likeliest next one, or several, the likeliest first."""


class ScriptedBackend:
    name = "scripted"

    def __init__(
        self, script: Script, width: int = 300, n_context: int = 512, is_narrow: bool = False
    ) -> None:
        """Narrow, it knows no other tokens than those that the script names."""
        self._is_narrow = is_narrow
        self.n_context = n_context
        self.evaluated: list[TokenId] = []
        """Every token evaluated, over all requests."""
        self.fails_after: int | None = None
        self._script = script
        self._width = width
        self.cached: list[TokenId] = []
        self._salt = ""

    def begin(self, ids: Sequence[TokenId], salt: str) -> int:
        n_shared = n_common(self.cached, ids) if salt == self._salt else 0
        self._salt = salt
        del self.cached[n_shared:]
        return n_shared

    def evaluate(
        self, ids: Sequence[TokenId], cancel: CancelFlag, wants_logits: bool = True
    ) -> Logits | None:
        assert 1 <= len(ids) <= PREFILL_CHUNK
        if self.fails_after is not None and len(self.evaluated) >= self.fails_after:
            raise RuntimeError("out of memory")
        self.cached.extend(ids)
        self.evaluated.extend(ids)
        if not wants_logits:
            return np.empty(0, np.float32)
        return self.logits_after(tuple(self.cached))

    def logits_after(self, ids: tuple[TokenId, ...]) -> Logits:
        """What the script says; lower ids first where all that it wants is barred."""
        logits = np.linspace(0.5, 0, self._width, dtype=np.float32)
        if self._is_narrow:
            logits[:] = -np.inf
        wanted = self._script(ids)
        for rank, token in enumerate([wanted] if isinstance(wanted, int) else wanted):
            logits[token] = max(logits[token], 1 + 1 / (1 + rank))
        return logits

    def forget(self) -> None:
        self.cached.clear()

    def close(self) -> None:
        self.cached.clear()
