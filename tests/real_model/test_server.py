"""The default model behind the whole server, as an editor meets it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from treefill.app import App
from treefill.settings import load_settings

from tests.lsp.editor import Editor, applied

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(300)]
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
MODEL = "qwen2.5-coder-0.5b"


def an_editor(folder: Path) -> Editor:
    store = App(load_settings({"model": MODEL}).settings).store
    environment = {"TREEFILL_CACHE_DIR": str(store.cache_dir), "TREEFILL_MODEL": MODEL}
    # A loaded machine may take its time here: what is asked for is the answer.
    environment["TREEFILL_REQUEST_LIMIT_S"] = "120"
    return Editor(folder, program=("-m", "treefill"), environment=environment)


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with an_editor(tmp_path_factory.mktemp("editor")) as editor:
        editor.wait_until(lambda e: any(status["message"] == "ready" for status in e.statuses), timeout=120)
        yield editor
        assert editor.shut_down() == 0


def asked(editor: Editor, uri: str, buffer: str, language: str) -> str:
    """The buffer after accepting what the model suggests at its mark."""
    editor.open(uri, buffer, language)
    items = ask(editor, uri, buffer.index("‸"))
    assert items, editor.explain(uri)
    return applied(editor.texts[uri], items[0])


def ask(editor: Editor, uri: str, offset: int) -> list[dict[str, Any]]:
    text = editor.texts[uri]
    position = {"line": text.count("\n", 0, offset), "character": offset - text.rfind("\n", 0, offset) - 1}
    return editor.ask(uri, position, timeout=150)


def test_an_editor_gets_what_a_programmer_would_take(editor: Editor) -> None:
    place = "sum(item.price * "
    code = (EXAMPLES / "inventory.py").read_text("utf-8")
    start = code.index(place) + len(place)
    end = code.index("\n", start)

    after = asked(editor, "file:///w/inventory.py", code[:start] + "‸)" + code[end:], "python")

    assert "sum(item.price * item.quantity for item in self.items.values())" in after


def test_g06_a_brace_that_the_editor_closed_leaves_the_model_its_words(editor: Editor) -> None:
    after = asked(editor, "file:///w/q.cpp", "int square(int n) {‸}\n", "cpp")

    assert after.count("}") == 1
    assert "return n * n;" in after


def test_typing_along_asks_the_model_for_nothing(editor: Editor) -> None:
    uri = "file:///w/along.py"
    after = asked(editor, uri, "def fibonacci(n):\n    if n < 2:\n        return n\n    return ‸\n", "python")
    start = editor.texts[uri].rindex("return ") + len("return ")
    for n_typed in range(4):
        editor.replace(uri, start + n_typed, start + n_typed, after[start + n_typed])

        items = ask(editor, uri, start + n_typed + 1)

        assert applied(editor.texts[uri], items[0]) == after
        assert editor.explain(uri)["source"] == "typed through"


def test_a_key_evaluates_a_few_tokens_of_hundreds(editor: Editor) -> None:
    uri = "file:///w/keys.py"
    code = (EXAMPLES / "inventory.py").read_text("utf-8")
    start = code.index("    def total_value")
    editor.open(uri, code[:start] + code[code.index("\n", start) :], "python")
    evaluated = []
    for n_typed, character in enumerate("    def cheapest(self) -> "):
        at = start + n_typed
        editor.replace(uri, at, at, character)
        ask(editor, uri, at + 1)
        told = editor.explain(uri)
        if told.get("n_prompt_tokens"):
            evaluated.append(told["n_evaluated"])

    assert sorted(evaluated[1:])[len(evaluated) // 2] <= 12


def test_g11_another_document_is_answered_as_by_a_new_process(editor: Editor, tmp_path: Path) -> None:
    first = "def fibonacci(n):\n    if n < 2:\n        return n\n    return ‸\n"
    second = "import json\n\n\ndef load(path):\n    with open(path) as file:\n        return ‸\n"
    asked(editor, "file:///w/one.py", first, "python")

    warm = asked(editor, "file:///w/two.py", second, "python")

    with an_editor(tmp_path) as fresh:
        fresh.wait_until(lambda e: any(status["message"] == "ready" for status in e.statuses), timeout=120)
        assert asked(fresh, "file:///w/two.py", second, "python") == warm
