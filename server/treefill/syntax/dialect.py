"""Which grammar a file is read with, where its language has several: the user's choice, else what its text tells.

That is the grammar that parses most of the statements near the cursor; the first of the language's where they agree.
A statement is parsed once, so the next keystroke costs nothing.
"""

import re
from functools import lru_cache
from time import perf_counter

from treefill.errors import GrammarError
from treefill.syntax.grammars import load
from treefill.syntax.hazards import hazard
from treefill.syntax.languages import Grammar, Language
from treefill.syntax.parse import encoded, parse

MAX_CHARS = 24_000
MAX_STATEMENTS = 40
TIME_LIMIT_S = 0.15
"""So much longer at most; what was parsed is remembered, so the next keystroke goes on from there."""
MAX_STATEMENT_CHARS = 4_000
"""Longer ones are mostly data, and all grammars parse them alike."""
_PIECE = re.compile(
    r"--[^\n]*|/\*(?:.*?\*/|.*\Z)|'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|`[^`]*(?:`|\Z)|(\$\w*\$)(?:.*?\1|.*\Z)"
    r"|;|[^;'\"`$/-]+|.",
    re.DOTALL,
)


def dialect_of(language: Language, text: str, offset: int, wanted: str | None = None) -> Grammar:
    """The grammar to read `text` with. Raises `GrammarError` where the one that is wanted isn't known."""
    first = language.grammars[0]
    if wanted is not None:
        named = next((grammar for grammar in language.grammars if grammar.name == wanted), None)
        if named is None:
            names = ", ".join(grammar.name for grammar in language.grammars)
            raise GrammarError(f"There is no grammar {wanted!r} for {language.id}: use one of {names}.")
        return named
    if len(language.grammars) == 1:
        return first
    deadline_s = perf_counter() + TIME_LIMIT_S
    n_parsed = dict.fromkeys(language.grammars, 0)
    for statement in statements_near(text, offset):
        if perf_counter() > deadline_s:
            break
        for grammar in language.grammars:
            n_parsed[grammar] += _is_parsed(statement, grammar)
    # `max` takes the first of several that parse as many.
    return max(language.grammars, key=lambda grammar: n_parsed[grammar])


@lru_cache(maxsize=8)
def statements_near(text: str, offset: int) -> tuple[str, ...]:
    """Whole statements around the cursor, the nearest ones; not the one that is being written."""
    start = max(0, offset - MAX_CHARS // 2)
    part = text[start : offset + MAX_CHARS // 2]
    found: list[tuple[int, str]] = []
    begin = 0
    for piece in _PIECE.finditer(part):
        if piece[0] != ";":
            continue
        statement = part[begin : piece.end()].strip()
        if not begin <= offset - start <= piece.end() and len(statement) <= MAX_STATEMENT_CHARS:
            found.append((abs(begin - (offset - start)), statement))
        begin = piece.end()
    return tuple(statement for _, statement in sorted(found)[:MAX_STATEMENTS])


@lru_cache(maxsize=1024)
def _is_parsed(statement: str, grammar: Grammar) -> bool:
    """True where the grammar finds no fault. One that can't be loaded parses nothing."""
    if hazard(statement, grammar):
        return False
    try:
        parsed = parse(encoded(statement), load(grammar))
    except GrammarError:
        return False
    return parsed is not None and not parsed.faults
