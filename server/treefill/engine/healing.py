"""Token healing: which tokens may come next when the text must begin with bytes that are typed already.

A cursor rarely stands where the tokenizer would have cut. `prin` is one token for a person who is about to type `t`,
but the model learnt ` print` whole. So the prompt ends before the typed word, and decoding is held to tokens that
spell it: with `b" prin"` left, allowed are its beginnings (`b" "`, `b" p"`, `b" pr"`, …) and whatever goes on from
it (`b" prin"`, `b" print"`, `b" printf"`, …). After guidance's token healing.
"""

from bisect import bisect_left

import numpy as np

from treefill.engine.api import TokenId, Vocabulary
from treefill.engine.sampler import Ids


class PrefixIndex:
    """A vocabulary sorted by bytes, so that tokens with a given beginning lie side by side."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        spelled = ((vocabulary.token_bytes(token), token) for token in range(vocabulary.n_tokens))
        self._sorted: list[tuple[bytes, TokenId]] = sorted(pair for pair in spelled if pair[0])

    def allowed(self, remaining: bytes) -> Ids:
        """Ids of the tokens that begin `remaining`, or that begin with it; ascending."""
        ids = [token for spelled, token in self._beginning_with(remaining)]
        for length in range(1, len(remaining)):
            ids += [token for spelled, token in self._equal_to(remaining[:length])]
        return np.array(sorted(ids), dtype=np.int64)

    def _beginning_with(self, start: bytes) -> list[tuple[bytes, TokenId]]:
        first = bisect_left(self._sorted, (start, -1))
        past = bisect_left(self._sorted, (_successor(start), -1)) if _successor(start) else len(self._sorted)
        return self._sorted[first:past]

    def _equal_to(self, spelled: bytes) -> list[tuple[bytes, TokenId]]:
        first = bisect_left(self._sorted, (spelled, -1))
        past = bisect_left(self._sorted, (spelled + b"\0", -1))
        return self._sorted[first:past]


def _successor(start: bytes) -> bytes:
    """The least bytes greater than everything that begins with `start`; empty when there are none."""
    stem = start.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b""
