"""How long work on the store shows that it is alive: a small protocol, and silence."""

from typing import Protocol


class Progress(Protocol):
    """Told what is going on. One piece of work at a time: start, advance …, finish."""

    def say(self, line: str) -> None:
        """One sentence for the user, before or between pieces of work."""
        ...

    def start(self, label: str, total_bytes: int) -> None:
        """A piece of work of so many bytes begins."""
        ...

    def advance(self, n_bytes: int) -> None:
        """So many more bytes are done."""
        ...

    def finish(self) -> None:
        """The piece of work has ended, well or not."""
        ...


class _Silent:
    """Says nothing: for tests, and for callers that have no terminal."""

    def say(self, line: str) -> None:
        pass

    def start(self, label: str, total_bytes: int) -> None:
        pass

    def advance(self, n_bytes: int) -> None:
        pass

    def finish(self) -> None:
        pass


silent: Progress = _Silent()
