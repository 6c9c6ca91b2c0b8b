"""The store's progress, for a person at a terminal or for a program that reads lines."""

import json
import sys

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as RichBar


class TerminalProgress:
    """A bar with bytes, rate and time left on standard error; plain lines where that is no terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bar: RichBar | None = None

    def say(self, line: str) -> None:
        """Print one sentence."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def start(self, label: str, total_bytes: int) -> None:
        """Show a bar."""
        self.finish()
        self._bar = RichBar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._bar.add_task(label, total=total_bytes)
        self._bar.start()

    def advance(self, n_bytes: int) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0], n_bytes)

    def finish(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class LineProgress:
    """On standard error: sentences as they are, and a JSON object for each percent of a piece of work."""

    def __init__(self) -> None:
        self._label = ""
        self._total = self._done = 0
        self._told = -1

    def say(self, line: str) -> None:
        """Print one sentence."""
        print(line, file=sys.stderr, flush=True)

    def start(self, label: str, total_bytes: int) -> None:
        """Begin to count."""
        self._label, self._total, self._done, self._told = label, total_bytes, 0, -1
        self.advance(0)

    def advance(self, n_bytes: int) -> None:
        """Tell of the next percent."""
        self._done += n_bytes
        percent = 100 * self._done // max(self._total, 1)
        if percent != self._told:
            self._told = percent
            told = {"label": self._label, "done": self._done, "total": self._total}
            print(json.dumps({"progress": told}), file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Nothing is left to take away."""
