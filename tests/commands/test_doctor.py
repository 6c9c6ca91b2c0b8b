"""`treefill doctor` looks and changes nothing."""

import importlib.metadata
import json
from pathlib import Path

import pytest
import typer
from treefill.commands.doctor import doctor_command

from tests.helpers.tiny_model import tiny_model


def test_a_model_of_an_older_format_is_named_and_not_converted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEFILL_MODEL", "tiny")
    manifest = tiny_model(tmp_path).folder / "manifest.json"
    older = json.dumps(json.loads(manifest.read_text()) | {"format_version": 0})
    manifest.write_text(older)

    with pytest.raises(typer.Exit):
        doctor_command(tmp_path / "cache", as_json=True)

    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert "run 'treefill model pull tiny', which converts it" in checks["model"]["found"]
    assert manifest.read_text() == older


def test_without_torch_the_native_engine_is_all_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    for engine, is_ok in (("int8", True), ("bitsandbytes", False)):
        monkeypatch.setenv("TREEFILL_ENGINE", engine)
        with pytest.raises(typer.Exit):  # there is no model
            doctor_command(tmp_path / "cache", as_json=True)
        checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
        assert checks["torch"]["is_ok"] == is_ok
