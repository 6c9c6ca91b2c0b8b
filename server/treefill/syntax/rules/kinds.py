"""Kinds of nodes that a language's grammars have, and the words by which one may be known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from treefill.syntax.grammars import load
from treefill.syntax.languages import Language

_LITERALS = frozenset(
    ("None", "True", "False", "true", "false", "null", "nil", "NULL", "undefined", "this", "super", "void")
)
"""Words that are no names, though grammars have kinds of their own for them."""
_MARKS = ("keyword_", "kw_")
"""What the grammars of SQL call a word by."""


@dataclass(frozen=True, slots=True)
class KindsOfNodes:
    """Of all grammars of a language."""

    all: frozenset[str]
    keywords: frozenset[str]
    """Words that stand for themselves, and so are no names."""

    def words_of(self, kind: str) -> frozenset[str]:
        """The words that tell of such a node: `global` of `global_statement`; none where no word does."""
        if kind in self.keywords:
            return frozenset({kind})
        return frozenset(_unmarked(kind).split("_")) & self.keywords


@cache
def kinds_in(language: Language) -> KindsOfNodes:
    """Those of the language. Raises `GrammarError`."""
    named: set[str] = set()
    words: set[str] = set()
    for grammar in language.grammars:
        table = load(grammar).language
        for number in range(table.node_kind_count):
            kind = table.node_kind_for_id(number)
            if kind and table.node_kind_is_visible(number):
                (named if table.node_kind_is_named(number) else words).add(kind)
    marked = {_unmarked(kind) for kind in named if kind.startswith(_MARKS)}
    return KindsOfNodes(frozenset(named | words), _LITERALS | _alphabetic(words | marked))


def _unmarked(kind: str) -> str:
    return kind.removeprefix(_MARKS[0]).removeprefix(_MARKS[1])


def _alphabetic(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if word.replace("_", "").isalpha())
