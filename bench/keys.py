"""What a keystroke costs through the whole server: real files typed again, key by key, as an editor would: `make keys`.

Brackets and quotes close by themselves, closers are typed over, Enter between braces opens a line of its own, and new
lines are indented. After each key the server is asked; counted is what the model had to evaluate before the first new
token. The answer is checked first: the server's copy must be the typed text. Counts do not depend on the machine;
times do.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import sysconfig
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from lsprotocol import types
from pygls.lsp.client import LanguageClient

ROOT = Path(__file__).resolve().parent.parent
PAIRS = {"(": ")", "[": "]", "{": "}"}
QUOTES = "\"'"


@dataclass(frozen=True)
class Piece:
    """Some lines of a real file, to be typed again; the rest of it stands around them."""

    path: Path
    language: str
    begin: str
    """What its first line begins with."""
    n_keys: int


def pieces(n_keys: int) -> list[Piece]:
    """One piece a language: a module of Python's own, a header of these kernels, the example's SQL."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    return [
        Piece(stdlib / "textwrap.py", "python", "    def _handle_long_word", n_keys),
        Piece(ROOT / "kernels/model/work_pool.h", "cpp", "class WorkPool", n_keys),
        Piece(ROOT / "examples/shop.sql", "sql", "CREATE TABLE customers", n_keys),
    ]


@dataclass
class Typist:
    """Types a text as a person would whose editor closes brackets; `text` and `cursor` are the buffer's."""

    text: str
    cursor: int
    target: str
    """What is to be typed."""
    at: int = 0
    """Characters of the target that are there."""
    closers: list[str] = field(default_factory=list)
    """What the editor has closed and stands behind the cursor, the nearest last."""

    def press(self) -> tuple[int, int, str, bool] | None:
        """One key: the edit as start, end and new text, and whether it began a line; None at the target's end."""
        if self.at >= len(self.target):
            return None
        key = self.target[self.at]
        if self.closers and self.target.startswith(self.closers[-1], self.at):
            closer = self.closers.pop()
            self.at += len(closer)
            return self._over(len(closer), "\n" in closer)
        self.at += 1
        if key == "\n":
            return self._enter()
        if key in PAIRS:
            self.closers.append(PAIRS[key])
            return self._insert(key, PAIRS[key])
        if key in QUOTES and self.text[: self.cursor].endswith(2 * key):
            self.closers.append(3 * key)
            return self._insert(key, 3 * key)
        is_word_before = self.text[self.cursor - 1 : self.cursor].isalnum()
        if key in QUOTES and not is_word_before and key not in self.closers:
            self.closers.append(key)
            return self._insert(key, key)
        return self._insert(key)

    def _enter(self) -> tuple[int, int, str, bool]:
        """A new line, indented as the target's; between braces the closer gets a line of its own."""
        blanks = _blanks(self.target, self.at)
        self.at += len(blanks)
        closer = self.closers[-1] if self.closers else ""
        alone = self._line_of_closer(closer) if closer in PAIRS.values() else None
        if alone is None:
            return self._insert("\n" + blanks)
        self.closers[-1] = alone
        edit = self._insert("\n" + blanks, alone[: -len(closer)])
        return (*edit[:3], True)

    def _line_of_closer(self, closer: str) -> str | None:
        """The line ending and blanks before the closer where the target has it on a line of its own."""
        depth = 0
        opener = next(bracket for bracket, other in PAIRS.items() if other == closer)
        for place in range(self.at, len(self.target)):
            depth += (self.target[place] == opener) - (self.target[place] == closer)
            if depth < 0:
                line_start = self.target.rfind("\n", 0, place)
                blanks = self.target[line_start + 1 : place]
                return "\n" + blanks + closer if not blanks.strip() else None
        return None

    def _insert(self, before: str, after: str = "") -> tuple[int, int, str, bool]:
        edit = (self.cursor, self.cursor, before + after, "\n" in before)
        self.text = self.text[: self.cursor] + before + after + self.text[self.cursor :]
        self.cursor += len(before)
        return edit

    def _over(self, n_characters: int, is_new_line: bool) -> tuple[int, int, str, bool]:
        """Typing over what the editor closed replaces it by itself, as VS Code does."""
        same = self.text[self.cursor : self.cursor + n_characters]
        edit = (self.cursor, self.cursor + n_characters, same, is_new_line)
        self.cursor += n_characters
        return edit


def _blanks(text: str, at: int) -> str:
    end = at
    while end < len(text) and text[end] in " \t":
        end += 1
    return text[at:end]


@dataclass
class Key:
    """One request."""

    language: str
    is_new_line: bool
    n_evaluated: int
    """Tokens evaluated before the first new one."""
    source: str
    """`decoded`, `recycled`, `typed through`, or the reason for nothing."""
    ms: float


async def type_all(arguments: list[str], n_keys: int) -> list[Key]:
    """Type every piece into one server."""
    client = LanguageClient("treefill-bench", "1")
    await client.start_io(sys.executable, *arguments)
    capabilities = types.ClientCapabilities(
        text_document=types.TextDocumentClientCapabilities(
            inline_completion=types.InlineCompletionClientCapabilities()
        )
    )
    await client.initialize_async(types.InitializeParams(capabilities, os.getpid()))
    client.initialized(types.InitializedParams())
    keys: list[Key] = []
    for piece in pieces(n_keys):
        keys += await type_piece(client, piece)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return keys


async def type_piece(client: LanguageClient, piece: Piece) -> list[Key]:
    """Take the piece out of its file, open that, and type it again."""
    text = piece.path.read_text("utf-8")
    start = text.index("\n" + piece.begin) + 1
    before, rest = text[:start], text[start:]
    target = rest[: 4 * piece.n_keys]
    below = rest[rest.find("\n", len(target)) + 1 :] if len(rest) > len(target) else ""
    typist = Typist(before + "\n" + below, len(before), target)
    uri = piece.path.as_uri()
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, piece.language, 0, typist.text))
    )
    await ask(client, uri, typist, wait=True)
    keys: list[Key] = []
    for version in range(1, piece.n_keys + 1):
        old = typist.text
        edit = typist.press()
        if edit is None:
            break
        change(client, uri, version, old, edit)
        began = time.perf_counter()
        told = await ask(client, uri, typist)
        ms = (time.perf_counter() - began) * 1000
        assert told["text"] == typist.text, "the server's copy of the document differs from the editor's"
        source = told.get("source") or told.get("reason") or "decoded"
        keys.append(Key(piece.language, edit[3], told.get("n_evaluated", 0), source, ms))
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    return keys


def change(
    client: LanguageClient, uri: str, version: int, text: str, edit: tuple[int, int, str, bool]
) -> None:
    """Tell the server of one edit of `text`."""
    start, end, new, _ = edit
    span = types.Range(position(text, start), position(text, end))
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(version, uri),
            [types.TextDocumentContentChangePartial(range=span, text=new)],
        )
    )


async def ask(client: LanguageClient, uri: str, typist: Typist, wait: bool = False) -> dict[str, Any]:
    """Ask at the cursor, and how the answer came about; `wait` for a model that is still being loaded."""
    place = position(typist.text, typist.cursor)
    context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
    params = types.InlineCompletionParams(context, types.TextDocumentIdentifier(uri), place)
    while True:
        await client.text_document_inline_completion_async(params)
        told: dict[str, Any] = await client.workspace_execute_command_async(
            types.ExecuteCommandParams("treefill.explain", [uri])
        )
        if not wait or told.get("reason") not in ("no-core", "no-model"):
            return told
        await asyncio.sleep(0.1)


def position(text: str, offset: int) -> types.Position:
    """Of ASCII text, where all units are one."""
    line = text.count("\n", 0, offset)
    return types.Position(line, offset - text.rfind("\n", 0, offset) - 1)


def report(keys: list[Key]) -> dict[str, Any]:
    """The figures, all keys and by language."""
    groups = {"all": keys}
    for key in keys:
        groups.setdefault(key.language, []).append(key)
    return {name: summary(group) for name, group in groups.items()}


def summary(keys: list[Key]) -> dict[str, Any]:
    """One line of the report."""
    evaluated = sorted(key.n_evaluated for key in keys)
    asked = sorted(key.n_evaluated for key in keys if key.source in ("decoded", "recycled")) or [0]
    lines = sorted(key.n_evaluated for key in keys if key.is_new_line) or [0]
    sources: dict[str, int] = {}
    for key in keys:
        sources[key.source] = sources.get(key.source, 0) + 1
    return {
        "keys": len(keys),
        "evaluated_median": statistics.median(evaluated),
        "evaluated_p95": evaluated[int(0.95 * (len(evaluated) - 1))],
        "evaluated_max": evaluated[-1],
        "asked_of_model": len(asked),
        "asked_evaluated_median": statistics.median(asked),
        "asked_evaluated_p95": asked[int(0.95 * (len(asked) - 1))],
        "new_lines": sum(key.is_new_line for key in keys),
        "evaluated_at_new_lines_p95": lines[int(0.95 * (len(lines) - 1))],
        "evaluated_at_new_lines_max": lines[-1],
        "ms_median": round(statistics.median(key.ms for key in keys), 1),
        "sources": dict(sorted(sources.items(), key=lambda item: -item[1])),
    }


def main() -> None:
    """Type and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100, help="keys a language")
    parser.add_argument(
        "--server", nargs="+", default=["-m", "treefill", "serve"], help="arguments of Python"
    )
    options = parser.parse_args()
    load = psutil.getloadavg()[0]
    keys = asyncio.run(type_all(options.server, options.keys))
    print(json.dumps({"load": round(load, 1), **report(keys)}, indent=2))


if __name__ == "__main__":
    main()
