"""Who sits the exam of `grammar_exam.py`, seen through a protocol, so that a test can send in a simple one."""

from dataclasses import dataclass
from typing import Protocol

from treefill.text import Document


class Acceptor(Protocol):
    """Reads a file from its beginning."""

    @property
    def gave_up(self) -> str:
        """Why everything is allowed from here on; empty while the grammar decides."""
        ...

    def accept(self, more: bytes) -> bool:
        """Read on; True where the whole is still the beginning of a file."""
        ...

    def accepts_whole(self, rest: bytes) -> bool:
        """True where what was read is a whole file with `rest` after it."""
        ...


class Matcher(Protocol):
    """Judges what may be written at one place of a document."""

    @property
    def gave_up(self) -> str:
        """Why everything is allowed from here on; empty while the grammar decides."""
        ...

    def allows(self, data: bytes) -> bool:
        """True where these bytes may come next. Changes nothing."""
        ...

    def accept(self, data: bytes) -> bool:
        """They came next; False where they may not, and then nothing has changed."""
        ...

    def rollback(self, n: int) -> None:
        """The last `n` did not."""
        ...

    def can_stop(self) -> bool:
        """True where a suggestion may end here."""
        ...


class Examinee(Protocol):
    """What is examined."""

    def acceptor(self, language: str, with_policies: bool = False) -> Acceptor:
        """At the beginning of an empty file; on request with what completions are refused beyond the grammar."""
        ...

    def matcher(self, text: str, byte_offset: int, language: str) -> Matcher | None:
        """At a place of a document; None where it is not at work there."""
        ...


@dataclass(frozen=True, slots=True)
class Mistake:
    """One place where the examinee was wrong."""

    part: str
    path: str
    byte_offset: int
    text: str
    """What it was asked about there; of a changed text, a short one that is misjudged in the same way."""


class Notes(Protocol):
    """Where mistakes are kept, the first few of each part."""

    def has_room(self, part: str) -> bool:
        """True where fewer of its mistakes are kept than are told of."""
        ...

    def note(self, part: str, document: Document, byte_offset: int, data: bytes) -> None:
        """Keep a mistake, unless there are enough of its part."""
        ...
