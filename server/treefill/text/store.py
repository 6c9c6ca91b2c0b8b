"""The open buffers of an editor, and their mirror in another process. Files on the disk are never read here.

The front follows the editor with `change`; the core follows the front with `apply`, and the checksum of each edit
tells it whether both still have the same text. A `Buffer` is a snapshot: it stays as it is while typing goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from treefill.errors import BadInput
from treefill.text.edits import Edit, edit_for
from treefill.text.positions import Position, PositionEncoding
from treefill.text.rope import Text, join_surrogates


@dataclass(frozen=True, slots=True)
class Buffer:
    """One open document at one version."""

    uri: str
    """The name that the editor gave it; nothing is read from there."""
    language: str
    """The language's id, as the editor names it."""
    version: int
    """The version that the text is at."""
    text: Text
    """The text, line endings, a byte order mark and lone surrogates included."""
    is_in_step: bool = True
    """Whether the text is known to be the editor's; where it is not, nothing should be suggested."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change as the editor sends it."""

    text: str
    """The new text of the range."""
    start: Position | None = None
    """Where the range starts; without a range the text is the whole document's."""
    end: Position | None = None
    """Where the range ends."""


class BufferStore:
    """All open buffers by their URI, the most recently opened or edited one last."""

    def __init__(self) -> None:
        self._buffers: dict[str, Buffer] = {}

    def open(self, uri: str, language: str, version: int, text: str) -> Buffer:
        """Take up a buffer; where the URI is open already, the last one wins."""
        return self._keep(Buffer(uri, language, version, Text.of(text)))

    def close(self, uri: str) -> bool:
        """Forget a buffer; whether it was open."""
        return self._buffers.pop(uri, None) is not None

    def get(self, uri: str) -> Buffer | None:
        """The buffer as it stands now."""
        return self._buffers.get(uri)

    def uris(self) -> tuple[str, ...]:
        """The open URIs, the most recently opened or edited one last."""
        return tuple(self._buffers)

    def change(
        self, uri: str, version: int, changes: Sequence[Change], encoding: PositionEncoding
    ) -> tuple[Edit, ...]:
        """Apply an editor's changes one after the other, and return them as edits for a mirror.

        A version that goes back cannot be followed: nothing is applied, and the buffer is out of step until it is
        opened again or a whole text comes, of whatever version.
        """
        buffer = self._opened(uri)
        has_whole_text = any(_is_whole(change) for change in changes)
        goes_back = version < buffer.version
        if goes_back and (buffer.is_in_step or not has_whole_text):
            self._keep(replace(buffer, is_in_step=False))
            return ()
        text, edits = buffer.text, []
        for change in changes:
            edit = _edit_of(text, change, encoding)
            text = text.replace(edit.start, edit.end, edit.text)
            edits.append(edit)
        is_in_step = buffer.is_in_step or has_whole_text
        self._keep(replace(buffer, version=version, text=text, is_in_step=is_in_step))
        return tuple(edits)

    def apply(self, uri: str, version: int, edits: Sequence[Edit], checksum: int) -> bool:
        """Follow another store's `change`; whether the text is then the one with that checksum.

        An edit that lies outside the text is not made, nor is any other of the same call.
        """
        buffer = self._opened(uri)
        text = buffer.text
        try:
            for edit in edits:
                text = text.replace(edit.start, edit.end, edit.text)
        except IndexError:
            text = buffer.text
            is_in_step = False
        else:
            is_in_step = text.checksum == checksum
        self._keep(replace(buffer, version=version, text=text, is_in_step=is_in_step))
        return is_in_step

    def _opened(self, uri: str) -> Buffer:
        if uri not in self._buffers:
            raise BadInput(f"{uri} is not open: open it before changing it")
        return self._buffers[uri]

    def _keep(self, buffer: Buffer) -> Buffer:
        self._buffers.pop(buffer.uri, None)
        self._buffers[buffer.uri] = buffer
        return buffer


def _is_whole(change: Change) -> bool:
    return change.start is None or change.end is None


def _edit_of(text: Text, change: Change, encoding: PositionEncoding) -> Edit:
    if change.start is None or change.end is None:
        return Edit(0, len(text), join_surrogates(change.text))
    return edit_for(text, change.start, change.end, change.text, encoding)
