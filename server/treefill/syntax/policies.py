"""What a language forbids and its grammar lets pass: a table of small pure functions, a row a language.

A rule looks at a text with something put into it and says in a few words what is wrong with what was put in, or
nothing. What was wrong before is not its business.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treefill.syntax.parse import Parsed

if TYPE_CHECKING:
    import tree_sitter

MAX_PYTHON_BYTES = 20_000
"""Of the statements around the cursor; Python's own parser takes some 3 ms for ten kilobytes."""

MAX_SQL_BYTES = 2_000
"""On either side of what is put in."""

Place = tuple[int, int]
"""Line and column."""


@dataclass(frozen=True, slots=True, eq=False)
class Splice:
    """A text before and after something was put into it."""

    before: Parsed
    after: Parsed
    start: int
    """First byte of what was put in."""
    removed: int
    """Bytes of the text before that it took the place of."""
    end: int
    """The byte after its last, in the text after."""

    @property
    def inserted(self) -> bytes:
        """What was put in."""
        return self.after.data[self.start : self.end]


Policy = Callable[[Splice], str]


def complaint_of(splice: Splice, language_id: str) -> str:
    """The first rule's word on it, or nothing."""
    return next((said for rule in POLICIES.get(language_id, ()) if (said := rule(splice))), "")


def python_reads_it(splice: Splice) -> str:
    """Python's own parser sees empty blocks, odd indentation and `try` without `except`, which the grammar takes."""
    start, end = _statements_around(splice)
    end_after = end + len(splice.after.data) - len(splice.before.data)
    if max(end - start, end_after - start) > MAX_PYTHON_BYTES:
        return ""
    region = splice.after.data[start:end_after]
    after = _python_error(region)
    if after is not None and after.message.startswith("expected an indented block"):
        after = _python_error(_with_body(region, splice.end - start))
    if after is None or (sys.version_info < (3, 12) and after.message.startswith("f-string")):
        return ""  # quotes within an f-string's braces came with Python 3.12, and the grammar knows them
    before = _python_error(splice.before.data[start:end])
    if before is None:
        return after.message
    first, last = _place(region, splice.start - start), _place(region, splice.end - start)
    is_old = (after.message, after.place) == (before.message, before.place) and after.place < first
    is_inside = first[0] <= after.place[0] and after.place < last and not is_old
    # A half-typed line may go on below: that its bracket is still open was so before, too.
    return after.message if is_inside and not _OPEN_END.search(after.message) else ""


def sql_has_lists_and_conditions(splice: Splice) -> str:
    """What one of its words begins may not be empty: the next one may not follow at once."""
    start = max(splice.before.data.rfind(b";", 0, splice.start) + 1, splice.start - MAX_SQL_BYTES)
    before = _n_empty_clauses(splice.before.data[start : splice.start + splice.removed + MAX_SQL_BYTES])
    after = _n_empty_clauses(splice.after.data[start : splice.end + MAX_SQL_BYTES])
    return "a clause is empty" if after > before else ""


def cases_are_in_a_switch(splice: Splice) -> str:
    """The grammar of C takes `case` as a statement anywhere."""
    if b"case" not in splice.inserted and b"default" not in splice.inserted:
        return ""
    for node, above in _nodes_within(splice, "case_statement"):
        is_put_in = node.start_byte >= splice.start
        if is_put_in and not {"switch_statement", "ERROR"} & set(above):
            return "a case stands outside of a switch"
    return ""


def json_numbers_are_whole(splice: Splice) -> str:
    """The grammar of JSON reads numbers as JavaScript does."""
    for node, _ in _nodes_within(splice, "number"):
        if not node.is_missing and not _JSON_NUMBER.fullmatch(
            splice.after.data[node.start_byte : node.end_byte]
        ):
            return "a number is not one of JSON's"
    return ""


POLICIES: dict[str, tuple[Policy, ...]] = {
    "python": (python_reads_it,),
    "sql": (sql_has_lists_and_conditions,),
    "c": (cases_are_in_a_switch,),
    "cpp": (cases_are_in_a_switch,),
    "json": (json_numbers_are_whole,),
}
"""Language id → its rules, in order."""

_FILENAME = "<completed>"
_NO_WARNINGS = ("ignore", None, Warning, re.compile(rf"{_FILENAME}\Z"), 0)
"""As Python keeps a filter. The module of a text is named after its file."""
_OPEN_END = re.compile(r"was never closed|unterminated triple-quoted|unexpected EOF")
_HEAD_END = re.compile(rb":\s*(#.*)?$")
_JSON_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_SQL_TEXT = re.compile(
    rb"--[^\n]*|/\*(?:.*?\*/|.*\Z)|'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|(\$\w*\$)(?:.*?\1|.*\Z)", re.DOTALL
)
_EMPTY_CLAUSE = re.compile(
    rb"\bselect\s+(?:distinct\s+)?from\b|"
    rb"\b(?:from|join|into|update)\s+(?:where|having|group\s+by|order\s+by|limit|union|set|values)\b|"
    rb"\b(?:where|having|group\s+by|order\s+by|set)\s*(?:;|\)|\b(?:from|where|group|having|order|limit|union)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _PythonError:
    message: str
    place: Place
    """Line from 0, column in characters from 0."""


def _python_error(region: bytes) -> _PythonError | None:
    """What Python's parser says of some whole statements; None where it has nothing to say."""
    text = region.decode(errors="replace").removeprefix("\ufeff")
    _silence_warnings()
    try:
        ast.parse(text, _FILENAME)
    except SyntaxError as error:
        return _PythonError(error.msg, ((error.lineno or 1) - 1, max(0, (error.offset or 1) - 1)))
    except (ValueError, RecursionError, MemoryError):
        return None  # too deep for it, which says nothing of the text
    return None


def _silence_warnings() -> None:
    """Have Python drop its warnings about our texts, and no others.

    `warnings.catch_warnings` would put the process's filters back as it found them, whatever another thread did to them
    meanwhile. So ours stays there; where somebody else's has come before it, it is put first again.
    """
    if warnings.filters[:1] != [_NO_WARNINGS]:
        warnings.filterwarnings("ignore", category=Warning, module=_NO_WARNINGS[3].pattern)


def _with_body(region: bytes, end: int) -> bytes:
    """The region with a body where what was put in ends with a block's head and the line after it: it is to come."""
    line_end = _line_end(region, end)
    head = region[_line_start(region, end) : line_end].rstrip()
    if not _HEAD_END.search(head) or region[end:line_end].strip():
        return region
    indent = head[: len(head) - len(head.lstrip())]
    following = next((line for line in region[line_end:].split(b"\n") if line.strip()), b"")
    if len(following) - len(following.lstrip()) > len(indent):
        return region
    body = indent + b"    pass\n"
    return region[:line_end].rstrip(b"\n") + b"\n" + body + region[line_end:]


def _statements_around(splice: Splice) -> tuple[int, int]:
    """Where the outermost statements that the place belongs to begin and end in the text before, neighbours included.

    Where the grammar has no reading for the whole, that is the whole.
    """
    data, tree = splice.before.data, splice.before.tree
    if tree.root_node.type == "ERROR":
        return 0, len(data)
    line_start = _line_start(data, splice.start)
    line_end = _line_end(data, splice.start + splice.removed)
    start, end = 0, len(data)
    for node in _outermost(tree, max(0, line_start - MAX_PYTHON_BYTES // 2)):
        if node.start_byte < line_start and not node.is_error and node.type != "comment":
            start = _line_start(data, node.start_byte)
        if node.start_byte > line_end:
            end = _line_end(data, node.end_byte)
            break
    return start, end


def _outermost(tree: tree_sitter.Tree, at: int) -> Iterator[tree_sitter.Node]:
    """The root's children from the one at a byte on.

    By a cursor: going back from what the library's `Node.first_child_for_byte` gives has been seen to end the process.
    """
    cursor = tree.walk()
    has_more = cursor.goto_first_child_for_byte(at) is not None
    while has_more:
        node = cursor.node
        assert node is not None
        yield node
        has_more = cursor.goto_next_sibling()


def _line_start(data: bytes, at: int) -> int:
    return data.rfind(b"\n", 0, at) + 1


def _line_end(data: bytes, at: int) -> int:
    """The byte after the line's end."""
    return (data.find(b"\n", at) + 1) or len(data)


def _place(region: bytes, at: int) -> Place:
    line_start = _line_start(region, at)
    return region.count(b"\n", 0, at), len(region[line_start:at].decode(errors="replace"))


def _n_empty_clauses(data: bytes) -> int:
    return len(_EMPTY_CLAUSE.findall(_SQL_TEXT.sub(b"x", data)))


def _nodes_within(splice: Splice, node_type: str) -> Iterator[tuple[tree_sitter.Node, tuple[str, ...]]]:
    """Nodes of that type that lie in what was put in or touch it, each with the types of the nodes around it."""
    cursor = splice.after.tree.walk()
    above: list[str] = []
    while True:
        node = cursor.node
        assert node is not None
        is_near = node.start_byte <= splice.end and node.end_byte > splice.start
        if is_near and node.type == node_type:
            yield node, tuple(above)
        if is_near and cursor.goto_first_child():
            above.append(node.type)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            above.pop()
