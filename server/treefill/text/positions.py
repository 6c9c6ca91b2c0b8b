"""A place in a text as the protocol names it. Turning one into an offset is the text's own work (`rope`)."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Position:
    """A line and a character, both counted from zero: what editors send, right or wrong."""

    line: int
    """The line; lines end at a line feed, a carriage return or both together."""
    character: int
    """How far into the line, in units of the agreed `PositionEncoding`."""


class PositionEncoding(StrEnum):
    """What a position's `character` counts: in `é🙂x` the `x` is at 6 bytes, 3 units or 2 code points."""

    UTF_8 = "utf-8"
    UTF_16 = "utf-16"
    UTF_32 = "utf-32"
