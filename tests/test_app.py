"""What the app makes of settings."""

from pathlib import Path

import pytest
from treefill.app import App
from treefill.completion import Declined, Reason, complete
from treefill.engine.api import CancelFlag
from treefill.settings import load_settings
from treefill.text import Document, read_document

from tests.helpers.scripted_engine import ScriptedEngine


def test_g21_our_own_settings_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is declined where it is open, and refused where it is a neighbour."""
    file = tmp_path / "settings.toml"
    file.write_text('secret_patterns = ["sk-TEST-0000-not-real"]\n')
    monkeypatch.setenv("TREEFILL_SETTINGS", str(file))
    app = App(load_settings().settings)
    settings_file = read_document(file, "toml")
    engine = ScriptedEngine('"x"')

    inside = complete(app.completion_request(settings_file, 0), engine, CancelFlag())
    main = Document(str(tmp_path / "main.py"), "KEY = ", "python")
    beside = complete(app.completion_request(main, 6, neighbours=(settings_file,)), engine, CancelFlag())

    assert isinstance(inside, Declined)
    assert inside.reason is Reason.SECRET_FILE
    assert [refusal.path for refusal in beside.explanation.refusals] == [str(file)]
    assert len(engine.requests) == 1
    assert b"sk-TEST" not in bytes(token for token in engine.requests[0].prompt_ids if token < 256)


def test_settings_reach_the_request() -> None:
    app = App(
        load_settings({"max_lines": 3, "anchor": "line", "temperature": 0.5, "n_prefix_tokens": 7}).settings
    )
    request = app.completion_request(Document("a.py", "x", "python"), 1)

    assert (request.max_lines, request.anchor_policy) == (3, "line")
    assert request.sampling.temperature == 0.5
    assert request.budgets.n_prefix_tokens == 7
