"""A repository's rules hold where the user trusts its folder; bad ones are told in the editor."""

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import StartServer
from tests.lsp.editor import Editor

pytestmark = pytest.mark.lsp

RULES = '[[rule]]\nname = "no eval"\ncalls.forbid = ["eval"]\n'


def opened(start: StartServer, workspace: Path, rules: str, options: dict[str, Any]) -> Editor:
    """An editor with a folder open whose rules these are, and a model that wants to call `eval`."""
    workspace.mkdir()
    (workspace / "treefill-rules.toml").write_text(rules)
    editor = start({"texts": ["eval(s)"]}, is_initialized=False)
    editor.initialize(options=options, folders=[workspace])
    return editor


@pytest.mark.parametrize(
    ("options", "suggested"),
    [
        ({"trustsWorkspace": True}, None),
        ({}, "x = eval(s)\n"),
        ({"treefill": {"trustsWorkspace": True}}, "x = eval(s)\n"),
    ],
    ids=["trusted", "not trusted", "a setting, which a workspace could have made"],
)
def test_they_hold_where_the_editor_tells_of_trust(
    start_alone: StartServer, tmp_path: Path, options: dict[str, Any], suggested: str | None
) -> None:
    editor = opened(start_alone, tmp_path / "repo", RULES, options)
    uri = (tmp_path / "repo" / "a.py").as_uri()

    assert editor.complete("x = ‸\n", uri=uri) == suggested

    told = editor.explain(uri)
    finding = told["syntax"]["rules"]
    if suggested is None:
        assert told["reason"] == "rule"
        assert finding["complaint"] == "The rule “no eval” is against a call of `eval`."
    else:
        assert finding["note"].endswith(
            "is not read: the setting trusted_workspaces does not name its folder."
        )


def test_bad_ones_are_told_and_nothing_is_suggested(start_alone: StartServer, tmp_path: Path) -> None:
    editor = opened(start_alone, tmp_path / "repo", "[[rule]]\nname = 5\n", {"trustsWorkspace": True})

    assert editor.complete("x = ‸\n", uri=(tmp_path / "repo" / "a.py").as_uri()) is None

    (message,) = editor.messages
    assert (
        "treefill-rules.toml:2:8: expected a text of one line, 1 to 80 characters, found a number." in message
    )


def test_no_setting_of_an_editor_names_rules_or_trusts(start_alone: StartServer, tmp_path: Path) -> None:
    workspace = tmp_path / "repo"
    settings = {"rules": str(workspace / "treefill-rules.toml"), "trusted_workspaces": [str(workspace)]}
    editor = opened(start_alone, workspace, RULES, {"treefill": settings})

    assert editor.complete("x = ‸\n", uri=(workspace / "a.py").as_uri()) == "x = eval(s)\n"
    assert ["rules" in editor.messages[0], "trusted_workspaces" in editor.messages[1]] == [True, True]
