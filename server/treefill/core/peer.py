"""One front as the core sees it: its documents, and what is remembered of each."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from treefill.completion import Memory, Reason
from treefill.core.messages import (
    N_NEIGHBOURS,
    Accepted,
    Answer,
    Ask,
    Cancel,
    Close,
    Edits,
    Message,
    Open,
    OutOfStep,
)
from treefill.errors import BadInput
from treefill.syntax.languages import language_in_editor
from treefill.text import Buffer, BufferStore, Document

MAX_MEMORY_CHARS = 32_000_000
"""What is remembered of all documents keeps so many characters of them; beyond that the oldest is forgotten."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A document as it stood when something was asked. The mirror goes on; this may be read beside the event loop."""

    buffer: Buffer
    path: str
    is_cell: bool

    def document(self) -> Document:
        """The same as completion knows documents; joins its text, which takes a while for a large one."""
        language = language_in_editor(self.buffer.language, self.path).id
        return Document(self.path, str(self.buffer.text), language, self.is_cell)


class Peer:
    """A front's mirror. The service is seen through five calls."""

    def __init__(
        self,
        send: Callable[[Message], None],
        ask: Callable[["Peer", Ask], None],
        cancel: Callable[["Peer", int], None],
        leave: Callable[["Peer"], None],
        prepare: Callable[[str, str], None],
        learn: Callable[["Snapshot", Accepted], None],
    ) -> None:
        """`prepare` is told of each document that is opened: its language as its editor names it, and its path.
        `learn` is told of what was accepted, with the document as it is then.
        """
        self.send = send
        self._ask = ask
        self._cancel = cancel
        self._leave = leave
        self._prepare = prepare
        self._learn = learn
        self._buffers = BufferStore()
        self._opened: dict[str, Open] = {}
        """What a document was opened as, without its text."""
        self._memories: dict[str, Memory] = {}
        """The one that was added to last comes last."""

    def handle(self, message: Message) -> None:
        """Do what the front says. What only a core may say is ignored."""
        match message:
            case Open(uri, path, language, version, text):
                self._opened[uri] = replace(message, text="")
                self._buffers.open(uri, language, version, text)
                self._prepare(language, path)
            case Edits():
                self._edit(message)
            case Close(uri):
                self._buffers.close(uri)
                self._opened.pop(uri, None)
                self._memories.pop(uri, None)
            case Ask():
                self._ask(self, message)
            case Cancel(ask_id):
                self._cancel(self, ask_id)
            case Accepted(uri, version):
                buffer = self._buffers.get(uri)
                if buffer is not None and buffer.version == version and buffer.is_in_step:
                    self._learn(self._snapshot(buffer), message)
            case _:
                pass

    def leave(self) -> None:
        """The front is gone."""
        self._leave(self)

    def decline(self, ask_id: int, reason: Reason, sentence: str) -> None:
        """Answer a request with nothing and why."""
        self.send(Answer(ask_id, reason=reason, sentence=sentence))

    def snapshot_for(self, ask: Ask) -> Snapshot | None:
        """The document asked about, if it is here at that version; else the front is told to open it anew."""
        buffer = self._buffers.get(ask.uri)
        if buffer is None or buffer.version != ask.version or not buffer.is_in_step:
            self.send(OutOfStep(ask.uri))
            return None
        return self._snapshot(buffer)

    def neighbours_for(self, ask: Ask) -> tuple[Snapshot, ...]:
        """The other documents that the front names and that are here."""
        found = (self._buffers.get(uri) for uri in ask.neighbours[:N_NEIGHBOURS])
        return tuple(self._snapshot(buffer) for buffer in found if buffer is not None and buffer.is_in_step)

    def memory(self, uri: str) -> Memory:
        """What earlier requests in the document have left."""
        return self._memories.get(uri) or Memory()

    def remember(self, uri: str, memory: Memory) -> None:
        """Keep that for the next one."""
        self._memories.pop(uri, None)
        if self._buffers.get(uri) is None:
            return
        self._memories[uri] = memory
        while len(self._memories) > 1 and self._n_kept_chars() > MAX_MEMORY_CHARS:
            del self._memories[next(iter(self._memories))]

    def forget(self) -> None:
        """Drop what is remembered: it is told in one model's tokens, and another one may come."""
        self._memories.clear()

    def _n_kept_chars(self) -> int:
        return sum(memory.n_chars for memory in self._memories.values())

    def _snapshot(self, buffer: Buffer) -> Snapshot:
        opened = self._opened[buffer.uri]
        return Snapshot(buffer, opened.path, opened.is_cell)

    def _edit(self, edits: Edits) -> None:
        try:
            is_in_step = self._buffers.apply(edits.uri, edits.version, edits.edits, edits.checksum)
        except BadInput:
            is_in_step = False
        if not is_in_step:
            self.send(OutOfStep(edits.uri))
