"""Who sits the exam of `grammar_exam.py` where a test sends nobody else: this version's own acceptor."""

from treefill import _kernels
from treefill.evaluation.grammar_exam import Acceptor, Matcher
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import OutOfReach, matcher_at


class BuiltIn:
    """The acceptor of this version, as it is, and the matcher that completions are held to."""

    def __init__(self) -> None:
        self._grammars: dict[str, _kernels.Grammar] = {}

    def acceptor(self, language: str) -> Acceptor:
        """At the beginning of an empty file, without what completions are refused beyond the grammar."""
        if language not in self._grammars:
            self._grammars[language] = _kernels.Grammar(_loaded(language).capsule)
        return _kernels.Acceptor(self._grammars[language])

    def matcher(self, text: str, byte_offset: int, language: str) -> Matcher | None:
        """At a place of a document."""
        offset = len(text.encode()[:byte_offset].decode())
        matcher = matcher_at(text, offset, language_by_id(language), _loaded(language).name)
        return None if isinstance(matcher, OutOfReach) else matcher


def _loaded(language: str) -> LoadedGrammar:
    return load(language_by_id(language).grammars[0])
