"""The results file: one JSON object a line, a header first, each row on disk as soon as it is known.

A run that was cut short goes on where it stopped. A file made under other conditions is refused, because
rows that are not comparable must not stand side by side.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TextIO, TypeVar

from treefill.errors import BadInput

Key = Hashable
"""What no two rows of a file have in common."""


class AnyRow(Protocol):
    """A row of one measurement: a dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    FORMAT: ClassVar[str]
    """The name of its files' format, in their header."""

    @property
    def key(self) -> Key:
        """What no two rows of a file have in common."""
        ...


_T = TypeVar("_T")
_R = TypeVar("_R", bound=AnyRow)


@dataclass(frozen=True, slots=True)
class Header:
    """The conditions under which rows were made."""

    model: str
    engine: str
    version: str
    """Of treefill."""
    settings: Mapping[str, Any]
    format: str = "treefill-infill-1"
    """Which measurement's rows follow."""


@dataclass(frozen=True, slots=True)
class Row:
    """One hole filled by one arm."""

    FORMAT: ClassVar[str] = "treefill-infill-1"
    task: str
    line: int
    variant: str
    cut: str
    arm: str
    passed: bool
    """The problem's tests pass on the filled file."""
    exact: bool
    """The filled file is the original, white space at line ends aside."""
    declined: str | None
    """The reason why nothing was inserted."""
    n_prompt_tokens: int
    n_reused_tokens: int
    n_evaluated: int
    """Prompt tokens that were not reused, and decoded ones."""
    n_new_tokens: int
    total_ms: float
    """What the engine took, on a machine that runs tests beside it."""
    text: str
    """What was inserted."""
    n_replaced: int
    """Characters right of the cursor that `text` replaced, because it writes them again."""

    @property
    def key(self) -> Key:
        """Task, line, variant, arm."""
        return (self.task, self.line, self.variant, self.arm)


class ResultsFile(Generic[_R]):
    """A results file, open for appending."""

    def __init__(self, path: Path, header: Header, kind: type[_R]) -> None:
        """Make the file, or go on with one made under the same conditions; `BadInput` for any other."""
        self.rows: dict[Key, _R] = {}
        """The rows that are there, new ones included."""
        try:
            if path.exists() and path.stat().st_size:
                found, rows = _read(path, kind)
                _refuse_other_conditions(path, found, header)
                self.rows = {row.key: row for row in rows}
                self._file: TextIO = path.open("a", encoding="utf-8")
            else:
                self._file = path.open("w", encoding="utf-8")
                self._write(asdict(header))
        except OSError as error:
            raise BadInput(f"{path} cannot be written ({error.strerror}): name another file.") from error

    def append(self, row: _R) -> None:
        """Write one row, at once."""
        self.rows[row.key] = row
        self._write(asdict(row))

    def close(self) -> None:
        """Nothing more is written."""
        self._file.close()

    def _write(self, fields: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(fields) + "\n")
        self._file.flush()


def read_results(path: Path, kind: type[_R]) -> tuple[Header, tuple[_R, ...]]:
    """A results file as it stands, without changing it."""
    try:
        return _read(path, kind, repairs=False)
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}): name a results file.") from error


def _read(path: Path, kind: type[_R], repairs: bool = True) -> tuple[Header, tuple[_R, ...]]:
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if repairs and whole != text:  # the writer was killed inside its last row
        with path.open("r+b") as file:
            file.truncate(len(whole))
    lines = list(_objects(path, whole.decode("utf-8", "replace").split("\n")))
    if not lines or lines[0][1].get("format") != kind.FORMAT:
        raise BadInput(f"{path} is not a results file of this version: name another --results file.")
    header = _made(path, Header, *lines[0])
    rows = {row.key: row for row in (_made(path, kind, *line) for line in lines[1:])}
    return header, tuple(rows.values())


def _objects(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            fields = json.loads(line)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            raise _not_a_result(path, number)
        yield number, fields


def _made(path: Path, kind: type[_T], number: int, fields: dict[str, Any]) -> _T:
    try:
        return kind(**fields)
    except TypeError:
        raise _not_a_result(path, number) from None


def _not_a_result(path: Path, number: int) -> BadInput:
    return BadInput(f"line {number} of {path} is not a result: take the line out, or name another file.")


def _refuse_other_conditions(path: Path, found: Header, wanted: Header) -> None:
    for name in ("model", "engine", "version", "settings"):
        old, new = getattr(found, name), getattr(wanted, name)
        if old != new:
            raise BadInput(
                f"{path} was made with the {name} {old}, and this run has {new}: name another --results file."
            )
