r"""What JavaScript's strings and the protocol's rules make of a text, slowly and plainly: a list of UTF-16 units."""

import re

from hypothesis import strategies as st
from treefill.text import Position, PositionEncoding

PIECES = [
    *("a", "bc", " ", "é", "e\u0301", "日", "🙂", "👨\u200d👩"),
    *("\n", "\r", "\r\n", "\n\r", "\t", "\0"),
    *("\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\ufeff", "\uffff"),
    *("\ud83d", "\ude42", "\ud83d\ude42", "\ude42\ud83d", "\udbff", "\udfff"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
NEW_TEXTS = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
POSITIONS = st.builds(Position, st.integers(-1, 5), st.integers(-1, 8))


def units_of(text: str) -> list[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]


def text_of(units: list[int]) -> str:
    """The units as code points, each pair joined."""
    characters: list[str] = []
    for unit in units:
        if characters and "\ud800" <= characters[-1] <= "\udbff" and 0xDC00 <= unit <= 0xDFFF:
            characters[-1] = chr(0x10000 + ((ord(characters[-1]) - 0xD800) << 10) + (unit - 0xDC00))
        else:
            characters.append(chr(unit))
    return "".join(characters)


def joined(text: str) -> str:
    return text_of(units_of(text))


def lines_of(text: str) -> list[tuple[int, int, int]]:
    """Start, end without the ending and end with it, of every line."""
    lines, start = [], 0
    for ending in re.finditer(r"\r\n|\r|\n", text):
        lines.append((start, ending.start(), ending.end()))
        start = ending.end()
    return [*lines, (start, len(text), len(text))]


def width(character: str, encoding: PositionEncoding) -> int:
    if encoding == PositionEncoding.UTF_32:
        return 1
    if encoding == PositionEncoding.UTF_16:
        return 1 + (character > "\uffff")
    return 1 + (character > "\x7f") + (character > "\u07ff") + (character > "\uffff")


def offset_at(text: str, position: Position, encoding: PositionEncoding) -> int:
    """The last offset of the line that has no more units before it than the position says."""
    lines = lines_of(text)
    if position.line >= len(lines):
        return len(text)
    offset, end, _ = lines[max(position.line, 0)]
    left = position.character
    while offset < end and width(text[offset], encoding) <= left:
        left -= width(text[offset], encoding)
        offset += 1
    return offset


def position_at(text: str, offset: int, encoding: PositionEncoding) -> Position:
    for number, (start, end, next_start) in enumerate(lines_of(text)):
        if offset < next_start or next_start == len(text) == end:
            return Position(number, sum(width(c, encoding) for c in text[start : min(offset, end)]))
    raise AssertionError(offset)


def replaced(text: str, start: Position, end: Position, new: str) -> str:
    """What `text.slice(0, start) + new + text.slice(end)` is in JavaScript, for a range in UTF-16 units."""
    units = units_of(text)
    first, last = sorted(_unit_at(units, position) for position in (start, end))
    return text_of(units[:first] + units_of(new) + units[last:])


def _unit_at(units: list[int], position: Position) -> int:
    unjoined = "".join(map(chr, units))  # one character a unit, so that a place in it is a unit
    return offset_at(unjoined, position, PositionEncoding.UTF_32)
