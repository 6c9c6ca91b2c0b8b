"""A small scanner for brackets, strings and comments, driven by the language's data.

It knows enough to tell a bracket in code from one in a string. It does not parse: that is `syntax`'s work.
"""

import re
from dataclasses import dataclass
from functools import cache

from treefill.syntax.languages import Language

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = frozenset(OPENERS.values())

BEFORE_TEXT = -1
"""Stands for the place of an opener that lies before the scanned text."""


@dataclass(frozen=True, slots=True)
class ScanState:
    """Where in a language's surface a point of the text lies."""

    brackets: str = ""
    """The opening brackets that are open, outermost first."""
    quote: str = ""
    """The quote of the string that the point is in, or nothing."""
    comment_end: str = ""
    """What ends the comment that the point is in, or nothing."""

    @property
    def is_code(self) -> bool:
        """True outside strings and comments."""
        return not self.quote and not self.comment_end


@dataclass(frozen=True, slots=True)
class Pair:
    """A closing bracket or quote, and what it closes."""

    open_offset: int
    """Where its opener stands in the scanned text, or `BEFORE_TEXT`."""
    close_offset: int
    text: str
    """The closer itself."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found in one text."""

    state: ScanState
    """The state at the text's end."""
    pairs: tuple[Pair, ...]
    """Every closer, in the order of the text."""
    opened: tuple[int, ...]
    """Offsets of the brackets that the text opens and leaves open."""

    @property
    def unmatched(self) -> tuple[Pair, ...]:
        """The closers of what was open before the text."""
        return tuple(pair for pair in self.pairs if pair.open_offset == BEFORE_TEXT)

    @property
    def is_whole(self) -> bool:
        """True where the text leaves nothing open that it opened."""
        return not self.opened and self.state.is_code


CODE = ScanState()


def scan(text: str, language: Language, start: ScanState = CODE) -> Scan:
    """Read `text`, which begins in the state `start`."""
    outer = list(start.brackets)
    opened: list[tuple[str, int]] = []
    pairs: list[Pair] = []
    quote, comment_end, quote_offset = start.quote, start.comment_end, BEFORE_TEXT
    at = 0
    while at < len(text):
        if comment_end:
            end = text.find(comment_end, at)
            if end < 0:
                break
            at, comment_end = end + len(comment_end), ""
        elif quote:
            found = _string_pattern(quote, language.escape, quote in language.long_quotes).search(text, at)
            if found is None:
                break
            at = found.end()
            if found.group() == quote:
                pairs.append(Pair(quote_offset, found.start(), quote))
                quote = ""
            elif found.group() == "\n":
                quote = ""
        else:
            found = _code_pattern(language).search(text, at)
            if found is None:
                break
            at, token = found.end(), found.group()
            if token in OPENERS:
                opened.append((token, found.start()))
            elif token in CLOSERS:
                if opened and OPENERS[opened[-1][0]] == token:
                    pairs.append(Pair(opened.pop()[1], found.start(), token))
                elif not opened:
                    pairs.append(Pair(BEFORE_TEXT, found.start(), token))
                    if outer and OPENERS[outer[-1]] == token:
                        outer.pop()
            elif token in language.line_comment:
                comment_end = "\n"
            elif token in language.quotes or token in language.long_quotes:
                quote, quote_offset = token, found.start()
            else:
                comment_end = dict(language.block_comment).get(token, "")
    brackets = "".join(outer) + "".join(bracket for bracket, _ in opened)
    return Scan(ScanState(brackets, quote, comment_end), tuple(pairs), tuple(offset for _, offset in opened))


def state_at(text: str, language: Language) -> ScanState:
    """The state at the end of `text`, which begins in code."""
    return scan(text, language).state


@cache
def _code_pattern(language: Language) -> re.Pattern[str]:
    """What matters in code: comment starts, quotes (longest first) and brackets.

    Where an apostrophe is no quote (Rust), a single quoted character is skipped as a whole, so that '{' is not a bracket.
    """
    quotes = sorted((*language.long_quotes, *language.quotes), key=len, reverse=True)
    comments = [*(begin for begin, _ in language.block_comment), *language.line_comment]
    character = [] if "'" in quotes else [r"'(?:\\.|[^'\\\n])'"]
    return re.compile("|".join([*map(re.escape, comments), *map(re.escape, quotes), *character, r"[()\[\]{}]"]))


@cache
def _string_pattern(quote: str, escape: str, may_span_lines: bool) -> re.Pattern[str]:
    """What matters inside a string: an escaped character, the closing quote, and the line's end where it ends the string."""
    escaped = [re.escape(escape) + r"[\s\S]"] if escape else [re.escape(quote) * 2]
    return re.compile("|".join([*escaped, re.escape(quote), *([] if may_span_lines else ["\n"])]))
