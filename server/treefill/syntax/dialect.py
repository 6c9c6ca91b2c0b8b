"""Which grammar a file is read with, where its language has several: the user's choice, else what its text tells, or
where that tells nothing, what other files tell.

That is the grammar that parses most of the statements near the cursor; the first of the language's where they agree.
A statement is parsed once, so the next keystroke costs nothing.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from threading import Lock
from time import perf_counter, thread_time
from typing import TypeVar

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
MAX_OTHERS = 4
"""So many other files are asked where the text itself tells nothing."""
NOWHERE = -1
"""The offset for a text in which nothing is being written."""
ASKED_AGAIN_S = 300.0
"""A statement that took most of the time, and was not parsed, is parsed again after a while."""
N_REMEMBERED = 1024
K = TypeVar("K")
V = TypeVar("V")
_PIECE = re.compile(
    r"--[^\n]*|/\*(?:.*?\*/|.*\Z)|'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|`[^`]*(?:`|\Z)|(\$\w*\$)(?:.*?\1|.*\Z)"
    r"|;|[^;'\"`$/-]+|.",
    re.DOTALL,
)


def dialect_of(
    language: Language, text: str, offset: int, wanted: str | None = None, others: Sequence[str] = ()
) -> Grammar:
    """The grammar to read `text` with; `others` are texts in the same language.

    Raises `GrammarError` where the one that is wanted isn't known.
    """
    first = language.grammars[0]
    if wanted is not None:
        named = next((grammar for grammar in language.grammars if grammar.name == wanted), None)
        if named is None:
            names = ", ".join(grammar.name for grammar in language.grammars)
            raise GrammarError(f"There is no grammar {wanted!r} for {language.id}: use one of {names}.")
        return named
    if len(language.grammars) == 1:
        return first
    deadline_s = thread_time() + TIME_LIMIT_S
    told = _told_by(statements_near(text, offset), language, deadline_s)
    if told is None and others:
        # Nothing, or as much for the one as for the other.
        statements = (each for other in others[:MAX_OTHERS] for each in statements_near(other, NOWHERE))
        told = _told_by(statements, language, deadline_s)
    return told or first


def _told_by(statements: Iterable[str], language: Language, deadline_s: float) -> Grammar | None:
    """The grammar that parses more of them than any other; None where that is none."""
    n_parsed = dict.fromkeys(language.grammars, 0)
    for statement in statements:
        if thread_time() > deadline_s:
            break
        for grammar in language.grammars:
            n_parsed[grammar] += _VERDICTS.is_parsed(statement, grammar, deadline_s)
    most = max(n_parsed.values())
    best = [grammar for grammar in language.grammars if n_parsed[grammar] == most]
    return best[0] if len(best) == 1 else None


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


class _Verdicts:
    """What grammars say of the latest statements. From any thread."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Grammar], bool] = {}
        self._late: dict[tuple[str, Grammar], float] = {}
        """Until when those that took most of the time are not asked about again."""
        self._lock = Lock()

    def is_parsed(self, statement: str, grammar: Grammar, deadline_s: float) -> bool:
        """True where the grammar finds no fault, and there is time to find none."""
        key = (statement, grammar)
        with self._lock:
            if key in self._known:
                return self._known[key]
            if perf_counter() < self._late.get(key, 0.0):
                return False
        started_s = thread_time()
        verdict = _verdict(statement, grammar, deadline_s)
        took_s = thread_time() - started_s
        with self._lock:
            if verdict is not None:
                _keep(self._known, key, verdict)
            elif took_s > TIME_LIMIT_S / 2:
                _keep(self._late, key, perf_counter() + ASKED_AGAIN_S)
        return bool(verdict)


def _keep(known: dict[K, V], key: K, value: V) -> None:
    """The newest last; the oldest goes where there are too many."""
    known[key] = value
    if len(known) > N_REMEMBERED:
        del known[next(iter(known))]


def _verdict(statement: str, grammar: Grammar, deadline_s: float) -> bool | None:
    """Whether the grammar finds no fault; None where there was no time. One that can't be loaded parses nothing."""
    if hazard(statement, grammar):
        return False
    try:
        parsed = parse(encoded(statement), load(grammar), deadline_s=deadline_s)
    except GrammarError:
        return False
    return None if parsed is None else not parsed.faults


_VERDICTS = _Verdicts()
