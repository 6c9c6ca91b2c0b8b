"""What the key/value cache holds, and how much of the next prompt it already answers.

Typing appends to a prompt's end, so most of the next prompt is in the cache. A session keeps the tokens behind the
cached keys and values, compares them with the new prompt, crops to the longest common prefix and evaluates the rest.
The comparison is of tokens, never of hashes, so what is reused is what would have been computed.
"""

from collections.abc import Sequence
from itertools import takewhile

from treefill.engine.api import CancelFlag, TokenId
from treefill.engine.backend import PREFILL_CHUNK, Backend, Logits


class Session:
    """One backend's cache and the tokens in it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._cached: list[TokenId] = []

    @property
    def cached_ids(self) -> tuple[TokenId, ...]:
        """The tokens whose keys and values the cache holds."""
        return tuple(self._cached)

    def forget(self) -> None:
        """Empty the cache."""
        self._crop(0)

    def reuse(self, prompt_ids: Sequence[TokenId]) -> int:
        """Crop the cache to what it shares with `prompt_ids`, less one token at least; returns how many are left.

        The last prompt token is always evaluated again, since its logits are not kept.
        """
        n_shared = _n_common(self._cached, prompt_ids)
        n_reused = min(n_shared, len(prompt_ids) - 1)
        self._crop(n_reused)
        return n_reused

    def prefill(self, ids: Sequence[TokenId], cancel: CancelFlag) -> Logits | None:
        """Evaluate `ids` after what is cached; logits after the last, or None when cancelled on the way.

        A cancelled prefill leaves the chunks that were done in the cache, ready for the next prompt.
        """
        logits: Logits | None = None
        for start in range(0, len(ids), PREFILL_CHUNK):
            logits = self._evaluate(ids[start : start + PREFILL_CHUNK], cancel)
            if logits is None:
                return None
        return logits

    def decode_one(self, token: TokenId, cancel: CancelFlag) -> Logits | None:
        """Append one chosen token; logits after it, or None when cancelled on the way."""
        return self._evaluate([token], cancel)

    def _evaluate(self, ids: Sequence[TokenId], cancel: CancelFlag) -> Logits | None:
        if cancel.is_cancelled:
            return None
        try:
            logits = self._backend.evaluate(ids, cancel)
        except BaseException:
            # What the backend wrote before it failed is unknown: better nothing than a cache that lies.
            self._cached.clear()
            self._backend.crop(0)
            raise
        if logits is not None:
            self._cached.extend(ids)
        return logits

    def _crop(self, n_tokens: int) -> None:
        del self._cached[n_tokens:]
        self._backend.crop(n_tokens)


def _n_common(left: Sequence[TokenId], right: Sequence[TokenId]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
