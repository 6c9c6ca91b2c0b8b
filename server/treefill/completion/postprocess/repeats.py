"""Leave out lines that already stand below or above the cursor."""

from treefill.completion.loops import is_telling
from treefill.completion.postprocess.item import Drop, Item, Setting
from treefill.completion.request import Reason
from treefill.completion.situation import Situation, without_comment


def drop_repeats_below(item: Item, setting: Setting) -> Item | Drop:
    """Cut where the text begins to say what the next line of the buffer says."""
    situation = setting.situation
    if not situation.lines_below:
        return item
    below = [_bare(line, situation) for line in situation.lines_below]
    lines = item.text.split("\n")
    said = _said(lines, situation)
    for number, line in enumerate(said):
        if is_telling(line) and line == below[0] and (number or situation.is_right_free):
            kept = "\n".join(lines[:number])
            if kept.strip():
                return item.with_text(kept)
            return Drop(Reason.REPEATS_BELOW, "The suggestion is the line that already follows.")
    return item.with_text("\n".join(_without_common_tail(lines, said, below)))


def drop_repeats_above(item: Item, setting: Setting) -> Item | Drop:
    """Refuse a suggestion that says no more than the lines just above."""
    situation = setting.situation
    lines = item.text.strip("\n").split("\n")
    said = [line for line in _said(lines, situation) if line]
    above = [_bare(line, situation) for line in situation.lines_above[-len(said) :]]
    if said and said == above and any(is_telling(line) for line in said):
        return Drop(Reason.REPEATS_ABOVE, "The suggestion is what already stands just above.")
    return item


def _without_common_tail(lines: list[str], said: list[str], below: list[str]) -> list[str]:
    """Drop trailing lines that equal the first lines below one by one, lines of closers included."""
    filled = [(number, line) for number, line in enumerate(said) if line]
    for count in range(min(len(filled) - 1, len(below)), 1, -1):
        tail = [line for _, line in filled[-count:]]
        if tail == below[:count]:
            return lines[: filled[-count][0]]
    return lines


def _said(lines: list[str], situation: Situation) -> list[str]:
    """What each line of the text says in the document, the cursor's line from its start."""
    return [_bare(line, situation) for line in (situation.left + lines[0], *lines[1:])]


def _bare(line: str, situation: Situation) -> str:
    return without_comment(line, situation.language).strip()
