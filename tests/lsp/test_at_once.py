"""What needs no model, as an editor sees it: templates while there is none, and habits; and that neither leaks."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import StartServer
from tests.lsp.editor import Editor, applied, offset_of
from tests.lsp.test_privacy import leaks

pytestmark = pytest.mark.lsp

URI = "file:///w/a.py"
GUARDED = "def main():\n    pass\n\n\nif __"
TEST = "class T:\n    def test(self):\n        self.assert"
ZEBRA = "Equal(zebra_crossing, expected)"


def test_a_template_comes_though_the_model_is_missing(start: StartServer) -> None:
    editor = start({"fails_to_load": "There is no model: pull one."})
    editor.wait_until(lambda editor: any("pull one" in message for message in editor.messages))
    editor.open(URI, GUARDED + "\n")

    (item,) = editor.ask_at(URI, len(GUARDED))

    assert applied(editor.texts[URI], item) == f'{GUARDED}name__ == "__main__":\n    main()\n'
    assert editor.explain(URI)["source"] == "template"
    assert editor.explain(URI)["template"] == "main guard"
    assert editor.calls == []


def test_a_template_comes_while_the_model_is_loading_and_its_rest_while_it_is_typed(
    start: StartServer,
) -> None:
    editor = start({"load_ms": 6_000})
    editor.open(URI, GUARDED + "\n")
    # A request that comes before the core is connected is answered with nothing, as ever.
    items: list[dict[str, Any]] = []
    while not items:
        items = editor.ask_at(URI, len(GUARDED))
    editor.replace(URI, len(GUARDED), len(GUARDED), "name")
    (rest,) = editor.ask_at(URI, len(GUARDED) + 4)

    assert items[0]["insertText"].startswith("name__ ==")
    assert rest["insertText"] == items[0]["insertText"].removeprefix("name")
    assert editor.explain(URI)["source"] == "typed through"
    assert not any(status["message"] == "ready" for status in editor.statuses)


@pytest.mark.parametrize(
    ("setting", "is_offered"),
    [
        ({}, True), ({"templates": False}, False), ({"disabled_languages": ["python"]}, False),
        ({"enabled": False}, False),
    ],
    ids=["by default", "templates off", "language off", "all off"],
)  # fmt: skip
def test_templates_can_be_switched_off(
    setting: dict[str, Any], is_offered: bool, start_alone: StartServer
) -> None:
    editor = start_alone({"texts": [""]}, options={"treefill": setting})
    editor.wait_ready()
    editor.open(URI, GUARDED + "\n")

    assert bool(editor.ask_at(URI, len(GUARDED))) is is_offered


def accept_once(editor: Editor) -> str:
    """Ask where the habit is formed, in a fresh document, and take what comes; its source."""
    editor.open(URI, TEST + "\n")
    (item,) = editor.ask_at(URI, len(TEST))
    source: str = editor.explain(URI)["source"]
    start, end = (offset_of(editor.texts[URI], item["range"][edge]) for edge in ("start", "end"))
    editor.replace(URI, start, end, item["insertText"])
    editor.explain(URI)  # its answer comes after the edit was taken in
    editor.close_document(URI)
    return source


def becomes_a_habit(editor: Editor) -> bool:
    """Whether it is offered before long: what was accepted is learned beside the way of a request."""
    for _ in range(100):
        editor.open(URI, TEST + "\n")
        editor.ask_at(URI, len(TEST))
        source = editor.explain(URI)["source"]
        editor.close_document(URI)
        if source == "habit":
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("statistics", ["true", "false"])
def test_what_is_accepted_five_times_is_a_habit_and_lies_on_no_disk(
    statistics: str, start_alone: StartServer, tmp_path: Path
) -> None:
    editor = start_alone({"texts": [ZEBRA]}, environment={"TREEFILL_STATISTICS": statistics})
    editor.wait_ready()

    assert [accept_once(editor) for _ in range(5)] == ["decoded"] * 5
    assert becomes_a_habit(editor)
    assert editor.shut_down() == 0
    assert leaks(tmp_path, ("zebra_crossing",)) == []


def test_who_wants_it_keeps_habits_from_session_to_session(start: StartServer, tmp_path: Path) -> None:
    kept = {"TREEFILL_KEEP_HABITS": "true", "TREEFILL_CORE_LINGER_S": "0"}
    editor = start({"texts": [ZEBRA]}, environment=kept)
    editor.wait_ready()
    assert [accept_once(editor) for _ in range(5)] == ["decoded"] * 5
    assert editor.shut_down() == 0
    editor.close()
    file = tmp_path / "state" / "habits.json"
    editor.wait_until(lambda _editor: file.exists())
    assert file.stat().st_mode & 0o077 == 0

    again = start(None, environment=kept)
    again.wait_ready()
    assert becomes_a_habit(again)


def test_no_habit_is_learned_where_they_are_switched_off(start_alone: StartServer) -> None:
    editor = start_alone({"texts": [ZEBRA]}, options={"treefill": {"habits": False}})
    editor.wait_ready()

    assert [accept_once(editor) for _ in range(6)] == ["decoded"] * 6


def test_a_workspace_cannot_have_texts_kept(start_alone: StartServer, tmp_path: Path) -> None:
    editor = start_alone({"texts": [ZEBRA]}, options={"treefill": {"keep_habits": True}})
    editor.wait_ready()
    for _ in range(5):
        accept_once(editor)

    assert any("keep_habits" in message for message in editor.messages)
    assert editor.shut_down() == 0
    assert not (tmp_path / "state" / "habits.json").exists()
