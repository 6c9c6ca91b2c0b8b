"""A whole line typed key by key, in a client that is not ours: pytest-lsp's, which checks every message's types."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

from tests.lsp.conftest import processes_of
from tests.lsp.editor import applied, environment_in

pytestmark = [pytest.mark.lsp, pytest.mark.asyncio]

ABOVE = "xs = [3, 5]  # 🙂\n"
LINE = "total = sum(xs[0:2])"
BELOW = "\nprint(total)\n"
URI = "file:///w/typed.py"
CLOSERS = {"(": ")", "[": "]"}


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[LanguageClient]:
    """The client with its server; the stub knows the line that is being typed."""
    by_end = {ABOVE + LINE[:n_typed]: LINE[n_typed:] for n_typed in range(len(LINE))}
    (tmp_path / "script.json").write_text(json.dumps({"by_end": by_end}), encoding="utf-8")
    command = [sys.executable, "-m", "tests.lsp.stub", "serve"]
    client = await ClientServerConfig(command, server_env=environment_in(tmp_path)).start()
    assert isinstance(client, LanguageClient)
    capabilities = types.ClientCapabilities(
        text_document=types.TextDocumentClientCapabilities(
            inline_completion=types.InlineCompletionClientCapabilities()
        ),
        window=types.WindowClientCapabilities(work_done_progress=True),
        workspace=types.WorkspaceClientCapabilities(configuration=True),
    )
    folder = types.WorkspaceFolder("file:///w", "w")
    params = types.InitializeParams(capabilities=capabilities, workspace_folders=[folder])
    await client.initialize_session(params)
    yield client
    await client.shutdown_session()
    await client.stop()
    assert processes_of(tmp_path) == []


class Typist:
    """Types into the client's document as an editor does that closes brackets and types over them."""

    def __init__(self, client: LanguageClient) -> None:
        self.text = ABOVE + BELOW
        self._client = client
        self._column = 0
        self._version = 1
        item = types.TextDocumentItem(URI, "python", self._version, self.text)
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    @property
    def offset(self) -> int:
        return len(ABOVE) + self._column

    def press(self, key: str) -> None:
        """A key; `⌫` takes the character before the cursor away."""
        follows = self.text[self.offset : self.offset + 1]
        if key == "⌫":
            self._replace(self._column - 1, self._column, "")
            self._column -= 1
        elif key == follows and key in CLOSERS.values():
            self._column += 1
        else:
            self._replace(self._column, self._column, key + CLOSERS.get(key, ""))
            self._column += 1

    async def ask(self) -> list[dict[str, Any]]:
        """The suggestions at the cursor."""
        context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
        document = types.TextDocumentIdentifier(URI)
        place = types.Position(1, self._column)
        answer = await self._client.text_document_inline_completion_async(
            types.InlineCompletionParams(context, document, place)
        )
        assert isinstance(answer, types.InlineCompletionList), "null would leave an old suggestion standing"
        return [plain(item) for item in answer.items]

    def _replace(self, start: int, end: int, new: str) -> None:
        span = types.Range(types.Position(1, start), types.Position(1, end))
        first, last = len(ABOVE) + start, len(ABOVE) + end
        self.text = self.text[:first] + new + self.text[last:]
        self._version += 1
        document = types.VersionedTextDocumentIdentifier(self._version, URI)
        change = types.TextDocumentContentChangePartial(span, new)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))


def plain(item: types.InlineCompletionItem) -> dict[str, Any]:
    """The item as it was on the wire, as far as accepting needs it."""
    assert item.range is not None
    assert isinstance(item.insert_text, str)
    edges = {"start": item.range.start, "end": item.range.end}
    places = {edge: {"line": at.line, "character": at.character} for edge, at in edges.items()}
    return {"insertText": item.insert_text, "range": places}


async def test_each_key_of_a_line_leads_to_the_same_line(client: LanguageClient, tmp_path: Path) -> None:
    typist = Typist(client)
    while not await typist.ask():  # the model is being loaded
        pass
    n_suggested = 0
    for key in [*LINE[:6], "x", "⌫", *LINE[6:]]:
        typist.press(key)
        for item in await typist.ask():
            assert applied(typist.text, item) == ABOVE + LINE + BELOW
            n_suggested += 1

    assert typist.text == ABOVE + LINE + BELOW
    assert n_suggested >= 15
    explain = types.ExecuteCommandParams("treefill.explain", [URI])
    explained = await client.workspace_execute_command_async(explain)
    assert explained["text"] == typist.text
    record = (tmp_path / "record.jsonl").read_text("utf-8").splitlines()
    n_calls = sum("call" in json.loads(line) for line in record)
    assert n_calls < n_suggested, "what is typed along is not decoded again"
    assert client.messages == []
