"""Progress and time limits for work that reports neither: libraries and programs that fill a folder."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from treefill.models.fetch import SourceUnavailable
from treefill.models.progress import Progress

T = TypeVar("T")
_LOOK_EVERY_S = 0.2


class FolderWatch:
    """Turns the growth of a folder into progress, up to a number of bytes."""

    def __init__(self, folder: Path, n_expected_bytes: int, progress: Progress) -> None:
        self._folder = folder
        self._left = n_expected_bytes
        self._seen = folder_bytes(folder)
        self._progress = progress

    def look(self) -> None:
        """Report what has been added since the last look."""
        seen = folder_bytes(self._folder)
        self._report(min(max(0, seen - self._seen), self._left))
        self._seen = max(seen, self._seen)

    def complete(self) -> None:
        """Report the rest: the work is done, whatever the folder's size says (archives are smaller)."""
        self._report(self._left)

    def _report(self, n_bytes: int) -> None:
        self._left -= n_bytes
        self._progress.advance(n_bytes)


def folder_bytes(folder: Path) -> int:
    """The size of all files below `folder`."""
    total = 0
    with contextlib.suppress(OSError):
        for path in folder.rglob("*"):
            with contextlib.suppress(OSError):  # it may vanish while we look
                total += path.lstat().st_size
    return total


def in_thread(work: Callable[[], T], *, limit_s: float | None, look: Callable[[], None] = lambda: None) -> T:
    """Run `work` beside this thread, looking now and then; after `limit_s` it is left behind and given up.

    A thread cannot be stopped from outside, but name look-ups and connections have long time limits of their
    own that nobody should wait for. What is left behind only answers, and nobody listens.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    if limit_s is not None:
        thread.join(limit_s)
        if thread.is_alive():
            raise SourceUnavailable(f"no answer within {limit_s:g} s")
    while thread.is_alive():
        thread.join(_LOOK_EVERY_S)
        look()
    if failure:
        raise failure[0]
    return outcome[0]
