"""Where a suggestion ends: one pure rule, asked after each token while decoding and once more when the text is there.

Line: at the first line ending after something that is not blank.
Block: at a dedent out of the block, after the closing of a brace that the buffer opened, at two blank lines, before
the next declaration at the block's own level, at the end of a statement where blocks have no other mark, at a loop,
and after so many lines.
"""

from collections.abc import Callable

from treefill.completion.loops import find_loop
from treefill.completion.request import Mode
from treefill.completion.scan import CLOSERS, Scan, scan
from treefill.completion.situation import Situation
from treefill.syntax.languages import Layout
from treefill.text import indent_of, indent_width


def stop_rule(mode: Mode, situation: Situation, max_lines: int) -> Callable[[str], bool]:
    """The closure that the engine asks after each token."""
    return lambda text: find_stop(text, mode, situation, max_lines) is not None


def find_stop(text: str, mode: Mode, situation: Situation, max_lines: int) -> int | None:
    """Offset at which the suggestion ends, or None while it may go on."""
    loop = find_loop(text)
    end = _line_stop(text, situation) if mode is Mode.LINE else _block_stop(text, situation, max_lines)
    return loop if end is None or (loop is not None and loop < end) else end


def _line_stop(text: str, situation: Situation) -> int | None:
    if not situation.is_right_free:
        end = text.find("\n")
    else:
        n_blank = len(text) - len(text.lstrip())
        end = text.find("\n", n_blank)
    return None if end < 0 else end


def _block_stop(text: str, situation: Situation, max_lines: int) -> int | None:
    stops = [stop for stop in (_brace_stop(text, situation), _lines_stop(text, situation, max_lines)) if stop is not None]
    return min(stops, default=None)


def _brace_stop(text: str, situation: Situation) -> int | None:
    """After the closing of a brace of the buffer, and the brackets and punctuation that follow it at once."""
    if situation.language.layout is Layout.INDENTATION:
        return None
    for pair in scan(text, situation.language, situation.state).unmatched:
        if pair.text == "}":
            end = pair.close_offset + 1
            while end < len(text) and (text[end] in CLOSERS or text[end] in ";,"):
                end += 1
            return end if end < len(text) else None
    return None


def _lines_stop(text: str, situation: Situation, max_lines: int) -> int | None:
    """The rules that look at whole lines; each line is judged when its first character that is not blank is there."""
    floor = _floor_width(text, situation)
    n_filled = n_blank = 0
    previous = ""
    offset = 0
    for number, line in enumerate(text.split("\n")):
        end_before = max(0, offset - 1)
        if not line.strip():
            n_blank += n_filled > 0
            is_ended = offset + len(line) < len(text)
            if n_filled and is_ended and n_blank >= _allowed_blank_lines(situation) + 1:
                return end_before
        else:
            found = scan(text[:offset], situation.language, situation.state)
            if n_filled and _is_new_piece(line, number, previous, floor, found, situation):
                return end_before
            if n_filled >= max_lines:
                return end_before
            n_filled += 1
            n_blank = 0
            previous = line
            if _ends_statement(text, offset + len(line), line, situation):
                return offset + len(line)
        offset += len(line) + 1
    return None


def _floor_width(text: str, situation: Situation) -> int:
    """Indentation that a line of the block has at least."""
    if not situation.is_blank_line:
        opener = situation.opener_line
        own = indent_width(indent_of(situation.left))
        return own + 1 if opener is not None else own
    if situation.left:
        return min(indent_width(situation.left), situation.expected_width)
    first = next((line for line in text.split("\n") if line.strip()), "")
    return indent_width(indent_of(first))


def _is_new_piece(line: str, number: int, previous: str, floor: int, found: Scan, situation: Situation) -> bool:
    """True where `line` no longer belongs to the block that is being written."""
    if number == 0 or found.opened or not found.state.is_code:
        return False
    width = indent_width(indent_of(line))
    is_dedent = situation.language.layout is Layout.INDENTATION and width < floor and _has_word(line)
    follows_lead = previous.lstrip().startswith(("@", *situation.language.line_comment))
    is_declaration = (
        situation.is_blank_line
        and width <= floor
        and not follows_lead
        and _starts_declaration(line, situation)
    )
    return is_dedent or is_declaration


def _has_word(line: str) -> bool:
    """False for a line of closers only: Python's `)` may stand further left than its block."""
    return line.strip()[0] not in CLOSERS


def _starts_declaration(line: str, situation: Situation) -> bool:
    code = line.lstrip()
    return any(
        code.startswith(word) and (not word[-1].isalnum() or not code[len(word) : len(word) + 1].isalnum())
        for word in situation.language.declarations
    )


def _allowed_blank_lines(situation: Situation) -> int:
    """Blocks with a mark of their own may hold single blank lines; others end at the first."""
    return 0 if situation.language.layout is Layout.KEYWORDS else 1


def _ends_statement(text: str, line_end: int, line: str, situation: Situation) -> bool:
    end = situation.language.statement_end
    if not end or line_end >= len(text) or not line.rstrip().endswith(end):
        return False
    return scan(text[:line_end], situation.language, situation.state).is_whole
