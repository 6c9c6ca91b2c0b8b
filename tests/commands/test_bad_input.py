"""What the command line says of input that cannot be used: one sentence, status 2, no traceback, no wait."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from treefill.__main__ import main


@dataclass(frozen=True)
class Run:
    returncode: int
    stdout: str
    stderr: str


class Treefill:
    """The command, called in this process as the console script calls it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str | Path, **environment: str) -> Run:
        for name, value in environment.items():
            self._monkeypatch.setenv(name, value)
        self._monkeypatch.setattr(sys, "argv", ["treefill", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            main()
        captured = self._capsys.readouterr()
        return Run(int(exit_info.value.code or 0), captured.out, captured.err)


@pytest.fixture
def treefill(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Treefill:
    return Treefill(monkeypatch, capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "picture.py").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "latin.py").write_bytes(b"caf\xe9 = 1\n")
    (tmp_path / "a.unheard").write_text("x")
    (tmp_path / "cache").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.py", "1:1"], "does not exist"),
        (["", "1:1"], "directory"),
        (["picture.py", "1:1"], "is a binary file"),
        (["latin.py", "1:1"], "is not UTF-8 text"),
        (["a.unheard", "1:1"], "the language of"),
        (["a.py", "1:1", "--language", "klingon"], "language 'klingon' is not known"),
        (["a.py", "9:1"], "line 9 is past the end"),
        (["a.py", "1:99"], "position 1:99 is past the end of line 1"),
        (["a.py", "0:1"], "'0:1' is not a place"),
        (["a.py", "one"], "'one' is not a place"),
        (["a.py", "-1:1"], "No such option"),
        (["a.py", "1:1", "--typed-from", "2:1"], "--typed-from 2:1 lies after 1:1"),
        (["a.py", "1:1", "--engine", "steam"], "The setting engine is 'steam'"),
        (["a.py", "1:1", "--neighbour", "nowhere.py"], "does not exist"),
        (["a.py", "1:1", "--max-tokens", "0"], "The setting max_new_tokens is 0"),
        (["a.py", "1:1"], "run 'treefill model pull qwen2.5-coder-0.5b'"),
        (["a.py", "1:1", "--model", "no-such-model"], "no-such-model"),
    ],
)
@pytest.mark.parametrize("command", ["complete", "explain"])
def test_bad_input_is_one_sentence(
    treefill: Treefill, folder: Path, command: str, arguments: list[str], sentence: str
) -> None:
    file = folder / arguments[0]
    run = treefill(command, file, *arguments[1:], TREEFILL_CACHE_DIR=str(folder / "cache"))

    assert run.returncode == 2, run.stderr
    assert sentence in " ".join(run.stderr.split())
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def test_a_broken_model_is_named(treefill: Treefill, folder: Path) -> None:
    model = folder / "cache" / "models" / "qwen2.5-coder-0.5b"
    model.mkdir(parents=True)
    (model / "manifest.json").write_text("{")
    run = treefill("complete", folder / "a.py", "1:1", TREEFILL_CACHE_DIR=str(folder / "cache"))

    assert run.returncode == 2
    assert "manifest.json is not a sound manifest" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    run = subprocess.run(
        f"{sys.executable} -m treefill settings | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.stderr == ""


def test_doctor_says_what_to_mend_and_fails(treefill: Treefill, folder: Path) -> None:
    run = treefill("doctor", "--json", TREEFILL_CACHE_DIR=str(folder / "cache"))
    report = json.loads(run.stdout)
    checks = {check["name"]: check for check in report["checks"]}

    assert run.returncode == 1
    assert report["ok"] is False
    assert checks["kernels"]["is_ok"] is True
    assert "treefill model pull" in checks["model"]["found"]


def test_doctor_names_an_instruction_set_that_is_not_there(folder: Path) -> None:
    environment = os.environ | {"TREEFILL_ISA": "mmx", "TREEFILL_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-m", "treefill", "doctor"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert run.returncode == 1
    assert "instruction set 'mmx' is not available here" in run.stdout


def test_settings_as_json_say_where_each_came_from(treefill: Treefill) -> None:
    run = treefill("settings", "--json", TREEFILL_SEED="5")
    rows = {row["name"]: row for row in json.loads(run.stdout)["settings"]}

    assert (rows["seed"]["value"], rows["seed"]["default"], rows["seed"]["origin"]) == (5, 0, "TREEFILL_SEED")


def test_an_unforeseen_error_is_a_sentence_too(folder: Path) -> None:
    script = (
        "import sys, treefill.__main__ as m, treefill.cli as c\n"
        "c.cli.command('fail')(lambda: 1 / 0)\n"
        "sys.argv = ['treefill', 'fail']\n"
        "m.main()"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert run.returncode == 70
    assert "Something unforeseen went wrong (ZeroDivisionError: division by zero)" in run.stderr
    assert "Traceback" not in run.stderr


def test_too_little_memory_is_a_sentence_with_a_remedy() -> None:
    script = (
        "import sys, treefill.__main__ as m, treefill.cli as c\n"
        "c.cli.command('fill')(lambda: bytearray(2 ** 62))\n"
        "sys.argv = ['treefill', 'fill']\n"
        "m.main()"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert run.returncode == 2
    assert run.stderr.startswith("treefill: There is too little memory for this: close something")


def test_ctrl_c_while_the_command_is_still_loading_is_a_sentence() -> None:
    script = (
        "import sys, treefill.__main__ as m\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "m.main()"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert (run.returncode, run.stderr) == (130, "treefill: Stopped.\n")


def test_what_the_output_cannot_show_is_printed_as_its_escape(folder: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "TREEFILL_SETTINGS": str(folder / "é.toml")}
    command = [sys.executable, "-m", "treefill", "settings"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert "\\xe9.toml" in "".join(run.stdout.split())
