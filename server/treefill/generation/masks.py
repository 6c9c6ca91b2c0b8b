"""How the tokens that may come next are told: not at all, one by one as the model proposes them, or all at once.

A further way, such as masks that are kept in a dictionary, is a member of `Masks` and a row of `_MAKERS`: something
that makes, of a matcher and a vocabulary, what `GenerateRequest.mask` is. The guard has the last word in any case, so
the tokens are the same and only the time differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from treefill.generation.prompt import FENCE
from treefill.syntax.dictionary import dictionary_for
from treefill.syntax.vocabulary import MaskVocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from treefill.engine.api import Vocabulary
    from treefill.syntax.matcher import Matcher
    from treefill.syntax.schema import SchemaGuard

_MARK = FENCE[:1].encode()
Mask = Callable[[], "NDArray[np.uint32] | None"]


class Masks(StrEnum):
    """How a document is held to its grammar while it is written."""

    OFF = "off"
    """Not at all: it is only checked once it is written."""
    CHECK = "check"
    """Each token is checked when the model proposes it."""
    EACH = "each"
    """A mask of the whole vocabulary is computed for every token."""
    DICTIONARY = "dictionary"
    """Masks that were made before are used, and missing ones are made beside the model; else as `check`."""


def _computed_each_time(matcher: Matcher, vocabulary: MaskVocabulary) -> Mask:
    matcher.prepare_masks(vocabulary)  # once a process, and no part of what a mask costs
    return lambda: matcher.fill_mask(vocabulary)


def _made_before(matcher: Matcher, vocabulary: MaskVocabulary) -> Mask:
    dictionary = dictionary_for(matcher.loaded, vocabulary)
    return lambda: matcher.known_mask(vocabulary, dictionary)


_MAKERS: Mapping[Masks, Callable[[Matcher, MaskVocabulary], Mask]] = {
    Masks.EACH: _computed_each_time,
    Masks.DICTIONARY: _made_before,
}


@dataclass(frozen=True, slots=True, eq=False)
class MaskTokens:
    """A model's vocabulary, ready for masks, and the tokens that a fence's end is in."""

    vocabulary: MaskVocabulary
    fence_words: NDArray[np.uint32]  # [n_words]

    @classmethod
    def of(cls, tokens: Vocabulary) -> MaskTokens:
        """Takes a second or so for 150,000 tokens."""
        vocabulary = MaskVocabulary(tokens)
        bits = np.zeros(32 * vocabulary.n_words, np.bool_)
        bits[: len(vocabulary.spelled)] = [_MARK in token for token in vocabulary.spelled]
        return cls(vocabulary, np.packbits(bits, bitorder="little").view(np.uint32))


def mask_for(
    how: Masks, matcher: Matcher | None, schema: SchemaGuard | None, tokens: MaskTokens
) -> Mask | None:
    """What is allowed by all that there is, and what may end the fence; None where no mask is wanted, or made."""
    if how not in _MAKERS or (matcher is None and schema is None):
        return None
    makers = [] if matcher is None else [_MAKERS[how](matcher, tokens.vocabulary)]
    makers += [] if schema is None else [schema.fill_mask]

    def mask() -> NDArray[np.uint32] | None:
        made = [words for maker in makers if (words := maker()) is not None]
        return np.bitwise_and.reduce(made) | tokens.fence_words if made else None

    return mask
