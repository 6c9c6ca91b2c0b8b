"""What an editor changed, in code points. The text that it applies to is the caller's; nothing is kept here."""

from dataclasses import dataclass

from treefill.text.positions import Position, PositionEncoding
from treefill.text.rope import Text, join_surrogates


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters in place of others. What it leaves out of `start` to `end` stays exactly as it is."""

    start: int
    """Offset of the first character replaced, in code points of the text before the edit."""
    end: int
    """Offset just after the last one."""
    text: str
    """What stands there afterwards."""


def edit_for(text: Text, start: Position, end: Position, new: str, encoding: PositionEncoding) -> Edit:
    r"""The edit that an editor means by `new` in place of a range, taken the other way round if its end comes first.

    An editor whose strings are UTF-16 may cut through a character. In `s = "🙂"` it deletes (0,5) to (0,6) and
    means the first half of 🙂: the edit then covers all of 🙂, and its text is the half that survives, `\ude42`.
    Where a half meets its other half again, the edit covers both, and its text has the one character.
    """
    (first, cuts_first), (last, cuts_last) = sorted(_place(text, each, encoding) for each in (start, end))
    if cuts_first:
        new = _halves(text.slice(first, first + 1))[0] + new
    if cuts_last:
        new += _halves(text.slice(last, last + 1))[1]
        last += 1
    return _with_other_halves(text, Edit(first, last, new))


def _place(text: Text, position: Position, encoding: PositionEncoding) -> tuple[int, bool]:
    """The offset of a position, and whether it is the middle of the character there, between its UTF-16 units."""
    offset = text.offset_at(position, encoding)
    if encoding != PositionEncoding.UTF_16 or text.slice(offset, offset + 1) <= "\uffff":
        return offset, False
    return offset, text.position_at(offset, encoding).character < position.character


def _with_other_halves(text: Text, edit: Edit) -> Edit:
    """The edit widened over a lone surrogate on either side that the edit completes."""
    start, end, new = edit.start, edit.end, edit.text
    before, after = text.slice(start - 1, start), text.slice(end, end + 1)
    if _is_high(before) and _is_low((new or after)[:1]):
        start, new = start - 1, before + new
    if _is_high(new[-1:]) and _is_low(after):
        end, new = end + 1, new + after
    return Edit(start, end, join_surrogates(new))


def _halves(character: str) -> tuple[str, str]:
    above = ord(character) - 0x10000
    return chr(0xD800 + (above >> 10)), chr(0xDC00 + (above & 0x3FF))


def _is_high(character: str) -> bool:
    return "\ud800" <= character <= "\udbff"


def _is_low(character: str) -> bool:
    return "\udc00" <= character <= "\udfff"
