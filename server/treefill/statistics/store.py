"""Where the numbers are kept: a table of day, language, name and value in a file that only its owner may read.

Several editors add to it at once, each for a moment; SQLite's own locks keep them apart. No text of a document gets
here: names are our own, and languages are checked where they are counted.
"""

import contextlib
import datetime
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from treefill.errors import StatisticsError
from treefill.statistics.counts import Key

if TYPE_CHECKING:
    from sqlite3 import Connection

log = logging.getLogger(__name__)

N_DAYS_KEPT = 90
BUSY_LIMIT_S = 5.0
_TABLE = """
CREATE TABLE IF NOT EXISTS counts (
    day TEXT NOT NULL, language TEXT NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL,
    PRIMARY KEY (day, language, name)
) WITHOUT ROWID
"""
_ADD = """
INSERT INTO counts VALUES (?, ?, ?, ?)
ON CONFLICT (day, language, name) DO UPDATE SET value = value + excluded.value
"""


def state_folder(folder: Path | None = None) -> Path:
    """The folder, by default the one where this system keeps programs' state."""
    if folder is None:
        import platformdirs

        folder = Path(platformdirs.user_state_dir("treefill"))
    return folder


def state_file(folder: Path | None = None) -> Path:
    """The file in that folder."""
    return state_folder(folder) / "statistics.sqlite"


class StatisticsStore:
    """The numbers of all sessions. Its calls wait for the disk, and raise `StatisticsError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def add(self, values: Mapping[Key, int], today: str) -> None:
        """Add to the sums, and drop days that are too old. A file that is broken is put aside for a new one."""
        oldest = datetime.date.fromisoformat(today) - datetime.timedelta(N_DAYS_KEPT - 1)
        with self._lock, _os_errors(self.path):
            try:
                self._add(values, oldest.isoformat())
            except _Broken as broken:
                self._put_aside(broken.file_number)
                self._add(values, oldest.isoformat())

    def read(self) -> dict[Key, int]:
        """All sums; none where there is no file."""
        with self._lock, _os_errors(self.path):
            if not self.path.exists():
                return {}
            with self._open() as connection:
                rows = connection.execute("SELECT day, language, name, value FROM counts")
                return {(str(day), str(language), str(name)): int(n) for day, language, name, n in rows}

    def forget(self) -> bool:
        """Remove the file; whether there was one."""
        with self._lock, _os_errors(self.path):
            files = [path for path in (self.path, self._aside) if path.exists()]
            for path in files:
                path.unlink(missing_ok=True)
            return bool(files)

    @property
    def _aside(self) -> Path:
        return self.path.with_suffix(".broken.sqlite")

    def _add(self, values: Mapping[Key, int], oldest: str) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.path.exists():
            # SQLite would make it as the umask says. Never opened by hand when it is there: closing it would
            # take away the locks that this process has on it.
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        with self._open() as connection:
            connection.executemany(_ADD, [(*key, n) for key, n in values.items()])
            connection.execute("DELETE FROM counts WHERE day < ?", (oldest,))

    @contextlib.contextmanager
    def _open(self) -> "Iterator[Connection]":
        """One transaction."""
        import sqlite3  # not before there is something to keep: it costs an editor's start some milliseconds

        file_number = self.path.stat().st_ino
        try:
            connection = sqlite3.connect(self.path, timeout=BUSY_LIMIT_S)
            with contextlib.closing(connection), connection:
                connection.execute(_TABLE)
                yield connection
        except sqlite3.OperationalError as error:  # locked, full, not to be written: it may be well tomorrow
            raise StatisticsError(f"The file {self.path} cannot be used ({error}).") from None
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            sentence = f"The file {self.path} holds no statistics ({error}): remove it."
            raise _Broken(sentence, file_number) from None

    def _put_aside(self, file_number: int) -> None:
        if self.path.stat().st_ino == file_number:  # else another session has just done it
            self.path.replace(self._aside)
            log.warning("The file of statistics is broken: it was put aside, and a new one is begun.")


@contextlib.contextmanager
def _os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StatisticsError(f"The file {path} cannot be used ({error.strerror}).") from None


class _Broken(StatisticsError):
    """What is there is no table of numbers."""

    def __init__(self, sentence: str, file_number: int) -> None:
        super().__init__(sentence)
        self.file_number = file_number
