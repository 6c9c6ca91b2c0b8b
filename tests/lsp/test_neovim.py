"""Neovim as a foreign client: whatever is done in its buffer, the server's copy is the same, and its answers fit."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from treefill.statistics import StatisticsStore

from tests.lsp.editor import ROOT
from tests.lsp.neovim_user import neovim

pytestmark = [pytest.mark.lsp, pytest.mark.timeout(300)]

LUA = Path(__file__).with_name("neovim.lua")
TEXT = 's = "🙂"  # t\nprint(s)\nx = 1\nfor r in range(3):\n    print(r)\n'
SCRIPT = {"texts": ["1 + 2"], "by_end": {'"🙂': '🙂!"\nprint(s)'}}


def session(folder: Path, encoding: str) -> dict[str, Any]:
    """What Neovim has seen, working through the steps in a file of each line ending."""
    (folder / "script.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    files = []
    for name, ending in (("unix.py", "\n"), ("dos.py", "\r\n")):
        (folder / name).write_bytes(TEXT.replace("\n", ending).encode())
        files.append(str(folder / name))
    result = folder / "result.json"
    own = {
        "TREEFILL_TEST_SCRIPT": str(folder / "script.json"),
        "TREEFILL_TEST_RECORD": str(folder / "record.jsonl"),
        "TREEFILL_RUNTIME_DIR": str(folder / "run"),
        "TREEFILL_CACHE_DIR": str(folder / "cache"),
        "TREEFILL_STATE_DIR": str(folder / "state"),
        "TREEFILL_SETTINGS": str(folder / "settings.toml"),
        "TREEFILL_CORE_LINGER_S": "0.5",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "NVIM_LOG_FILE": str(folder / "nvim.log"),
    }
    command = [neovim(), "--headless", "--clean", "-n", "-l", LUA, result, encoding, sys.executable, *files]
    run = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, timeout=200, check=False
    )
    log = folder / "state/nvim/lsp.log"
    assert result.exists(), run.stderr + run.stdout + (log.read_text() if log.exists() else "")
    seen: dict[str, Any] = json.loads(result.read_text("utf-8"))
    return {**seen, "counted": counted_in(folder / "state" / "statistics.sqlite")}


def counted_in(file: Path, within_s: float = 20) -> dict[str, int]:
    """What the server has counted; it may be a moment later at its end than Neovim."""
    deadline = time.monotonic() + within_s
    while not (values := StatisticsStore(file).read()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return {name: n for (_, language, name), n in values.items() if language == "python"}


@pytest.fixture(scope="module", params=["any", "utf-16", "utf-32"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One session in each position encoding; `any` is what Neovim and the server agree on by themselves."""
    folder = tmp_path_factory.mktemp("nvim")
    return {**session(folder, request.param), "wanted": request.param}


def test_the_position_encoding_is_one_that_neovim_offers(seen: dict[str, Any]) -> None:
    assert seen["offered"] == ["utf-8", "utf-16", "utf-32"]
    assert seen["encoding"] == {"any": "utf-8"}.get(seen["wanted"], seen["wanted"])


@pytest.mark.parametrize("number", [0, 1], ids=["LF", "CRLF"])
def test_after_every_edit_the_servers_copy_is_neovims_buffer(seen: dict[str, Any], number: int) -> None:
    file = seen["files"][number]
    ending = ["\n", "\r\n"][number]
    assert file["fileformat"] == ["unix", "dos"][number]
    assert file["steps"][0]["buffer"] == TEXT.replace("\n", ending)
    assert len({step["buffer"] for step in file["steps"]}) > 15, "the steps do change the text"

    for step in file["steps"]:
        assert step["mirror"] == step["buffer"], step["name"]
        assert step["is_in_step"], step["name"]


@pytest.mark.parametrize("number", [0, 1], ids=["LF", "CRLF"])
def test_suggestions_are_asked_for_and_taken_where_the_cursor_is(seen: dict[str, Any], number: int) -> None:
    steps = {step["name"]: step for step in seen["files"][number]["steps"]}
    ending = ["\n", "\r\n"][number]

    taken = steps["a suggestion taken"]
    assert taken["before_asking"] == f's = "🙂"{ending}x = {ending}'
    assert taken["buffer"] == f's = "🙂"{ending}x = 1 + 2{ending}'

    in_a_string = steps["typed on in a string with an emoji"]
    assert in_a_string["before_asking"].startswith(f's = "🙂{ending}')
    assert (
        in_a_string["item"]["range"]["start"]["character"]
        == {"utf-8": 9, "utf-16": 7, "utf-32": 6}[seen["encoding"]]
    )
    assert in_a_string["buffer"].startswith(f's = "🙂🙂!"{ending}')
    assert "\r" not in in_a_string["item"]["insertText"]


def test_suggestions_that_are_taken_are_told_from_neovims_edits(seen: dict[str, Any]) -> None:
    counted = seen["counted"]

    assert counted["offered"] == counted["accepted"] == 4, "two in each file"
    assert counted["characters_accepted"] == 2 * len("1 + 2" + '🙂!"')
    assert "partly_accepted" not in counted
