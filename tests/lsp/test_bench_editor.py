"""The editor that `treefill bench keystrokes` types in, against the real server with a scripted model."""

import json
from pathlib import Path

import pytest
from treefill.benchmarks.editor import Editor
from treefill.benchmarks.keystrokes import choose_places, type_all
from treefill.errors import CoreError
from treefill.text import Document

from tests.lsp.editor import environment_in

pytestmark = pytest.mark.lsp

STUB = ("-m", "tests.lsp.stub", "serve")


def editor_in(folder: Path, **script: object) -> Editor:
    (folder / "script.json").write_text(json.dumps(script))
    return Editor(environment_in(folder), STUB)


def test_every_key_is_answered_and_what_the_model_did_for_it_is_told(tmp_path: Path) -> None:
    text = "".join(f"def 🙂f{n}(x):\n    return [x, {n}]\n\n" for n in range(40))
    document = Document(str(tmp_path / "a.py"), text, "python")
    editor = editor_in(tmp_path, texts=["total = 1\n"])
    try:
        keys = list(type_all(choose_places([document], 40), [editor], 40, lambda what: None))
    finally:
        editor.close()
    asked = [key.answer for key in keys if key.answer.ttft_ms is not None]

    assert len(keys) == 40
    assert asked
    assert all(answer.n_tokens and answer.line_ms > 0 for answer in asked)
    assert {key.answer.source for key in keys} & {"decoded", "typed through"}


def test_a_model_that_is_not_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treefill.benchmarks.editor.LIMIT_S", 2.0)
    document = Document(str(tmp_path / "a.py"), "x = 1\n" * 100, "python")
    editor = editor_in(
        tmp_path, fails_to_load="The model tiny is not in the store; run 'treefill model pull tiny'."
    )
    try:
        with pytest.raises(CoreError, match="run 'treefill model pull tiny'"):
            list(type_all(choose_places([document], 10), [editor], 10, lambda what: None))
    finally:
        editor.close()
