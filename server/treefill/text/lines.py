r"""Lines and positions by the protocol's rules: `\n`, `\r\n` and `\r` end a line, nothing else does.

Python's own `splitlines` is not used anywhere: it also splits at form feeds and U+2028, where no editor does.
Offsets count code points of the document's text. Lines and columns here count from 1, as editors show them.
"""

import re

from treefill.errors import BadInput
from treefill.text.document import Document

TAB_WIDTH = 4
"""Columns that a tab is worth where tabs and spaces must be compared."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")


def offset_at(document: Document, line: int, column: int) -> int:
    """Offset of a 1-based line and column; the column just after the last character is allowed."""
    if line < 1 or column < 1:
        raise BadInput(f"position {line}:{column} of {document.path}: lines and columns count from 1")
    start = _line_start(document, line)
    end = _next_line_end(document.text, start)
    if start + column - 1 > end:
        raise BadInput(
            f"position {line}:{column} is past the end of line {line} of {document.path}: "
            f"its last column is {end - start + 1}"
        )
    return start + column - 1


def position_at(document: Document, offset: int) -> tuple[int, int]:
    """The 1-based line and column of an offset."""
    start, _ = line_bounds(document.text, offset)
    return count_lines(document.text, start), 1 + offset - start


def count_lines(text: str, end: int | None = None) -> int:
    """How many lines an editor shows up to `end`: one more than there are line endings."""
    return 1 + _count_line_ends(text, len(text) if end is None else end)


def line_bounds(text: str, offset: int) -> tuple[int, int]:
    """Start and end of the line that holds `offset`, its line ending left out."""
    start = 1 + text.rfind("\n", 0, offset)
    start = max(start, 1 + text.rfind("\r", start, offset))
    return start, _next_line_end(text, offset)


def line_ending_at(text: str, offset: int) -> str:
    """The ending of the line at `offset`, so that a mixed file is followed where the user writes.

    The last line has none; the one before it decides, and a file of one line gets a line feed.
    """
    start, end = line_bounds(text, offset)
    ending = _LINE_END.match(text, end)
    if ending:
        return ending.group()
    if start == 0:
        return "\n"
    return "\r\n" if text[start - 2 : start] == "\r\n" else text[start - 1]


def to_lf(text: str) -> str:
    """The text with every line ending as a line feed, as models have seen it."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def with_line_ending(text: str, ending: str) -> str:
    """A text of line feeds with the document's own ending put back."""
    return text if ending == "\n" else text.replace("\n", ending)


def without_surrogates(text: str) -> str:
    """The text with each lone surrogate as U+FFFD, so that it can be encoded.

    Editors send half a pair between two keystrokes of an emoji.
    """
    return _SURROGATE.sub("\ufffd", text)


def indent_of(line: str) -> str:
    """The blanks and tabs that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def indent_width(blanks: str) -> int:
    """Columns that `blanks` takes up, a tab reaching to the next multiple of `TAB_WIDTH`."""
    return len(blanks.expandtabs(TAB_WIDTH))


def _line_start(document: Document, line: int) -> int:
    start = 0
    ends = _LINE_END.finditer(document.text)
    for number in range(2, line + 1):
        end = next(ends, None)
        if end is None:
            raise BadInput(
                f"line {line} is past the end of {document.path}: it has {_plural(number - 1, 'line')}"
            )
        start = end.end()
    return start


def _next_line_end(text: str, offset: int) -> int:
    line_feed = text.find("\n", offset)
    end = line_feed if line_feed >= 0 else len(text)
    carriage_return = text.find("\r", offset, end)
    return carriage_return if carriage_return >= 0 else end


def _count_line_ends(text: str, end: int) -> int:
    n_carriage_returns = text.count("\r", 0, end)
    if not n_carriage_returns:
        return text.count("\n", 0, end)
    return text.count("\n", 0, end) + n_carriage_returns - text.count("\r\n", 0, end)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
