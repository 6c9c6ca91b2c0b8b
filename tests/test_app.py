"""What the app makes of settings."""

from pathlib import Path

import pytest
from treefill.app import App
from treefill.completion import Declined, Reason, complete
from treefill.engine.api import CancelFlag
from treefill.errors import BadRules
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


def test_rules_reach_the_request(tmp_path: Path) -> None:
    """The user's own always, a workspace's where the user trusts it; bad ones are told, and nothing is suggested."""
    mine, theirs = tmp_path / "mine.toml", tmp_path / "repo" / "treefill-rules.toml"
    theirs.parent.mkdir()
    mine.write_text('[[rule]]\nname = "mine"\nsql = "read-only"\n')
    theirs.write_text('[[rule]]\nname = "theirs"\nsql = "read-only"\n')

    def names(**settings: object) -> list[str]:
        app = App(load_settings({"rules": str(mine), **settings}).settings)
        document = Document(str(theirs.parent / "a.py"), "x", "python")
        return [rule.name for rule in app.completion_request(document, 1, workspace_root=theirs.parent).rules]

    assert names() == ["mine"]
    assert names(trusted_workspaces=[str(tmp_path)]) == ["mine", "theirs"]
    theirs.write_text("[[rule]]\nname = 1\n")
    assert names() == ["mine"]
    with pytest.raises(BadRules, match=r"treefill-rules.toml:2:8: expected a text of one line"):
        names(trusted_workspaces=[str(tmp_path)])
