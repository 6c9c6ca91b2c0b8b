"""Where a suggestion ends: one pure rule, asked after each token and once more for the whole text.

Line: at the first line ending after something that is not blank, outside the strings that the text opens; where the
grammar is asked, the first at which the document is whole.
Block: at a dedent out of the block, after the closing of a brace that the buffer opened, at two blank lines,
before the next declaration at the block's own level, at the end of a statement where blocks have no other
mark, at a loop, and after so many lines.
"""

from collections.abc import Callable

from treefill.completion.loops import find_loop
from treefill.completion.request import Mode
from treefill.completion.scan import CLOSERS, Scan, scan
from treefill.completion.situation import Situation, ends_with_opener, layout_is_grammar
from treefill.syntax.languages import Layout
from treefill.text import indent_of, indent_width

LOOK_EVERY_CHARS = 64
"""After so many characters the whole text is looked at even where nothing tells of an end: loops show so."""
_CLOSING_RUN = "".join(sorted(CLOSERS)) + ";,"


MayEnd = Callable[[str], bool]
"""Whether a text at the cursor leaves the document whole, as far as its grammar can tell."""


def anywhere(text: str) -> bool:
    """The `MayEnd` of those who ask no grammar."""
    return True


def stop_rule(
    mode: Mode, situation: Situation, max_lines: int, may_end: MayEnd = anywhere
) -> Callable[[str], bool]:
    """The closure that the engine asks after each token of one growing text.

    The rule reads the whole text, so it is asked only where the new piece may have changed its answer: else a
    long answer costs the square of its length. A stop that is seen late costs some tokens and changes nothing
    else, as the text is cut by the same rule once more.
    """
    n_head = 1 + max(map(len, situation.language.declarations), default=0)
    seen, n_looked = 0, 0

    def should_stop(text: str) -> bool:
        nonlocal seen, n_looked
        old, seen = min(seen, len(text)), len(text)
        is_due = not old < seen < n_looked + LOOK_EVERY_CHARS
        if not is_due and not _tells_of_end(text, old, n_head):
            return False
        n_looked = seen
        return find_stop(text, mode, situation, max_lines, may_end) is not None

    return should_stop


def _tells_of_end(text: str, old: int, n_head: int) -> bool:
    """True where what follows `text[:old]` ends or begins a line, or holds or follows a closing bracket."""
    if "\n" in text[old:]:
        return True
    line_start = text.rfind("\n", max(0, old - LOOK_EVERY_CHARS), old) + 1
    if line_start or old < LOOK_EVERY_CHARS:
        n_visible = len(text[line_start:old].lstrip())
        if n_visible < n_head:
            return True
    run_start = old
    while run_start > 0 and text[run_start - 1] in _CLOSING_RUN:
        run_start -= 1
    return any(character in CLOSERS for character in text[run_start:])


def find_stop(
    text: str, mode: Mode, situation: Situation, max_lines: int, may_end: MayEnd = anywhere
) -> int | None:
    """Offset at which the suggestion ends, or None while it may go on."""
    loop = find_loop(text)
    end = (
        _line_stop(text, situation, max_lines, may_end)
        if mode is Mode.LINE
        else _block_stop(text, situation, max_lines)
    )
    return loop if end is None or (loop is not None and loop < end) else end


def _line_stop(text: str, situation: Situation, max_lines: int, may_end: MayEnd) -> int | None:
    is_free = situation.is_right_free
    if not is_free:
        end = text.find("\n")
    else:
        n_blank = len(text) - len(text.lstrip())
        end = text.find("\n", n_blank)
    n_lines = 1
    while (
        end >= 0
        and n_lines < max_lines
        and (leaves_string_open(text[: end + 1], situation) or (is_free and not may_end(text[:end])))
    ):
        end = text.find("\n", end + 1)
        n_lines += 1
    return None if end < 0 else end


def leaves_string_open(text: str, situation: Situation) -> bool:
    """True where a string that `text` itself opens goes on behind it."""
    return situation.state.is_code and bool(scan(text, situation.language, situation.state).state.quote)


def _block_stop(text: str, situation: Situation, max_lines: int) -> int | None:
    found = scan(text, situation.language, situation.state)
    stops = (_closer_stop(text, found, situation), _lines_stop(text, found, situation, max_lines))
    return min((stop for stop in stops if stop is not None), default=None)


def _closer_stop(text: str, found: Scan, situation: Situation) -> int | None:
    """After a bracket that closes one of the buffer's, and the closers and punctuation right behind it.

    Where nothing in the buffer closes that bracket yet, the rest of the line is wanted too, unless it opens
    another.
    """
    closers = [pair for pair in found.unmatched if pair.text in CLOSERS]
    if not closers:
        return None
    end = closers[0].close_offset + 1
    while end < len(text) and (text[end] in CLOSERS or text[end] in ";,"):
        end += 1
    line_end = text.find("\n", end)
    rest = text[end : line_end if line_end >= 0 else len(text)]
    if situation.n_needed_closers and not ends_with_opener(rest, situation.language):
        end += len(rest)
    return end if end < len(text) else None


def _lines_stop(text: str, found: Scan, situation: Situation, max_lines: int) -> int | None:
    """The rules that look at lines; each is judged as soon as its first visible character is there."""
    floor = _floor_width(text, situation)
    n_filled = n_blank = 0
    previous = ""
    offset = 0
    for line in text.split("\n"):
        line_end = offset + len(line)
        is_ended = line_end < len(text)
        before = max(0, offset - 1)
        if not line.strip():
            n_blank += n_filled > 0
            if n_blank > _n_allowed_blank(previous, situation) and is_ended and not found.is_enclosed(offset):
                return before
        else:
            is_new_piece = n_filled and _is_new_piece(line, previous, floor, situation)
            if n_filled == max_lines or (is_new_piece and not found.is_enclosed(offset)):
                return before
            n_filled += 1
            n_blank = 0
            previous = line
            if is_ended and _ends_statement(line, line_end, found, situation):
                return line_end
        offset = line_end + 1
    return None


def _floor_width(text: str, situation: Situation) -> int:
    """Indentation that a line of the block has at least."""
    if not situation.is_blank_line:
        own = indent_width(indent_of(situation.left))
        return own if situation.opener_line is None else own + 1
    first = next((line for line in text.split("\n") if line.strip()), "")
    written = indent_width(indent_of(first))
    if not situation.left:
        return written
    left = indent_width(situation.left)
    return situation.expected_width if left + written >= situation.expected_width else left


def _is_new_piece(line: str, previous: str, floor: int, situation: Situation) -> bool:
    """True where `line` no longer belongs to the block that is being written."""
    width = indent_width(indent_of(line))
    is_inside_brackets = bool(situation.state.brackets)
    is_closer = line.lstrip()[0] in CLOSERS
    is_dedent = (
        layout_is_grammar(situation.language) and width < floor and not is_inside_brackets and not is_closer
    )
    # A decorator or a comment leads to the declaration after it.
    follows_lead = previous.lstrip().startswith(("@", *situation.language.line_comment))
    is_declaration = width <= floor and _starts_declaration(line, situation)
    return is_dedent or (is_declaration and situation.is_blank_line and not follows_lead)


def _starts_declaration(line: str, situation: Situation) -> bool:
    code = line.lstrip()
    return any(
        code.startswith(word) and not (word[-1].isalnum() and code[len(word) : len(word) + 1].isalnum())
        for word in situation.language.declarations
    )


def _n_allowed_blank(previous: str, situation: Situation) -> int:
    """Blank lines that a block may hold in a row: none where it has no mark or has just been closed."""
    is_closed = situation.language.layout is Layout.BRACES and previous.lstrip().startswith("}")
    return 0 if is_closed or situation.language.layout is Layout.KEYWORDS else 1


def _ends_statement(line: str, line_end: int, found: Scan, situation: Situation) -> bool:
    end = situation.language.statement_end
    return bool(end) and line.rstrip().endswith(end) and not found.is_enclosed(line_end)
