"""Token healing: which tokens may come next when the text must begin with bytes that are typed already.

A cursor rarely stands where the tokenizer would have cut. `prin` is one token for a person who is about to type `t`,
but the model learnt ` print` whole. So the prompt ends before the typed word, and decoding is held to tokens that
spell it: with `b" prin"` left, allowed are its beginnings (`b" "`, `b" p"`, `b" pr"`, …) and whatever goes on from
it (`b" prin"`, `b" print"`, `b" printf"`, …). After guidance's token healing.
"""

import numpy as np

from treefill.engine.api import Vocabulary
from treefill.engine.sampler import Ids


class PrefixIndex:
    """The spellings of a vocabulary, compared byte by byte, all tokens at once: less than a millisecond a question."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        spelled = vocabulary.every_token_bytes()
        offsets = np.asarray(spelled.offsets, np.int64)
        self._data = np.frombuffer(spelled.data + b"\0", np.uint8)
        self._starts, self._lengths = offsets[:-1], np.diff(offsets)
        self._ids = np.flatnonzero(self._lengths)

    def allowed(self, remaining: bytes) -> Ids:
        """Ids of the tokens that begin `remaining`, or that begin with it; ascending."""
        alike, beginnings = self._ids, []
        for at, byte in enumerate(remaining):
            alike = alike[self._data[self._starts[alike] + at] == byte]
            if at + 1 < len(remaining):
                is_whole = self._lengths[alike] == at + 1
                beginnings.append(alike[is_whole])
                alike = alike[~is_whole]
        return np.sort(np.concatenate([*beginnings, alike]))
