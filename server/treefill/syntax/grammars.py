"""Grammars at work: a language's tables, loaded from the wheel that carries them.

The parser library and the wheels are imported when a grammar is first asked for, never before: a front has no use
for them, and a core is to be ready before they are.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from treefill.errors import GrammarError
from treefill.syntax.languages import Grammar
from treefill.syntax.once import once

if TYPE_CHECKING:
    import tree_sitter

OLDEST_ABI, NEWEST_ABI = 14, 15
"""Versions of a grammar's tables that we know how to read."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedGrammar:
    """A grammar that texts can be parsed with. Kept for the life of the process: parsers point into its tables."""

    grammar: Grammar
    language: tree_sitter.Language
    capsule: object
    """Holds the address of the tables, for those who read them themselves."""
    note: str = ""
    """What is odd about it, as one sentence; empty where nothing is."""

    @property
    def name(self) -> str:
        """As in `grammars/`."""
        return self.grammar.name


@once
def load(grammar: Grammar) -> LoadedGrammar:
    """The grammar's tables. Raises `GrammarError` where its wheel isn't there or can't be read."""
    try:
        import tree_sitter

        capsule: object = getattr(importlib.import_module(grammar.module_name), grammar.function)()
        language = tree_sitter.Language(capsule)
    except ImportError as error:
        raise GrammarError(
            f"The grammar {grammar.name} is not installed ({error.name or grammar.module_name}): "
            f"install {grammar.requirement} beside treefill."
        ) from None
    except (AttributeError, TypeError, ValueError) as error:
        raise GrammarError(
            f"The grammar {grammar.name} in {grammar.package} cannot be read ({error}): "
            f"install {grammar.package}=={grammar.version}."
        ) from None
    if not OLDEST_ABI <= language.abi_version <= NEWEST_ABI:
        raise GrammarError(
            f"The grammar {grammar.name} in {grammar.package} has tables of version {language.abi_version}, not "
            f"{OLDEST_ABI} to {NEWEST_ABI}: install {grammar.package}=={grammar.version}."
        )
    return LoadedGrammar(grammar, language, capsule, _note(grammar))


def _note(grammar: Grammar) -> str:
    """A word on a version that is not the one that was tried: it may well work."""
    try:
        found = version(grammar.package)
    except PackageNotFoundError:
        found = "no version"
    return (
        ""
        if found == grammar.version
        else f"{grammar.package} is {found}; {grammar.version} is what was tried."
    )
