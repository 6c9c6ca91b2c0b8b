"""Who sits the exams where a test sends nobody else: this version's own acceptor, and its masks."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from treefill import _kernels
from treefill.evaluation.examinee import Acceptor, Matcher
from treefill.evaluation.mask_exam import MaskAcceptor
from treefill.syntax.check import grammar_alone
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import OutOfReach, matcher_at, tables
from treefill.syntax.vocabulary import MaskVocabulary, to_bools


class BuiltIn:
    """The acceptor of this version, as it is, and the matcher that completions are held to."""

    def acceptor(self, language: str, with_policies: bool = False) -> Acceptor:
        """At the beginning of an empty file."""
        loaded = _loaded(language)
        return _kernels.Acceptor(tables(loaded) if with_policies else _grammar_alone(loaded))

    def matcher(self, text: str, byte_offset: int, language: str) -> Matcher | None:
        """At a place of a document."""
        offset = len(text.encode()[:byte_offset].decode())
        matcher = matcher_at(text, offset, language_by_id(language), _loaded(language).name)
        return None if isinstance(matcher, OutOfReach) else matcher


class BuiltInMasks:
    """The masks of this version, as they are."""

    def __init__(self, vocabulary: MaskVocabulary, with_policies: bool = False) -> None:
        """Without policies the grammar alone decides, as tree-sitter does."""
        self._vocabulary = vocabulary
        self._with_policies = with_policies

    def acceptor(self, language: str) -> MaskAcceptor:
        """At the beginning of an empty file. The first of a language takes seconds."""
        loaded = _loaded(language)
        grammar = tables(loaded) if self._with_policies else grammar_alone(loaded)
        return _Masking(grammar, self._vocabulary)


class _Masking:
    """An acceptor and its masks."""

    def __init__(self, grammar: _kernels.Grammar, vocabulary: MaskVocabulary) -> None:
        vocabulary.for_grammar(grammar)  # no mask's time
        acceptor = _kernels.Acceptor(grammar)
        self.accept = acceptor.accept
        self.allows = acceptor.allows
        self.accepts_whole = acceptor.accepts_whole
        self._acceptor = acceptor
        self._grammar = grammar
        self._vocabulary = vocabulary

    @property
    def gave_up(self) -> str:
        """Why everything is allowed from here on; empty while the grammar decides."""
        return self._acceptor.gave_up

    def fill_mask(self) -> NDArray[np.bool_]:
        """The tokens that may come next, by id: `[n_tokens]`."""
        words = self._vocabulary.fill_mask(self._acceptor, self._grammar)
        return to_bools(words, len(self._vocabulary.spelled))


@cache
def _grammar_alone(loaded: LoadedGrammar) -> _kernels.Grammar:
    """Without what completions are refused beyond the grammar, and its own scanner asked."""
    kept = tables(loaded).keep()  # its lexers are the same
    return _kernels.Grammar(loaded.capsule, kept=kept)


def _loaded(language: str) -> LoadedGrammar:
    return load(language_by_id(language).grammars[0])
