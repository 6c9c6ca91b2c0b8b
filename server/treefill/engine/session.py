"""What of a prompt the key/value cache answers already, and the evaluation of the rest.

Typing appends to a prompt's end, so most of the next prompt is in the cache.
"""

from collections.abc import Sequence

from treefill.engine.api import CancelFlag, TokenId
from treefill.engine.backend import PREFILL_CHUNK, Backend, Logits


class Session:
    """One backend, asked so that its cache is never believed to hold what it does not."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def forget(self) -> None:
        """Empty the cache."""
        self._backend.forget()

    def reuse(self, prompt_ids: Sequence[TokenId], salt: str = "") -> int:
        """Begin with what the cache shares with `prompt_ids`, less one token at least; how many tokens that is.

        The last prompt token is always evaluated again, since its logits are not kept.
        """
        return self._backend.begin(prompt_ids[:-1], salt)

    def prefill(self, ids: Sequence[TokenId], cancel: CancelFlag) -> Logits | None:
        """Evaluate `ids` after what is there; logits after the last, or None when cancelled on the way.

        A cancelled prefill leaves the chunks that were done in the cache, ready for the next prompt.
        """
        logits: Logits | None = None
        for start in range(0, len(ids), PREFILL_CHUNK):
            chunk = ids[start : start + PREFILL_CHUNK]
            logits = self._evaluate(chunk, cancel, wants_logits=start + len(chunk) == len(ids))
            if logits is None:
                return None
        return logits

    def _evaluate(self, ids: Sequence[TokenId], cancel: CancelFlag, wants_logits: bool) -> Logits | None:
        if cancel.is_cancelled:
            return None
        try:
            return self._backend.evaluate(ids, cancel, wants_logits)
        except BaseException:
            # What the backend wrote before it failed is unknown: better nothing than a cache that lies.
            self._backend.forget()
            raise
