"""What becomes of suggestions is counted, told by a command, and stored as numbers."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import StartServer
from tests.lsp.editor import Editor, offset_of

pytestmark = pytest.mark.lsp

URI = "file:///w/zebra_path.py"
TEXT = "zebra_name = \nprint(zebra_name)\n"
SUGGESTION = "zebra_call(1) + 2"


def statistics(editor: Editor) -> dict[str, Any]:
    answer = editor.request("workspace/executeCommand", {"command": "treefill.statistics"})
    result: dict[str, Any] = answer["result"]
    return result


def ask(editor: Editor) -> dict[str, Any]:
    """Open the document and ask; the item."""
    editor.wait_ready()
    editor.open(URI, TEXT)
    (item,) = editor.ask_at(URI, TEXT.index("\n"))
    assert item["insertText"] == SUGGESTION
    return item


def accept(editor: Editor, item: dict[str, Any]) -> None:
    """As an editor does that runs an item's command: the edit, then the command."""
    start, end = (offset_of(editor.texts[URI], item["range"][edge]) for edge in ("start", "end"))
    editor.replace(URI, start, end, item["insertText"])
    command = {"command": item["command"]["command"], "arguments": item["command"]["arguments"]}
    assert "error" not in editor.request("workspace/executeCommand", command)


def stored(folder: Path) -> dict[tuple[str, str], int]:
    connection = sqlite3.connect(folder / "state" / "statistics.sqlite")
    rows = connection.execute("SELECT language, name, value FROM counts").fetchall()
    connection.close()
    return {(language, name): n for language, name, n in rows}


def test_a_suggestion_that_is_accepted_is_told_of_and_stored_without_its_text(
    start: StartServer, tmp_path: Path
) -> None:
    editor = start({"texts": [SUGGESTION]})
    accept(editor, ask(editor))

    told = statistics(editor)

    sums = {"offered": 1, "accepted": 1, "partly_accepted": 0, "characters_accepted": len(SUGGESTION)}
    assert [{**day, "day": ""} for day in told["days"]] == [{"day": "", **sums}]
    assert told["since"] == told["days"][0]["day"]
    assert [{**row, "syntax": {}} for row in told["languages"]] == [
        {"language": "python", **sums, "syntax": {}}
    ]
    assert told["acceptance_rate"] == 1
    assert told["kept_share"] is None, "nobody knows yet"
    assert told["latency_ms"]["decoded"]["n"] == 1
    assert told["latency_ms"]["decoded"]["p50"] > 0
    assert told["cache"]["decoded_tokens"] > 0
    assert told["cache"]["evaluated_tokens"] > 0
    editor.close_document(URI)
    assert statistics(editor)["kept_share"] == 1
    assert editor.shut_down() == 0

    assert stored(tmp_path)["python", "accepted"] == 1
    assert stored(tmp_path)["python", "characters_kept"] == len(SUGGESTION)
    files = list((tmp_path / "state").iterdir())
    assert [path.name for path in files] == ["statistics.sqlite"]
    assert b"zebra" not in files[0].read_bytes()


def test_the_next_session_adds_to_what_is_stored(start: StartServer) -> None:
    for n_sessions in (1, 2):
        editor = start({"texts": [SUGGESTION]})
        accept(editor, ask(editor))
        assert statistics(editor)["total"]["accepted"] == n_sessions
        assert editor.shut_down() == 0


def test_typing_a_suggestion_is_not_accepting_it(start_alone: StartServer) -> None:
    editor = start_alone({"texts": [SUGGESTION]})
    ask(editor)

    for number, key in enumerate(SUGGESTION[:-1], TEXT.index("\n")):
        editor.replace(URI, number, number, key)
        editor.ask_at(URI, number + 1)

    told = statistics(editor)
    assert told["total"]["offered"] == 1
    assert told["total"]["accepted"] == told["total"]["partly_accepted"] == 0
    assert told["latency_ms"]["reused"]["n"] >= len(SUGGESTION) - 2


def test_an_editor_may_say_that_nothing_is_counted(start: StartServer, tmp_path: Path) -> None:
    editor = start({"texts": [SUGGESTION]}, options={"treefill": {"statistics": False}})
    accept(editor, ask(editor))

    assert statistics(editor)["total"]["offered"] == 0
    assert editor.shut_down() == 0
    assert not (tmp_path / "state").exists()


def test_a_session_that_is_killed_by_its_editors_end_stores_its_numbers(
    start: StartServer, tmp_path: Path
) -> None:
    editor = start({"texts": [SUGGESTION]})
    accept(editor, ask(editor))

    assert editor.process.stdin is not None
    editor.process.stdin.close()
    editor.process.wait(10)

    assert stored(tmp_path)["python", "accepted"] == 1
