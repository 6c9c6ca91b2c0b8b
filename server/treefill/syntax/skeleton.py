"""What of a file a place in it hangs on: the beginnings of the scopes that enclose it, and the statement that it is in.

A grammar that starts at the file's beginning is lost at the first thing that it misreads, and most real files hold
one. So the acceptor is not given the file but its skeleton, each part in several readings, the file's own first:

    class Shape {                      the beginnings of the scopes round the cursor,
      double area() const {            or, where the grammar takes none of that, one that says nothing
        return width * |               and the statements of the innermost scope up to the cursor

Found by reading brackets, strings, comments and lines alone (`kernels/syntax/outline.h`), so it takes no notice of
errors elsewhere, and no longer in a long file than in a short one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, zip_longest

from treefill import _kernels
from treefill.syntax.elements import read_elements
from treefill.syntax.languages import Language, Layout
from treefill.syntax.parse import encoded

LOOK_BACK_CHARS = 200_000
LOOK_AHEAD_CHARS = 60_000
MAX_BEGINNING_BYTES = 2_000
"""Of a scope's own beginning no more is read, unless its statement begins further away."""
MAX_STATEMENTS_BYTES = 2_000
"""So much of what comes before the cursor's statement in its scope is read, too: `else` goes on an `if`."""
MAX_STATEMENT_BYTES = 64_000
MAX_LONG_BYTES = 10_000
"""A scope's beginning from its statement's on is not read where it is longer, nor the statement before the cursor's."""
MAX_REST_BYTES = 4_000
MAX_HEAD_BYTES = 200
"""A statement's first word is looked for so far."""
N_REST_SCOPES = 3
"""So many brackets may be opened at the cursor that are closed below it."""
N_STARTS = 16
"""A scope's beginning is looked for at so many places, the nearest first."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The parts of a text that its acceptor reads, in order, and what comes after the cursor."""

    scopes: tuple[tuple[bytes, ...], ...]
    """The beginning of each enclosing scope, the outermost first; of each, its readings, the best first."""
    statements: tuple[bytes, ...]
    """The readings of what lies between the innermost beginning and the cursor, the best first."""
    rests: tuple[bytes, ...]
    """What may come after the cursor: the rest of its statement; and more, for what may be opened at the cursor."""
    lines: tuple[bytes, ...] = ()
    """The readings of the cursor's line, where it stands as a statement does and the grammar may not read more."""
    closers: tuple[bytes, ...] = ()
    """What may end a scope; empty where nothing does."""
    right: bytes = b""
    """The rest of the cursor's line."""
    is_cut: bool = False
    """True where what is open at the cursor closes too far below to be read."""
    n_lacking: int = 0
    """So many more scopes are open at the cursor than are closed after it."""
    stand_ins: tuple[bytes, ...] = ()
    """Readings of scopes that stand for others."""
    ends: tuple[bytes, ...] = (b"",)
    """What may end the text after the rest, where nothing closes a scope."""
    filler: bytes = b""
    """A statement that says nothing, where a block without one is an error."""
    own_closers: tuple[tuple[bytes, ...], ...] = ()
    """What may end each scope, where that is known of each."""
    prologue: bytes = b""
    """What every text begins with, the scopes' own texts, too."""

    def body_for(self, middle: bytes) -> bytes:
        """The body that a block wants which `middle` begins at the end of its line; empty where it begins none."""
        if not self.filler or self.right.strip() or not re.search(rb":\s*(#[^\n]*)?$", middle):
            return b""
        line = b"".join((*self.statements[-1:], middle)).rpartition(b"\n")[2]
        return b"\n" + _deeper(line[: len(line) - len(line.lstrip())]) + self.filler


def skeleton_at(text: str, offset: int, language: Language) -> Skeleton:
    """The skeleton of `text` for a cursor at `offset`, in code points."""
    begin = _line_start(text, max(0, offset - LOOK_BACK_CHARS), offset)
    before = encoded(text[begin:offset])
    after = encoded(text[offset : offset + LOOK_AHEAD_CHARS])
    if language.skeleton.islands:
        return _on_island(before, after, language, offset + LOOK_AHEAD_CHARS >= len(text))
    if language.skeleton.elements:
        return _by_elements(before, after, language)
    if language.skeleton.block_ends:
        return _by_words(before, after + b"\n", language)
    if language.layout is Layout.INDENTATION:
        is_all = offset + LOOK_AHEAD_CHARS >= len(text)
        lacks_line_end = is_all and not after.endswith(b"\n")  # a line that the file's end ends is one, too
        return _by_layout(before, after + b"\n" * lacks_line_end, language)
    is_all = begin == 0 and offset + LOOK_AHEAD_CHARS >= len(text)
    return _by_brackets(before, after, language, is_all)


def is_outside_code(text: str, offset: int, language: Language) -> bool:
    """True where the cursor is in what is no code of a language that has other text in its files, too."""
    if not language.skeleton.islands:
        return False
    begin = max(0, offset - LOOK_BACK_CHARS)
    return _island_begin(encoded(text[begin:offset]), language) is None


def _line_start(text: str, at: int, limit: int) -> int:
    """The first line start at or after `at`, the limit where none comes before it."""
    if at == 0:
        return 0
    line_feed = text.find("\n", at - 1, limit)
    return limit if line_feed < 0 else line_feed + 1


def _on_island(before: bytes, after: bytes, language: Language, has_end: bool) -> Skeleton:
    """What begins the code is read first, and what ends it comes no more."""
    found = _island_begin(before, language)
    if found is None:
        return Skeleton((), (), ())
    at, begin, end = found
    code = before[at + len(begin) :]
    skeleton = _by_brackets(code, after.partition(end)[0], language, has_end or end in after)
    ends = (end,) if end in after else (b"",)
    return replace(skeleton, ends=ends, prologue=begin + b" ")


def _island_begin(before: bytes, language: Language) -> tuple[int, bytes, bytes] | None:
    """Where the code begins that the text ends in, what begins it and what ends it; None where it ends in no code."""
    islands = [(begin.encode(), end.encode()) for begin, end in language.skeleton.islands]
    at, begin, end = max((before.rfind(begin), begin, end) for begin, end in islands)
    return None if at < 0 or end in before[at:] else (at, begin, end)


def _by_brackets(before: bytes, after: bytes, language: Language, is_all: bool) -> Skeleton:
    """`is_all`: the text begins with `before` and ends with `after`."""
    rules, known = _rules(language), language.skeleton
    at = len(before)
    scopes = [
        scope
        for scope in _kernels.outline(before, 0, at, rules)
        if not scope.opener or scope.opener in known.openers
    ]
    stand_ins = tuple(stand_in.encode() for stand_in in known.stand_ins)
    beginnings = tuple(
        (before[inner.opened_at : inner.body], b"")
        if inner.opener == "#"
        else (*_readings(_beginnings(outer, inner, before, language), language), *stand_ins)
        for outer, inner in pairwise(scopes)
    )
    starts = _statement_starts(scopes[-1], before, at, language)
    statements = _readings(_statements(starts, before, language), language)
    lines = _readings(_own_line(before, starts[-1]), language)
    whole = before[starts[-1] :] + after
    at_rest = at - starts[-1]
    n_open = sum(scope.opener not in ("", "#") for scope in scopes)
    openers = "".join(known.openers).replace("#", "")
    n_surplus = _kernels.n_closed_scopes(whole, 0, rules, openers) - n_open if is_all and openers else 0
    ends = [_kernels.statement_end(whole, 0, at_rest, n_closers, rules) for n_closers in range(N_REST_SCOPES)]
    if known.separator == "\n":
        line_end = _kernels.logical_line_end(whole + b"\n", at_rest, rules, _layout_words(language))
        ends = [min(line_end, len(whole)), *ends] if at_rest <= line_end < ends[0] else ends
    # A bracket within the statement may be opened at the cursor; a scope only where more are closed than are open.
    ends = [
        end
        for end in ends
        if end == ends[0] or _kernels.n_closed_scopes(whole[:end], 0, rules, openers) <= max(0, n_surplus)
    ]
    right = after.partition(b"\n")[0]
    rests = [whole[at_rest:end] for end in dict.fromkeys(ends) if end - at_rest <= MAX_REST_BYTES]
    is_cut = not rests
    closers = tuple(closer.encode() for closer in known.closers) if known.has_blocks else ()
    return Skeleton(
        beginnings,
        tuple(statements),
        tuple(rests) or (right,),
        tuple(lines),
        closers,
        right,
        is_cut,
        n_lacking=max(0, -n_surplus),
        stand_ins=stand_ins,
    )


def _beginnings(
    outer: _kernels.Scope, inner: _kernels.Scope, before: bytes, language: Language
) -> Iterator[bytes]:
    """The inner scope's beginning from the outer one's last statements on, the nearest first; then from other places
    where its statement may begin.
    """
    starts = _statement_starts(outer, before, inner.opened_at, language)
    starts = [start for start in starts if start <= inner.opened_at]
    near = [start for start in starts if inner.body - start <= MAX_BEGINNING_BYTES]
    last = [start for start in starts[-1:] if inner.body - start <= MAX_LONG_BYTES]
    for start in reversed(near[-N_STARTS:] or last):
        yield before[start : inner.body]
    yield from _continued(outer, inner, before, language)
    yield from _lines_of_beginning(outer, inner, before)


def _statements(starts: list[int], before: bytes, language: Language) -> Iterator[bytes]:
    """The cursor's statement after what comes before it, after the less the later; and from where else it may begin."""
    at = len(before)
    yield from _with_long_one_before(starts, before, language)
    for start in starts:
        if at - start <= MAX_STATEMENTS_BYTES:
            yield before[start:]
    if at - starts[-1] <= MAX_STATEMENT_BYTES:
        yield before[starts[-1] :]
    for start in _outermost_line(before, starts[-1], at):
        yield before[start:]


def _with_long_one_before(starts: list[int], before: bytes, language: Language) -> Iterator[bytes]:
    """The cursor's statement after the one before it, where that is longer than what is read anyway, ends with a brace
    and may be gone on with; else after a short one of its kind: `else` goes on an `if` of any length.
    """
    ends_with_brace = before.endswith(b"}", 0, starts[-1])
    if len(starts) < 2 or len(before) - starts[-2] <= MAX_STATEMENTS_BYTES or not ends_with_brace:
        return
    begun = before[starts[-1] :].strip()
    known = language.skeleton
    if not any(word.encode().startswith(begun) for word in known.continuations):
        return
    if len(before) - starts[-2] <= MAX_LONG_BYTES:
        yield before[starts[-2] :]
    head = before[starts[-2] : starts[-2] + MAX_HEAD_BYTES].lstrip()
    for whole in dict.fromkeys(whole.encode() for _, whole in known.continued):
        if re.match(re.escape(whole.split()[0]) + rb"\b", head):
            yield whole + before[starts[-1] :]


def _own_line(before: bytes, start: int) -> tuple[bytes, ...]:
    """The cursor's line, where it is not the one that its statement begins in and stands no deeper than that one."""
    line = before.rfind(b"\n") + 1
    code = _NO_SPACE.search(before, start)
    first = before.rfind(b"\n", 0, code.start() if code else len(before)) + 1
    return (before[line:],) if first < line and _indent(before, line) <= _indent(before, first) else ()


_NO_SPACE = re.compile(rb"\S")


def _lines_of_beginning(outer: _kernels.Scope, inner: _kernels.Scope, before: bytes) -> Iterator[bytes]:
    """The inner scope's beginning from the last of the outermost lines on, and its line alone."""
    line = before.rfind(b"\n", 0, inner.opened_at) + 1
    for start in (*_outermost_line(before, outer.starts[-1], inner.opened_at), line):
        beginning = before[start : inner.body]
        if len(beginning) <= MAX_BEGINNING_BYTES and not beginning.lstrip().startswith((b"}", b")", b"]")):
            yield beginning


def _outermost_line(before: bytes, start: int, at: int) -> list[int]:
    """Where the last of the outermost lines between `start` and `at` begins that have a word first: in a text without
    semicolons a statement may. None where that is too far from there, or stands deeper than that.
    """
    found: int | None = None
    least = _indent(before, before.rfind(b"\n", 0, at) + 1)
    for line in _LINE_OF_WORD.finditer(before, max(start, at - MAX_STATEMENTS_BYTES), at):
        indent = _n_columns(line[1])
        if indent <= least:
            found, least = line.start(1), indent
    return [] if found is None else [found]


_LINE_OF_WORD = re.compile(rb"(?<=\n)([ \t]*)(?=[\w@#$])")


def _indent(text: bytes, line: int) -> int:
    """Columns before the first character of the line that begins there."""
    return _n_columns(_BLANKS.match(text, line)[0])  # type: ignore[index]


_BLANKS = re.compile(rb"[ \t]*")


def _n_columns(blanks: bytes) -> int:
    return len(blanks.expandtabs(8))


def _continued(
    outer: _kernels.Scope, inner: _kernels.Scope, before: bytes, language: Language
) -> Iterator[bytes]:
    """The inner scope's beginning where it goes on a statement whose own beginning is too long to be read."""
    beginning = before[outer.starts[-1] : inner.body]
    for word, whole in language.skeleton.continued if len(beginning) <= MAX_BEGINNING_BYTES else ():
        if re.match(rf"\s*{word}\b".encode(), beginning):
            yield whole.encode() + beginning


def _statement_starts(scope: _kernels.Scope, before: bytes, at: int, language: Language) -> list[int]:
    """Where statements begin in the scope that `at` is in: not at a word that goes on the one before."""
    goes_on = _going_on(language)
    has_lines = language.skeleton.separator == "\n"
    starts = [start for start in scope.starts if not has_lines or _ends_line(before, start, scope)]
    starts = starts or scope.starts[:1]
    if has_lines:
        starts = sorted({*starts, *_line_starts(before[:at], starts[-1], language)})
    if goes_on is None:
        return starts
    known = [start for start in starts if start == scope.body or not goes_on.match(before, start)]
    return known or starts[:1]  # only so many are known


def _ends_line(before: bytes, start: int, scope: _kernels.Scope) -> bool:
    """True where a line ends before `start`, or a scope begins there."""
    return start == scope.body or before[start:].lstrip(b" \t\r")[:1] in (b"\n", b"")


def _line_starts(before: bytes, start: int, language: Language) -> list[int]:
    """Where logical lines begin that begin a statement, after `start`, where one does: the latest ones."""
    rules, words = _rules(language), _layout_words(language)
    end = max(0, len(before) - start - MAX_STATEMENTS_BYTES)
    found: list[int] = []
    while end := _kernels.logical_line_end(before[start:], end, rules, words):
        start, end = start + end, 0
        found.append(start)
    return found


@cache
def _going_on(language: Language) -> re.Pattern[bytes] | None:
    """What begins with a word or sign that goes on a statement."""
    return _any_of(language.skeleton.continuations)


def _any_of(words: tuple[str, ...]) -> re.Pattern[bytes] | None:
    """Finds any of the words, or signs, at a line's beginning."""
    each = (re.escape(word) + (r"\b" if word[-1].isalnum() else "") for word in words)
    return re.compile(rf"\s*(?:{'|'.join(each)})".encode()) if words else None


def _readings(texts: Iterable[bytes], language: Language) -> list[bytes]:
    """Each as it is, and then without the words that the grammar may stumble over."""
    own = list(dict.fromkeys(texts))
    if not language.skeleton.noise:
        return own
    noise = re.compile(language.skeleton.noise.encode())
    return list(dict.fromkeys([*own, *(noise.sub(b" ", text) for text in own)]))


def _by_words(before: bytes, after: bytes, language: Language) -> Skeleton:
    """Blocks that words end: `if … end`. What is open is told by indentation, as people read it."""
    known = language.skeleton
    rules, words = _rules(language), _layout_words(language)
    found = _kernels.layout(_lines_alone(before, language), 0, len(before), rules, words)
    statement = before[found.current :]
    indent = _width(statement)
    fillers = [filler.encode() + b"\n" for filler in known.fillers[:1]]
    stand_ins = tuple(stand_in.encode() for stand_in in known.stand_ins)
    known_closers = tuple(closer.encode() for closer in known.closers)
    scopes: list[tuple[bytes, ...]] = []
    closers: list[tuple[bytes, ...]] = []
    n_open_columns = -1
    for lines, deeper in zip_longest(found.levels, found.levels[1:]):
        parts = [before[line.start : line.end] + b"\n" for line in lines]
        bodies = [fillers if line.has_block and line is not lines[-1] else [] for line in lines]
        own = b"".join(text for part, body in zip(parts, bodies, strict=True) for text in (part, *body))
        columns = _width(parts[-1])
        is_open = deeper is not None or columns < indent
        n_open_columns = columns if is_open else n_open_columns
        neutral = (parts[-1], *(each + parts[-1] for each in stand_ins), *stand_ins) if is_open else (b"",)
        closers.append(known_closers if is_open else (b"",))
        scopes.append(tuple(dict.fromkeys([own, *neutral])) if len(own) <= MAX_BEGINNING_BYTES else neutral)
    line = before[before.rfind(b"\n") + 1 :]
    readings, own_lines = _split_off(statement, line)
    right = after.partition(b"\n")[0]
    clean = _lines_alone(statement + after, language)
    line_end = _kernels.logical_line_end(clean, len(statement) + len(right), rules, words) - len(statement)
    ends = dict.fromkeys([max(line_end, len(right) + 1), len(right) + 1])
    block = _block_end(after, next(iter(ends)), indent, language)
    rests = tuple(after[:end] for end in dict.fromkeys([block, *ends]) if end <= MAX_REST_BYTES)
    below = after[_block_end(after, len(right) + 1, n_open_columns, language, is_inside=True) :]
    lacks_closer = n_open_columns >= 0 and not _is_end_at(below, n_open_columns, language)
    return Skeleton(
        tuple(scopes),
        readings,
        rests or (right,),
        own_lines,
        right=right,
        is_cut=block > MAX_REST_BYTES,
        n_lacking=int(lacks_closer),
        stand_ins=stand_ins,
        own_closers=tuple(closers),
    )


def _block_end(after: bytes, at: int, columns: int, language: Language, is_inside: bool = False) -> int:
    """Where the block ends that a line of this indentation begins, `at` if it begins none: after its last line, or
    after that of its body alone.
    """
    end = at
    while at < len(after):
        line_end = after.find(b"\n", at) + 1 or len(after)
        line = after[at:line_end]
        is_its_own = not is_inside and _is_end_at(line, columns, language)
        if line.strip() and _width(line) <= columns and not is_its_own:
            break
        at = line_end
        end = at if line.strip() else end
    return end


def _is_end_at(line: bytes, columns: int, language: Language) -> bool:
    """True where the text begins with a line of that indentation that ends or goes on a block."""
    goes_on = _any_of((*language.skeleton.block_ends, *language.skeleton.continuations))
    line = line.lstrip(b"\r\n")
    return goes_on is not None and _width(line) == columns and goes_on.match(line) is not None


def _width(line: bytes) -> int:
    """Columns of its indentation."""
    return len(line[: len(line) - len(line.lstrip(b" \t"))].expandtabs(8))


def _lines_alone(text: bytes, language: Language) -> bytes:
    """The text without what joins lines or hides them: brackets that open, whose lines are indented, too; and comments
    that are lines of their own, in which no quote is one. As long as it was.
    """
    pattern = _comment_lines(language)
    text = pattern.sub(lambda found: b" " * len(found[0]), text) if pattern else text
    return text.translate(_WITHOUT_OPENERS)


_WITHOUT_OPENERS = bytes.maketrans(b"([{", b"___")


@cache
def _comment_lines(language: Language) -> re.Pattern[bytes] | None:
    if not language.line_comment:
        return None
    comments = "|".join(map(re.escape, language.line_comment))
    blocks = "".join(rf"(?!{re.escape(begin)})" for begin, _ in language.block_comment)
    return re.compile(rf"^[ \t]*+{blocks}(?:{comments})[^\n]*".encode(), re.MULTILINE)


def _by_elements(before: bytes, after: bytes, language: Language) -> Skeleton:
    """The tags of the elements that are open, and the text or tag that the cursor is in."""
    known = language.skeleton
    read = read_elements(before, known)
    scopes = tuple(
        (before[element.start : element.body], b"<" + element.name + b">") for element in read.elements
    )
    names = [element.name for element in read.elements]
    statement = before[read.last :]
    right = after.partition(b"\n")[0]
    below = read_elements(statement + after, known)
    ends = [at - len(statement) for _, at in below.closed[:N_REST_SCOPES]]
    rests = [after[:end] for end in ends or [len(after)] if 0 <= end <= MAX_REST_BYTES]
    is_in_tag = b"<" in statement
    readings, own_lines = _split_off(statement, before[before.rfind(b"\n") + 1 :])
    return Skeleton(
        scopes,
        readings,
        tuple(rests) or (right,),
        own_lines,
        right=right,
        own_closers=tuple((b"</" + name + b">", b"") for name in names),
        is_cut=not rests and is_in_tag,
        n_lacking=max(0, len(names) - len(below.closed)),
    )


def _split_off(statement: bytes, line: bytes) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """The statement's reading, and that of its line alone; the former is none where it is too long."""
    is_short = len(statement) <= MAX_STATEMENT_BYTES
    lines = (line,) if line != statement and len(line) <= MAX_STATEMENT_BYTES else ()
    return ((statement,), lines) if is_short else (lines, ())


def _by_layout(before: bytes, after: bytes, language: Language) -> Skeleton:
    rules = _rules(language)
    found = _kernels.layout(before, 0, len(before), rules, _layout_words(language))
    filler = language.skeleton.fillers[0].encode()
    scopes: list[tuple[bytes, ...]] = []
    levels = found.levels
    if levels and levels[0][0].code > levels[0][0].start:
        scopes.append((language.skeleton.stand_ins[0].encode() + b"\n",))
    for number, lines in enumerate(levels):
        is_innermost = number == len(levels) - 1
        indent = before[lines[-1].start : lines[-1].code]
        deeper = _deeper(indent)
        parts = []
        for line in lines:
            own = before[line.start : line.end] + b"\n"
            begins_block = own.rstrip().endswith(b":") or line.has_block
            if begins_block and (line is not lines[-1]):
                own += deeper + filler + b"\n"
            parts.append(own)
        own = b"".join(parts)
        neutral = indent + (filler if is_innermost else language.skeleton.stand_ins[0].encode()) + b"\n"
        is_long = len(own) > MAX_BEGINNING_BYTES
        scopes.append((neutral,) if is_long else (own, neutral))
    statement = before[found.current :]
    statements = (statement,) if len(statement) <= MAX_STATEMENT_BYTES else ()
    right = after.partition(b"\n")[0]
    rests, is_cut = _layout_rests(statement, after, right, language)
    ends = _ends_of_levels(found, before, after, language)
    own_line = _own_line(before, found.current)
    return Skeleton(tuple(scopes), statements, rests, own_line, (), right, is_cut, filler=filler, ends=ends)


def _ends_of_levels(
    found: _kernels.Layout, before: bytes, after: bytes, language: Language
) -> tuple[bytes, ...]:
    """What stands below for the blocks round the cursor that want another block after them: `try` a handler.

    The rest may hold the inner ones already, so there is an end for all of them, for all but the innermost, and so on.
    """
    ends = [b""]
    for lines in found.levels:
        indent = before[lines[-1].start : lines[-1].code]
        for word, *others in language.skeleton.sequels:
            wants = re.match(rf"{word}\b".encode(), before[lines[-1].code : lines[-1].end])
            if wants and _goes_on_below(after, indent, others):
                block = indent + others[-1].encode() + b":\n" + _deeper(indent)
                ends.append(block + language.skeleton.fillers[0].encode() + b"\n" + ends[-1])
    return tuple(reversed(ends))


def _goes_on_below(after: bytes, indent: bytes, words: Iterable[str]) -> bool:
    """Whether the first line that stands no deeper begins with one of the words."""
    n_columns = _n_columns(indent)
    for line in _LINE_OF_CODE.finditer(after, after.find(b"\n") + 1):
        if _n_columns(line[1]) <= n_columns:
            return bool(re.match(rf"(?:{'|'.join(words)})\b".encode(), line[2]))
    return False


_LINE_OF_CODE = re.compile(rb"^([ \t]*)([\w@].*)", re.MULTILINE)


def _deeper(indent: bytes) -> bytes:
    return indent + (b"\t" if indent.endswith(b"\t") else b"    ")


def _layout_rests(
    statement: bytes, after: bytes, right: bytes, language: Language
) -> tuple[tuple[bytes, ...], bool]:
    """The rest of the logical line and the next one that is code, with a body where it wants one; and the rest of the
    line, for a bracket that is open at the cursor and may be closed there. And whether the former is too long.
    """
    rules, words = _rules(language), _layout_words(language)
    n_line = len(right) + 1
    end = _kernels.logical_line_end(statement + after, len(statement) + len(right), rules, words) - len(
        statement
    )
    if end > MAX_REST_BYTES:
        return (right,), True
    rests = [after[:end], after[:n_line]] if end > n_line else [after[:n_line]]
    below = _following(after[len(rests[0]) :], language)
    with_below = [rest.rstrip(b"\n") + b"\n" + below for rest in rests]
    return tuple(dict.fromkeys([*with_below, rests[0], *_closed_below(statement, after, language)])), False


def _closed_below(statement: bytes, after: bytes, language: Language) -> Iterator[bytes]:
    """What comes up to the end of the line where brackets and strings close that may be opened at the cursor."""
    ends = [
        _kernels.statement_end(statement + after, 0, len(statement), n_scopes, _rules(language))
        - len(statement)
        for n_scopes in range(N_REST_SCOPES - 1)
    ]
    closers = [end for end in ends if after[end : end + 1] in (b")", b"]", b"}")]
    quotes = [after.find(quote.encode()) for quote in language.long_quotes]
    for closer in (*closers, *(quote for quote in quotes if quote >= 0)):
        rest = after[: after.find(b"\n", closer) + 1]
        if len(rest) <= MAX_REST_BYTES:
            yield rest


def _following(below: bytes, language: Language) -> bytes:
    """The first logical line of code, with a body where it wants one; nothing where there is none."""
    comments = tuple(comment.encode() for comment in language.line_comment)
    while below:
        line, _, rest = below.partition(b"\n")
        if line.strip() and not line.lstrip().startswith(comments):
            break
        below = rest
    end = _kernels.logical_line_end(below, 0, _rules(language), _layout_words(language))
    following = below[:end].rstrip()
    is_half = following.lstrip().startswith(tuple(map(str.encode, language.skeleton.prefixes)))
    if not following or len(following) > MAX_REST_BYTES or is_half:
        return b""
    if re.search(rb":\s*(#.*)?$", following):
        indent = following[: len(following) - len(following.lstrip())]
        following += b"\n" + _deeper(indent) + language.skeleton.fillers[0].encode()
    return following + b"\n"


@cache
def _rules(language: Language) -> _kernels.LexicalRules:
    known = language.skeleton
    rules = _kernels.LexicalRules()
    # Where words end blocks, shells' habits are common: `$#` and `${#a}` begin no comment.
    comments = language.line_comment
    rules.line_comments = [f" {each}" for each in comments] if known.block_ends else list(comments)
    rules.block_comments = list(language.block_comment)
    rules.quotes = "".join(language.quotes)
    rules.long_quotes = list(language.long_quotes)
    rules.escape = language.escape
    rules.separator = ";" if known.separator == "\n" else known.separator
    rules.has_blocks = known.has_blocks
    rules.has_raw_strings = "raw-strings" in known.features
    rules.has_templates = "templates" in known.features
    rules.has_regexes = "regexes" in known.features
    rules.has_dollar_quotes = "dollar-quotes" in known.features
    rules.has_commands = "commands" in known.features
    rules.has_directives = "directives" in known.features
    return rules


@cache
def _layout_words(language: Language) -> _kernels.LayoutWords:
    words = _kernels.LayoutWords()
    words.continuations = [*language.skeleton.continuations, *language.skeleton.block_ends]
    words.prefixes = list(language.skeleton.prefixes)
    words.resets = list(language.skeleton.resets)
    return words
