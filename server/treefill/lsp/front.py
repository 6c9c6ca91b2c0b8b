"""The front's own work, told without the protocol: documents, one answer a request, what is typed through, status.

It asks a core and never waits for it: the event loop goes on, and what the core does not answer in time is answered
with nothing. No handler of the protocol decides anything that is not decided here.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from treefill.core.link import Connection, Link, LinkEvents
from treefill.core.messages import (
    N_NEIGHBOURS,
    Accepted,
    Answer,
    AnswerItem,
    Ask,
    Cancel,
    Close,
    Edits,
    EngineState,
    Message,
    Open,
    OutOfStep,
    Selected,
    Started,
)
from treefill.lsp.status import Status, StatusKeeper
from treefill.lsp.typed_through import TypedThrough
from treefill.statistics import Acceptance, Keeper, Shown
from treefill.text import Buffer, BufferStore, Change, Edit, Position, PositionEncoding

log = logging.getLogger(__name__)

TEMPLATE = "template"
"""The source of suggestions that are the same for everybody."""
MAX_CHARS = 30_000_000
"""Nothing is suggested in larger documents."""
BAD_RULES = "bad-rules"
"""The core's reason where a file of rules is not what it should be."""
N_CRASHES_TO_QUARANTINE = 2
N_CANDIDATES = 3
"""Suggestions to choose from, where the user has asked."""
QUIET_S = 300.0
"""A sentence is shown again once it has not come for so long: then something else has gone wrong."""
MAX_EDITS = 1_000
"""After more at once the core is sent the whole text."""
LIMIT_MARGIN_S = 2.0
"""Beyond the core's own limit: a core that is silent for so long is not waited for."""


@dataclass(frozen=True, slots=True)
class FrontItem:
    """One suggestion in the editor's own positions."""

    start: Position
    end: Position
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class FrontAnswer:
    """The one answer of a request."""

    items: tuple[FrontItem, ...] = ()
    reason: str = ""
    sentence: str = ""


_OUT_OF_DATE = FrontAnswer(reason="out-of-date", sentence="The document has changed meanwhile.")


@dataclass(frozen=True, slots=True, eq=False)
class FrontRequest:
    """A request as it was understood when it came, of the text as it stood then."""

    number: int
    """Later ones have higher numbers."""
    uri: str
    buffer: Buffer | None
    """None where the document is not open."""
    offset: int
    is_automatic: bool
    selected: Selected | None
    neighbours: tuple[str, ...]
    refusal: tuple[str, str]
    """The reason and the sentence where nothing is even asked, else two empty texts."""
    taken_s: float = field(default_factory=time.monotonic)
    """When it came."""


@dataclass(frozen=True, slots=True, eq=False)
class _Pending:
    """A request that the editor waits for."""

    ask: Ask
    buffer: Buffer
    answer: "asyncio.Future[Answer]"

    @property
    def id(self) -> int:
        """The request's number."""
        return self.ask.id


class Front:
    """One editor's session."""

    def __init__(
        self,
        tell_status: Callable[[Status], None],
        tell_user: Callable[[str], None],
        path_of: Callable[[str], str],
    ) -> None:
        self.encoding = PositionEncoding.UTF_16
        self.workspace_folders: tuple[Path, ...] = ()
        self.trusts_workspace = False
        """True where the editor says that its user trusts the folders that are open."""
        self._connection: Connection | None = None
        self._link: Link | None = None
        self._tell_user = tell_user
        self._path_of = path_of
        self._buffers = BufferStore()
        self._typed_through = TypedThrough()
        self.statistics = Keeper(self._buffers.get, self._tell_accepted)
        self._pending: dict[int, _Pending] = {}
        self._running: dict[int, str] = {}
        """What the core has begun and not answered, with its document; nobody may wait for it any more."""
        self._n_taken = 0
        self._n_asked = 0
        self._cells: set[str] = set()
        self._crashes: dict[str, int] = {}
        self._explained: dict[str, tuple[int, dict[str, Any]]] = {}
        """How the newest request in a document came about, and that request's number."""
        self._told: dict[str, float] = {}
        """Sentences that were shown, and when each came last."""
        self._status = StatusKeeper(tell_status)

    async def connect(self, connection: Connection) -> None:
        """Find a core, or start one, without waiting for it; one that other settings led to is left."""
        old, self._connection = self._connection, connection
        self.statistics.keep_in(connection.statistics_file)
        self.statistics.is_followed = connection.learns_habits
        for complaint in connection.complaints:
            self._tell_once(complaint)
        if old is None or old.options != connection.options:
            self._typed_through.forget()
        if self._link is not None and old is not None and old.key == connection.key:
            return
        await self._leave("The settings have changed.")
        self._link = connection.make_link()
        self._link.start(LinkEvents(self._on_message, self._on_lost, self._documents))

    async def close(self) -> None:
        """Answer what is pending with nothing, and leave the core."""
        await asyncio.gather(self._leave("The server is ending."), self.statistics.close())

    async def _leave(self, sentence: str) -> None:
        for pending in list(self._pending.values()):
            self._resolve(pending, Answer(pending.id, reason="core-lost", sentence=sentence))
        self._running.clear()
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    def open(self, uri: str, language: str, version: int, text: str, is_cell: bool = False) -> None:
        """Take up a document, or a notebook's cell; one that is open already is replaced."""
        if self._buffers.get(uri) is not None:
            log.warning("A document was opened that was open already: the last one counts.")
        self._forget(uri)
        if is_cell:
            self._cells.add(uri)
        buffer = self._buffers.open(uri, language, version, text)
        if not _is_too_large(buffer):
            self._send(self._opening(buffer))

    def change(self, uri: str, version: int | None, changes: Sequence[Change]) -> None:
        """Follow an edit."""
        before = self._buffers.get(uri)
        if before is None:
            log.warning("A change of a document that is not open was ignored.")
            return
        edits = self._buffers.change(
            uri, before.version + 1 if version is None else version, changes, self.encoding
        )
        buffer = self._buffers.get(uri)
        assert buffer is not None
        if uri in self._crashes:  # another text, another chance; but only one
            self._crashes[uri] = N_CRASHES_TO_QUARANTINE - 1
        if not buffer.is_in_step:
            log.warning("A document's version went back: nothing is suggested until it is opened anew.")
        elif _is_too_large(buffer):
            pass  # The core is never asked about it; should it shrink again, it is opened anew.
        elif not before.is_in_step or _is_too_large(before) or _is_much(edits):
            self._send(self._opening(buffer))
        else:
            self._send(Edits(uri, buffer.version, buffer.text.checksum, edits))
        self.statistics.edited(before, buffer, edits)

    def lose_track(self, uri: str) -> None:
        """A change came that can't be followed: nothing is suggested until the whole text comes again."""
        buffer = self._buffers.get(uri)
        if buffer is not None:
            self._buffers.change(uri, buffer.version - 1, (), self.encoding)

    def close_document(self, uri: str) -> None:
        """Forget a document."""
        buffer = self._buffers.get(uri)
        if buffer is None:
            log.warning("A document was closed that is not open.")
            return
        self.statistics.closed(buffer)
        self._buffers.close(uri)
        self._forget(uri)
        self._cells.discard(uri)
        self._explained.pop(uri, None)
        self._send(Close(uri))

    def explain(self, uri: str) -> dict[str, Any]:
        """How the last answer in a document came about, and the document as it stands here."""
        buffer = self._buffers.get(uri)
        if buffer is None:
            return {"sentence": "The document is not open."}
        nothing = {"sentence": "Nothing has been asked in this document yet."}
        _, asked = self._explained.get(uri, (0, nothing))
        return {"text": str(buffer.text), "version": buffer.version, "is_in_step": buffer.is_in_step, **asked}

    def take(
        self,
        uri: str,
        position: Position,
        *,
        is_automatic: bool,
        selected: tuple[Position, Position, str] | None = None,
        version: int | None = None,
        neighbours: Iterable[str] = (),
    ) -> FrontRequest:
        """Look up what is asked about, at once: the next message may be an edit.

        `selected` is what the editor's own completion list would replace, and by what; `neighbours` are documents to
        look at before all others.
        """
        self._n_taken += 1
        buffer = self._buffers.get(uri)
        return FrontRequest(
            self._n_taken,
            uri,
            buffer,
            buffer.text.offset_at(position, self.encoding) if buffer else 0,
            is_automatic,
            self._selected(buffer, selected),
            tuple(neighbours),
            self._refusal(uri, buffer, version),
        )

    async def answer(self, request: FrontRequest) -> FrontAnswer:
        """What is suggested, or why nothing is. Cancelling the call cancels the request."""
        buffer, uri = request.buffer, request.uri
        if buffer is None or any(request.refusal):
            reason, sentence = request.refusal
            return self._noted(request, FrontAnswer(reason=reason, sentence=sentence), {})
        self._supersede(uri)
        if not self._is_current(buffer):
            return self._noted(request, _OUT_OF_DATE, {})
        typed_through = self._typed_along(buffer, request)
        if typed_through is not None:
            answer = Answer(0, (typed_through,))
            return self._noted(request, self._front_answer(buffer, answer), {})
        if self._link is None or self._connection is None or not self._link.is_up:
            return self._noted(request, FrontAnswer(reason="no-core", sentence=self._status.sentence), {})
        answer = await self._asked(self._ask_of(buffer, request), buffer, self._connection.limit_s)
        if (
            answer.reason == BAD_RULES
        ):  # nothing is suggested until they are mended, so the user must hear of it
            self._tell_once(answer.sentence)
        if answer.items and not self._is_current(buffer):
            return self._noted(request, _OUT_OF_DATE, answer.explanation)
        return self._noted(request, self._front_answer(buffer, answer), answer.explanation)

    def _is_current(self, buffer: Buffer) -> bool:
        return self._buffers.get(buffer.uri) is buffer

    def _typed_along(self, buffer: Buffer, request: FrontRequest) -> AnswerItem | None:
        """The rest of a suggestion that is being typed; who asks by hand or has something selected wants another."""
        if not request.is_automatic or request.selected is not None:
            return None
        return self._typed_through.find(buffer.uri, buffer.text, request.offset)

    def _ask_of(self, buffer: Buffer, request: FrontRequest) -> Ask:
        self._n_asked += 1
        path = self._path_of(buffer.uri)
        root = self._root_of(path)
        has_place = root is not None or PurePath(path).is_absolute()
        first = request.neighbours
        return Ask(
            id=self._n_asked,
            uri=buffer.uri,
            version=buffer.version,
            offset=request.offset,
            is_automatic=request.is_automatic,
            n_candidates=1 if request.is_automatic else N_CANDIDATES,
            neighbours=self._harmless(self._neighbours(buffer.uri, first) if has_place else first),
            workspace_root=root,
            options=self._options(root),
            selected=request.selected,
        )

    def _options(self, root: str | None) -> dict[str, Any]:
        """The settings that go with a request; what the editor says of trust counts as the user's own word."""
        options = self._connection.options if self._connection else {}
        if root is None or not self.trusts_workspace:
            return options
        return {**options, "trusted_workspaces": [*options.get("trusted_workspaces", ()), root]}

    async def _asked(self, ask: Ask, buffer: Buffer, limit_s: float) -> Answer:
        pending = _Pending(ask, buffer, asyncio.get_running_loop().create_future())
        self._pending[ask.id] = pending
        self._status.working(True)
        self._send(ask)
        try:
            return await asyncio.wait_for(pending.answer, limit_s + LIMIT_MARGIN_S)
        except TimeoutError:
            self._send(Cancel(ask.id))
            log.warning("The core did not answer within %g s.", limit_s + LIMIT_MARGIN_S)
            return Answer(ask.id, reason="too-slow", sentence=f"No answer within {limit_s:g} s.")
        except asyncio.CancelledError:
            self._send(Cancel(ask.id))
            raise
        finally:
            self._pending.pop(ask.id, None)
            self._status.working(bool(self._pending))

    def _refusal(self, uri: str, buffer: Buffer | None, version: int | None) -> tuple[str, str]:
        """Why nothing is even asked, or two empty texts."""
        if buffer is None:
            log.warning("A request for a document that is not open was answered with nothing.")
            return "not-open", "The document is not open."
        if self._connection is not None and not self._connection.is_enabled:
            return "disabled", "treefill is switched off by the setting enabled."
        if self._connection is not None and buffer.language in self._connection.disabled_languages:
            return "disabled", f"The setting disabled_languages names {buffer.language}."
        if not buffer.is_in_step:
            return "out-of-step", "The document's versions went back: close it and open it again."
        if version is not None and version < buffer.version:
            return "out-of-date", "The request is for an earlier version of the document."
        if _is_too_large(buffer):
            return "too-large", f"The document is larger than {MAX_CHARS // 1_000_000} MB."
        if self._is_quarantined(uri):
            return (
                "quarantined",
                "The core has died twice over this document: it is left alone until it is edited.",
            )
        return "", ""

    def _is_quarantined(self, uri: str) -> bool:
        return self._crashes.get(uri, 0) >= N_CRASHES_TO_QUARANTINE

    def _supersede(self, uri: str) -> None:
        for pending in list(self._pending.values()):
            if pending.buffer.uri == uri:
                sentence = "A newer request took over."
                self._resolve(pending, Answer(pending.id, reason="superseded", sentence=sentence))
                self._send(Cancel(pending.id))

    def _front_answer(self, buffer: Buffer, answer: Answer) -> FrontAnswer:
        items = (self._front_item(buffer, item) for item in answer.items)
        return FrontAnswer(tuple(items), answer.reason, answer.sentence)

    def _front_item(self, buffer: Buffer, item: AnswerItem) -> FrontItem:
        start = buffer.text.position_at(item.start, self.encoding)
        end = buffer.text.position_at(item.end, self.encoding)
        return FrontItem(start, end, item.text, item.source)

    def _selected(
        self, buffer: Buffer | None, selected: tuple[Position, Position, str] | None
    ) -> Selected | None:
        if buffer is None or selected is None:
            return None
        start, end, text = selected
        return Selected(
            buffer.text.offset_at(start, self.encoding), buffer.text.offset_at(end, self.encoding), text
        )

    def _noted(self, request: FrontRequest, answer: FrontAnswer, explanation: dict[str, Any]) -> FrontAnswer:
        """The answer, kept for who asks how it came about; an older request's may come after a newer one's."""
        newest, _ = self._explained.get(request.uri, (0, {}))
        if self._buffers.get(request.uri) is not None and request.number >= newest:
            source = answer.items[0].source if answer.items else ""
            told = {"reason": answer.reason, "sentence": answer.sentence, "source": source, **explanation}
            self._explained[request.uri] = request.number, told
        self._count(request, answer, explanation)
        return answer

    def _count(self, request: FrontRequest, answer: FrontAnswer, explanation: dict[str, Any]) -> None:
        if request.buffer is None:
            return
        text, encoding = request.buffer.text, self.encoding
        items = [
            Shown(
                text.offset_at(item.start, encoding),
                text.offset_at(item.end, encoding),
                item.text,
                item.source,
            )
            for item in answer.items
        ]
        ms = 1000 * (time.monotonic() - request.taken_s)
        self.statistics.answered(request.buffer, items, answer.reason, explanation, ms)

    def _tell_accepted(self, buffer: Buffer, accepted: Acceptance, source: str) -> None:
        """What may become a habit: texts that were accepted whole. A template is offered anyway."""
        is_news = accepted.is_whole and accepted.start < accepted.end and source != TEMPLATE
        connection = self._connection
        if connection is None or not connection.learns_habits or not is_news or _is_too_large(buffer):
            return
        root = self._root_of(self._path_of(buffer.uri))
        place = (buffer.uri, buffer.version, accepted.start, accepted.end)
        self._send(Accepted(*place, root, connection.options))

    def _neighbours(self, uri: str, first: tuple[str, ...]) -> tuple[str, ...]:
        recent = (*first, *(other for other in reversed(self._buffers.uris()) if other != uri))
        return tuple(dict.fromkeys(recent))[:N_NEIGHBOURS]

    def _harmless(self, uris: Iterable[str]) -> tuple[str, ...]:
        """Without documents that the core has died over: it would do so again for whoever has them beside it."""
        return tuple(uri for uri in uris if not self._is_quarantined(uri))

    def _root_of(self, path: str) -> str | None:
        """The innermost workspace folder that holds the path."""
        holding = [folder for folder in self.workspace_folders if PurePath(path).is_relative_to(folder)]
        return str(max(holding, key=lambda folder: len(folder.parts))) if holding else None

    def _opening(self, buffer: Buffer) -> Open:
        path = self._path_of(buffer.uri)
        is_cell = buffer.uri in self._cells
        return Open(buffer.uri, path, buffer.language, buffer.version, str(buffer.text), is_cell)

    def _documents(self) -> Iterable[Open]:
        buffers = (self._buffers.get(uri) for uri in self._buffers.uris())
        return [self._opening(buffer) for buffer in buffers if buffer and not _is_too_large(buffer)]

    def _forget(self, uri: str) -> None:
        self._supersede(uri)
        self._typed_through.forget(uri)
        self._crashes.pop(uri, None)

    def _on_message(self, message: Message) -> None:
        match message:
            case Answer(id=ask_id):
                self._running.pop(ask_id, None)
                self._status.decoded(*_decoded_in(message))
                if ask_id in self._pending:
                    self._keep(self._pending[ask_id], message)
                    self._resolve(self._pending[ask_id], message)
            case Started(ask_id, uri):
                self._running[ask_id] = uri
            case OutOfStep(uri):
                buffer = self._buffers.get(uri)
                if buffer is not None and buffer.is_in_step:
                    self._send(self._opening(buffer))
            case EngineState(state, sentence, notice, percent, model):
                self._status.engine(state, sentence, percent, model)
                if state == "failed":
                    self._tell_once(sentence)
                if notice:
                    self._tell_once(notice)
            case _:
                pass

    def _keep(self, pending: _Pending, answer: Answer) -> None:
        """Remember what is suggested, before anything else happens to its document.

        Who has typed the next key meanwhile may be typing along; not who was at another text or with other settings.
        """
        buffer = self._buffers.get(pending.ask.uri)
        is_followed = buffer is not None and buffer.is_in_step
        is_as_set = self._connection is not None and pending.ask.options == self._connection.options
        if is_followed and is_as_set and pending.ask.selected is None:
            for item in reversed(answer.items):
                self._typed_through.keep(pending.ask.uri, pending.buffer.text, item)

    def _on_lost(self, sentence: str) -> None:
        """The core is gone: what was under way is declined, and who was under way twice is left alone."""
        self._status.engine("lost", sentence)
        self._tell_once(sentence)
        for uri in self._running.values():
            if self._buffers.get(uri) is not None:
                self._crashes[uri] = self._crashes.get(uri, 0) + 1
        self._running.clear()
        for pending in list(self._pending.values()):
            self._resolve(pending, Answer(pending.id, reason="core-lost", sentence=sentence))

    def _send(self, message: Message) -> None:
        """What is sent while there is no core needs no sending: a new one is told all there is."""
        if self._link is not None:
            self._link.send(message)

    def _resolve(self, pending: _Pending, answer: Answer) -> None:
        self._pending.pop(pending.id, None)
        if not pending.answer.done():
            pending.answer.set_result(answer)

    def _tell_once(self, sentence: str) -> None:
        log.warning("%s", sentence)
        now = time.monotonic()
        if now - self._told.get(sentence, -math.inf) >= QUIET_S:
            self._tell_user(sentence)
        self._told[sentence] = now


def _decoded_in(answer: Answer) -> tuple[int, float]:
    """Tokens after the first and the milliseconds that they took; nothing where the core tells neither."""
    told = answer.explanation
    n_new, ttft_ms, total_ms = (told.get(name, 0) for name in ("n_new_tokens", "ttft_ms", "total_ms"))
    return n_new - 1, total_ms - ttft_ms


def _is_much(edits: Sequence[Edit]) -> bool:
    """True where the whole text is less to send than the way to it."""
    return len(edits) > MAX_EDITS or sum(len(edit.text) for edit in edits) > MAX_CHARS


def _is_too_large(buffer: Buffer) -> bool:
    return len(buffer.text) > MAX_CHARS
