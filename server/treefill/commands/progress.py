"""The store's progress in a terminal."""

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
