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
    hole_quote: str = ""
    """The quote around a hole of a string, as in f"{x}", that the point is in; `brackets` are its own."""

    @property
    def is_code(self) -> bool:
        """True outside strings, their holes and comments."""
        return not self.quote and not self.comment_end and not self.hole_quote


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
    spans: tuple[tuple[int, int], ...]
    """From where to where each bracket, string and comment reaches; an open one past the text's end."""

    @property
    def unmatched(self) -> tuple[Pair, ...]:
        """The closers of what was open before the text."""
        return tuple(pair for pair in self.pairs if pair.open_offset == BEFORE_TEXT)

    def is_enclosed(self, offset: int) -> bool:
        """True where `offset` lies inside what the text opened, or in a string or comment of before."""
        return any(start < offset <= end for start, end in self.spans)

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
    spans: list[tuple[int, int]] = []
    quote, comment_end, began = start.quote, start.comment_end, BEFORE_TEXT
    code = _code_pattern(language)
    at = 0
    while at < len(text):
        if comment_end:
            end = text.find(comment_end, at)
            if end < 0:
                break
            at = end + len(comment_end)
            spans.append((began, at - 1))
            comment_end = ""
        elif quote:
            found = _string_pattern(quote, language.escape, quote in language.long_quotes).search(text, at)
            if found is None:
                break
            at = found.end()
            if found.group() in (quote, "\n"):
                spans.append((began, found.start()))
                if found.group() == quote:
                    pairs.append(Pair(began, found.start(), quote))
                quote = ""
        else:
            found = code.search(text, at)
            if found is None:
                break
            at, token, offset = found.end(), found.group(), found.start()
            if token in OPENERS:
                opened.append((token, offset))
            elif token in CLOSERS:
                if opened and OPENERS[opened[-1][0]] == token:
                    _, open_offset = opened.pop()
                    pairs.append(Pair(open_offset, offset, token))
                    spans.append((open_offset, offset))
                elif not opened:
                    pairs.append(Pair(BEFORE_TEXT, offset, token))
                    if outer and OPENERS[outer[-1]] == token:
                        outer.pop()
            elif token in language.line_comment:
                comment_end, began = "\n", offset
            elif token in language.quotes or token in language.long_quotes:
                quote, began = token, offset
            else:
                comment_end, began = dict(language.block_comment).get(token, ""), offset
    past_end = len(text) + 1
    spans += [(offset, past_end) for _, offset in opened]
    if quote or comment_end:
        spans.append((began, past_end))
    brackets = "".join(outer) + "".join(bracket for bracket, _ in opened)
    state = ScanState(brackets, quote, comment_end)
    return Scan(state, tuple(pairs), tuple(offset for _, offset in opened), tuple(spans))


def state_at(text: str, language: Language) -> ScanState:
    """The state at the end of `text`, which begins in code."""
    return scan(text, language).state


@cache
def _code_pattern(language: Language) -> re.Pattern[str]:
    """What matters in code: comment starts, quotes (longest first) and brackets.

    Where an apostrophe is no quote (Rust), a single quoted character is skipped as a whole, so that '{' is
    not a bracket.
    """
    quotes = sorted((*language.long_quotes, *language.quotes), key=len, reverse=True)
    comments = [*(begin for begin, _ in language.block_comment), *language.line_comment]
    character = [] if "'" in quotes else [r"'(?:\\.|[^'\\\n])'"]
    return re.compile(
        "|".join([*map(re.escape, comments), *map(re.escape, quotes), *character, r"[()\[\]{}]"])
    )


@cache
def _string_pattern(quote: str, escape: str, may_span_lines: bool) -> re.Pattern[str]:
    """What matters in a string: an escaped character, the closing quote, the line's end if that ends it."""
    escaped = [re.escape(escape) + r"[\s\S]"] if escape else [re.escape(quote) * 2]
    return re.compile("|".join([*escaped, re.escape(quote), *([] if may_span_lines else ["\n"])]))
