"""Nothing that the user writes, and no key, lies anywhere but in the editor, the server's memory and the prompt."""

from pathlib import Path

import pytest

from tests.lsp.conftest import StartServer
from tests.lsp.editor import Editor

pytestmark = pytest.mark.lsp

KEY = "sk-TEST-0000-not-real"
PLACE = "zebra_crossing"
"""Stands in every document: where it turns up in a file, a document's text has leaked."""
DEBUG = {"TREEFILL_TEST_LOG_LEVEL": "DEBUG"}


def leaks(folder: Path, words: tuple[str, ...]) -> list[str]:
    """Files below the folder that hold one of the words; the stub's own script and record are the test's."""
    own = {"script.json", "record.jsonl"}
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in own and not path.name.startswith("users-"):
            data = path.read_bytes()
            found += [f"{path.name}: {word}" for word in words if word.encode() in data]
    return found


@pytest.mark.parametrize("name", ["settings.toml", "users-.env"], ids=["our own settings", "an .env file"])
def test_g21_a_file_that_holds_a_key_is_left_alone(
    name: str, start_alone: StartServer, tmp_path: Path
) -> None:
    editor = start_alone({"texts": ["1"]})
    editor.wait_ready()
    secret = tmp_path / name.removeprefix("users-")
    main = tmp_path / "main.py"
    editor.open(secret.as_uri(), f'apiKey = "{KEY}"\nmodel = \n', "toml")

    for kind in (1, 2):
        assert editor.ask_at(secret.as_uri(), len(f'apiKey = "{KEY}"\nmodel = '), kind) == []
    accepted = editor.complete('KEY = "‸"\nmodel = apiKey\n', uri=main.as_uri())

    assert accepted == 'KEY = "1"\nmodel = apiKey\n'
    assert len(editor.calls) == 1
    assert KEY not in editor.prompt.text
    assert "apiKey = " not in editor.prompt.text
    assert editor.shut_down() == 0
    assert leaks(tmp_path, (KEY,)) == []


def test_g21_a_key_in_a_malformed_settings_file_is_not_quoted(
    start_alone: StartServer, tmp_path: Path
) -> None:
    for number, text in enumerate([f'{{"apiKey": "{KEY}"}}', f'api_key = "{KEY}"', f"model = {KEY}"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        settings = folder / "users-settings.toml"
        settings.write_text(text, encoding="utf-8")
        editor = start_alone(
            {"texts": ["1"]}, folder=folder, environment={**DEBUG, "TREEFILL_SETTINGS": str(settings)}
        )

        assert editor.complete("x = ‸") == "x = 1", "the defaults serve"

        assert len(editor.messages) == 1
        assert KEY not in editor.messages[0]
        assert leaks(folder, (KEY,)) == []


def test_g21_no_log_at_any_level_and_no_file_holds_text_of_a_document(
    start: StartServer, tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    script = {"texts": [f"{PLACE} + 1"], "raises_at": [2], "dies_at": [4]}
    environment = {**DEBUG, "TMPDIR": str(temporary), "HOME": str(tmp_path)}
    editor = start(script, environment=environment)
    editor.wait_ready()
    uri = f"file:///w/{PLACE}.py"
    editor.open(uri, f'{PLACE} = "{KEY}"\nx = ')

    everything_that_can_go_wrong(editor, uri)
    assert editor.ask_at(uri, len(editor.texts[uri])), "the fifth call works again"

    words = (KEY, PLACE, PLACE.encode().hex())
    assert leaks(tmp_path, words) == []
    assert all(word not in message for word in words for message in editor.messages)
    assert (tmp_path / "run").is_dir(), "the core's log is there and was looked at"
    assert list((tmp_path / "run").glob("*.log"))
    assert list(temporary.iterdir()) == []
    assert "treefill" in editor.stderr, "and so was the front's"


def everything_that_can_go_wrong(editor: Editor, uri: str) -> None:
    """Answers, an error that quotes the prompt, malformed messages, a core that dies, documents that get lost."""
    end = len(editor.texts[uri])
    editor.ask_at(uri, end)
    editor.replace(uri, end, end, "y = ")
    editor.ask_at(uri, end + 4)  # the second call raises
    editor.ask_at(uri, end + 4)
    editor.replace(uri, end, end + 4, "(")
    asked = editor.ask_at(uri, end + 1)  # the fourth ends the core
    assert asked == []
    editor.change(uri, [{"range": PLACE, "text": PLACE}])
    editor.change(uri, [{"text": editor.texts[uri]}])
    editor.change(uri, [{"range": None, "text": PLACE}], version=0)
    editor.notify("textDocument/didChange", {"textDocument": PLACE, "contentChanges": PLACE})
    editor.notify(PLACE, {PLACE: PLACE})
    editor.request(PLACE, {PLACE: PLACE})
    editor.request("textDocument/inlineCompletion", {"textDocument": {"uri": PLACE}, "position": PLACE})
    editor.request("workspace/executeCommand", {"command": PLACE, "arguments": [PLACE]})
    editor.request("textDocument/hover", PLACE)
    editor.send_bytes(f"{PLACE}\r\n{KEY}\r\n\r\n".encode())
    editor.send_bytes(f"Content-Length: {len(PLACE)}\r\n\r\n{PLACE}".encode())
    editor.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "text": [PLACE]}})
    editor.close_document(uri)
    editor.open(uri, f'{PLACE} = "{KEY}"\nz = ', version=99)
    editor.wait_until(lambda editor: editor.statuses[-1]["message"] == "ready")
