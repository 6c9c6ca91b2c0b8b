"""Give every added line the file's own indentation: tabs or blanks, the width of a step, and the first line."""

from treefill.completion.postprocess.item import Drop, Item, Setting
from treefill.completion.scan import scan
from treefill.completion.situation import Situation, ends_with_opener, opens_by_layout
from treefill.text import indent_of, indent_width


def fit_indentation(item: Item, setting: Setting) -> Item | Drop:
    """Normalise the first line against the cursor's column and the others against the file's style."""
    situation = setting.situation
    if not situation.state.is_code:
        return item
    if not situation.is_blank_line:
        text = item.text
        if situation.left.endswith((" ", "\t")) and not text.startswith("\n"):
            text = text.lstrip(" \t")
        first, newline, rest = text.partition("\n")
        return item.with_text(first + newline + "\n".join(_in_style(rest.split("\n"), situation)) if newline else first)
    return item.with_text(_from_blank_line(item.text, situation))


def _from_blank_line(text: str, situation: Situation) -> str:
    lines = text.split("\n")
    n_leading = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    lines = lines[n_leading:]
    if not lines:
        return ""
    left_width = indent_width(situation.left)
    # After a dropped line ending the model wrote the indentation from column 0, else from the cursor.
    written = indent_width(indent_of(lines[0])) + (0 if n_leading else left_width)
    width = _first_width(written, left_width, situation)
    body = lines[0].lstrip(" \t")
    missing = situation.indent.blanks(width)[len(situation.indent.blanks(left_width)) :] if width > left_width else ""
    shift = width - written if written < width and not situation.left else 0
    return "\n".join((missing + body, *_in_style([" " * left_width + line if False else line for line in lines[1:]], situation, shift)))


def _first_width(written: int, left_width: int, situation: Situation) -> int:
    """Columns at which the first line's text begins; never left of the cursor."""
    if situation.state.brackets and not situation.language.block_openers:
        return max(written, left_width)
    expected = situation.expected_width
    if situation.opener_line is not None:
        return max(expected, left_width)
    if situation.left:
        return left_width
    # At column 0 the model chooses, but no deeper than the lines above.
    return min(written, situation.width_above) if opens_by_layout(situation.language) else written


def _in_style(lines: list[str], situation: Situation, shift: int = 0) -> list[str]:
    step = _written_step(lines, situation)
    own = situation.indent.width
    base = indent_width(indent_of(situation.left)) or situation.expected_width
    return [_restyled(line, situation, base, step, own, shift) for line in lines]


def _restyled(line: str, situation: Situation, base: int, step: int, own: int, shift: int) -> str:
    blanks = indent_of(line)
    width = indent_width(blanks) + shift
    if step != own and width > base:
        depth, rest = divmod(width - base, step)
        width = base + depth * own + rest
    if not line.strip():
        return ""
    is_fine = not shift and width == indent_width(blanks) and not _is_foreign(blanks, situation)
    return line if is_fine else situation.indent.blanks(max(0, width)) + line[len(blanks) :]


def _written_step(lines: list[str], situation: Situation) -> int:
    """Columns of one step in the model's text, seen at the first line below an opener."""
    previous = ""
    for line in lines:
        if not line.strip():
            continue
        if previous and ends_with_opener(previous, situation.language):
            step = indent_width(indent_of(line)) - indent_width(indent_of(previous))
            if step > 0:
                return step
        previous = line
    return situation.indent.width


def _is_foreign(blanks: str, situation: Situation) -> bool:
    """True for white space that the file's style does not use."""
    return (" " in blanks) if situation.indent.step == "\t" else ("\t" in blanks)


__all__ = ["fit_indentation", "scan"]
