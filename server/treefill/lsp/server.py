"""Wires the protocol to the front: one handler a message, each of which converts, calls, converts.

The server starts at once and finds its core meanwhile; what it needs for that is imported after the editor has been
answered.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.uris import to_fs_path

from treefill import __version__
from treefill.core.link import Connection
from treefill.logs import log_kinds_alone
from treefill.lsp import convert
from treefill.lsp.explained import as_markdown
from treefill.lsp.front import Front, FrontRequest
from treefill.lsp.notebooks import NotebookChange, Notebooks
from treefill.lsp.parent import is_visible, outlives
from treefill.lsp.progress import LoadingProgress
from treefill.lsp.protocol import TolerantProtocol, TolerantServer
from treefill.lsp.status import Status
from treefill.lsp.stdio import READ_BYTES, FrameReader, StdoutWriter, open_stdin
from treefill.text import PositionEncoding

log = logging.getLogger(__name__)

EXPLAIN_COMMAND = "treefill.explain"
STATISTICS_COMMAND = "treefill.statistics"
CLOSE_LIMIT_S = 1.0
SETTINGS_LIMIT_S = 1.0
"""An editor that has not told its settings by then is served with what there is."""
_SECTION = "treefill"
_TRIGGER_CHARACTERS = [".", "(", "[", "{", "=", ",", ":", " "]

MakeConnection = Callable[[dict[str, Any]], Connection]
"""From what an editor sets to a way to a core. Called beside the event loop: it imports and reads files."""


def serve_stdio(make_connection: MakeConnection, output: BinaryIO) -> None:
    """Serve one editor on standard input and what was standard output until it is gone; ends the process."""
    # pygls quotes messages, and with them source text, in its logs.
    logging.getLogger("pygls").addHandler(logging.NullHandler())
    logging.getLogger("pygls").propagate = False
    asyncio.run(_serve(make_connection, output))


async def _serve(make_connection: MakeConnection, output: BinaryIO) -> NoReturn:
    log_kinds_alone(asyncio.get_running_loop())
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end(status: int) -> None:
        if not ended.done():
            ended.set_result(status)

    writer = StdoutWriter(output)
    session = Session(make_connection, end)
    session.server.protocol.set_writer(writer)
    reading = asyncio.create_task(_read(session))
    reading.add_done_callback(lambda _task: end(1))
    try:
        status = await ended
    except asyncio.CancelledError:  # Ctrl-C
        status = 130
    reading.cancel()
    await asyncio.wait([asyncio.create_task(session.close())], timeout=CLOSE_LIMIT_S)
    await writer.drain(CLOSE_LIMIT_S)
    logging.shutdown()
    # From within the loop, which would wait for its threads at its end: one that reads a terminal or is stuck in a
    # model must not keep a process whose editor is gone.
    os._exit(status)


async def _read(session: "Session") -> None:
    """Handle what the editor sends, until it has closed its end."""
    frames = FrameReader()
    stdin = await open_stdin()
    while data := await stdin.read(READ_BYTES):
        for body in frames.feed(data):
            try:
                session.receive(body)
            except Exception as error:  # the next message is read, whatever this one was
                log.error("A message could not be handled: %s.", type(error).__name__)
    log.info("Standard input was closed.")


class Session:
    """One editor's connection: the server, the front behind it, and what the editor has said of itself."""

    def __init__(self, make_connection: MakeConnection, end: Callable[[int], None]) -> None:
        self.server = TolerantServer(
            "treefill", __version__, notebook_document_sync=_notebook_sync(), on_exit=end
        )
        self._protocol = cast(TolerantProtocol, self.server.protocol)
        self._make_connection = make_connection
        self._end = end
        self._front = Front(self._tell_status, self._tell_user, convert.path_of)
        self._notebooks = Notebooks()
        self._progress = LoadingProgress(self.server)
        self._at_start: dict[str, Any] = {}
        """Settings of the handshake; what the editor says later lies over them."""
        self._since: dict[str, Any] = {}
        self._given: dict[str, Any] | None = None
        """The settings that the connection was made with; None before there is one."""
        self._has_settings = asyncio.Event()
        self._counts_from_zero = False
        self._wants_status = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._connecting = asyncio.Lock()
        self._register()

    def receive(self, body: bytes) -> None:
        """Handle one message."""
        self._protocol.receive(body)

    async def close(self) -> None:
        """Leave the core."""
        for task in self._tasks:
            task.cancel()
        await self._front.close()

    def _register(self) -> None:
        def on(name: str, handler: Callable[..., Any], options: Any = None) -> None:
            # pygls marks what it registers, and a method can't be marked.
            self.server.feature(name, options)(partial(handler))

        on(types.INITIALIZE, self._initialize)
        on(types.INITIALIZED, self._initialized)
        on(types.TEXT_DOCUMENT_DID_OPEN, self._did_open)
        on(types.TEXT_DOCUMENT_DID_CHANGE, self._did_change)
        on(types.TEXT_DOCUMENT_DID_CLOSE, self._did_close)
        on(types.NOTEBOOK_DOCUMENT_DID_OPEN, lambda params: self._follow(self._notebooks.open(params)))
        on(types.NOTEBOOK_DOCUMENT_DID_CHANGE, lambda params: self._follow(self._notebooks.change(params)))
        on(types.NOTEBOOK_DOCUMENT_DID_CLOSE, lambda params: self._follow(self._notebooks.close(params)))
        on(types.WORKSPACE_DID_CHANGE_CONFIGURATION, self._did_change_configuration)
        on(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, self._did_change_folders)
        on(types.TEXT_DOCUMENT_INLINE_COMPLETION, self._inline_completion, types.InlineCompletionOptions())
        # Names that Copilot's language server has made customary. They carry nothing that changes an answer yet.
        for name in ("didShowCompletion", "didPartiallyAcceptCompletion", "didFocus"):
            on(f"textDocument/{name}", _take_note)
        # The edit behind a request may have been made before the request's handler runs.
        self._protocol.on_arrival = {
            types.TEXT_DOCUMENT_INLINE_COMPLETION: self._take_inline,
            types.TEXT_DOCUMENT_COMPLETION: self._take_listed,
        }
        self.server.command(convert.ACCEPTED_COMMAND)(partial(self._accepted))
        self.server.command(EXPLAIN_COMMAND)(partial(self._explain))
        self.server.command(STATISTICS_COMMAND)(partial(self._statistics))

    # What the editor says of itself.

    def _initialize(self, params: types.InitializeParams) -> None:
        capabilities = params.capabilities
        self._front.encoding = PositionEncoding(
            ServerCapabilitiesBuilder.choose_position_encoding(capabilities)
        )
        folders = [folder.uri for folder in params.workspace_folders or ()] or [params.root_uri or ""]
        self._front.workspace_folders = tuple(_paths(folders))
        text_document = capabilities.text_document
        if text_document is None or text_document.inline_completion is None:
            triggers = types.CompletionOptions(trigger_characters=_TRIGGER_CHARACTERS)
            self.server.feature(types.TEXT_DOCUMENT_COMPLETION, triggers)(partial(self._completion))
        given = params.initialization_options
        options: dict[str, Any] = given if isinstance(given, dict) else {}
        self._wants_status = options.get("statusNotifications") is True or "editorPluginInfo" in options
        self._counts_from_zero = options.get("countsTriggerKindsFromZero") is True
        self._front.trusts_workspace = options.get("trustsWorkspace") is True
        self._at_start = _settings_in(options) or {}
        self._progress.is_supported = bool(capabilities.window and capabilities.window.work_done_progress)
        self._in_background(self._connect_first())
        if params.process_id is not None:
            self._in_background(self._end_with(params.process_id))

    def _initialized(self, _params: Any) -> None:
        if self._can_be_asked:
            self._in_background(self._ask_for_settings())

    def _did_change_configuration(self, params: Any) -> None:
        settings = params.get("settings") if isinstance(params, dict) else None
        section = _settings_in(settings) if isinstance(settings, dict) else None
        if section is not None:
            self._take_settings(section)
        elif self._can_be_asked:
            self._in_background(self._ask_for_settings())

    @property
    def _can_be_asked(self) -> bool:
        workspace = self.server.client_capabilities.workspace
        return bool(workspace and workspace.configuration)

    def _did_change_folders(self, params: Any) -> None:
        event = params.get("event") if isinstance(params, dict) else None
        event = event if isinstance(event, dict) else {}
        removed = set(_paths(_uris(event.get("removed"))))
        kept = [folder for folder in self._front.workspace_folders if folder not in removed]
        self._front.workspace_folders = (*kept, *_paths(_uris(event.get("added"))))

    async def _ask_for_settings(self) -> None:
        item = types.ConfigurationItem(section=_SECTION)
        try:
            answer = await self.server.workspace_configuration_async(types.ConfigurationParams([item]))
            section = answer[0] if answer else None
            if isinstance(section, dict):  # none is no news
                self._take_settings(section)
        finally:
            self._has_settings.set()

    def _take_settings(self, section: dict[str, Any]) -> None:
        self._since = section
        self._has_settings.set()
        if self._given is not None:
            self._in_background(self._connect())

    async def _connect_first(self) -> None:
        """Connect once the editor has said what it wants: a core with other settings would be started for nothing."""
        if self._can_be_asked:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._has_settings.wait(), SETTINGS_LIMIT_S)
        await self._connect()

    async def _connect(self) -> None:
        async with self._connecting:
            set_since = {name: value for name, value in self._since.items() if value is not None}
            given = {**self._at_start, **set_since}
            if given != self._given:
                self._given = given
                await self._front.connect(await asyncio.to_thread(self._make_connection, given))

    async def _end_with(self, process_id: int) -> None:
        if not await is_visible(process_id):
            log.info("The editor's process can't be seen from here: this server goes when its input ends.")
            return
        await outlives(process_id)
        log.warning("The editor's process is gone.")
        self._end(1)

    # Documents.

    def _did_open(self, params: Any) -> None:
        opened = convert.opened_from(params.get("textDocument") if isinstance(params, dict) else None)
        self._follow(NotebookChange(opened=(opened,) if opened else ()))

    def _did_change(self, params: Any) -> None:
        params = params if isinstance(params, dict) else {}
        changed = convert.changed_from(params.get("textDocument"), params.get("contentChanges"))
        uri = convert.uri_from(params)
        if changed is not None:
            self._follow(NotebookChange(changed=(changed,)))
        else:
            self._follow(NotebookChange(lost=(uri,) if uri else ()))

    def _did_close(self, params: Any) -> None:
        uri = convert.uri_from(params)
        self._follow(NotebookChange(closed=(uri,) if uri else ()))

    def _follow(self, change: NotebookChange) -> None:
        for opened in change.opened:
            is_cell = opened.is_cell or self._notebooks.has_cell(opened.uri)
            self._front.open(opened.uri, opened.language, opened.version, opened.text, is_cell)
        for changed in change.changed:
            self._front.change(changed.uri, changed.version, changed.changes)
        for uri in change.lost:
            log.warning("A change that can't be followed was ignored.")
            self._front.lose_track(uri)
        for uri in change.closed:
            self._front.close_document(uri)

    # Requests.

    def _take_inline(self, params: Any) -> FrontRequest | None:
        self._counts_from_zero |= convert.counts_trigger_kinds_from_zero(params)
        return self._take(convert.asked_from(params, self._counts_from_zero))

    async def _inline_completion(self, request: FrontRequest | None) -> dict[str, Any]:
        if request is None:
            return {"items": []}
        return convert.inline_list(await self._front.answer(request), request.uri)

    def _take_listed(self, params: Any) -> FrontRequest | None:
        return self._take(convert.listed_from(params))

    async def _completion(self, request: FrontRequest | None) -> dict[str, Any]:
        if request is None:
            return {"isIncomplete": True, "items": []}
        return convert.completion_list(await self._front.answer(request))

    def _take(self, asked: convert.Asked | None) -> FrontRequest | None:
        if asked is None:
            log.warning("A request without a document or position was answered with nothing.")
            return None
        return self._front.take(
            asked.uri,
            asked.position,
            is_automatic=asked.is_automatic,
            selected=asked.selected,
            version=asked.version,
            neighbours=self._notebooks.cells_near(asked.uri),
        )

    def _explain(self, *arguments: Any) -> dict[str, Any]:
        """The document's URI, and `markdown` for a page to read."""
        uri = str(arguments[0]) if arguments else ""
        told = self._front.explain(uri)
        return {"markdown": as_markdown(uri, told)} if "markdown" in arguments[1:] else told

    def _accepted(self, *arguments: Any) -> None:
        accepted = convert.accepted_from(arguments[0] if arguments else None)
        if accepted is not None:
            self._front.statistics.told_accepted(*accepted)

    async def _statistics(self, *_arguments: Any) -> dict[str, Any]:
        return await self._front.statistics.report()

    # What the editor is told.

    def _tell_status(self, status: Status) -> None:
        self._in_background(self._progress.follow(status.is_loading))
        if self._wants_status:
            self.server.protocol.notify("didChangeStatus", convert.status_of(status))

    def _tell_user(self, sentence: str) -> None:
        message = types.ShowMessageParams(types.MessageType.Warning, f"treefill: {sentence}")
        self.server.window_show_message(message)

    def _in_background(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._settle)

    def _settle(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("Something in the background failed: %s.", type(task.exception()).__name__)


def _take_note(*_arguments: Any) -> None:
    """Nothing more is done: the client may expect to be heard."""


def _settings_in(options: dict[str, Any]) -> dict[str, Any] | None:
    """The `treefill` section, or one called `settings`, as some clients have it; None where there is neither."""
    section = options.get(_SECTION, options.get("settings"))
    return dict(section) if isinstance(section, dict) else None


def _notebook_sync() -> types.NotebookDocumentSyncOptions:
    every_cell = types.NotebookDocumentFilterWithNotebook(notebook="*")
    return types.NotebookDocumentSyncOptions([every_cell])


def _uris(folders: Any) -> list[str]:
    folders = folders if isinstance(folders, list) else []
    uris = (folder.get("uri") for folder in folders if isinstance(folder, dict))
    return [uri for uri in uris if isinstance(uri, str)]


def _paths(uris: list[str]) -> list[Path]:
    paths = (to_fs_path(uri) for uri in uris if uri.startswith("file:"))
    return [Path(path) for path in paths if path]
