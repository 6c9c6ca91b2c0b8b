"""Where the time of masks goes: what was known, what had to be made, and what the places were about.

A text is read token by token, and at each boundary a dictionary of masks, which begins with what an earlier process
left, is asked; what it has not is made and kept. What a place is about comes from the parses that are alive there
(`kernels/syntax/situation.h`), never from a guess at the text: which tokens may come or are begun, and which bracket is
open. It says at which places time was spent, not which rule of the grammar took it.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np

from treefill import _kernels
from treefill.syntax.dictionary import environment_of, is_there, kept_at
from treefill.syntax.grammars import LoadedGrammar
from treefill.syntax.languages import Kinds
from treefill.syntax.matcher import tables
from treefill.syntax.vocabulary import MaskVocabulary

MAX_BOUNDARIES = 2_000
"""Of one text,"""
MAX_TEXT_S = 20.0
"""and so much of the processor."""


class Cause(StrEnum):
    """What may come at a place, or is begun there: the first of these that is true."""

    LAYOUT = "line ends and indentation"
    """A line feed was read, and what layout comes of it hangs on what follows."""
    QUOTED = "strings and comments"
    """Within one, or where nothing but one may come."""
    NAME = "names"
    """A name may come, or what is begun may become one; mostly keywords as well."""
    KEYWORD = "keywords"
    """A keyword, and no name."""
    OTHER = "signs and numbers"


class Tier(StrEnum):
    """The farthest that a mask was looked for, either half and all depths of the stack counted."""

    NEAREST = "the walk's own table"
    MEMORY = "memory"
    FILE = "the file"
    MADE = "nowhere"
    """It was made."""


_COUNTED = {"n_missed": Tier.MADE, "n_read": Tier.FILE, "n_found": Tier.MEMORY, "n_nearest": Tier.NEAREST}
"""A dictionary's counts, the farthest first."""
BRACKETS = {"(": "parentheses", "[": "square brackets", "{": "braces", "": "no bracket"}
_ANGLES = (
    ("template_argument", "templates"),
    ("type_argument", "type arguments"),
    ("jsx_", "tags"),
    ("start_tag", "tags"),
    ("STag", "tags"),
)
"""Parts of the names of a grammar's rules, and what it has angle brackets for then."""
_WITHIN = re.compile(r"_content|string_fragment|escape_(sequence|interpolation)")
"""Tokens that are only ever found within a string or a comment."""
_QUOTED = re.compile(r"string|comment|char|quote|regex|heredoc|marginalia|^['\"`]|doc", re.IGNORECASE)
"""Tokens that are a string, a comment, or the beginning or the end of one."""
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(slots=True)
class Spent:
    """What places of one kind took. Times are this thread's processor time."""

    n: int = 0
    n_made: int = 0
    asked_ms: float = 0.0
    """To look for their masks."""
    made_ms: float = 0.0
    """To make those that were nowhere."""

    @property
    def ms(self) -> float:
        """All of it."""
        return self.asked_ms + self.made_ms

    def add(self, asked_ms: float, made_ms: float | None) -> None:
        """One more place, of which the mask was made unless `made_ms` is None."""
        self.n += 1
        self.n_made += made_ms is not None
        self.asked_ms += asked_ms
        self.made_ms += made_ms or 0.0


@dataclass(slots=True)
class MaskProfile:
    """What came of reading some texts with one grammar."""

    grammar: str
    n_in_file: int = 0
    """Keys that an earlier process left."""
    n_texts: int = 0
    n_cut: int = 0
    """Texts of which only the beginning was read: it was enough, or the grammar did not take the next token."""
    n_gave_up: int = 0
    """Places at which the grammar did not decide."""
    tiers: dict[Tier, list[float]] = field(default_factory=lambda: {tier: [] for tier in Tier})
    """Of the places, the microseconds that looking for a mask took."""
    made_ms: list[float] = field(default_factory=list)
    """Of each mask that was made."""
    causes: dict[Cause, Spent] = field(default_factory=lambda: {cause: Spent() for cause in Cause})
    brackets: dict[str, Spent] = field(default_factory=dict)
    """By the innermost bracket that is open."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The dictionary's own, at the end."""

    @property
    def n(self) -> int:
        """Places."""
        return sum(map(len, self.tiers.values()))

    @property
    def ms(self) -> float:
        """Spent on masks at all of them."""
        return sum(spent.ms for spent in self.causes.values())

    @property
    def hit_share(self) -> float:
        """Of the places, those whose mask was known."""
        return 1 - len(self.tiers[Tier.MADE]) / self.n if self.n else 0.0


class Reader:
    """Reads texts of one grammar and notes what their masks took."""

    def __init__(
        self,
        loaded: LoadedGrammar,
        kinds: Kinds,
        vocabulary: MaskVocabulary,
        max_bytes: int,
        folder: Path | None = None,
    ) -> None:
        """What an earlier process left is in `folder`; where nothing is there a dictionary that knows nothing is asked.

        Raises `GrammarError` where the grammar cannot read the vocabulary.
        """
        self._grammar = tables(loaded)
        self._spelled = vocabulary.for_grammar(self._grammar)
        self._causes = _Causes(loaded, self._grammar, kinds)
        self._words = np.empty(vocabulary.n_words, np.uint32)
        environment = environment_of(loaded, vocabulary)
        self._dictionary = _kernels.MaskDictionary(environment, max_bytes, vocabulary.n_words)
        file = kept_at(folder, loaded, environment) if folder else None
        if file and is_there(file):
            # As in `dictionary.py`; what is wrong with it is told elsewhere.
            with contextlib.suppress(RuntimeError, TypeError):
                self._dictionary.open_file(str(file))
        self.profile = MaskProfile(loaded.name, n_in_file=self._dictionary.counts["n_in_file"])

    def read(self, pieces: Sequence[bytes], max_boundaries: int = MAX_BOUNDARIES) -> None:
        """One more text, as the tokens that spell it."""
        acceptor = _kernels.Acceptor(self._grammar)
        self.profile.n_texts += 1
        n, end_s = 0, time.thread_time() + MAX_TEXT_S
        for piece in pieces[:max_boundaries]:
            if time.thread_time() > end_s:
                break
            self._ask(acceptor)
            n += 1
            if not acceptor.accept(piece):
                break
        self.profile.n_cut += n < len(pieces) or not acceptor.is_alive
        self.profile.counts = dict(self._dictionary.counts)

    def _ask(self, acceptor: _kernels.Acceptor) -> None:
        before = self._dictionary.counts
        start = time.thread_time_ns()
        outcome = acceptor.fill_mask(self._spelled, self._words, self._dictionary, is_walked=False)
        asked_ms = (time.thread_time_ns() - start) / 1e6
        if outcome == _kernels.MaskOutcome.GAVE_UP:
            self.profile.n_gave_up += 1
            return
        tier = _farthest(before, self._dictionary.counts)
        made_ms = None
        if outcome == _kernels.MaskOutcome.UNKNOWN:
            start = time.thread_time_ns()
            acceptor.fill_mask(self._spelled, self._words, self._dictionary)
            made_ms = (time.thread_time_ns() - start) / 1e6
            self.profile.made_ms.append(made_ms)
        self.profile.tiers[tier].append(1000 * asked_ms)
        cause, bracket = self._causes.at(acceptor)
        self.profile.causes[cause].add(asked_ms, made_ms)
        self.profile.brackets.setdefault(bracket, Spent()).add(asked_ms, made_ms)


def percentiles(values: Iterable[float]) -> tuple[float, float]:
    """The 50th and the 99th; 0 of none.

    >>> percentiles(range(101))
    (50.0, 99.0)
    """
    known = list(values)
    if not known:
        return 0.0, 0.0
    p50, p99 = np.percentile(known, [50, 99])
    return float(p50), float(p99)


def cause_of(
    symbols: Collection[str], is_layout: bool, names: Collection[str], keywords: Collection[str]
) -> Cause:
    """What a place is about where these tokens, by their names in the grammar, may come or become.

    >>> cause_of(["identifier", "kw_all"], False, {"identifier"}, {"kw_all"}).value
    'names'
    >>> cause_of(["kw_into", "comment"], False, {"identifier"}, {"kw_into"}).value
    'keywords'
    >>> cause_of(['"', "escape_sequence"], False, {"identifier"}, {}).value
    'strings and comments'
    """
    if is_layout:
        return Cause.LAYOUT
    others = [symbol for symbol in symbols if symbol not in keywords]
    is_all_quoted = bool(symbols) and all(_QUOTED.search(symbol) for symbol in symbols)
    if any(_WITHIN.search(symbol) for symbol in others) or is_all_quoted:
        return Cause.QUOTED
    if any(symbol in names for symbol in others):
        return Cause.NAME
    return Cause.OTHER if len(others) == len(symbols) else Cause.KEYWORD


class _Causes:
    """What places are about in one grammar."""

    def __init__(self, loaded: LoadedGrammar, grammar: _kernels.Grammar, kinds: Kinds) -> None:
        language = loaded.language
        symbols = range(language.node_kind_count)
        rules = [language.node_kind_for_id(symbol) or "" for symbol in symbols]
        self._names = {*kinds.identifiers, grammar.word} - {""}
        self._keywords = {*grammar.keywords} | {
            rule
            for symbol, rule in zip(symbols, rules, strict=True)
            if not language.node_kind_is_named(symbol) and _WORD.fullmatch(rule)
        }
        self._keywords -= self._names
        angles = (name for part, name in _ANGLES if any(part in rule for rule in rules))
        self._brackets = {**BRACKETS, "<": next(angles, "angle brackets")}

    def at(self, acceptor: _kernels.Acceptor) -> tuple[Cause, str]:
        is_layout, bracket, symbols = acceptor.situation()
        return cause_of(symbols, is_layout, self._names, self._keywords), self._brackets[bracket]


def _farthest(before: Mapping[str, int], after: Mapping[str, int]) -> Tier:
    """Where the last mask was looked for; nothing was where no token could come."""
    return next((tier for name, tier in _COUNTED.items() if after[name] > before[name]), Tier.NEAREST)
