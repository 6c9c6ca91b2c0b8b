"""`treefill complete` and `treefill explain` where no model is needed."""

import json
from pathlib import Path

import pytest
from treefill.commands.complete import complete_command, explain_command
from treefill.errors import UnknownModel

CODE = "def main():\n    pass\n\n\nif __\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_text(CODE)
    return path


def test_a_template_needs_no_model(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    complete_command(file, "5:6", cache_dir=tmp_path / "empty")
    assert capsys.readouterr().out == 'name__ == "__main__":\n    main()\n'

    complete_command(file, "5:6", cache_dir=tmp_path / "empty", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["source"], told["model"], told["n_prompt_tokens"]) == ("template", None, 0)


def test_it_is_explained_by_its_name(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explain_command(file, "5:6", cache_dir=tmp_path / "empty")
    page = capsys.readouterr().out
    assert "Suggested (template, main guard)" in page
    assert "Syntax, grammar python: 1 faults before, 0 after" in page
    assert "model" not in page.lower()

    explain_command(file, "5:6", cache_dir=tmp_path / "empty", as_json=True)
    assert json.loads(capsys.readouterr().out)["explanation"]["template"] == "main guard"


def test_anywhere_else_and_for_several_suggestions_the_model_is_needed(file: Path, tmp_path: Path) -> None:
    for place, n in (("2:9", 1), ("5:6", 2)):
        with pytest.raises(UnknownModel):
            complete_command(file, place, candidates=n, cache_dir=tmp_path / "empty")
