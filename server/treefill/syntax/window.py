"""The part of a large text that is parsed: around the cursor, from one outermost piece of it to another.

Such pieces mostly begin in column 0 after a blank line. What is cut off does not matter as long as it is the same
before and after something is put in: the faults of the cut are there both times.
"""

import re

MAX_WHOLE_CHARS = 120_000
"""Texts up to this length are parsed whole; the first time, that takes some 60 ms, and each keystroke some 5."""
REACH_CHARS = 40_000
"""So far around the cursor the window reaches at least."""
_LOOK_CHARS = 20_000
"""So much further a place to cut at is looked for."""
_BLANK = re.compile(r"\n[ \t]*\r?\n(?=\S)")
"""A blank line, and something in column 0 below it."""


def window_of(text: str, offset: int) -> tuple[int, int]:
    """Where the part to parse begins and ends, as offsets."""
    if len(text) <= MAX_WHOLE_CHARS:
        return 0, len(text)
    start = _start_before(text, max(0, offset - REACH_CHARS))
    end = _end_after(text, min(len(text), offset + REACH_CHARS))
    return start, end


def _start_before(text: str, at: int) -> int:
    """The last outermost line after a blank one, else the last outermost line, else the line's start."""
    places = [found.end() for found in _BLANK.finditer(text, max(0, at - _LOOK_CHARS), at)]
    return places[-1] if places else text.rfind("\n", 0, at) + 1


def _end_after(text: str, at: int) -> int:
    found = _BLANK.search(text, at, min(len(text), at + _LOOK_CHARS))
    return found.start() + 1 if found else (text.find("\n", at) + 1) or len(text)
