"""Give every added line the file's own indentation: tabs or blanks, and the width of a step."""

from itertools import accumulate, pairwise

from treefill.completion.postprocess.item import Drop, Item, Setting
from treefill.completion.scan import CLOSERS, scan
from treefill.completion.situation import Situation, ends_with_opener, layout_is_grammar
from treefill.syntax.languages import Layout
from treefill.text import indent_of, indent_width


def fit_indentation(item: Item, setting: Setting) -> Item | Drop:
    """Fit the first line to the cursor's column, and all others to the first and to the file's style."""
    situation = setting.situation
    if not situation.state.is_code:
        return item
    fit = _fit_from_blank_line if situation.is_blank_line else _fit_from_text
    return item.with_text(fit(item.text, situation))


def _fit_from_text(text: str, situation: Situation) -> str:
    """The first line goes on with the cursor's line: only a second blank before it is too much."""
    if situation.left.endswith((" ", "\t")) and not text.startswith("\n"):
        text = text.lstrip(" \t")
    lines = text.split("\n")
    first_new = next((line for line in lines[1:] if line.strip()), "")
    written = indent_width(indent_of(first_new))
    is_body = not lines[0].strip() and situation.opener_line is not None
    shift = max(0, situation.expected_width - written) if is_body else 0
    return "\n".join((lines[0], *_fit_others(lines, situation.left + lines[0], shift, situation)))


def _fit_from_blank_line(text: str, situation: Situation) -> str:
    """The first line that is not blank goes to the cursor's line, at the column where a line belongs."""
    lines = text.split("\n")
    n_dropped = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    lines = lines[n_dropped:]
    if not lines:
        return ""
    left = indent_width(situation.left)
    # After a dropped line ending the indentation was written from column 0, else from the cursor.
    written = indent_width(indent_of(lines[0])) + (0 if n_dropped else left)
    width = _first_width(written, left, situation)
    missing = situation.indent.blanks(width)[len(situation.indent.blanks(left)) :]
    first = missing + lines[0].lstrip(" \t")
    shift = _shift(lines, written, width, left, situation)
    as_written = " " * written + lines[0].lstrip(" \t")
    return "\n".join((first, *_fit_others(lines, as_written, shift, situation)))


def _first_width(written: int, left: int, situation: Situation) -> int:
    """Columns at which the first line's text begins; never left of the cursor."""
    brackets = situation.state.brackets
    is_free = bool(brackets) and (brackets[-1] in "([" or layout_is_grammar(situation.language))
    if is_free:
        return max(written, left)
    if situation.opener_line is not None:
        return max(situation.expected_width, left)
    if situation.left:
        return left
    # In column 0 the model chooses, where indentation is grammar no deeper than the line above.
    return min(written, situation.width_above) if layout_is_grammar(situation.language) else written


def _shift(lines: list[str], written: int, width: int, left: int, situation: Situation) -> int:
    """Columns by which the other lines follow the first where it was moved.

    Where braces hold blocks together, lines in column 0 were meant relative to the cursor.
    """
    # The last line may close the buffer's own brace, further left.
    has_closer = lines[-1].lstrip()[:1] in ("}", ")", "]")
    in_string = _lines_in_strings(lines, situation)
    candidates = enumerate(lines[1 : len(lines) - has_closer], start=1)
    inner = [line for number, line in candidates if line.strip() and number not in in_string]
    if not inner:
        return 0
    if min(indent_width(indent_of(line)) for line in inner) >= written:
        return width - written
    is_relative = any(line[0] not in " \t#" for line in inner)
    return left if is_relative and situation.language.layout is Layout.BRACES else 0


def _fit_others(lines: list[str], first: str, shift: int, situation: Situation) -> list[str]:
    """All lines but the first, moved and in the file's style; the inside of a string is left alone."""
    in_string = _lines_in_strings(lines, situation)
    step = _written_step([first, *lines[1:]], situation)
    return [
        line if number in in_string else _fitted(line, shift, step, situation)
        for number, line in enumerate(lines[1:], start=1)
    ]


def _lines_in_strings(lines: list[str], situation: Situation) -> frozenset[int]:
    """Numbers of the lines that begin inside a string: their white space is the string's own."""
    found = scan("\n".join(lines), situation.language)
    strings = [pair for pair in found.pairs if pair.text not in CLOSERS]
    offsets = accumulate((len(line) + 1 for line in lines), initial=0)
    return frozenset(
        number
        for number, offset in enumerate(offsets)
        if any(pair.open_offset < offset <= pair.close_offset for pair in strings)
    )


def _fitted(line: str, shift: int, step: int, situation: Situation) -> str:
    if not line.strip():
        return ""
    blanks = indent_of(line)
    width = max(0, indent_width(blanks) + shift)
    base, own = situation.expected_width, situation.indent.width
    if step != own and width > base:
        depth, rest = divmod(width - base, step)
        width = base + depth * own + rest
    is_fine = width == indent_width(blanks) and not _is_foreign(blanks, situation)
    return line if is_fine else situation.indent.blanks(width) + line[len(blanks) :]


def _written_step(lines: list[str], situation: Situation) -> int:
    """Columns of one step in the model's text, seen at the first line below an opener."""
    filled = [line for line in lines if line.strip()]
    for opener, body in pairwise(filled):
        step = indent_width(indent_of(body)) - indent_width(indent_of(opener))
        if step > 0 and ends_with_opener(opener, situation.language):
            return step
    return situation.indent.width


def _is_foreign(blanks: str, situation: Situation) -> bool:
    """True for white space that the file's style does not use."""
    return blanks.startswith(" ") or " \t" in blanks if situation.indent.step == "\t" else "\t" in blanks
