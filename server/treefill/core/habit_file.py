"""Where habits are kept for the next session, by users who want that: a file that only its owner can read.

It is written as a whole beside the old one and put in its place. What can't be read, is too large or makes no sense is
no habit: nothing of it costs a suggestion.
"""

import json
import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from treefill.errors import StatisticsError

log = logging.getLogger(__name__)

FILE_NAME = "habits.json"
MAX_BYTES = 4_000_000
_VERSION = 1


class HabitFile:
    """The file in a folder. Its calls wait for the disk; what goes wrong there costs a line in the log."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def read(self) -> list[Any]:
        """What was written; nothing where there is no such file, or it is no good."""
        try:
            about = self.path.lstat()
            is_ours = not hasattr(os, "getuid") or about.st_uid == os.getuid()
            if not is_ours or not stat.S_ISREG(about.st_mode) or about.st_size > MAX_BYTES:
                raise ValueError("not ours")
            table = json.loads(self.path.read_bytes())
            if table["version"] != _VERSION or not isinstance(table["habits"], list):
                raise ValueError("another version")
            found: list[Any] = table["habits"]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            # The kind alone: an error's text may quote what is in it.
            log.warning("The habits in %s cannot be read (%s).", self.path, type(error).__name__)
            return []
        return found

    def write(self, habits: list[dict[str, Any]]) -> None:
        """Put these in its place, without the oldest where they are too much."""
        data = _encoded(habits)
        while len(data) > MAX_BYTES:
            habits = habits[len(habits) // 4 + 1 :]
            data = _encoded(habits)
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(prefix=".habits-", dir=self.path.parent)  # for its owner alone
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(data)
                Path(name).replace(self.path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            log.warning("The habits could not be kept in %s (%s).", self.path, error.strerror)

    def remove(self) -> bool:
        """Remove it; whether it was there. Raises `StatisticsError` where that can't be."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StatisticsError(f"The file {self.path} cannot be removed ({error.strerror}).") from None
        return True


def _encoded(habits: list[dict[str, Any]]) -> bytes:
    return json.dumps({"version": _VERSION, "habits": habits}).encode()
