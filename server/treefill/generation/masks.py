"""What a whole document's masks are made of: the grammar's, a schema's, and what may end the fence.

The guard has the last word in any case, so the tokens are the same and only the time differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from treefill.generation.prompt import FENCE
from treefill.syntax.masks import Mask, Masks, mask_of
from treefill.syntax.vocabulary import MaskVocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from treefill.engine.api import Vocabulary
    from treefill.syntax.matcher import Matcher
    from treefill.syntax.schema import SchemaGuard

_MARK = FENCE[:1].encode()


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
    if not how.is_of_all:
        return None
    of_grammar = None if matcher is None else mask_of(how, matcher, tokens.vocabulary)
    of_schema = None if schema is None else schema.fill_mask
    if of_grammar is None and of_schema is None:
        return None

    has_missed = False

    def mask() -> NDArray[np.uint32] | None:
        nonlocal has_missed
        words = of_grammar() if of_grammar else None
        is_missing = of_grammar is not None and words is None
        if is_missing and not has_missed:
            has_missed = True
            return None  # asked again, when the model has computed, it may be there
        has_missed = False
        made = [each for each in (words, of_schema() if of_schema else None) if each is not None]
        return np.bitwise_and.reduce(made) | tokens.fence_words if made else None

    return mask
