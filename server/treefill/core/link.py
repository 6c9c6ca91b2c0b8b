"""What a front needs of a core, wherever that runs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from treefill.core.messages import Message, Open


@dataclass(frozen=True, slots=True)
class LinkEvents:
    """What a link calls, on the front's event loop."""

    on_message: Callable[[Message], None]
    on_lost: Callable[[str], None]
    """The core is gone or could not be reached; one sentence says why. What was asked is not answered any more."""
    documents: Callable[[], Iterable[Open]]
    """Everything that is open, for a core that is new."""


class Link(Protocol):
    """A way to a core. Frames that are sent while there is none are dropped: a new core is told all there is."""

    def start(self, events: LinkEvents) -> None:
        """Begin to connect; returns at once."""
        ...

    @property
    def is_up(self) -> bool:
        """True while messages reach a core."""
        ...

    def send(self, message: Message) -> None:
        """Send one message."""
        ...

    async def close(self) -> None:
        """Leave the core."""
        ...


@dataclass(frozen=True, slots=True)
class Connection:
    """What an editor's settings come to: which core, and what is asked of it."""

    make_link: Callable[[], Link]
    key: str
    """Connections with the same key lead to the same core."""
    options: dict[str, Any]
    """Settings that go with each request."""
    limit_s: float
    """A request takes no longer."""
    is_enabled: bool = True
    """Whether anything is suggested at all."""
    disabled_languages: frozenset[str] = frozenset()
    """Languages that nothing is suggested in."""
    learns_habits: bool = False
    """Whether the core is told of what was accepted."""
    complaints: tuple[str, ...] = ()
    """Sentences about settings that were not taken, for the user."""
    statistics_file: Path | None = None
    """Where suggestions are counted; None counts none."""
