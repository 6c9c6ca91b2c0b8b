"""Editors differ: in what they can show, how they count, what they set and when they say so."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import StartServer
from tests.lsp.editor import Editor, applied, assert_c0, position_of

pytestmark = pytest.mark.lsp

FILE = "file:///w/a.py"
INLINE = "textDocument/inlineCompletion"
INLINE_ONLY = {"textDocument": {"inlineCompletion": {}}}
LIST_ONLY = {"textDocument": {"completion": {}}}
BOTH = {"textDocument": {"inlineCompletion": {}, "completion": {}}}


def ask_with(editor: Editor, character: int, context: dict[str, Any]) -> list[dict[str, Any]]:
    """The items for a context that is sent as it stands."""
    position = {"line": 0, "character": character}
    params = {"textDocument": {"uri": FILE}, "position": position, "context": context}
    items: list[dict[str, Any]] = editor.request(INLINE, params)["result"]["items"]
    return items


# Version 9 of VS Code's client.


def test_trigger_kinds_may_count_from_zero(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["one", "two", "three"]})
    editor.wait_ready()
    editor.open(FILE, "x = ")

    invoked = ask_with(editor, 4, {"triggerKind": 0})
    editor.replace(FILE, 0, 0, "y")
    automatic = ask_with(editor, 5, {"triggerKind": 1})

    assert len(invoked) == 3
    assert len(automatic) == 1, "after a kind 0, kind 1 is the automatic one"


def test_trigger_kinds_count_from_one_by_the_specification(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["one", "two", "three"]})
    editor.wait_ready()
    editor.open(FILE, "x = ")

    assert len(ask_with(editor, 4, {"triggerKind": 1})) == 3
    editor.replace(FILE, 0, 0, "y")
    assert len(ask_with(editor, 5, {"triggerKind": 2})) == 1


def test_a_client_may_say_at_once_that_it_counts_from_zero(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["one", "two", "three"]}, options={"countsTriggerKindsFromZero": True})
    editor.wait_ready()
    editor.open(FILE, "x = ")

    assert len(ask_with(editor, 4, {"triggerKind": 1})) == 1


def test_a_selected_completion_may_have_its_range_as_a_pair(start_alone: StartServer) -> None:
    editor = start_alone({"by_end": {"console.log": "(1)"}})
    editor.wait_ready()
    editor.open(FILE, "console.lo")
    pair = [{"line": 0, "character": 8}, {"line": 0, "character": 10}]

    (item,) = ask_with(
        editor, 10, {"triggerKind": 1, "selectedCompletionInfo": {"range": pair, "text": "log"}}
    )

    assert applied("console.lo", item) == "console.log(1)"


# The editor's own completion list.


@pytest.mark.parametrize(
    ("typed", "start_at", "selected", "rest"),
    [("xs.co", 3, "count", "(1)"), ("xs.", 3, "append", "(1)"), ("xs.CO", 3, "count", "(1)")],
)
def test_a_suggestion_goes_on_from_what_is_selected(
    typed: str, start_at: int, selected: str, rest: str, editor: Editor
) -> None:
    editor.play(by_end={f"xs.{selected}": rest}, texts=["WRONG"])
    editor.open(FILE, typed)
    edges = {edge: {"line": 0, "character": n} for edge, n in (("start", start_at), ("end", len(typed)))}

    for kind in (1, 2):
        context = {"triggerKind": kind, "selectedCompletionInfo": {"range": edges, "text": selected}}
        items = ask_with(editor, len(typed), context)
        assert items
        for item in items:
            assert item["range"] == edges
            assert item["insertText"] == f"{selected}{rest}"
    assert editor.prompt.before == f"xs.{selected}"


def test_nothing_is_suggested_where_the_model_has_nothing_to_add(editor: Editor) -> None:
    editor.play(texts=[""])
    editor.open(FILE, "xs.co")
    edges = {"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 5}}

    context = {"triggerKind": 2, "selectedCompletionInfo": {"range": edges, "text": "count"}}

    assert ask_with(editor, 5, context) == []


def test_a_selected_import_does_not_spoil_the_next_request(editor: Editor) -> None:
    editor.play(by_end={"xs.count": "(1)", "xs.co": "py()"})
    editor.open(FILE, "xs.co")
    edges = {"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 5}}
    ask_with(editor, 5, {"triggerKind": 2, "selectedCompletionInfo": {"range": edges, "text": "count"}})

    (item,) = ask_with(editor, 5, {"triggerKind": 2})

    assert applied("xs.co", item) == "xs.copy()"


# What a client can show.


@pytest.mark.parametrize(
    ("capabilities", "is_inline", "is_list"),
    [(INLINE_ONLY, True, False), (LIST_ONLY, True, True), (BOTH, True, False), ({}, True, True)],
    ids=["inline only", "lists only", "both", "says nothing"],
)
def test_a_list_is_offered_where_there_is_no_inline_completion_only(
    capabilities: dict[str, Any], is_inline: bool, is_list: bool, start_alone: StartServer
) -> None:
    offered = start_alone(is_initialized=False).initialize(capabilities)

    assert ("inlineCompletionProvider" in offered) == is_inline
    assert ("completionProvider" in offered) == is_list
    assert offered["positionEncoding"] == "utf-16"
    assert "treefill.accepted" in offered["executeCommandProvider"]["commands"]
    for undue in ("hoverProvider", "documentFormattingProvider", "definitionProvider"):
        assert undue not in offered


def test_a_client_without_inline_completion_gets_list_items(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["3, 5)"]}, capabilities=LIST_ONLY)
    editor.wait_ready()
    text = "total = max()"
    editor.open(FILE, text)
    position = {"line": 0, "character": 12}

    params = {"textDocument": {"uri": FILE}, "position": position, "context": {"triggerKind": 1}}
    answer = editor.request("textDocument/completion", params)["result"]

    (item,) = answer["items"]
    edit = {"insertText": item["textEdit"]["newText"], "range": item["textEdit"]["range"]}
    assert_c0(text, position, edit)
    assert applied(text, edit) == "total = max(3, 5)"
    assert answer["isIncomplete"] is True
    assert item["label"].startswith("3, 5")


@pytest.mark.parametrize("kind", [1, 2])
def test_who_asked_may_choose_and_who_did_not_is_shown_one(kind: int, editor: Editor) -> None:
    editor.play(texts=["one", "two", "three"])
    editor.open(FILE, "x = ")

    items = editor.ask_at(FILE, 4, kind)

    assert len(items) == (3 if kind == 1 else 1)
    assert len({item["insertText"] for item in items}) == len(items)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["utf-8", "utf-16", "utf-32"], "utf-8"),
        (["utf-8"], "utf-8"),
        (["utf-32"], "utf-32"),
        (["utf-16"], "utf-16"),
        ([], "utf-16"),
        (None, "utf-16"),
    ],
)
def test_positions_count_in_the_units_agreed_on(
    offered: list[str] | None, chosen: str, start_alone: StartServer
) -> None:
    """In `s = "🙂é" + ` the second quote ends after 12 bytes, 8 characters, 9 UTF-16 units."""
    text = 's = "🙂é" + \n'
    general = {} if offered is None else {"general": {"positionEncodings": offered}}
    editor = start_alone({"texts": ["x"]}, is_initialized=False)
    encoding = editor.initialize({**INLINE_ONLY, **general})["positionEncoding"]
    assert encoding == chosen
    quote_ends_at = {"utf-8": 12, "utf-16": 9, "utf-32": 8}[encoding]
    editor.wait_ready()
    editor.open(FILE, text)

    answer = editor.request(INLINE, inline_params(quote_ends_at + 3))["result"]["items"]
    assert editor.prompt.before == 's = "🙂é" + '
    assert [item["range"]["start"]["character"] for item in answer] == [quote_ends_at + 3]

    end = {"line": 0, "character": quote_ends_at - 1}
    begin = {"line": 0, "character": 5}
    editor.change(FILE, [{"range": {"start": begin, "end": end}, "text": "ü"}])
    assert editor.mirror(FILE) == 's = "ü" + \n'


def inline_params(character: int) -> dict[str, Any]:
    position = {"line": 0, "character": character}
    return {"textDocument": {"uri": FILE}, "position": position, "context": {"triggerKind": 2}}


# Settings.

SIX_LINES = "\n    ".join(f"f{number}()" for number in range(6))
BLOCK = "def f(x):\n    "


def n_lines_suggested(editor: Editor) -> int:
    """How many lines a block gets."""
    editor.open(FILE, BLOCK + "\n")
    items = editor.ask_at(FILE, len(BLOCK))
    editor.close_document(FILE)
    return len(items[0]["insertText"].splitlines())


CONFIGURATION = {**INLINE_ONLY, "workspace": {"configuration": True}}


def test_settings_are_asked_for_and_change_an_answer(start_alone: StartServer) -> None:
    editor = start_alone({"texts": [SIX_LINES]}, is_initialized=False)
    editor.settings = {"max_lines": 2}
    editor.initialize(CONFIGURATION)
    editor.wait_ready()
    assert n_lines_suggested(editor) == 2

    editor.settings = {"max_lines": 3}
    editor.notify("workspace/didChangeConfiguration", {"settings": None})
    editor.wait_until(lambda editor: n_lines_suggested(editor) == 3)

    editor.settings = {}  # no longer set: what the handshake said, here nothing
    editor.notify("workspace/didChangeConfiguration", {"settings": {}})
    editor.wait_until(lambda editor: n_lines_suggested(editor) == 6)
    assert editor.messages == []


def test_settings_that_are_pushed_change_an_answer(start_alone: StartServer) -> None:
    editor = start_alone({"texts": [SIX_LINES]}, options={"treefill": {"max_lines": 4}})
    editor.wait_ready()
    assert n_lines_suggested(editor) == 4

    editor.notify("workspace/didChangeConfiguration", {"settings": {"treefill": {"max_lines": 1}}})

    editor.wait_until(lambda editor: n_lines_suggested(editor) == 1)


def test_settings_of_the_handshake_stay_where_the_editor_says_nothing_else(start_alone: StartServer) -> None:
    editor = start_alone({"texts": [SIX_LINES]}, is_initialized=False)
    editor.settings = {"max_new_tokens": None, "max_lines": None, "temperature": 0}
    editor.initialize(CONFIGURATION, options={"treefill": {"max_lines": 2}})
    editor.wait_ready()
    assert n_lines_suggested(editor) == 2

    for settings, section in (
        (None, {}),
        (None, None),
        ({"other": {"max_lines": 5}}, None),
        ({"treefill": {"mode": "auto"}}, None),
    ):
        editor.settings = section
        editor.notify("workspace/didChangeConfiguration", {"settings": settings})
        editor.explain(FILE)
        time.sleep(0.1)
        assert n_lines_suggested(editor) == 2, settings

    editor.notify("workspace/didChangeConfiguration", {"settings": {"treefill": {"max_lines": 3}}})
    editor.wait_until(lambda editor: n_lines_suggested(editor) == 3)


def test_no_core_is_started_before_the_editor_has_told_its_settings(start: StartServer) -> None:
    editor = start({"texts": [SIX_LINES]}, is_initialized=False)
    editor.settings = {"model": "another", "max_lines": 2}
    editor.initialize(CONFIGURATION)
    editor.wait_ready()

    assert n_lines_suggested(editor) == 2
    assert [note["settings"]["model"] for note in editor.notes if "settings" in note] == ["another"]


@pytest.mark.parametrize("answer", [None, [], "odd"], ids=str)
def test_an_editor_that_does_not_tell_its_settings_is_served_without(
    answer: Any, start_alone: StartServer
) -> None:
    editor = start_alone({"texts": [SIX_LINES]}, is_initialized=False)
    editor.answer_configuration = lambda: answer
    editor.initialize(CONFIGURATION, options={"treefill": {"max_lines": 2}})
    editor.wait_ready()

    assert n_lines_suggested(editor) == 2


@pytest.mark.parametrize(
    "name",
    ["cache_dir", "runtime_dir", "model_sources", "secret_patterns", "schemas", "threads", "core_linger_s"],
)
def test_an_editor_may_not_set_where_things_lie_or_what_is_secret(
    name: str, start: StartServer, tmp_path: Path
) -> None:
    value: Any = str(tmp_path / "evil") if name.endswith("dir") else ["hub"]
    value = 99 if name in ("threads", "core_linger_s") else value
    value = {"*": str(tmp_path / "evil")} if name == "schemas" else value
    editor = start({"texts": [SIX_LINES]}, options={"treefill": {name: value, "max_lines": 3}})
    editor.wait_ready()

    assert n_lines_suggested(editor) == 3, "the others are taken"
    editor.notify(
        "workspace/didChangeConfiguration", {"settings": {"treefill": {name: value, "max_lines": 4}}}
    )
    editor.wait_until(lambda editor: n_lines_suggested(editor) == 4)

    (message,) = editor.messages
    assert name in message
    assert f"TREEFILL_{name.upper()}" in message
    for of_core in (note["settings"] for note in editor.notes if "settings" in note):
        assert of_core[name] != value
        assert of_core["runtime_dir"] == str(tmp_path / "run")
    assert not (tmp_path / "evil").exists()


def test_an_editor_may_not_take_the_users_secret_patterns_away(start_alone: StartServer) -> None:
    editor = start_alone(
        {"texts": ["1"]},
        options={"treefill": {"secret_patterns": []}},
        environment={"TREEFILL_SECRET_PATTERNS": '["*.mine"]'},
    )

    assert editor.complete("x = ‸", uri="file:///w/a.mine") is None
    assert editor.calls == []
    assert editor.complete("x = ‸", uri=FILE) == "x = 1"


@pytest.mark.parametrize(
    ("given", "pieces"),
    [
        ({"max_lines": 0}, ["max_lines", "0", "greater than or equal to 1"]),
        ({"max_lines": "many"}, ["max_lines", "many", "integer"]),
        ({"mode": "novel"}, ["mode", "novel", "'auto', 'line' or 'block'"]),
        ({"max_linse": 3}, ["max_linse", "max_lines"]),
    ],
)
def test_a_setting_that_can_not_be_is_told_once_and_the_server_goes_on(
    given: dict[str, Any], pieces: list[str], start_alone: StartServer
) -> None:
    editor = start_alone({"texts": ["1"]}, options={"treefill": given})
    editor.wait_ready()
    editor.wait_until(lambda editor: editor.messages)

    for _ in range(2):
        editor.notify("workspace/didChangeConfiguration", {"settings": {"treefill": given}})
    assert editor.complete("x = ‸") == "x = 1"

    (message,) = editor.messages
    assert all(piece in message for piece in pieces), message


@pytest.mark.parametrize("settings", [None, 7, [], "text", {"treefill": 7}, {"other": {"max_lines": 1}}])
def test_settings_of_an_odd_shape_are_no_settings(settings: Any, editor: Editor) -> None:
    editor.play(texts=["1"])

    editor.notify("workspace/didChangeConfiguration", {"settings": settings})

    assert editor.complete("x = ‸", uri=FILE) == "x = 1"


# What is shown meanwhile.


def progress(editor: Editor) -> list[str]:
    return [
        note["params"]["value"]["kind"] for note in editor.notifications if note["method"] == "$/progress"
    ]


def test_a_progress_bar_is_shown_while_the_model_loads(start_alone: StartServer) -> None:
    capabilities = {**INLINE_ONLY, "window": {"workDoneProgress": True}}
    editor = start_alone({"texts": ["1"], "load_ms": 1500}, capabilities=capabilities)

    editor.wait_until(lambda editor: progress(editor) == ["begin"])
    assert editor.statuses[-1]["message"] == "loading the model"
    editor.wait_until(lambda editor: progress(editor) == ["begin", "end"])

    editor.wait_ready()
    assert editor.complete("x = ‸") == "x = 1"
    assert progress(editor) == ["begin", "end"]


def test_a_client_that_knows_no_progress_gets_none(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["1"], "load_ms": 500})

    assert editor.complete("x = ‸") == "x = 1"

    assert progress(editor) == []


def test_what_is_asked_while_the_model_loads_is_answered_afterwards(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["1"], "load_ms": 1500})
    editor.wait_until(lambda e: any(status["message"] == "loading the model" for status in e.statuses))
    editor.open(FILE, "x = ")

    (item,) = editor.ask_at(FILE, 4)

    assert applied("x = ", item) == "x = 1"


def test_states_are_told_only_to_who_knows_them(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["1"]}, options={"statusNotifications": False})
    editor.open(FILE, "x = ")
    editor.wait_until(lambda editor: editor.ask_at(FILE, 4))

    assert editor.notifications == []


# What a client tells.


def test_accepting_and_customary_notifications_are_taken_without_complaint(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["1"]})
    editor.wait_ready()
    editor.open(FILE, "x = ")
    (item,) = editor.ask_at(FILE, 4)

    command = item["command"]
    accepted = {"command": command["command"], "arguments": command["arguments"]}
    assert "result" in editor.request("workspace/executeCommand", accepted)
    assert "result" in editor.request("workspace/executeCommand", {"command": command["command"]})
    editor.notify("textDocument/didShowCompletion", {"item": item})
    editor.notify("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 1})
    editor.notify("textDocument/didFocus", {"textDocument": {"uri": FILE}})
    editor.notify("textDocument/didSave", {"textDocument": {"uri": FILE}})
    editor.notify("$/setTrace", {"value": "verbose"})
    editor.replace(FILE, 4, 4, "1")
    assert editor.mirror(FILE) == "x = 1"

    assert editor.messages == []
    assert "could not be handled" not in editor.stderr
    assert "ignored" not in editor.stderr


def test_a_request_may_carry_what_copilots_clients_send(editor: Editor) -> None:
    editor.play(texts=["1"])
    editor.open(FILE, "x = ", version=3)
    params = inline_params(4)
    params["textDocument"]["version"] = 3
    params["formattingOptions"] = {"tabSize": 4, "insertSpaces": True}

    (item,) = editor.request(INLINE, params)["result"]["items"]

    assert applied("x = ", item) == "x = 1"


def test_workspace_folders_may_come_and_go(start_alone: StartServer, tmp_path: Path) -> None:
    editor = start_alone({"texts": ["1"]})
    editor.wait_ready()
    near, far = (tmp_path / "root" / name / "f.py" for name in ("a", "b"))
    editor.open(far.as_uri(), "def far_away(): ...\n")
    editor.open(near.as_uri(), "far_away = ")
    folder = {"uri": (tmp_path / "root").as_uri(), "name": "root"}

    for added, removed, is_seen in (([], [], False), ([folder], [], True), ([], [folder], False)):
        event = {"event": {"added": added, "removed": removed}}
        editor.notify("workspace/didChangeWorkspaceFolders", event)
        editor.replace(near.as_uri(), 0, 0, "x")
        editor.ask(near.as_uri(), position_of(editor.texts[near.as_uri()], len(editor.texts[near.as_uri()])))
        assert ("def far_away" in editor.prompt.text) == is_seen
