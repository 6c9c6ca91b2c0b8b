"""Which elements of a markup are open at a place, and which of them the text after it closes: tags alone are read.

What a tag looks like is a regular expression of the language's folder. A closing tag ends all that was left open inside
of what it names, as browsers read it; one that closes nothing is passed over.
"""

import re
from dataclasses import dataclass
from functools import cache

from treefill.syntax.languages import Skeleton

MAX_OPEN = 256
"""Deeper elements are not told apart."""


@dataclass(frozen=True, slots=True)
class Element:
    """One that is open."""

    name: bytes
    start: int
    """The byte where its tag begins."""
    body: int
    """The byte after its tag."""


@dataclass(frozen=True, slots=True)
class Read:
    """What the tags of a text say."""

    elements: tuple[Element, ...]
    """Those that are open at its end, the outermost first."""
    last: int
    """Where the tag or text begins that it ends in."""
    closed: tuple[tuple[bytes, int], ...]
    """Closing tags of elements that are not opened in it: what each names, and where it begins."""


def read_elements(text: bytes, markup: Skeleton) -> Read:
    """Read all tags of the text."""
    tag = _tag(markup.elements)
    raw = {name.lower().encode() for name in markup.raw_elements}
    void = {name.lower().encode() for name in markup.void_elements}
    is_open: list[Element] = []
    closed: list[tuple[bytes, int]] = []
    at = 0
    while found := tag.search(text, at):
        name = found["name"]
        if name is None:
            if found.end() == len(text):  # a comment, say, that the text ends in
                break
        elif found["close"]:
            number = next((n for n in range(len(is_open) - 1, -1, -1) if is_open[n].name == name), None)
            if number is None:
                closed.append((name, found.start()))
            else:
                del is_open[number:]
        elif not found["single"] and name.lower() not in void and len(is_open) < MAX_OPEN:
            is_open.append(Element(name, found.start(), found.end()))
        at = found.end()
        if name is not None and not found["close"] and name.lower() in raw:
            end = re.compile(rb"</" + re.escape(name) + rb"\b", re.IGNORECASE).search(text, at)
            if end is None:
                break
            at = end.start()
    return Read(tuple(is_open), at, tuple(closed))


@cache
def _tag(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode(), re.DOTALL)
