"""What surrounds the cursor, looked up once: no later rule touches the document again.

All texts here have line feeds only.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from treefill.completion.notebook import code_of
from treefill.completion.scan import BEFORE_TEXT, CLOSERS, OPENERS, Scan, ScanState, scan, state_at
from treefill.syntax.languages import Language, Layout
from treefill.text import Document, indent_of, indent_width, line_bounds, line_ending_at, to_lf

LOOK_BACK_CHARS = 48_000
"""How far up strings and brackets are followed; further up they seldom matter and cost time."""
SURROUNDING_CHARS = 8_000
"""So much above and below the cursor's line is looked at for neighbouring lines, closers and indentation."""
LOOK_STEP = 8_000
"""The state at multiples of this is remembered, so that a keystroke scans only what is below."""
MAX_LINE_CHARS = 4_000
"""Of the cursor's line no more than this is looked at on either side."""
MAX_RULE_CHARS = 1_000
"""Longer lines are data: they open no block and their comments are not looked for."""
N_LINES_ABOVE = 12
N_LINES_BELOW = 12


@dataclass(frozen=True, slots=True)
class IndentStyle:
    """How a file is indented."""

    step: str
    """One level: a tab, or some blanks."""

    @property
    def width(self) -> int:
        """Columns of one level."""
        return indent_width(self.step)

    def blanks(self, width: int) -> str:
        """Leading white space of `width` columns in this style."""
        if self.step == "\t":
            return "\t" * (width // self.width) + " " * (width % self.width)
        return " " * width


@dataclass(frozen=True, slots=True)
class Situation:
    """The cursor's surroundings."""

    language: Language
    left: str
    """The cursor's line up to the cursor."""
    right: str
    """The cursor's line after the cursor, its ending left out."""
    lines_above: tuple[str, ...]
    """The nearest lines above that are not blank, the nearest last."""
    lines_below: tuple[str, ...]
    """The nearest lines below that are not blank, the nearest first."""
    state: ScanState
    """Brackets, string or comment at the cursor."""
    n_closed_below: int
    """How many of the open brackets the text after the cursor closes."""
    is_enclosure_closed: bool
    """True where the text after the cursor ends the string or comment that the cursor is in."""
    indent: IndentStyle
    line_ending: str

    @property
    def is_blank_line(self) -> bool:
        """True where nothing but white space stands left of the cursor."""
        return not self.left.strip()

    @property
    def auto_closed(self) -> str:
        """The run right of the cursor that an editor may have written by itself."""
        return self.right[: auto_closed_length(self.left, self.right, self.state)]

    @property
    def is_right_free(self) -> bool:
        """True where only such a run and white space stand right of the cursor."""
        return not self.right[len(self.auto_closed) :].strip()

    @property
    def n_needed_closers(self) -> int:
        """How many brackets of the buffer nothing closes yet."""
        return max(0, len(self.state.brackets) - self.n_closed_below)

    @property
    def opener_line(self) -> str | None:
        """The line that opens the block which a new line here would belong to, or None."""
        if not self.state.is_code or (self.state.brackets and layout_is_grammar(self.language)):
            return None
        if not self.is_blank_line:
            # A word like `where` may be followed by more on its own line; a brace or colon ends it.
            is_opener = ends_with_opener(self.left, self.language) and not self.left.rstrip()[-1].isalnum()
            return self.left if is_opener else None
        line = self.lines_above[-1] if self.lines_above else ""
        return line if ends_with_opener(line, self.language) else None

    @property
    def expected_width(self) -> int:
        """Columns of indentation that a line belonging here has."""
        opener = self.opener_line
        if opener is not None:
            return indent_width(indent_of(opener)) + self.indent.width
        return indent_width(indent_of(self.left)) if self.left else 0

    @property
    def width_above(self) -> int:
        """Columns of indentation of the nearest line above."""
        return indent_width(indent_of(self.lines_above[-1])) if self.lines_above else 0


def look_around(document: Document, offset: int, language: Language) -> Situation:
    """Gather the surroundings of `offset`."""
    text = document.text
    start, end = line_bounds(text, offset)
    start, end = max(start, offset - MAX_LINE_CHARS), min(end, offset + MAX_LINE_CHARS)
    above = to_lf(text[max(0, start - SURROUNDING_CHARS) : start])
    below = to_lf(text[end : end + SURROUNDING_CHARS])
    code = code_of(document)
    state = cursor_state(document, offset, language)
    rest_of_piece = _until_declaration(to_lf(code[offset : end + SURROUNDING_CHARS]), language)
    closed = scan(rest_of_piece, language, ScanState("", state.quote, state.comment_end))
    return Situation(
        language=language,
        left=text[start:offset].removeprefix("\ufeff"),
        right=text[offset:end],
        lines_above=tuple(
            _filled(above.rsplit("\n", 4 * N_LINES_ABOVE)[-4 * N_LINES_ABOVE :])[-N_LINES_ABOVE:]
        ),
        lines_below=tuple(_filled(below.split("\n", 4 * N_LINES_BELOW)[: 4 * N_LINES_BELOW])[:N_LINES_BELOW]),
        state=state,
        n_closed_below=sum(pair.text in CLOSERS for pair in closed.unmatched),
        is_enclosure_closed=_ends_enclosure(closed, state, len(rest_of_piece)),
        indent=indent_style(above, below, language),
        line_ending=line_ending_at(text, offset),
    )


def cursor_state(document: Document, offset: int, language: Language) -> ScanState:
    """The state at `offset`.

    Where indentation is grammar, a bracket left open above the last declaration in column 0 is one that the
    user has yet to close: it says nothing about the piece that is being written.
    """
    text = code_of(document)
    first = _line_start_after(text, max(0, offset - LOOK_BACK_CHARS) // LOOK_STEP * LOOK_STEP, offset)
    near = max(first, _line_start_after(text, offset // LOOK_STEP * LOOK_STEP, offset))
    found = scan(to_lf(text[near:offset]), language, _state_at_step(to_lf(text[first:near]), language))
    state = found.state
    if state.quote:
        return _hole_or(state, to_lf(text[near:offset])[found.spans[-1][0] + len(state.quote) :], language)
    if not layout_is_grammar(language) or not state.brackets:
        return state
    whole = "\n" + to_lf(text[first:offset])
    last = max((whole.rfind("\n" + word) for word in language.declarations), default=-1)
    return ScanState(state_at(whole[last + 1 :], language).brackets, state.quote, state.comment_end)


def _hole_or(state: ScanState, body: str, language: Language) -> ScanState:
    """The state in the hole that the string's `body` has opened, or the string's own state."""
    inside = state_at(body[-MAX_LINE_CHARS:], language)
    is_hole = "{" in inside.brackets and inside.is_code
    return ScanState(inside.brackets, hole_quote=state.quote) if is_hole else state


@lru_cache(maxsize=16)
def _state_at_step(text: str, language: Language) -> ScanState:
    return state_at(text, language)


def _line_start_after(text: str, at: int, limit: int) -> int:
    """The first line start at or after `at`, or `at` itself where `limit` comes first."""
    line_feed = text.find("\n", max(0, at - 1), limit)
    return 0 if at == 0 else line_feed + 1 if line_feed >= 0 else at


def auto_closed_length(left: str, right: str, state: ScanState) -> int:
    """Length of the run of closers at the start of `right` that an editor may have closed by itself.

    Brackets, the quote of the string that the cursor is in, and `;` `,` `:` after one of them. A quote
    outside a string is the user's: it opens one. Within a string, only brackets that `left`, the cursor's line up to
    it, has opened there.
    """
    enclosing = state.quote or state.hole_quote
    at = 0
    if state.hole_quote:
        at = _n_closers(right, 0)
    elif state.quote:
        at = min(_n_closers(right, 0), _n_open(left.rpartition(state.quote)[2]))
    if state.quote and not right.startswith(state.quote, at):
        return at
    if enclosing and right.startswith(enclosing, at):
        at += len(enclosing)
    while at < len(right) and (right[at] in CLOSERS or (at > 0 and right[at] in ";,:")):
        at += 1
    return at


def _n_open(text: str) -> int:
    """Brackets that the text opens and leaves open, whatever they are."""
    n_open = 0
    for character in text:
        n_open = n_open + 1 if character in OPENERS else max(0, n_open - (character in CLOSERS))
    return n_open


def _n_closers(text: str, at: int) -> int:
    while at < len(text) and text[at] in CLOSERS:
        at += 1
    return at


def ends_with_opener(line: str, language: Language) -> bool:
    """True where a block may follow `line`; a comment at its end does not count."""
    if len(line) > MAX_RULE_CHARS:
        return False
    code = without_comment(line, language).strip().lower()
    heads = language.block_heads
    if heads and not re.match(rf"(?:{'|'.join(heads)})\b|[)\]}}]", code):
        return False
    return any(
        code.endswith(opener) and (not opener[0].isalpha() or re.search(rf"\b{opener}$", code) is not None)
        for opener in language.block_openers
    )


def without_comment(line: str, language: Language) -> str:
    """The line up to its line comment, quotes heeded."""
    if len(line) > MAX_RULE_CHARS:
        return line
    for begin in language.line_comment:
        at = line.find(begin)
        while at >= 0:
            if state_at(line[:at], language).is_code:
                return line[:at]
            at = line.find(begin, at + 1)
    return line


def indent_style(above: str, below: str, language: Language) -> IndentStyle:
    """The style that most indented lines near the cursor have, the language's own where there are none."""
    blanks = [indent_of(line) for line in (*above.split("\n"), *below.split("\n")) if line.strip()]
    n_tabs = sum(indent.startswith("\t") for indent in blanks)
    n_spaces = sum(indent.startswith(" ") for indent in blanks)
    if not n_tabs and not n_spaces:
        return IndentStyle(language.indent)
    if n_tabs > n_spaces:
        return IndentStyle("\t")
    widths = [len(indent) for indent in blanks if not indent.startswith("\t")]
    steps = [low - high for high, low in pairwise(widths) if 2 <= low - high <= 8]
    if not steps:
        return IndentStyle(" " * min((width for width in widths if width >= 2), default=len(language.indent)))
    return IndentStyle(" " * max(sorted(set(steps)), key=steps.count))


def layout_is_grammar(language: Language) -> bool:
    """True where indentation is grammar, not manners."""
    return language.layout is Layout.INDENTATION


def _ends_enclosure(after: Scan, state: ScanState, length: int) -> bool:
    """True where the text after the cursor itself ends the string or comment that the cursor is in."""
    if state.quote:
        return any(pair.text == state.quote for pair in after.unmatched)
    return bool(state.comment_end) and any(
        start == BEFORE_TEXT and end < length for start, end in after.spans
    )


def _until_declaration(after: str, language: Language) -> str:
    """The text up to the next declaration at a line's start, where indentation is grammar.

    A docstring's quotes below it open the next string, they do not close the one that the cursor is in.
    """
    if not layout_is_grammar(language):
        return after
    words = "|".join(
        re.escape(word) + (r"\b" if word[-1].isalnum() else "") for word in language.declarations
    )
    found = re.search(rf"\n[ \t]*(?:{words})", after) if words else None
    return after[: found.start()] if found else after


def _filled(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip()]
