"""`treefill eval` from its arguments to its output, without a model."""

import json
from pathlib import Path

import pytest
from treefill.cli import cli
from treefill.errors import BadInput, TreefillError
from treefill.evaluation.results import ResultsFile, Row, read_results
from treefill.evaluation.validity import ValidityRow
from typer.testing import CliRunner

from tests.evaluation.test_results import HEADER
from tests.evaluation.test_statistics import rows_for
from tests.helpers.scripted_engine import ScriptedEngine


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["eval", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    file = ResultsFile(path, HEADER, Row)
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


def test_arms_are_compared_with_one_that_checks_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    file = ResultsFile(path, HEADER, Row)
    for row in (*rows_for("line:off", [True, False]), *rows_for("line:full", [True, True])):
        file.append(row)
    file.close()
    given = ["--report-only", "--json", "--arms", "line:off,line:full", "--baseline", "line:off"]
    report = json.loads(run("infill", "--results", str(path), *given))

    assert {each["baseline"] for each in report["differences"]} == {"line:off"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["infill", "--arms", "nowhere"],
        ["infill", "--baseline", "line:sometimes"],
        ["infill", "--arms", ","],
        ["infill", "--variants", "left"],
        ["infill", "--baseline", "nowhere"],
        ["infill", "--report-only", "--results", "missing.jsonl"],
        ["fidelity", "--engines", "fp4"],
        ["fidelity", "missing.py"],
        ["fidelity", "--source", "missing.gguf"],
        ["keystrokes", "missing.py"],
        ["keystrokes", "--arms", "nowhere"],
        ["validity", "--arms", "sometimes"],
        ["validity", "--mode", "page"],
        ["validity", "--language", "klingon"],
        ["validity", "--language", "plaintext"],
        ["validity", "--from", "missing"],
        ["validity", "--report-only", "--results", "missing.jsonl"],
        ["grammar", "--language", "klingon"],
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


class Scripted:
    """Stands in for the app: opens an engine that writes the same line everywhere, until the user has enough."""

    def __init__(self, n_answers: int | None = None) -> None:
        self._n_answers = n_answers

    def open_engine(self) -> ScriptedEngine:
        n_asked = 0

        def write(middle: str) -> str:
            nonlocal n_asked
            n_asked += 1
            if self._n_answers is not None and n_asked > self._n_answers:
                raise KeyboardInterrupt
            return "return None\n"

        return ScriptedEngine(write)


def fill(monkeypatch: pytest.MonkeyPatch, path: Path, app: Scripted, exit_code: int = 0) -> list[str]:
    """Fill the first three holes by one arm; the places of the rows on the disk afterwards."""
    monkeypatch.setattr("treefill.commands.evaluate.open_app", lambda **given: app)
    arguments = ["eval", "infill", "--results", str(path), "--limit", "3", "--arms", "plain"]
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return [f"{row.task}:{row.line} {row.variant}" for row in read_results(path, Row)[1]]


def test_a_run_that_the_user_stops_leaves_a_file_with_which_the_next_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = fill(monkeypatch, tmp_path / "whole.jsonl", Scripted())
    stopped = fill(monkeypatch, tmp_path / "stopped.jsonl", Scripted(n_answers=2), exit_code=130)
    resumed = fill(monkeypatch, tmp_path / "stopped.jsonl", Scripted())

    assert len(whole) == len(set(whole)) == 3
    assert len(stopped) < 3
    assert resumed == whole


def test_a_run_with_nothing_left_to_do_reports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = fill(monkeypatch, tmp_path / "rows.jsonl", Scripted())

    assert fill(monkeypatch, tmp_path / "rows.jsonl", Scripted(n_answers=0)) == first


def ask(monkeypatch: pytest.MonkeyPatch, path: Path, app: Scripted, *more: str, exit_code: int = 0) -> str:
    """Ask at a few positions of the standard library, without any check."""
    monkeypatch.setattr("treefill.commands.evaluate.open_app", lambda **given: app)
    arguments = ["eval", "validity", "--results", str(path), "--language", "py", "--positions", "3"]
    arguments += ["--arms", "off", *more]
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return result.stdout


def test_positions_are_asked_at_and_a_stopped_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = ask(monkeypatch, tmp_path / "whole.jsonl", Scripted())
    ask(monkeypatch, tmp_path / "stopped.jsonl", Scripted(n_answers=5), exit_code=130)
    ask(monkeypatch, tmp_path / "stopped.jsonl", Scripted())
    kept = [read_results(tmp_path / name, ValidityRow)[1] for name in ("whole.jsonl", "stopped.jsonl")]

    assert "6 positions that every arm was asked at" in whole
    assert {row.mode for row in kept[0]} == {"line", "block"}
    assert [row.key for row in kept[0]] == [row.key for row in kept[1]]


def test_the_errors_of_each_arm_are_there_for_programs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = json.loads(ask(monkeypatch, tmp_path / "rows.jsonl", Scripted(), "--mode", "line", "--json"))

    assert set(report["added_errors"]) == {"off"}
    assert [(each["language"], each["mode"], each["n"]) for each in report["summaries"]] == [
        ("python", "line", 3)
    ]
