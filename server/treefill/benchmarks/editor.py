"""An editor as far as the keystrokes need one: starts this program's server with a core of its own, and asks it."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from treefill.benchmarks.keystrokes import DECODED, Answer
from treefill.errors import CoreError
from treefill.evaluation.typist import Edit, Typist
from treefill.text import Document

T = TypeVar("T")

LIMIT_S = 120.0
"""For the model to be loaded, and for any answer."""
_WAITING = ("no-core", "no-model")
_POLL_S = 0.1


class Editor:
    """A `Typed` over the language server. `environment` are settings for it beyond the user's own."""

    name = "treefill"

    def __init__(
        self, environment: Mapping[str, str], program: tuple[str, ...] = ("-m", "treefill", "serve")
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._folder = tempfile.TemporaryDirectory(prefix="treefill-bench-")
        own = {
            "TREEFILL_RUNTIME_DIR": self._folder.name,
            "TREEFILL_CORE_LINGER_S": "0",
            "TREEFILL_STATISTICS": "false",
        }
        self._client = LanguageClient("treefill-bench", "1")
        self._uri = ""
        self._version = 0
        self._text = ""
        self._run(self._start(program, {**os.environ, **environment, **own}))

    def open(self, document: Document, typist: Typist) -> None:
        """Open it, and wait until the model answers."""
        self._uri, self._version, self._text = Path(document.path).absolute().as_uri(), 0, typist.text
        item = types.TextDocumentItem(self._uri, document.language, 0, typist.text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        ends_at = time.monotonic() + LIMIT_S
        while True:
            self._run(self._suggestion(typist))
            told = self._run(self._explained())
            if told.get("reason") not in _WAITING:
                return
            if time.monotonic() > ends_at:
                raise CoreError(f"The server is not ready: {told.get('sentence')}")
            time.sleep(_POLL_S)

    def ask(self, edit: Edit, typist: Typist, n_tokens: int) -> Answer:
        """Tell the server of one edit and ask at the cursor."""
        began = time.perf_counter()
        self._change(edit, typist)
        self._run(self._suggestion(typist))
        ms = (time.perf_counter() - began) * 1000
        told = self._run(self._explained())
        if told.get("text") != typist.text:
            raise CoreError(
                "The server's copy of the document differs from the editor's: nothing was measured; report it."
            )
        return answer_of(told, ms)

    def close_document(self) -> None:
        """Close the document."""
        identifier = types.TextDocumentIdentifier(self._uri)
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))

    def close(self) -> None:
        """End the server; its core ends by itself."""
        try:
            self._run(self._stop())
        finally:
            self._loop.close()
            self._folder.cleanup()

    async def _start(self, program: tuple[str, ...], environment: Mapping[str, str]) -> None:
        await self._client.start_io(sys.executable, *program, env=environment)
        inline = types.InlineCompletionClientCapabilities()
        text_document = types.TextDocumentClientCapabilities(inline_completion=inline)
        capabilities = types.ClientCapabilities(text_document=text_document)
        await self._client.initialize_async(types.InitializeParams(capabilities, os.getpid()))
        self._client.initialized(types.InitializedParams())

    async def _stop(self) -> None:
        await self._client.shutdown_async(None)
        self._client.exit(None)
        await self._client.stop()  # type: ignore[no-untyped-call]

    def _change(self, edit: Edit, typist: Typist) -> None:
        self._version += 1
        span = types.Range(_position(self._text, edit.start), _position(self._text, edit.end))
        change = types.TextDocumentContentChangePartial(range=span, text=edit.text)
        identifier = types.VersionedTextDocumentIdentifier(self._version, self._uri)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
        self._text = typist.text

    async def _suggestion(self, typist: Typist) -> Any:
        context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
        place = _position(typist.text, typist.cursor)
        params = types.InlineCompletionParams(context, types.TextDocumentIdentifier(self._uri), place)
        return await self._client.text_document_inline_completion_async(params)

    async def _explained(self) -> dict[str, Any]:
        command = types.ExecuteCommandParams("treefill.explain", [self._uri])
        told: Any = await self._client.workspace_execute_command_async(command)
        return dict(told)

    def _run(self, work: Awaitable[T]) -> T:
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, LIMIT_S))
        except TimeoutError:
            raise CoreError(f"The server gave no answer within {LIMIT_S:g} s.") from None


def answer_of(told: Mapping[str, Any], ms: float) -> Answer:
    """An answer of our server, from what it explains of it."""
    source = str(told.get("source") or told.get("reason") or DECODED)
    n_decoded = int(told.get("n_decoded_tokens", 0))
    if source in ("typed through", "typed-through") or not n_decoded:
        return Answer(source, ms)
    after_first_ms = float(told["total_ms"]) - float(told["ttft_ms"])
    return Answer(
        source,
        ms,
        ttft_ms=max(0.0, ms - after_first_ms),
        n_evaluated=int(told.get("n_evaluated", 0)),
        n_tokens=int(told.get("n_new_tokens", 0)),
        same_tokens_ms=ms,
    )


def _position(text: str, offset: int) -> types.Position:
    """In the units that clients and servers use unless they agree on others: UTF-16."""
    line_start = text.rfind("\n", 0, offset) + 1
    n_units = len(text[line_start:offset].encode("utf-16-le", "surrogatepass")) // 2
    return types.Position(text.count("\n", 0, offset), n_units)
