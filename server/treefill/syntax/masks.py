"""How the tokens that may come next are told: not at all, one by one as the model proposes them, or all at once.

A mask changes no token that is written, only the time that it takes: the matcher has the last word in any case. Greedy,
a check of what is proposed is the quickest. Where many tokens are looked at, a mask that is known beforehand is.

What makes them is loaded when the first one is wanted.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from treefill.errors import GrammarError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from treefill.syntax.grammars import LoadedGrammar
    from treefill.syntax.matcher import Matcher
    from treefill.syntax.vocabulary import MaskVocabulary, Tokens

log = logging.getLogger(__name__)

Mask = Callable[[], "NDArray[np.uint32] | None"]
"""Of where the matcher is: `[n_words]`; None where it is not known."""


class Masks(StrEnum):
    """How what is written is held to its grammar."""

    OFF = "off"
    """Not at all: it is only checked once it is written."""
    CHECK = "check"
    """Each token is checked when the model proposes it."""
    EACH = "each"
    """A mask of the whole vocabulary is computed for every token."""
    DICTIONARY = "dictionary"
    """Masks that were made before are used, and missing ones are made beside the model; else as `check`."""

    @property
    def is_of_all(self) -> bool:
        """True where all tokens of the vocabulary are told at once."""
        return self in _MAKERS


def mask_of(how: Masks, matcher: Matcher, vocabulary: MaskVocabulary) -> Mask | None:
    """What tells the masks of where the matcher is; None where none are wanted.

    Has the grammar read the vocabulary: once a process, 0.4 to 5 s. Raises `GrammarError` where it cannot.
    """
    return _MAKERS[how](matcher, vocabulary) if how in _MAKERS else None


def mask_if_ready(how: Masks, matcher: Matcher, tokens: Tokens) -> Mask | None:
    """The same, at once: None, too, until the grammar has read the vocabulary in the background, as is begun here."""
    if how not in _MAKERS:
        return None
    from treefill.syntax.dictionary import BACKGROUND

    wanted, read = (matcher.loaded, how), _READ.setdefault(tokens, {})
    if wanted not in read:
        BACKGROUND.want(lambda: _have_read(matcher.loaded, how, tokens))
    vocabulary = read.get(wanted)
    return None if vocabulary is None else mask_of(how, matcher, vocabulary)


def put_away() -> None:
    """Make no more masks in the background, keep those that there are for the next process, and give back what memory
    making them takes.
    """
    if "treefill.syntax.dictionary" not in sys.modules:
        return
    from treefill.syntax.dictionary import BACKGROUND, put_dictionaries_away

    BACKGROUND.stop()
    put_dictionaries_away()


def _computed_each_time(matcher: Matcher, vocabulary: MaskVocabulary) -> Mask:
    matcher.prepare_masks(vocabulary)  # once a process, and no part of what a mask costs
    return lambda: matcher.fill_mask(vocabulary)


def _made_before(matcher: Matcher, vocabulary: MaskVocabulary) -> Mask:
    from treefill.syntax.dictionary import dictionary_for

    dictionary = dictionary_for(matcher.loaded, vocabulary)
    missed_at = -1

    def mask() -> NDArray[np.uint32] | None:
        nonlocal missed_at
        words = matcher.known_mask(dictionary, is_again=matcher.n_taken == missed_at)
        missed_at = matcher.n_taken if words is None else -1
        return words

    return mask


_MAKERS: Mapping[Masks, Callable[[Matcher, MaskVocabulary], Mask]] = {
    Masks.EACH: _computed_each_time,
    Masks.DICTIONARY: _made_before,
}
_VOCABULARIES: dict[bytes, MaskVocabulary] = {}
"""By their digests: a model that was loaded again has the vocabulary that it had before."""
_READ: WeakKeyDictionary[Tokens, dict[tuple[LoadedGrammar, Masks], MaskVocabulary | None]] = (
    WeakKeyDictionary()
)
"""The vocabularies that a grammar has read; None for one that it cannot read, or is reading."""


def _have_read(loaded: LoadedGrammar, how: Masks, tokens: Tokens) -> None:
    """Once a grammar and model; only the background does it, so it is never done twice at once."""
    read = _READ.setdefault(tokens, {})
    if (loaded, how) in read:
        return
    from treefill.syntax.dictionary import dictionary_for
    from treefill.syntax.matcher import tables
    from treefill.syntax.vocabulary import MaskVocabulary

    known = next((each for each in read.values() if each is not None), None)
    read[loaded, how] = None  # whatever comes of it, it is not tried again
    try:
        made = known or MaskVocabulary(tokens)
        vocabulary = _VOCABULARIES.setdefault(made.digest, made)
        vocabulary.for_grammar(tables(loaded))
        if how is Masks.DICTIONARY:
            dictionary_for(loaded, vocabulary)
        read[loaded, how] = vocabulary
    except GrammarError as error:
        log.info("There are no masks for %s: %s", loaded.name, error)
