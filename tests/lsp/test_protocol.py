"""Whatever comes in, the stream stays whole, each request gets exactly one answer, and the server lives."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import StartServer
from tests.lsp.editor import LINE, Editor, applied, assert_c0, framed, offset_of, position_of

pytestmark = pytest.mark.lsp

FILE = "file:///w/a.py"
INLINE = "textDocument/inlineCompletion"
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, NOT_INITIALIZED = -32600, -32601, -32602, -32002


NOISY_IMPORTS = """
import sys

class Noisy:
    def find_spec(self, name, path=None, target=None):
        if name in ("pygls", "lsprotocol", "pydantic_settings"):
            print("noise while importing", name, flush=True)

sys.meta_path.insert(0, Noisy())
"""


def assert_lives(editor: Editor) -> None:
    """A suggestion comes in a document that is new."""
    editor.play(texts=["1"])
    uri = "file:///w/lives.py"
    assert editor.complete("x = ‸", uri=uri) == "x = 1"
    editor.close_document(uri)


# Noise.


def test_g25_what_is_printed_while_it_is_imported_does_not_break_the_stream(
    start: StartServer, tmp_path: Path
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(NOISY_IMPORTS)
    path = os.pathsep.join([str(hooks), os.environ.get("PYTHONPATH", "")])
    editor = start(program=("-m", "treefill"), serve=("serve", "--no-core"), environment={"PYTHONPATH": path})
    editor.wait_until(lambda editor: "noise while importing pydantic_settings" in editor.stderr)

    assert editor.shut_down() == 0

    assert editor.stray == b""
    assert "noise while importing pygls" in editor.stderr


@pytest.mark.parametrize("serve", [("serve",), ("serve", "--no-core")], ids=["shared core", "no core"])
def test_g25_what_libraries_print_does_not_break_the_stream(
    serve: tuple[str, ...], start: StartServer
) -> None:
    editor = start({"texts": ["1"], "prints": True}, serve=serve)

    assert editor.complete("x = ‸") == "x = 1"

    assert editor.stray == b""
    logs = editor.stderr + "".join(log.read_text("utf-8") for log in (editor.folder / "run").glob("*.log"))
    for noise in ("noise while loading", "noise while generating", "noise from C", "noise without a buffer"):
        assert noise in logs
    editor.replace(FILE, 0, 0, "x")
    assert editor.ask_at(FILE, 5)


# Notebooks.

CELLS = {"#W1": "def mul(x, y):\n    return x * y\n", "#W2": "mul("}
NOTEBOOK = "vscode-notebook-cell:/n.ipynb"


def test_g26_notebook_cells_opened_as_documents_are_completed(editor: Editor) -> None:
    editor.play(texts=["2, 3)"])
    for fragment, text in CELLS.items():
        editor.open(NOTEBOOK + fragment, text)

    (item,) = editor.ask(NOTEBOOK + "#W2", {"line": 0, "character": 4})

    assert applied(CELLS["#W2"], item) == "mul(2, 3)"
    assert editor.prompt.before.endswith("mul(")


def test_g26_notebook_cells_of_a_notebook_are_completed_and_see_the_cells_above(editor: Editor) -> None:
    editor.play(texts=["2, 3)"])
    notebook = {"uri": "file:///n.ipynb", "notebookType": "jupyter-notebook", "version": 1}
    cells = [{"kind": 2, "document": NOTEBOOK + fragment} for fragment in CELLS]
    documents = [
        {"uri": NOTEBOOK + fragment, "languageId": "python", "version": 1, "text": text}
        for fragment, text in CELLS.items()
    ]
    opened = {"notebookDocument": {**notebook, "cells": cells}, "cellTextDocuments": documents}

    editor.notify("notebookDocument/didOpen", opened)
    for number in range(9):  # more than are looked at, and newer
        editor.open(f"file:///{number}.py", f"n = {number}\n")
    editor.texts[NOTEBOOK + "#W2"] = "mul("
    (item,) = editor.ask(NOTEBOOK + "#W2", {"line": 0, "character": 4})
    assert applied("mul(", item) == "mul(2, 3)"
    assert "def mul(x, y):" in editor.prompt.text

    edit = {
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
        "text": "z = ",
    }
    content = {"document": {"uri": NOTEBOOK + "#W2", "version": 2}, "changes": [edit]}
    changed = {
        "notebookDocument": {**notebook, "version": 2},
        "change": {"cells": {"textContent": [content]}},
    }
    editor.notify("notebookDocument/didChange", changed)
    assert editor.mirror(NOTEBOOK + "#W2") == "z = mul("

    closed = {"notebookDocument": notebook, "cellTextDocuments": [{"uri": NOTEBOOK + f} for f in CELLS]}
    editor.notify("notebookDocument/didClose", closed)
    assert editor.ask(NOTEBOOK + "#W2", {"line": 0, "character": 4}) == []


def test_g26_notebooks_are_advertised_to_who_knows_them_since_they_are_followed(
    start_alone: StartServer,
) -> None:
    capabilities = {"notebookDocument": {"synchronization": {}}, "textDocument": {"inlineCompletion": {}}}
    editor = start_alone(is_initialized=False)

    assert editor.initialize(capabilities)["notebookDocumentSync"]["notebookSelector"]
    assert "notebookDocumentSync" not in start_alone(is_initialized=False).initialize()


# Framing.


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0\xff\xfe garbage\r\n\r\n",
        b"Content-Type: nonsense\r\n\r\n",
        b"Content-Length: \r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"Content-Length: 999999999999\r\n\r\n{}",
        b"\r\n\r\n\r\n\n\n",
        b"x" * 100_000,
    ],
)
def test_garbage_between_messages_is_skipped(garbage: bytes, editor: Editor) -> None:
    editor.send_bytes(garbage)
    assert_lives(editor)

    # In one piece with the message that follows, too.
    message = {"jsonrpc": "2.0", "id": "behind", "method": "workspace/executeCommand", "params": EXPLAIN}
    editor.answers.pop("behind", None)
    editor.n_answers.pop("behind", None)
    editor.send_bytes(garbage + framed(message))
    assert "result" in editor.wait_for("behind")


EXPLAIN = {"command": "treefill.explain", "arguments": [FILE]}


def test_a_length_that_is_too_short_costs_no_more_than_its_message(editor: Editor) -> None:
    whole = framed({"jsonrpc": "2.0", "method": "$/nothing", "params": {}})
    body = whole.split(b"\r\n\r\n")[1]

    editor.send_bytes(b"Content-Length: %d\r\n\r\n" % (len(body) - 9) + body)

    assert_lives(editor)


def test_a_length_that_is_too_long_costs_no_more_than_the_next_message(editor: Editor) -> None:
    body = framed({"jsonrpc": "2.0", "method": "$/nothing", "params": {}}).split(b"\r\n\r\n")[1]

    editor.send_bytes(b"Content-Length: %d\r\n\r\n" % (len(body) + 9) + body)
    editor.notify("$/nothing", {})

    assert_lives(editor)


@pytest.mark.parametrize(
    "head",
    [
        b"content-length: %d\r\n\r\n",
        b"CONTENT-LENGTH:%d\r\n\r\n",
        b"Content-Length:    %d   \r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        b"Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\nX-More: 1\r\n\r\n",
        b"Content-Length: %d\n\n",
    ],
)
def test_headers_are_read_in_whatever_form(head: bytes, editor: Editor) -> None:
    message = {"jsonrpc": "2.0", "id": str(head), "method": "workspace/executeCommand", "params": EXPLAIN}
    body = json.dumps(message).encode()

    editor.send_bytes(head % len(body) + body)

    assert "result" in editor.wait_for(str(head))


def test_a_message_may_come_byte_by_byte(editor: Editor) -> None:
    message = {"jsonrpc": "2.0", "id": "slowly", "method": "workspace/executeCommand", "params": EXPLAIN}

    for byte in framed(message):
        editor.send_bytes(bytes([byte]))

    assert "result" in editor.wait_for("slowly")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"not JSON", b"\xff\xfe\xfd", b"[1, 2]", b"7", b"null", b'"text"', b"[" * 100_000, b"{}"],
    ids=lambda body: repr(body[:10]),
)
def test_a_body_that_is_no_message_is_ignored(body: bytes, editor: Editor) -> None:
    editor.send_bytes(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    assert_lives(editor)


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0"},
        {"method": 7, "params": {}},
        {"jsonrpc": "2.0", "id": 90_001},
        {"jsonrpc": "2.0", "id": 90_002, "result": {}},
        {"jsonrpc": "2.0", "id": 90_003, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": None, "method": INLINE, "params": {}},
        {"jsonrpc": "2.0", "id": [1], "method": INLINE, "params": {}},
        {"jsonrpc": "2.0", "id": {"a": 1}, "method": "nothing/known", "params": {}},
        {"jsonrpc": "1.0", "method": "initialized", "params": 7},
    ],
    ids=json.dumps,
)
def test_a_message_of_an_odd_shape_is_survived(message: dict[str, Any], editor: Editor) -> None:
    editor.send(message)

    assert_lives(editor)


# The life of a session.


def test_a_request_before_initialize_is_refused(start_alone: StartServer) -> None:
    editor = start_alone(is_initialized=False)

    answers = [
        editor.request(method, {})
        for method in (INLINE, "shutdown", "workspace/executeCommand", "nothing/known")
    ]

    assert [answer["error"]["code"] for answer in answers] == [NOT_INITIALIZED] * 4
    editor.notify("textDocument/didOpen", {"textDocument": {"uri": FILE, "text": "x"}})
    editor.initialize()
    assert_lives(editor)


def test_a_request_after_shutdown_is_refused(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["1"]})
    assert editor.complete("x = ‸") == "x = 1"

    assert editor.request("shutdown", None)["result"] is None
    answers = [editor.request(method, {}) for method in (INLINE, "shutdown", "nothing/known")]

    assert [answer["error"]["code"] for answer in answers] == [INVALID_REQUEST] * 3
    editor.notify("exit", None)
    assert editor.process.wait(10) == 0


def test_a_second_initialize_changes_nothing(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["1"]})
    editor.wait_ready()

    answer = editor.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})

    assert answer.keys() & {"result", "error"}
    assert_lives(editor)


def test_an_unknown_request_gets_one_error_and_an_unknown_notification_nothing(editor: Editor) -> None:
    n_before = len(editor.notifications)

    answer = editor.request("nothing/known", {"a": 1})
    editor.notify("nothing/known", {"a": 1})
    editor.notify("$/nothing", {"a": 1})

    assert answer["error"]["code"] == METHOD_NOT_FOUND
    assert_lives(editor)
    shown = [note for note in editor.notifications[n_before:] if note["method"] == "window/showMessage"]
    assert shown == []


# Parameters.

WHOLE = {
    "textDocument": {"uri": FILE},
    "position": {"line": 0, "character": 4},
    "context": {"triggerKind": 2},
}
MALFORMED: list[Any] = [
    None,
    [],
    7,
    "text",
    {},
    {"textDocument": None},
    {"textDocument": {"uri": 7}, "position": {"line": 0, "character": 0}},
    {**WHOLE, "position": None},
    {**WHOLE, "position": {"line": "0", "character": 4}},
    {**WHOLE, "position": {"line": True, "character": 4}},
    {**WHOLE, "position": [0, 4]},
    {**WHOLE, "textDocument": FILE},
]


@pytest.mark.parametrize("params", MALFORMED, ids=json.dumps)
def test_malformed_parameters_of_a_suggestion_are_answered_with_nothing(params: Any, editor: Editor) -> None:
    editor.open(FILE, "x = ")

    request_id = editor.begin(INLINE, params)

    assert editor.wait_for(request_id)["result"] == {"items": []}
    assert_lives(editor)
    assert editor.n_answers[request_id] == 1


@pytest.mark.parametrize("params", MALFORMED, ids=json.dumps)
def test_malformed_parameters_of_a_completion_list_are_answered_with_nothing(
    params: Any, list_editor: Editor
) -> None:
    list_editor.open(FILE, "x = ")

    request_id = list_editor.begin("textDocument/completion", params)

    assert list_editor.wait_for(request_id)["result"]["items"] == []
    assert list_editor.request("nothing/known", None)["error"]["code"] == METHOD_NOT_FOUND
    assert list_editor.n_answers[request_id] == 1


@pytest.fixture(scope="module")
def list_editor(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A client that knows completion lists only."""
    folder = tmp_path_factory.mktemp("list")
    with Editor(folder, {"texts": ["1"]}, capabilities={"textDocument": {"completion": {}}}) as editor:
        editor.wait_ready()
        yield editor


@pytest.mark.parametrize(
    "context",
    [
        None,
        7,
        {},
        {"triggerKind": "2"},
        {"triggerKind": 99},
        {"triggerKind": 2, "selectedCompletionInfo": 7},
        {"triggerKind": 2, "selectedCompletionInfo": {"range": [1], "text": 8}},
    ],
    ids=json.dumps,
)
def test_a_malformed_context_does_not_keep_a_suggestion_back(context: Any, editor: Editor) -> None:
    editor.play(texts=["1"])
    editor.open(FILE, "x = ")

    answer = editor.request(INLINE, {**WHOLE, "context": context})

    assert applied("x = ", answer["result"]["items"][0]) == "x = 1"


MALFORMED_NOTIFICATIONS = [
    "textDocument/didOpen",
    "textDocument/didChange",
    "textDocument/didClose",
    "notebookDocument/didOpen",
    "notebookDocument/didChange",
    "notebookDocument/didClose",
    "workspace/didChangeConfiguration",
    "workspace/didChangeWorkspaceFolders",
    "$/cancelRequest",
    "$/setTrace",
    "initialized",
    "textDocument/didSave",
    "textDocument/didShowCompletion",
]


@pytest.mark.parametrize("method", MALFORMED_NOTIFICATIONS)
def test_malformed_notifications_are_survived(method: str, editor: Editor) -> None:
    nested = {
        "textDocument": {"uri": FILE, "version": "x"},
        "contentChanges": [None, 7, {"text": 7}, {"range": 7, "text": ""}],
        "notebookDocument": {"uri": FILE, "cells": [None, 7, {"document": 7}]},
        "cellTextDocuments": [None, 7, {"uri": 7}],
        "change": {"cells": {"structure": {"array": {"start": "x"}}, "textContent": [7, {"document": 7}]}},
        "event": {"added": [7, {"uri": 7}], "removed": 7},
        "settings": {"treefill": 7},
    }
    for params in (*MALFORMED, nested):
        editor.notify(method, params)

    assert_lives(editor)


@pytest.mark.parametrize("method", ["shutdown", "workspace/executeCommand", "textDocument/hover"])
def test_malformed_parameters_of_other_requests_get_one_answer(method: str, start_alone: StartServer) -> None:
    editor = start_alone()
    ids = [editor.begin(method, params) for params in (MALFORMED[2:] if method == "shutdown" else MALFORMED)]

    assert all(editor.wait_for(request_id).keys() & {"result", "error"} for request_id in ids)
    assert [editor.n_answers[request_id] for request_id in ids] == [1] * len(ids)
    assert editor.process.poll() is None


# Positions, versions, documents.


@pytest.mark.parametrize(
    ("line", "character", "means"),
    [
        (0, 99, (0, 4)),
        (0, 2**40, (0, 4)),
        (7, 0, (1, 0)),
        (2**40, 2**40, (1, 0)),
        (-1, 0, (0, 0)),
        (0, -1, (0, 0)),
        (0.0, 4.0, (0, 4)),
        (0, 4.9, (0, 4)),
        (-(2**40), -1.5, (0, 0)),
        (0, 1e300, (0, 4)),
    ],
)
def test_a_position_outside_the_text_means_the_nearest_place_inside(
    line: float, character: float, means: tuple[int, int], editor: Editor
) -> None:
    editor.play(texts=["import os"])
    editor.open(FILE, "x = \n")
    position = {"line": line, "character": character}

    params = {**WHOLE, "position": position, "context": {"triggerKind": 1}}
    items = editor.request(INLINE, params)["result"]["items"]

    inside = {"line": means[0], "character": means[1]}
    assert editor.prompt.before == "x = \n"[: offset_of("x = \n", inside)]
    for item in items:
        assert_c0("x = \n", inside, item)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_position_that_is_no_number_gets_one_answer(number: str, editor: Editor) -> None:
    editor.open(FILE, "x = ")
    body = json.dumps({"jsonrpc": "2.0", "id": f"n{number}", "method": INLINE, "params": WHOLE})
    body = body.replace('"character": 4', f'"character": {number}')

    editor.send_bytes(b"Content-Length: %d\r\n\r\n" % len(body) + body.encode())

    assert "result" in editor.wait_for(f"n{number}")
    assert_lives(editor)


def test_documents_that_are_not_open_are_not_read_from_the_disk(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "real.py"
    path.write_text("on_the_disk = ", encoding="utf-8")
    uri = path.as_uri()
    n_calls = len(editor.calls)

    for _ in range(2):
        editor.texts[uri] = ""
        assert editor.ask(uri, {"line": 0, "character": 14}) == []
        assert editor.explain(uri)["sentence"] == "The document is not open."
        editor.open(uri, "in_the_editor = ")
        editor.close_document(uri)
        editor.close_document(uri)

    assert len(editor.calls) == n_calls


def test_a_version_that_goes_back_silences_the_document_until_the_whole_text_comes(editor: Editor) -> None:
    editor.play(texts=["1"])
    editor.open(FILE, "x = ", version=5)
    insert = {"range": span((0, 0), (0, 0)), "text": "y"}

    editor.change(FILE, [insert], version=3)
    assert editor.ask(FILE, {"line": 0, "character": 4}) == []
    assert editor.explain(FILE)["is_in_step"] is False

    editor.change(FILE, [{"text": "z = "}], version=4)
    editor.texts[FILE] = "z = "
    assert editor.mirror(FILE) == "z = "
    assert editor.ask(FILE, {"line": 0, "character": 4})


def test_a_request_for_an_older_version_is_answered_with_nothing(editor: Editor) -> None:
    editor.play(texts=["1"])
    editor.open(FILE, "x = ", version=5)

    document = {"uri": FILE, "version": 4}
    answer = editor.request(INLINE, {**WHOLE, "textDocument": document})

    assert answer["result"] == {"items": []}
    document["version"] = 5
    assert editor.request(INLINE, {**WHOLE, "textDocument": document})["result"]["items"]


def test_a_null_version_counts_as_the_next(editor: Editor) -> None:
    editor.play(texts=["1"])
    editor.open(FILE, "x = ", version=5)

    for version in (None, "absent"):
        document = {"uri": FILE, "version": version} if version is None else {"uri": FILE}
        insert = {"range": span((0, 0), (0, 0)), "text": "y"}
        editor.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [insert]})

    editor.texts[FILE] = "yyx = "
    assert editor.mirror(FILE) == "yyx = "
    assert editor.explain(FILE)["version"] == 7
    assert editor.ask(FILE, {"line": 0, "character": 6})


def test_a_version_that_is_skipped_is_followed(editor: Editor) -> None:
    editor.open(FILE, "x = ", version=5)

    editor.change(FILE, [{"range": span((0, 4), (0, 4)), "text": "1"}], version=500)

    assert editor.mirror(FILE) == "x = 1"


@pytest.mark.parametrize(
    ("start_at", "end_at", "text"),
    [
        ((0, 3), (0, 1), "a!\nb\n"),  # reversed: the two places are swapped
        ((1, 1), (0, 1), "a!\n"),
        ((0, 1), (0, 99), "a!\nb\n"),
        ((0, 1), (99, 99), "a!"),
        ((-5, -5), (0, 1), "!bc\nb\n"),
        ((99, 0), (99, 9), "abc\nb\n!"),
    ],
)
def test_a_range_outside_the_text_or_reversed_is_clamped(
    start_at: tuple[int, int], end_at: tuple[int, int], text: str, editor: Editor
) -> None:
    editor.play(texts=["1"])
    editor.open(FILE, "abc\nb\n")

    editor.change(FILE, [{"range": span(start_at, end_at), "text": "!"}])

    assert editor.mirror(FILE) == text
    assert editor.explain(FILE)["is_in_step"] is True
    assert_lives(editor)


def span(start: tuple[int, int], end: tuple[int, int]) -> dict[str, dict[str, int]]:
    """A range."""
    places = {"start": start, "end": end}
    return {edge: {"line": line, "character": character} for edge, (line, character) in places.items()}


# Ids and numbers of requests.


def test_a_used_id_may_come_again_and_gets_its_own_answer(editor: Editor) -> None:
    editor.play(texts=["1"])
    editor.open(FILE, "x = ")
    message = {"jsonrpc": "2.0", "id": "twin", "method": INLINE, "params": WHOLE}

    editor.send_bytes(framed(message) * 2)
    editor.wait_until(lambda editor: editor.n_answers.get("twin") == 2)
    del editor.n_answers["twin"], editor.answers["twin"]

    assert_lives(editor)
    assert "twin" not in editor.answers


def test_cancelling_what_is_unknown_or_over_is_taken_without_complaint(editor: Editor) -> None:
    editor.play(texts=["1"])
    editor.open(FILE, "x = ")
    over = editor.begin_ask(FILE, {"line": 0, "character": 4})
    editor.wait_for(over)
    n_shown = len(editor.messages)

    for unknown in (over, 123_456, "none", -1, None, [1]):
        editor.notify("$/cancelRequest", {"id": unknown})

    assert_lives(editor)
    assert len(editor.messages) == n_shown
    assert editor.n_answers[over] == 1


def test_ten_thousand_requests_at_once_get_one_answer_each(start: StartServer) -> None:
    editor = start({"texts": ["1"]})
    editor.wait_ready()
    editor.open(FILE, "x = ")
    ids = list(range(1_001, 11_001))
    asks = ({"jsonrpc": "2.0", "id": number, "method": INLINE, "params": WHOLE} for number in ids)

    editor.send_bytes(b"".join(map(framed, asks)))
    newest = editor.wait_for(ids[-1], timeout=60)
    editor.wait_until(lambda editor: editor.n_answers.keys() >= set(ids), timeout=60)

    assert newest["result"]["items"]
    assert [editor.n_answers[number] for number in ids] == [1] * len(ids)
    assert all("result" in editor.answers[number] for number in ids)
    assert_lives(editor)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_storm_keeps_the_text_and_answers_each_request_once(seed: int, start: StartServer) -> None:
    chance = random.Random(seed)
    editor = start({"texts": ["n = 1\n"], "ms_per_token": 1})
    editor.wait_ready()
    uris = [f"file:///w/{name}.py" for name in "abc"]
    ids: list[int] = []
    for _ in range(300):
        uri = chance.choice(uris)
        if uri not in editor.texts:
            editor.open(
                uri, chance.choice(["", "x = ", "é🙂\r\nb\r\n", "a\rb\n"]), version=chance.randrange(9)
            )
            continue
        match chance.choices(["edit", "ask", "cancel", "close", "wait"], [8, 8, 3, 1, 1])[0]:
            case "edit":
                random_edit(editor, uri, chance)
            case "ask":
                place = position_of(editor.texts[uri], chance.randint(0, len(editor.texts[uri])))
                ids.append(editor.begin_ask(uri, place, kind=chance.choice([1, 2])))
            case "cancel" if ids:
                editor.notify("$/cancelRequest", {"id": chance.choice(ids[-5:])})
            case "close":
                editor.close_document(uri)
            case _:
                editor.take_message(0.02)

    for request_id in ids:
        answer = editor.wait_for(request_id)
        assert answer.get("error", {"code": -32800})["code"] == -32800
    for uri, text in editor.texts.items():
        assert editor.mirror(uri) == text
        assert editor.explain(uri)["is_in_step"] is True
    assert [editor.n_answers[request_id] for request_id in ids] == [1] * len(ids)
    assert_lives(editor)


def random_edit(editor: Editor, uri: str, chance: random.Random) -> None:
    """Replace a piece of the text; never inside an emoji or a line ending, where a position can't point."""
    text = editor.texts[uri]
    places = [
        n for n in range(len(text) + 1) if not any(e.start() < n < e.end() for e in LINE.finditer(text))
    ]
    start = chance.choice(places)
    end = chance.choice([place for place in places if start <= place <= start + 4])
    editor.replace(
        uri, start, end, chance.choice(["", "a", "é", "🙂", "\n", "\r\n", "x = (", "\x0c", "\u2028"])
    )
