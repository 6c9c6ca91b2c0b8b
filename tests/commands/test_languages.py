"""`treefill languages`: which languages are known, and what stands guard over each."""

import json

import pytest
from treefill.commands.languages import languages_command
from treefill.syntax.languages import languages


def test_as_json_each_language_is_told_whole(capsys: pytest.CaptureFixture[str]) -> None:
    languages_command(as_json=True)
    told = {each["id"]: each for each in json.loads(capsys.readouterr().out)["languages"]}

    assert set(told) == set(languages())
    assert told["python"]["guard"] == "grammar, scanner model"
    assert told["yaml"]["guard"] == "final check only"
    (go,) = told["go"]["grammars"]
    assert go == {
        "name": "go",
        "package": "tree-sitter-go",
        "version": "0.25.0",
        "installed": go["installed"],
    }
    assert ".go" in told["go"]["suffixes"]
    assert told["go"]["reach"]["n_places"] >= 300
    assert told["markdown"]["reach"] is None


def test_for_people_there_is_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    languages_command()
    told = capsys.readouterr().out

    assert "rust 0.24" in told
    assert "code in fences" in told
    assert "not measured" in told
    assert "yaml: YAML's lexer" in told.replace("\n", " ")
