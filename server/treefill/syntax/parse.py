"""Texts into trees, and where the trees have faults. What a fault means is not decided here.

The parser library keeps the interpreter's lock while it parses, so it is handed the text in pieces: between two of
them another thread gets its turn. A parse that takes too long is given up. Keystroke to keystroke only what has
changed is parsed anew.

What takes the time is the first parse of a text; after an edit of a few characters the old tree answers for the rest.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treefill.syntax.grammars import LoadedGrammar

if TYPE_CHECKING:
    import tree_sitter

TIME_LIMIT_S = 0.15
"""A text that takes more of the processor stays unparsed."""
CHUNK_BYTES = 2_048
N_KEPT = 4
"""Trees of so many texts are kept, for the next keystroke in one of them."""
MAX_VISITED = 20_000
"""Nodes that are looked at in search of faults; a text with more around them is nothing that rules hold for."""
MAX_NOTED_BYTES = 64_000
"""Of a text, whose notation is read: some milliseconds."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A place that the grammar has no reading for, or where it misses something."""

    start_byte: int
    end_byte: int
    is_missing: bool
    """True where something should stand there; else what stands there is wrong."""


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A text and its tree."""

    data: bytes
    """The text in UTF-8."""
    tree: tree_sitter.Tree
    faults: tuple[Fault, ...]
    is_fresh: bool
    """False where an older tree was gone on with: in broken code it may see other faults than a fresh one."""


def encoded(text: str) -> bytes:
    """As the parser reads it, as many bytes as there are: half an emoji becomes a question mark, and a carriage return
    alone, which ends a line for editors and not for grammars, a line feed.
    """
    return _LONE_RETURN.sub(b"\n", text.encode(errors="replace"))


_LONE_RETURN = re.compile(rb"\r(?!\n)")


def parse(
    data: bytes, grammar: LoadedGrammar, old: Parsed | None = None, deadline_s: float | None = None
) -> Parsed | None:
    """The text's tree, or None where there was no time for it. `old` is gone on with.

    `deadline_s` is by the clock of `time.thread_time`: what other programs take of the machine does not count.
    """
    import tree_sitter

    limit_s = deadline_s if deadline_s is not None else time.thread_time() + TIME_LIMIT_S

    def read(byte_offset: int, _point: object) -> bytes:
        return data[byte_offset : byte_offset + CHUNK_BYTES]

    def is_late(_byte_offset: int, _has_error: bool) -> bool:
        return time.thread_time() > limit_s

    # A parser of our own: one that was stopped half-way would go on with the old text.
    parser = tree_sitter.Parser(grammar.language)
    try:
        if old is None:
            tree = parser.parse(read, progress_callback=is_late)
        else:
            tree = parser.parse(read, _edited(old, data), progress_callback=is_late)
    except ValueError:  # "Parsing failed": it was late
        return None
    faults = find_faults(tree)
    return None if faults is None else Parsed(data, tree, faults, is_fresh=old is None)


def find_faults(tree: tree_sitter.Tree) -> tuple[Fault, ...] | None:
    """All of them in the order of the text, or None where there are too many nodes to look at.

    What a grammar hides is no node that can be walked to, also where it is missing, as Python's line end between two
    statements. Where the node around it tells of a fault and none of its children does, it is that. Else only the
    tree's notation tells, which is read of nodes that are not too long.
    """
    if not tree.root_node.has_error:
        return ()
    faults: list[Fault] = []
    notes = _Notes()
    cursor = tree.walk()
    for _ in range(MAX_VISITED):
        node = cursor.node
        assert node is not None
        if node.is_error or node.is_missing:
            faults.append(Fault(node.start_byte, node.end_byte, node.is_missing))
        if node.has_error:
            faults += notes.hidden(node)
        if node.has_error and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return tuple(sorted(faults, key=lambda fault: fault.start_byte))
    return None


class _Notes:
    """What the notation of a tree's nodes tells of faults, until too much of it was read."""

    def __init__(self) -> None:
        self._n_left = MAX_NOTED_BYTES
        self._known: dict[int, int | None] = {}

    def hidden(self, node: tree_sitter.Node) -> list[Fault]:
        """The hidden tokens that are missing between the node's children."""
        faulty = [child for child in node.children if child.has_error or child.is_missing]
        n_all, n_below = self._n(node), [self._n(child) for child in faulty]
        if n_all is None or None in n_below:
            n_hidden = int(not (node.is_error or node.is_missing or faulty))
        else:
            n_hidden = n_all - (node.is_error or node.is_missing) - sum(n or 0 for n in n_below)
        next_place = faulty[0].start_byte if faulty else node.end_byte
        before = (child.end_byte for child in node.children if child.end_byte <= next_place)
        place = max(before, default=node.start_byte)
        return n_hidden * [Fault(place, place, True)]

    def _n(self, node: tree_sitter.Node) -> int | None:
        """Faults that the node's notation tells of; None where it would be too much to read."""
        if node.id not in self._known:
            n_bytes = node.end_byte - node.start_byte
            is_read = n_bytes <= self._n_left
            self._n_left -= n_bytes * is_read
            # A sign alone is noted without the word.
            found = 1 if node.is_missing else len(_NOTED.findall(str(node))) if is_read else None
            self._known[node.id] = found
        return self._known[node.id]


_NOTED = re.compile(r"\((?:ERROR|MISSING)\b")


class RecentTrees:
    """The latest texts and their trees: the next keystroke goes on with the one that it has most in common with."""

    def __init__(self, n_kept: int = N_KEPT) -> None:
        self._n_kept = n_kept
        self._kept: list[tuple[object, LoadedGrammar, Parsed]] = []
        self._lock = threading.Lock()

    def parse(
        self, key: object, data: bytes, grammar: LoadedGrammar, deadline_s: float | None = None
    ) -> Parsed | None:
        """`parse`, from what is kept under `key`; and keep it."""
        known = self._of(key, grammar)
        if known is not None and known.data == data:
            return known
        parsed = parse(data, grammar, known, deadline_s)
        if parsed is not None:
            self.keep(key, grammar, parsed)
        return parsed

    def keep(self, key: object, grammar: LoadedGrammar, parsed: Parsed) -> None:
        """The newest first; what was there under the same key goes."""
        with self._lock:
            others = [kept for kept in self._kept if kept[0] != key or kept[1] is not grammar]
            self._kept = [(key, grammar, parsed), *others[: self._n_kept - 1]]

    def _of(self, key: object, grammar: LoadedGrammar) -> Parsed | None:
        with self._lock:
            return next((p for k, g, p in self._kept if k == key and g is grammar), None)


def _edited(old: Parsed, data: bytes) -> tree_sitter.Tree:
    """A copy of the old tree that has been told what is different now."""
    start = common_length(old.data, data)
    n_end = common_end_length(old.data[start:], data[start:])
    old_end, new_end = len(old.data) - n_end, len(data) - n_end
    tree = old.tree.copy()
    tree.edit(start, old_end, new_end, _point(data, start), _point(old.data, old_end), _point(data, new_end))
    return tree


def _point(data: bytes, at: int) -> tuple[int, int]:
    return data.count(b"\n", 0, at), at - (data.rfind(b"\n", 0, at) + 1)


def common_length(a: bytes, b: bytes) -> int:
    """How many bytes both begin with. Halving compares memory at its own speed, where a loop of ours would not."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end_length(a: bytes, b: bytes) -> int:
    """How many bytes both end with."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low
