"""Token healing: which tokens may come next when the text must begin with bytes that are typed already.

A cursor rarely stands where the tokenizer would have cut. `prin` is one token for a person who is about to type `t`,
but the model learnt ` print` whole. So the prompt ends before the typed word, and decoding is held to tokens that
spell it: with `b" prin"` left, allowed are its beginnings (`b" "`, `b" p"`, `b" pr"`, …) and whatever goes on from
it (`b" prin"`, `b" print"`, `b" printf"`, …). After guidance's token healing.
"""

from bisect import bisect_left, bisect_right

import numpy as np

from treefill.engine.api import TokenId, Vocabulary
from treefill.engine.sampler import Ids


class PrefixIndex:
    """A vocabulary sorted by bytes, so that tokens with a given beginning lie side by side."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        spelled = vocabulary.every_token_bytes()
        self._ids: list[TokenId] = sorted(
            filter(spelled.__getitem__, range(len(spelled))), key=spelled.__getitem__
        )
        self._bytes = [spelled[token] for token in self._ids]

    def allowed(self, remaining: bytes) -> Ids:
        """Ids of the tokens that begin `remaining`, or that begin with it; ascending."""
        ids = self._beginning_with(remaining)
        for length in range(1, len(remaining)):
            ids += self._equal_to(remaining[:length])
        return np.array(sorted(ids), dtype=np.int64)

    def _beginning_with(self, start: bytes) -> list[TokenId]:
        past = _successor(start)
        return self._between(start, bisect_left(self._bytes, past) if past else len(self._bytes))

    def _equal_to(self, spelled: bytes) -> list[TokenId]:
        return self._between(spelled, bisect_right(self._bytes, spelled))

    def _between(self, first: bytes, past: int) -> list[TokenId]:
        return self._ids[bisect_left(self._bytes, first) : past]


def _successor(start: bytes) -> bytes:
    """The least bytes greater than everything that begins with `start`; empty when there are none."""
    stem = start.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b""
