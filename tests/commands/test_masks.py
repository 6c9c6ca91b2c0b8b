"""`treefill masks doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from treefill.commands.masks import doctor_command

from tests.syntax.test_dictionary import trusted


def run(cache_dir: Path, as_json: bool = False) -> int:
    """Its exit status."""
    try:
        doctor_command(cache_dir, as_json)
    except typer.Exit as left:
        return left.exit_code
    return 0


def test_where_nothing_is_kept_it_says_what_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 0
    assert "treefill generate --masks dictionary" in capsys.readouterr().out


def test_a_whole_file_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trusted("json", tmp_path / "grammars").save()

    assert run(tmp_path, as_json=True) == 0
    [file] = json.loads(capsys.readouterr().out)["files"]
    assert file["language"] == "json"
    assert (file["damaged"], file["idle_bytes"], file["shared_hashes"]) == (0, 0, 0)
    assert run(tmp_path) == 0
    assert "json" in capsys.readouterr().out


def test_a_damaged_one_is_told_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trusted("json", tmp_path / "grammars").save()
    [file] = (tmp_path / "grammars").glob("*.masks")
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)

    assert run(tmp_path) == 1
    assert "1 record is damaged" in capsys.readouterr().out
