"""What front and core say to each other. How it is written on the wire is told in `wire`.

Offsets count code points of the document at the version named.
"""

from dataclasses import dataclass, field
from typing import Any

from treefill.text import Edit

N_NEIGHBOURS = 8
"""Documents beside the asked one that are named and looked at, the most recently edited first."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame of a front."""

    version: str
    settings_hash: str
    """Of what decides which engine runs (`Settings.engine_hash`)."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The core's answer to the same version and settings."""

    version: str
    settings_hash: str
    pid: int


@dataclass(frozen=True, slots=True)
class Open:
    """A document was opened, or must be taken up anew."""

    uri: str
    path: str
    """As the model and the rules about secrets see it."""
    language: str
    version: int
    text: str
    is_cell: bool = False
    """A notebook's cell."""


@dataclass(frozen=True, slots=True)
class Edits:
    """A document has changed."""

    uri: str
    version: int
    checksum: int
    """Of the text afterwards."""
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Close:
    """A document was closed."""

    uri: str


@dataclass(frozen=True, slots=True)
class Selected:
    """What the editor's own completion list has selected: the text as it would be after accepting that."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Something is to be suggested."""

    id: int
    uri: str
    version: int
    offset: int
    is_automatic: bool
    n_candidates: int
    neighbours: tuple[str, ...]
    """URIs of other open documents, the most recently edited first."""
    workspace_root: str | None
    options: dict[str, Any]
    """Settings that may differ from request to request."""
    selected: Selected | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Nobody waits for that answer any more."""

    id: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """A suggestion was accepted, all of it: it stands there now, and may become a habit."""

    uri: str
    version: int
    """Of the document as it is afterwards."""
    start: int
    end: int
    workspace_root: str | None
    options: dict[str, Any]
    """As in `Ask`."""


@dataclass(frozen=True, slots=True)
class OutOfStep:
    """The mirror differs from the front's text: the front opens the document anew."""

    uri: str


@dataclass(frozen=True, slots=True)
class Started:
    """The request is under way: should the core die before its answer, it may be because of this document."""

    id: int
    uri: str


@dataclass(frozen=True, slots=True)
class AnswerItem:
    """One suggestion."""

    start: int
    end: int
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The one answer of an `Ask`."""

    id: int
    items: tuple[AnswerItem, ...] = ()
    reason: str = ""
    """Why there are none."""
    sentence: str = ""
    explanation: dict[str, Any] = field(default_factory=dict)
    """How it came about, for whoever asks."""


@dataclass(frozen=True, slots=True)
class EngineState:
    """What the engine is doing."""

    state: str
    """`loading`, `ready`, `failed` or `unloaded`."""
    sentence: str = ""
    notice: str = ""
    """What the user should know of a model that is ready, if anything."""
    percent: int = 0
    """How much of the model's weights has been read, while it is loading."""
    model: str = ""
    """Which model is ready."""


Message = (
    Hello
    | Welcome
    | Open
    | Edits
    | Close
    | Ask
    | Cancel
    | Accepted
    | OutOfStep
    | Started
    | Answer
    | EngineState
)
