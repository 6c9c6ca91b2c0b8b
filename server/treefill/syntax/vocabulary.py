"""A model's vocabulary as grammars read it: what masks are made of, for all of its tokens at once.

A mask has a bit for each of the model's logits, in 32-bit words: bit `i % 32` of word `i // 32` says whether token `i`
may come next. Control tokens and ids that no token has are never written, so their bits are 0.

Nothing here knows a tokenizer: tokens are bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from treefill import _kernels
from treefill.errors import GrammarError
from treefill.syntax.matcher import count_run
from treefill.syntax.once import once

_BITS = 32
_WHITE = b" \t\n\r\x0b\f"


class Tokens(Protocol):
    """Whatever knows its tokens' bytes, as a tokenizer does."""

    n_tokens: int

    def token_bytes(self, token_id: int) -> bytes:
        """What a token is written as; empty where it is never written."""
        ...


class MaskVocabulary:
    """One model's vocabulary, and what each grammar makes of it. Any thread may use it."""

    def __init__(self, tokens: Tokens, n_logits: int | None = None) -> None:
        """`n_logits` is how many a model gives, at least as many as there are tokens; that many where it is None.

        Costs a second or so for 150,000 tokens: keep it, or make it in the background. Raises `GrammarError` for a
        vocabulary that masks cannot be made of.
        """
        self.spelled = tuple(tokens.token_bytes(number) for number in range(tokens.n_tokens))
        """Each token's bytes, by id; empty where it is never written."""
        self.n_logits = tokens.n_tokens if n_logits is None else n_logits
        try:
            self._kernel = _kernels.Vocabulary(list(self.spelled), self.n_logits)
        except ValueError as error:
            raise GrammarError(f"No mask can be made of the model's vocabulary: {error}") from None
        self._runs = _LeadingRuns(self.spelled)
        self.digest = _digest(self.spelled, self.n_logits)
        """16 bytes that tell it from any other."""
        self.for_grammar = once(self._for_grammar)
        """The vocabulary as that grammar reads it. Once a grammar, 0.4 to 5 s: have it made in the background."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MaskVocabulary) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def n_words(self) -> int:
        """Words of a mask."""
        return (self.n_logits + _BITS - 1) // _BITS

    @property
    def n_written(self) -> int:
        """Tokens that are ever written."""
        return sum(map(bool, self.spelled))

    def fill_mask(self, acceptor: _kernels.Acceptor, grammar: _kernels.Grammar) -> NDArray[np.uint32]:
        """The tokens that the acceptor, which is of that grammar, allows: `[n_words]`."""
        words = np.empty(self.n_words, np.uint32)
        acceptor.fill_mask(self.for_grammar(grammar), words)
        return words

    def without_long_runs(
        self, words: NDArray[np.uint32], n_line_feeds: int, n_blanks: int
    ) -> NDArray[np.uint32]:
        """The mask without the tokens that begin with more line feeds or more blanks than these: `[n_words]`."""
        return self._runs.taken_off(words, n_line_feeds, n_blanks)

    def asked_again(
        self, words: NDArray[np.uint32], of: Callable[[bytes], bool], allows: Callable[[bytes], bool]
    ) -> NDArray[np.uint32]:
        """The mask with the tokens that `of` chooses as `allows` says: `[n_words]`. Each of them is asked about."""
        asked = words.copy()
        for number, token in enumerate(self.spelled):
            if token and of(token):
                bit = np.uint32(1 << number % _BITS)
                is_allowed = allows(token)
                asked[number // _BITS] = (
                    asked[number // _BITS] | bit if is_allowed else asked[number // _BITS] & ~bit
                )
        return asked

    def _for_grammar(self, grammar: _kernels.Grammar) -> _kernels.GrammarVocabulary:
        try:
            return _kernels.GrammarVocabulary(grammar, self._kernel)
        except ValueError as error:
            raise GrammarError(f"The grammar cannot read the model's vocabulary: {error}") from None


def _digest(spelled: tuple[bytes, ...], n_logits: int) -> bytes:
    digest = xxhash.xxh3_128(n_logits.to_bytes(8, "little"))
    for token in spelled:
        digest.update(len(token).to_bytes(4, "little") + token)
    return digest.digest()


class _LeadingRuns:
    """The white space that tokens begin with, counted once: tokens with equal counts are kept together."""

    def __init__(self, spelled: tuple[bytes, ...]) -> None:
        ids: dict[tuple[int, int], list[int]] = {}
        for number, token in enumerate(spelled):
            if token[:1] in _BYTES_OF_WHITE:
                ids.setdefault(count_run(token[: len(token) - len(token.lstrip())]), []).append(number)
        self._ids = [np.array(each, np.int64) for each in ids.values()]
        self._n_line_feeds, self._n_blanks = np.array(list(ids), np.int64).reshape(-1, 2).T
        self._others = lru_cache(maxsize=128)(self._made_others)

    def taken_off(self, words: NDArray[np.uint32], n_line_feeds: int, n_blanks: int) -> NDArray[np.uint32]:
        """The mask without the tokens whose runs are longer."""
        others = self._others(n_line_feeds, n_blanks, len(words))
        return words if others is None else words & others

    def _made_others(self, n_line_feeds: int, n_blanks: int, n_words: int) -> NDArray[np.uint32] | None:
        """All tokens but those, `[n_words]`, or None where there are none. The same few are wanted at place after
        place.
        """
        is_long = (self._n_line_feeds > n_line_feeds) | (self._n_blanks > n_blanks)
        if not is_long.any():
            return None
        ids = np.concatenate([self._ids[number] for number in np.flatnonzero(is_long)])
        words = np.full(n_words, 0xFFFF_FFFF, np.uint32)
        np.bitwise_and.at(words, ids // _BITS, ~np.left_shift(np.uint32(1), (ids % _BITS).astype(np.uint32)))
        return words


def to_bools(words: NDArray[np.uint32], n: int) -> NDArray[np.bool_]:
    """The first `n` bits of a mask `[n_words]` as booleans `[n]`.

    >>> to_bools(np.array([5], np.uint32), 4).tolist()
    [True, False, True, False]
    """
    return np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")[:n].astype(np.bool_)


_BYTES_OF_WHITE = frozenset(bytes([each]) for each in _WHITE)
