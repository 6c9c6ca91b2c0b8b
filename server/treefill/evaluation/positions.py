"""Places in real files where a user would type: which they are, and how a file looks while somebody types there.

A position is chosen in a line that has text, in one of four ways, which take turns:

    line-start   the cursor stands behind the line's indentation, and the line's text is not written yet
    mid-gap      the cursor stands between two tokens, and the next one to four are not written yet; what follows stays
    line-end     the cursor stands between two tokens, and the rest of the line is not written yet
    mid-line     the cursor stands between two tokens, and the rest of the line stays right of it

So half are as in a line that is being written, and half have text right of the cursor. The other lines of the file
stay as they are, faults and all. Files take turns, one position each a round, so that as many files as
there are take part; the first positions of a longer choice are those of a shorter one.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from random import Random

from treefill.text import Document, line_bounds

MAX_CHARS = 400
"""What stands in a longer line is data."""
MAX_GAP_TOKENS = 4
N_TRIES = 40
"""Lines that are drawn in a file until one is found that can be typed in so."""


class Kind(StrEnum):
    """How the cursor stands in its line."""

    LINE_START = "line-start"
    MID_GAP = "mid-gap"
    LINE_END = "line-end"
    MID_LINE = "mid-line"


TURNS = (Kind.LINE_START, Kind.MID_GAP, Kind.LINE_END, Kind.MID_LINE)
"""The kinds in the order in which they take turns."""
FREE_TURNS = (Kind.LINE_START, Kind.LINE_END)
"""Those that have nothing right of the cursor in its line: only there a block can be written."""


@dataclass(frozen=True, slots=True)
class Position:
    """A cursor in a file that somebody is typing in."""

    document: Document
    """As it stands then, what isn't written yet already taken out."""
    offset: int
    kind: Kind
    cut: str
    """What was taken out of the line behind the cursor."""
    digest: str
    """Of the document's text: rows about another state of the file are no rows about this position."""

    @property
    def original(self) -> str:
        """The file's own text."""
        return self.document.text[: self.offset] + self.cut + self.document.text[self.offset :]


def choose_positions(
    documents: Iterable[Document], n: int, seed: int = 0, turns: tuple[Kind, ...] = TURNS
) -> list[Position]:
    """The first `n` positions of these files; fewer where the files have not that many."""
    return list(islice(_in_turn(documents, seed, turns), n))


def boundaries(line: str) -> list[int]:
    """Columns between two tokens of a line, behind its first and before its last.

    >>> boundaries("  f(a, b)  ")
    [3, 4, 5, 6, 7, 8]
    """
    pieces = list(_TOKEN.finditer(line))
    edges = {edge for piece in pieces for edge in piece.span()}
    return sorted(edge for edge in edges if pieces[0].end() <= edge <= pieces[-1].start())


_TOKEN = re.compile(r"\w+|[^\w\s]")


def _in_turn(documents: Iterable[Document], seed: int, turns: tuple[Kind, ...]) -> Iterator[Position]:
    """One position of each document, then a second one of each, until a round brings no new one."""
    number = 0
    known: list[Document] = []
    seen: set[tuple[str, int, Kind]] = set()
    first = iter(documents)
    n_round = 0
    while True:
        n_before = len(seen)
        for document in known if n_round else first:
            if not n_round:
                known.append(document)
            position = _draw(document, _random(seed, document.path, n_round), turns[number % len(turns)])
            if position is None or (document.path, position.offset, position.kind) in seen:
                continue
            seen.add((document.path, position.offset, position.kind))
            number += 1
            yield position
        n_round += 1
        if len(seen) == n_before:
            return


def _random(seed: int, path: str, n_round: int) -> Random:
    return Random(f"{seed}:{n_round}:{path}")


def _draw(document: Document, random: Random, kind: Kind) -> Position | None:
    """A position of that kind in a line drawn at random, or None where no line drawn has one."""
    starts = _line_starts(document.text)
    for start in (random.choice(starts) for _ in range(min(N_TRIES, len(starts)))):
        line = document.text[slice(*line_bounds(document.text, start))]
        found = _gap(line, random, kind) if line.strip() and len(line) <= MAX_CHARS else None
        if found is not None:
            return _position(document, start + found[0], start + found[1], kind)
    return None


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _LINE_END.finditer(text) if match.end() < len(text))]


_LINE_END = re.compile(r"\r\n|\n|\r")


def _gap(line: str, random: Random, kind: Kind) -> tuple[int, int] | None:
    """The cursor's column, and where what stays right of it begins."""
    if kind is Kind.LINE_START:
        return len(line) - len(line.lstrip()), len(line)
    columns = boundaries(line) if _TOKEN.search(line) else []
    if not columns:
        return None
    column = random.choice(columns)
    if kind is Kind.LINE_END:
        return column, len(line)
    ends = [token.end() for token in _TOKEN.finditer(line, column)][:-1] if kind is Kind.MID_GAP else [column]
    return (column, random.choice(ends[:MAX_GAP_TOKENS])) if ends else None


def _position(document: Document, offset: int, end: int, kind: Kind) -> Position:
    text = document.text[:offset] + document.text[end:]
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Position(replace(document, text=text), offset, kind, document.text[offset:end], digest)
