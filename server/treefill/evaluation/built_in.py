"""Who sits the exam of `grammar_exam.py` where a test sends nobody else: this version's own acceptor."""

from functools import cache

from treefill import _kernels
from treefill.evaluation.examinee import Acceptor, Matcher
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import OutOfReach, matcher_at, tables


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


@cache
def _grammar_alone(loaded: LoadedGrammar) -> _kernels.Grammar:
    """Without what completions are refused beyond the grammar, and its own scanner asked."""
    return _kernels.Grammar(loaded.capsule)


def _loaded(language: str) -> LoadedGrammar:
    return load(language_by_id(language).grammars[0])
