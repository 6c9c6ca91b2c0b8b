"""What this user accepted again and again in the same syntactic place, so that it can be offered there at once.

A place is the language, the text of the line before what was accepted, its indentation left out, what stands behind
it, and what the grammar calls the code around it. Workspaces share nothing. A text is a habit after it was accepted
five times in a place, and more often than all others there together; after it was offered three times in a row and
not taken, it has to be earned anew.

Everything is kept in memory; who wants to keep it longer takes it out as plain data (`plain`) and puts it back (`add`).
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from treefill.completion.context import is_secret, texts_in
from treefill.completion.notebook import code_of, language_at
from treefill.completion.request import CompletionRequest
from treefill.completion.situation import Situation, look_around
from treefill.syntax.baseline import Baseline
from treefill.syntax.enclosing import kind_around
from treefill.syntax.languages import language_by_id
from treefill.text import indent_of, indent_width, line_bounds, to_lf, without_surrogates

N_TO_BE_A_HABIT = 5
N_IGNORED = 3
"""Offered so often in a row and not taken, it is no habit any more."""
MAX_LEFT_CHARS = 80
"""The end of the line before the place; what stands before that tells little."""
MAX_RIGHT_CHARS = 20
MAX_TEXT_CHARS = 2_000
MIN_TEXT_CHARS = 3
MAX_PLACES = 2_000
MAX_TEXTS = 8
"""In one place."""
MAX_KEPT_CHARS = 1_000_000
"""Of all texts and places; beyond that the oldest places are forgotten."""
_WORD = re.compile(r"[^\W\d]\w")


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of a place without its grammar."""

    scope: str
    """The workspace's folder, or the file's own where there is none."""
    language: str
    left: str
    """The line before the place, its indentation left out."""


@dataclass(frozen=True, slots=True)
class Habit:
    """A text that was accepted often enough."""

    line: Line
    right: str
    """What stood right of it on its line."""
    kind: str
    """What the grammar calls the code around it."""
    text: str
    """With line feeds; at a line's beginning a tab is one step of indentation below the place's own line."""
    n_accepted: int


@dataclass(slots=True)
class _Place:
    """Texts that were accepted in one place."""

    counts: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """The one that was accepted last comes last."""
    n_ignored: int = 0
    offered_at: tuple[str, int] | None = None
    """Document and place of the last offer: asked for twice it is one offer."""

    @property
    def habit(self) -> tuple[str, int] | None:
        """The text that is one, and how often it was accepted."""
        text, n = max(self.counts.items(), key=lambda each: each[1], default=("", 0))
        is_earned = n >= N_TO_BE_A_HABIT and 2 * n > sum(self.counts.values())
        return (text, n) if is_earned and self.n_ignored < N_IGNORED else None


class Habits:
    """All that is known of one user. May be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: OrderedDict[Line, dict[tuple[str, str], _Place]] = OrderedDict()
        """By line, then by what stands right of it and its kind. What was learned last comes last."""
        self._n_chars = 0
        self.n_learned = 0
        """Acceptances so far: who stores them sees by it whether there is news."""

    def accepted(self, line: Line, right: str, kind: str, text: str, n: int = 1) -> None:
        """The text was accepted in that place, so often."""
        with self._lock:
            places = self._lines.setdefault(line, {})
            self._lines.move_to_end(line)
            place = places.setdefault((right, kind), _Place())
            if place.n_ignored >= N_IGNORED:
                place.counts.clear()
            place.n_ignored = 0
            if text not in place.counts:
                self._n_chars += len(line.left) + len(line.scope) + len(kind) + len(text)
            place.counts[text] = place.counts.get(text, 0) + n
            place.counts.move_to_end(text)
            if len(place.counts) > MAX_TEXTS:
                place.counts.popitem(last=False)
            self.n_learned += 1
            while len(self._lines) > 1 and (len(self._lines) > MAX_PLACES or self._n_chars > MAX_KEPT_CHARS):
                self._lines.popitem(last=False)
                self._n_chars = sum(map(_n_chars, self._lines.items()))

    def at(self, line: Line) -> tuple[Habit, ...]:
        """The habits of places on such a line, the surest first."""
        with self._lock:
            found = [
                Habit(line, right, kind, *place.habit)
                for (right, kind), place in self._lines.get(line, {}).items()
                if place.habit
            ]
        return tuple(sorted(found, key=lambda habit: -habit.n_accepted))

    def offered(self, habit: Habit, path: str, offset: int) -> None:
        """The habit is offered there: from now on it is ignored, until it is accepted."""
        with self._lock:
            place = self._lines.get(habit.line, {}).get((habit.right, habit.kind))
            if place is not None and place.offered_at != (path, offset):
                place.n_ignored += 1
                place.offered_at = (path, offset)

    def plain(self) -> list[dict[str, Any]]:
        """Everything as plain data, the newest last."""
        with self._lock:
            return [
                {
                    "scope": line.scope, "language": line.language, "left": line.left, "right": right,
                    "kind": kind, "text": text, "n": n,
                }
                for line, places in self._lines.items()
                for (right, kind), place in places.items()
                for text, n in place.counts.items()
            ]  # fmt: skip

    def add(self, entries: object) -> None:
        """Put back what `plain` has told. What is no such data is left out."""
        for entry in entries if isinstance(entries, list) else ():
            if _is_entry(entry):
                line = Line(entry["scope"], entry["language"], entry["left"])
                self.accepted(line, entry["right"], entry["kind"], entry["text"], entry["n"])


_TEXTS = {
    "scope": 4_096, "language": 64, "left": MAX_LEFT_CHARS, "right": MAX_RIGHT_CHARS, "kind": 256,
    "text": MAX_TEXT_CHARS,
}  # fmt: skip


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or type(entry.get("n")) is not int or not 0 < entry["n"] < 1_000_000:
        return False
    return all(isinstance(entry.get(key), str) and len(entry[key]) <= n for key, n in _TEXTS.items())


def _n_chars(item: tuple[Line, dict[tuple[str, str], _Place]]) -> int:
    line, places = item
    return sum(
        len(line.left) + len(line.scope) + len(kind) + len(text)
        for (_, kind), place in places.items()
        for text in place.counts
    )


def line_at(request: CompletionRequest, situation: Situation) -> Line | None:
    """The cursor's line as habits know it; None where it says too little, or is a comment's."""
    left = situation.left.lstrip()[-MAX_LEFT_CHARS:]
    if not _WORD.search(left) or situation.state.comment_end or left != without_surrogates(left):
        return None
    root = request.workspace_root
    scope = str(root) if root is not None else str(PurePath(request.document.path).parent)
    return Line(scope, situation.language.id, left)


def learn(request: CompletionRequest, end: int, habits: Habits) -> bool:
    """Remember that the text from the request's offset to `end` was accepted there; whether it was.

    The document is as it is afterwards. Never in a secrets file, nor where no grammar tells what the place is.
    """
    document, offset = language_at(request.document, request.offset), request.offset
    text = to_lf(document.text[offset:end])
    is_worth_it = len(text.strip()) >= MIN_TEXT_CHARS and len(text) <= MAX_TEXT_CHARS
    if not request.habits or not is_worth_it or text != without_surrogates(text):
        return False
    if text.count("\n") >= request.max_lines or is_secret(document.path, request.secret_patterns):
        return False
    situation = look_around(document, offset, language_by_id(document.language))
    line, below = line_at(request, situation), _unindented(text, situation)
    right = _line_after(document.text, end).rstrip()
    if line is None or below is None or len(right) > MAX_RIGHT_CHARS or right != without_surrogates(right):
        return False
    baseline = Baseline.of(
        code_of(document), offset, situation.language, document.path, dict(request.grammars),
        texts_in(situation.language, request),
    )  # fmt: skip
    kind = "" if isinstance(baseline, str) else kind_around(baseline, offset, end, document.text[offset:end])
    if kind:
        habits.accepted(line, right, kind, below)
    return bool(kind)


def indented(habit: Habit, situation: Situation) -> str:
    """The habit's text below the cursor's line, in the file's own indentation."""
    first, *others = habit.text.split("\n")
    indent, step = indent_of(situation.left), situation.indent.step
    return "\n".join((first, *_steps(others, indent, step)))


def _steps(lines: list[str], indent: str, step: str) -> Iterator[str]:
    for line in lines:
        bare = line.lstrip("\t")
        yield indent + step * (len(line) - len(bare)) + bare if line else ""


def _unindented(text: str, situation: Situation) -> str | None:
    """The text with a tab for each step below the cursor's line; None where a line is indented less than that."""
    base, width = indent_width(indent_of(situation.left)), situation.indent.width
    first, *others = text.split("\n")
    lines = [first]
    for line in others:
        bare = line.lstrip(" \t")
        n_below = indent_width(indent_of(line)) - base
        if bare and n_below < 0:
            return None
        lines.append("\t" * (n_below // width) + " " * (n_below % width) + bare if bare else "")
    return "\n".join(lines)


def _line_after(text: str, end: int) -> str:
    return text[end : line_bounds(text, end)[1]]
