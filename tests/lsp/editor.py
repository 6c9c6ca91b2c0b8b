"""A small editor: keeps texts as one does, speaks the protocol in raw bytes, and checks what comes back.

Positions are UTF-16 here, as in the protocol's default; texts are Python strings.
"""

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LINE = re.compile(r"\r\n|\r|\n")
CONTROL_TOKENS = re.compile(r"<\|[a-z_]+\|>|<fim_\w+>")
ROOT = Path(__file__).resolve().parents[2]


class Editor:
    """One editor with its server process. `folder` has the test's script, records, sockets and settings."""

    def __init__(
        self,
        folder: Path,
        script: dict[str, Any] | None = None,
        *,
        serve: tuple[str, ...] = ("serve",),
        program: tuple[str, ...] = ("-m", "tests.lsp.stub"),
        capabilities: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        process_id: int | None = None,
        environment: dict[str, str] | None = None,
        is_initialized: bool = True,
    ) -> None:
        self.folder = folder
        self.record = folder / "record.jsonl"
        self._script_file = folder / "script.json"
        if script is not None or not self._script_file.exists():
            self.play(**(script or {}))
        self.stderr_path = folder / f"stderr-{time.monotonic_ns()}.txt"
        with self.stderr_path.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, *program, *serve],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=ROOT,
                env={**environment_in(folder), **(environment or {})},
            )
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.notifications: list[dict[str, Any]] = []
        """Everything that came without being asked for, in order."""
        self.answers: dict[Any, dict[str, Any]] = {}
        self.n_answers: dict[Any, int] = {}
        """How often each request was answered: once, or the server is wrong."""
        self.settings: dict[str, Any] | None = None
        """What `workspace/configuration` is answered with."""
        self.answer_configuration: Callable[[], Any] = lambda: [self.settings]
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._n_requests = 0
        self.stray: bytes = b""
        """Bytes on stdout that were no message."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if is_initialized:
            self.initialize(capabilities, options, process_id)

    def play(self, **script: Any) -> None:
        """Give the stub another script, from its next call on."""
        fresh = self._script_file.with_suffix(".new")
        fresh.write_text(json.dumps(script), encoding="utf-8")
        fresh.replace(self._script_file)

    # The protocol.

    def initialize(
        self,
        capabilities: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        process_id: int | None = None,
        folders: list[Path] | None = None,
    ) -> dict[str, Any]:
        """The handshake; the server's capabilities."""
        if capabilities is None:
            capabilities = {"textDocument": {"inlineCompletion": {}}}
        params: dict[str, Any] = {
            "processId": process_id,
            "rootUri": None,
            "capabilities": capabilities,
            "initializationOptions": {"statusNotifications": True, **(options or {})},
            "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders or []],
        }
        answer = self.request("initialize", params)
        self.notify("initialized", {})
        capabilities_answer: dict[str, Any] = answer["result"]["capabilities"]
        return capabilities_answer

    def send_bytes(self, data: bytes) -> None:
        """Anything at all."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: dict[str, Any]) -> None:
        """One message."""
        self.send_bytes(framed(message))

    def notify(self, method: str, params: Any) -> None:
        """A notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: Any) -> int:
        """A request that is not waited for; its id."""
        self._n_requests += 1
        self.send({"jsonrpc": "2.0", "id": self._n_requests, "method": method, "params": params})
        return self._n_requests

    def request(self, method: str, params: Any, timeout: float = 20) -> dict[str, Any]:
        """A request and its answer, result or error."""
        return self.wait_for(self.begin(method, params), timeout)

    def wait_for(self, request_id: Any, timeout: float = 20) -> dict[str, Any]:
        """The answer of a request that was begun."""
        deadline = time.monotonic() + timeout
        while request_id not in self.answers:
            assert self.take_message(deadline - time.monotonic()), f"no answer to {request_id}: {self.stderr}"
        return self.answers[request_id]

    def wait_until(self, condition: Any, timeout: float = 20) -> None:
        """Take messages until the condition holds."""
        deadline = time.monotonic() + timeout
        while not condition(self):
            assert time.monotonic() < deadline, f"it did not come to pass: {self.stderr}"
            self.take_message(0.05)

    def take_message(self, timeout: float) -> bool:
        """Take the next message in; False where none comes."""
        try:
            message = self._messages.get(timeout=max(0.001, timeout))
        except queue.Empty:
            return False
        if message is None:
            self._messages.put(None)
            return False
        if "method" in message and "id" in message:
            self._answer_server(message)
        elif "method" in message:
            self.notifications.append(message)
        else:
            self.n_answers[message["id"]] = self.n_answers.get(message["id"], 0) + 1
            self.answers[message["id"]] = message
        return True

    def _answer_server(self, message: dict[str, Any]) -> None:
        result: Any = None
        if message["method"] == "workspace/configuration":
            result = self.answer_configuration()
        self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    # Documents and requests.

    def open(self, uri: str, text: str, language: str = "python", version: int = 1) -> None:
        """Open a document; a `‸` in it is left out, see `cursor`."""
        self.texts[uri], self.versions[uri] = text.replace("‸", ""), version
        item = {"uri": uri, "languageId": language, "version": version, "text": self.texts[uri]}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def replace(self, uri: str, start: int, end: int, new: str) -> None:
        """Edit by offsets of the editor's own text."""
        text = self.texts[uri]
        span = {"start": position_of(text, start), "end": position_of(text, end)}
        self.texts[uri] = text[:start] + new + text[end:]
        self.change(uri, [{"range": span, "text": new}])

    def change(self, uri: str, changes: list[dict[str, Any]], version: int | None = None) -> None:
        """Send changes as they are; the editor's own text is the caller's to keep."""
        self.versions[uri] = self.versions[uri] + 1 if version is None else version
        document = {"uri": uri, "version": self.versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def close_document(self, uri: str) -> None:
        """Close a document."""
        self.texts.pop(uri, None)
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def begin_ask(self, uri: str, position: dict[str, int], kind: int = 2, selected: Any = None) -> int:
        """An inline completion request; its id."""
        context: dict[str, Any] = {"triggerKind": kind}
        if selected is not None:
            context["selectedCompletionInfo"] = selected
        params = {"textDocument": {"uri": uri}, "position": position, "context": context}
        return self.begin("textDocument/inlineCompletion", params)

    def ask(
        self, uri: str, position: dict[str, int], kind: int = 2, timeout: float = 20
    ) -> list[dict[str, Any]]:
        """The items suggested at a position. Each is checked against the contract C0."""
        answer = self.wait_for(self.begin_ask(uri, position, kind), timeout)
        assert "error" not in answer, answer
        items: list[dict[str, Any]] = answer["result"]["items"]
        for item in items:
            assert_c0(self.texts[uri], position, item)
        return items

    def ask_at(self, uri: str, offset: int, kind: int = 2) -> list[dict[str, Any]]:
        """The same at an offset of the editor's own text."""
        return self.ask(uri, position_of(self.texts[uri], offset), kind)

    def complete(
        self, buffer: str, language: str = "python", uri: str = "file:///w/a.py", kind: int = 2
    ) -> str | None:
        """Open a buffer with a `‸` in it, ask there: the text after accepting, or None for nothing."""
        self.wait_ready()
        self.open(uri, buffer, language)
        items = self.ask_at(uri, buffer.index("‸"), kind)
        return applied(self.texts[uri], items[0]) if items else None

    def wait_ready(self) -> None:
        """Wait until the core has loaded its model."""
        self.wait_until(lambda editor: any(status["message"] == "ready" for status in editor.statuses))

    def explain(self, uri: str) -> dict[str, Any]:
        """How the last answer in a document came about."""
        answer = self.request("workspace/executeCommand", {"command": "treefill.explain", "arguments": [uri]})
        result: dict[str, Any] = answer["result"]
        return result

    def mirror(self, uri: str) -> str:
        """The server's copy of a document."""
        text: str = self.explain(uri)["text"]
        return text

    @property
    def statuses(self) -> list[dict[str, Any]]:
        """The states that were told, in order."""
        return [note["params"] for note in self.notifications if note["method"] == "didChangeStatus"]

    @property
    def messages(self) -> list[str]:
        """What was shown to the user."""
        return [
            note["params"]["message"] for note in self.notifications if note["method"] == "window/showMessage"
        ]

    @property
    def calls(self) -> list[dict[str, Any]]:
        """What the stub was asked, in order."""
        return [entry for entry in self.notes if "call" in entry]

    @property
    def prompt(self) -> "SeenPrompt":
        """What the stub has seen last."""
        return SeenPrompt.of(self.calls[-1])

    @property
    def notes(self) -> list[dict[str, Any]]:
        """Everything that the stub has recorded."""
        lines = self.record.read_text("utf-8").splitlines() if self.record.exists() else []
        return [json.loads(line) for line in lines]

    @property
    def stderr(self) -> str:
        """The server's log so far."""
        return self.stderr_path.read_text("utf-8", "replace")

    # The end.

    def shut_down(self) -> int:
        """Say goodbye as the protocol wants it; the exit status."""
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(5)

    def __enter__(self) -> "Editor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Whether it has said goodbye or not."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(5)
        self._reader.join(5)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        while True:
            header = stdout.readline()
            if not header:
                break
            if not header.startswith(b"Content-"):
                self.stray += header
                continue
            n_bytes = int(header.split(b":")[1]) if header.startswith(b"Content-Length") else None
            while (line := stdout.readline()).strip():
                if line.startswith(b"Content-Length"):
                    n_bytes = int(line.split(b":")[1])
            assert n_bytes is not None
            self._messages.put(json.loads(stdout.read(n_bytes)))
        self._messages.put(None)


def environment_in(folder: Path) -> dict[str, str]:
    """What keeps a server's files, and the stub's, in a folder."""
    own = {
        "TREEFILL_TEST_SCRIPT": str(folder / "script.json"),
        "TREEFILL_TEST_RECORD": str(folder / "record.jsonl"),
        "TREEFILL_RUNTIME_DIR": str(folder / "run"),
        "TREEFILL_CACHE_DIR": str(folder / "cache"),
        "TREEFILL_STATE_DIR": str(folder / "state"),
        "TREEFILL_SETTINGS": str(folder / "settings.toml"),
        "TREEFILL_CORE_LINGER_S": "0.5",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
    }
    return {**os.environ, **own}


@dataclass(frozen=True)
class SeenPrompt:
    """A prompt as the model sees it, put together again."""

    before: str
    """The document up to the cursor, as far as it is shown."""
    after: str
    """The document from the cursor on, without what editors close by themselves."""
    control_tokens: list[str]
    text: str

    @classmethod
    def of(cls, call: dict[str, Any]) -> "SeenPrompt":
        text = call["prompt"] + call["forced"]
        pieces = re.split(r"⟦(.*?)⟧", text)
        spans = dict(zip(pieces[1::2], pieces[2::2], strict=True))
        before = spans.get("<|fim_prefix|>", "") + spans.get("<|fim_middle|>", pieces[-1])
        return cls(before, spans.get("<|fim_suffix|>", ""), pieces[1::2], text)


def framed(message: Any) -> bytes:
    """A message as it goes over the wire."""
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def position_of(text: str, offset: int) -> dict[str, int]:
    """The protocol's position of an offset: lines end at `\\n`, `\\r\\n`, `\\r`; UTF-16 units."""
    line, start = 0, 0
    for ending in LINE.finditer(text):
        if ending.end() > offset:
            break
        line, start = line + 1, ending.end()
    return {"line": line, "character": utf16_length(text[start:offset])}


def offset_of(text: str, position: dict[str, int]) -> int:
    """The other way round."""
    starts = [0, *(ending.end() for ending in LINE.finditer(text))]
    offset = starts[position["line"]]
    while utf16_length(text[starts[position["line"]] : offset]) < position["character"]:
        offset += 1
    return offset


def utf16_length(text: str) -> int:
    """Units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def applied(text: str, item: dict[str, Any]) -> str:
    """The text after accepting an item, with the document's own line ending."""
    start, end = (offset_of(text, item["range"][edge]) for edge in ("start", "end"))
    ending = LINE.search(text)
    inserted = item["insertText"]
    return text[:start] + (inserted.replace("\n", ending[0]) if ending else inserted) + text[end:]


def assert_c0(text: str, position: dict[str, int], item: dict[str, Any]) -> None:
    """The contract of every item (C0 in the cases' conventions)."""
    start, end = item["range"]["start"], item["range"]["end"]
    assert start["line"] == end["line"] == position["line"]
    assert start["character"] <= position["character"] <= end["character"]
    first, cursor, last = (offset_of(text, place) for place in (start, position, end))
    line_end = LINE.search(text, last)
    assert last <= (line_end.start() if line_end else len(text))
    inserted = item["insertText"]
    assert inserted.startswith(text[first:cursor]) or not text[first:cursor].strip()
    rest = iter(inserted)
    assert all(character in rest for character in text[cursor:last]), "replaced text comes again, in order"
    assert not CONTROL_TOKENS.search(inserted)
    assert not re.search("[\0\ufffd\ud800-\udfff\r]", inserted)
    assert applied(text, item) != text
