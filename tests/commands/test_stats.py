"""`treefill stats` tells what the editors have counted."""

import datetime
import json
from pathlib import Path

import pytest
from treefill.commands.stats import stats_command
from treefill.core.habit_file import HabitFile
from treefill.errors import StatisticsError
from treefill.statistics import StatisticsStore, state_file
from treefill.statistics.latency import bucket_of

DAY = datetime.date.today().isoformat()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREEFILL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "120")
    return state_file(tmp_path / "state")


@pytest.fixture
def counted(file: Path) -> Path:
    python = {
        "offered": 1200, "accepted": 300, "partly_accepted": 20, "characters_offered": 30_000,
        "characters_accepted": 9000, "characters_judged": 8000, "characters_kept": 6000,
        "declined.inside-word": 40, "declined.empty": 7, f"latency.decoded.{bucket_of(80)}": 900,
        f"latency.reused.{bucket_of(1)}": 300, "reused_tokens": 9000, "evaluated_tokens": 1000,
        "decoded_tokens": 500, "syntax.guarded": 1140, "syntax.unguarded": 60, "syntax.guarded_tokens": 500,
        "syntax.refused_first": 21, "syntax.cut": 30, "declined.invalid": 9,
    }  # fmt: skip
    values = {(DAY, "python", name): n for name, n in python.items()} | {(DAY, "rust", "offered"): 3}
    StatisticsStore(file).add(values, DAY)
    return file


def test_a_table_for_people(counted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stats_command()

    told = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in told.splitlines()]
    assert ["python", "1,200", "300", "20", "9,000"] in rows
    assert ["together", "1,203", "300", "20", "9,000"] in rows
    assert [DAY, "1,203", "300", "20", "9,000"] in rows
    assert "Accepted: 25% of what was offered" in told
    assert "Kept: 75% of accepted characters, a minute later" in told
    assert "Decoded answers: 900; half within 83 ms" in told
    assert "Tokens: 90% of 10,000 prompt tokens reused, 500 decoded" in told
    assert "Answered with nothing: inside-word 40, invalid 9, empty 7" in told
    assert ["python", "1,140", "95%", "500", "21", "30", "9"] in rows


def test_an_object_for_programs(counted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stats_command(as_json=True)

    told = json.loads(capsys.readouterr().out)
    assert told["file"] == str(counted)
    assert told["since"] == DAY
    assert told["total"]["accepted"] == 300
    assert told["declined"] == {"inside-word": 40, "invalid": 9, "empty": 7}
    assert told["syntax"]["guarded_share"] == 0.95
    assert told["latency_ms"]["reused"] == {"p50": 1.0, "p95": 1.0, "p99": 1.0, "n": 300}


def test_forgetting_removes_the_file(counted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stats_command(forget=True)
    assert not counted.exists()
    assert f"{counted} is removed" in capsys.readouterr().out

    stats_command(forget=True, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "file": str(counted),
        "removed": False,
        "habits_removed": False,
    }


def test_forgetting_removes_habits_that_are_kept(counted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    habits = HabitFile(counted.parent)
    habits.write([])
    assert habits.path.exists()

    stats_command(forget=True)

    assert not habits.path.exists()
    assert f"{habits.path} is removed" in capsys.readouterr().out


def test_before_anything_was_counted(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEFILL_STATISTICS", "false")
    stats_command()

    told = capsys.readouterr().out
    assert "Nothing has been counted yet" in told
    assert "the setting statistics is false" in told
    assert not file.parent.exists(), "looking writes nothing"


def test_a_file_that_is_something_else_is_one_sentence(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"something else " * 100)

    with pytest.raises(StatisticsError, match="holds no statistics"):
        stats_command()
