"""Which languages are known, and what stands guard over each: the rows of `treefill languages`.

Told from the folders of `grammars/` and from what is installed; no grammar is loaded for it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version

from treefill.syntax.languages import Grammar, Language, Reach


class Guard(StrEnum):
    """How well a language's completions are held to its grammar."""

    TABLES = "grammar"
    """While they are written; the grammar is all tables."""
    MODEL = "grammar, scanner model"
    """While they are written; what its scanner does is code of our own."""
    SCANNER = "grammar, compiled scanner"
    """While they are written; its scanner is asked, and what it has not decided is allowed."""
    FENCES = "code in fences"
    """Each fence's code as its own language."""
    PARSE = "final check only"
    NOT_INSTALLED = "not installed"
    NONE = "no grammar"


@dataclass(frozen=True, slots=True)
class GrammarRow:
    """One grammar of a language."""

    name: str
    package: str
    version: str
    """The one that was tried."""
    installed: str | None
    """The one that is here; None where none is."""


@dataclass(frozen=True, slots=True)
class LanguageRow:
    """One language."""

    id: str
    suffixes: tuple[str, ...]
    grammars: tuple[GrammarRow, ...]
    guard: Guard
    note: str
    """What installs a grammar that is missing, or why one only checks at last; empty where nothing is to be said."""
    reach: Reach | None


def overview(known: Iterable[Language]) -> Iterator[LanguageRow]:
    """A row a language, by their names."""
    for language in sorted(known, key=lambda each: each.id):
        rows = tuple(
            GrammarRow(each.name, each.package, each.version, _installed(each)) for each in language.grammars
        )
        guard, note = _guard(language, rows)
        yield LanguageRow(
            language.id, (*language.suffixes, *language.filenames), rows, guard, note, language.reach
        )


def guard_of(grammar: Grammar) -> Guard:
    """How a grammar that is installed stands guard."""
    if grammar.parse_only:
        return Guard.PARSE
    if grammar.scanner_model:
        return Guard.MODEL
    return Guard.SCANNER if grammar.has_scanner else Guard.TABLES


def _guard(language: Language, rows: tuple[GrammarRow, ...]) -> tuple[Guard, str]:
    if language.fences:
        return Guard.FENCES, ""
    if not language.grammars:
        return Guard.NONE, ""
    first = language.grammars[0]
    if rows[0].installed is None:
        return Guard.NOT_INSTALLED, f"pip install '{first.requirement}'"
    return guard_of(first), first.parse_only


def _installed(grammar: Grammar) -> str | None:
    try:
        return version(grammar.package)
    except PackageNotFoundError:
        return None
