"""What breaks behind the server costs a suggestion, never the editor's patience; what a model babbles is not shown."""

import time

import pytest

from tests.lsp.conftest import SLOW, StartServer
from tests.lsp.editor import Editor, SeenPrompt

pytestmark = pytest.mark.lsp

FILE = "file:///w/a.py"
LIMIT_S = 1.0
HANG_GRACE_S = 5.0
"""A core whose model hangs is given up so long after the request's limit."""


def test_g19a_a_model_without_fill_in_the_middle_goes_on_from_the_prefix_and_says_so(
    start_alone: StartServer,
) -> None:
    editor = start_alone({"texts": ["1"], "control_tokens": ["<|endoftext|>"], "model": "my-finetune-v2"})

    assert editor.complete("def one():\n    return ‸\n\nprint(one())\n", kind=1) is not None

    seen = SeenPrompt.of(editor.calls[0])
    assert seen.control_tokens == []
    assert seen.text == "def one():\n    return "
    assert "fim" not in seen.text
    (message,) = editor.messages
    assert "my-finetune-v2" in message
    for name in ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"):
        assert name in message


def test_g19a_the_vocabulary_decides_and_not_the_name(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["1"], "model": "my-finetune-v2"})

    assert editor.complete("x = ‸") == "x = 1"

    assert editor.prompt.control_tokens == ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    assert editor.messages == []


@pytest.mark.parametrize(
    "buffer",
    ["x = ‸", "‸\nx = 1\n", "‸"],
    ids=["at the file's end", "at the file's beginning", "in an empty file"],
)
def test_g19b_all_three_control_tokens_are_there_though_a_side_is_empty(buffer: str, editor: Editor) -> None:
    editor.play(texts=["import os"])
    editor.complete(buffer, uri=FILE, kind=1)

    wanted = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    assert editor.prompt.control_tokens == wanted


@pytest.mark.parametrize("kind", [1, 2], ids=["invoked", "automatic"])
@pytest.mark.parametrize("before", ["", "import os\n\n"], ids=["in an empty file", "below a line"])
def test_g19c_neither_prose_nor_fences_are_suggested(before: str, kind: int, editor: Editor) -> None:
    editor.play(texts=["Here is the code:\n```python\nx = 1\n```"])

    accepted = editor.complete(f"{before}‸\n", uri=FILE, kind=kind)

    assert accepted in (None, f"{before}x = 1\n")


def test_g20_after_an_error_and_a_hang_the_next_request_works(start: StartServer) -> None:
    script = {"texts": ["1"], "raises_at": [1], "hangs_at": [2]}
    editor = start(script, environment={"TREEFILL_REQUEST_LIMIT_S": str(LIMIT_S)})
    editor.wait_ready()
    editor.open(FILE, "x = ")

    assert editor.ask_at(FILE, 4) == []
    assert editor.messages == []
    assert log_of(editor).count("A request failed: RuntimeError.") == 1

    began = time.monotonic()
    assert editor.ask_at(FILE, 4) == []
    assert time.monotonic() - began < (LIMIT_S + 1) * SLOW
    time.sleep(1)
    editor.mirror(FILE)
    assert editor.statuses[-1]["message"] != "working"

    deadline = began + (LIMIT_S + HANG_GRACE_S + 5) * SLOW
    while not editor.ask_at(FILE, 4):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    editor.wait_until(lambda editor: editor.statuses[-1]["message"] == "ready")
    assert len(editor.messages) <= 1
    assert editor.process.poll() is None


def test_g20_a_model_that_hangs_in_the_servers_own_process_leaves_the_editor_its_server(
    start_alone: StartServer,
) -> None:
    editor = start_alone({"texts": ["1"], "hangs_at": [1]}, environment={"TREEFILL_REQUEST_LIMIT_S": "0.1"})
    editor.wait_ready()
    editor.open(FILE, "x = ")
    assert editor.ask_at(FILE, 4) == []

    editor.wait_until(lambda editor: editor.messages, timeout=20 * SLOW)

    (message,) = editor.messages
    assert "The model does not stop" in message
    assert editor.ask_at(FILE, 4) == []
    assert editor.explain(FILE)["reason"] == "no-core"
    assert editor.statuses[-1]["kind"] == "Warning"
    assert editor.shut_down() == 0


def log_of(editor: Editor) -> str:
    """What front and core have logged."""
    logs = (editor.folder / "run").glob("*.log")
    return editor.stderr + "".join(log.read_text("utf-8") for log in logs)


def test_g20_a_hundred_failures_are_told_once_at_most(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["1"], "raises_at": list(range(1, 101))})
    editor.wait_ready()
    editor.open(FILE, "x = ")

    for _ in range(100):
        assert editor.ask_at(FILE, 4) == []
    assert len(editor.ask_at(FILE, 4)) == 1

    assert len(editor.messages) <= 1
    assert editor.statuses[-1]["message"] == "ready"


def test_g20_an_error_in_one_document_does_not_silence_another(editor: Editor) -> None:
    editor.play(texts=["1"], raises_at=[len(editor.calls) + 1])

    assert editor.complete("x = ‸", uri=FILE) is None
    assert "RuntimeError" in editor.explain(FILE)["sentence"]
    assert editor.complete("y = ‸", uri="file:///w/b.py") == "y = 1"


def test_g24_a_model_that_never_stops_is_cut(editor: Editor) -> None:
    editor.play(texts=["x = x + 1\n    " * 1000])
    began = time.monotonic()

    accepted = editor.complete("def f(x):\n    ‸\n", uri=FILE)

    assert time.monotonic() - began < 10
    assert accepted is None or accepted.count("x = x + 1") <= 2
    assert accepted is None or {line.strip() for line in accepted.split("\n")[1:]} <= {"x = x + 1", ""}


def test_g24_a_suggestion_ends_before_the_next_class(editor: Editor) -> None:
    editor.play(texts=["return x\n\n\nclass B:\n    pass"])

    assert editor.complete("def f(x):\n    ‸\n", uri=FILE) == "def f(x):\n    return x\n"


def test_g24_many_lines_are_cut_at_the_limit_and_at_a_lines_end(start_alone: StartServer) -> None:
    lines = [f"f{number}()" for number in range(400)]
    limits = {"TREEFILL_MAX_LINES": "5", "TREEFILL_MAX_NEW_TOKENS": "4000"}
    editor = start_alone({"texts": ["\n    ".join(lines)]}, environment=limits)

    accepted = editor.complete("def f(x):\n    ‸\n")

    assert accepted is not None
    inserted = [line.strip() for line in accepted.strip().split("\n")[1:]]
    assert 1 <= len(inserted) <= 5
    assert inserted == lines[: len(inserted)]
