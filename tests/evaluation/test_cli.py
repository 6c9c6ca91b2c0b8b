"""`treefill eval` from its arguments to its output, without a model."""

import json
from pathlib import Path

import pytest
from treefill.cli import cli
from treefill.errors import BadInput, TreefillError
from treefill.evaluation.results import ResultsFile
from typer.testing import CliRunner

from tests.evaluation.test_results import HEADER
from tests.evaluation.test_statistics import rows_for


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["eval", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    file = ResultsFile(path, HEADER)
    for row in (*rows_for("plain", [True, False]), *rows_for("line", [True, True])):
        file.append(row)
    file.close()
    return path


def test_a_report_needs_no_model(results: Path) -> None:
    text = run("infill", "--results", str(results), "--report-only")

    assert "2 holes that every arm has filled" in text
    assert "| plain |" in text


def test_a_report_can_be_read_by_programs(results: Path) -> None:
    report = json.loads(run("infill", "--results", str(results), "--report-only", "--json", "--arms", "line"))

    assert [summary["arm"] for summary in report["summaries"]] == ["line", "line"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["infill", "--arms", "nowhere"],
        ["infill", "--arms", ","],
        ["infill", "--variants", "left"],
        ["infill", "--baseline", "nowhere"],
        ["infill", "--report-only", "--results", "missing.jsonl"],
        ["fidelity", "--engines", "fp4"],
        ["fidelity", "missing.py"],
        ["fidelity", "--source", "missing.gguf"],
        ["keystrokes", "missing.py"],
        ["keystrokes", "--arms", "nowhere"],
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREEFILL_CACHE_DIR", str(tmp_path / "cache"))

    with pytest.raises(TreefillError) as caught:
        run(*arguments)
    assert "\n" not in str(caught.value)


def test_a_file_too_short_to_type_is_refused_before_a_model_is_loaded(tmp_path: Path) -> None:
    short = tmp_path / "a.py"
    short.write_text("x = 1\n")

    with pytest.raises(BadInput, match="too short"):
        run("keystrokes", str(short))
