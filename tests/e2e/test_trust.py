"""G22: a folder that nobody trusts starts nothing, and one that is trusted still chooses no program."""

import json
from pathlib import Path

import pytest

from tests.e2e.code_server import CodeServer, command_line
from tests.e2e.conftest import INTERPRETER, STATUS, OpenWorkbench, StartCodeServer, wait_for_ready

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def hostile_folder(marker: Path) -> dict[str, str]:
    """Files of a folder whose settings name its own programs wherever one can be named."""
    evil = f"#!/bin/sh\necho run >> {marker}\n"
    names = ["interpreter", "cacheDir", "runtimeDir", "model"]
    settings = {f"treefill.{name}": "./evil.sh" for name in names} | {
        "treefill.modelSources": ["./evil.sh"],
        "treefill.secretPatterns": ["*.py"],
        "treefill.threads": 200,
        "python.defaultInterpreterPath": "./evil.sh",
    }
    return {
        "area.py": "def rectangle_area(width, height):\n    return",
        "evil.sh": evil,
        "treefill.py": f"open({str(marker)!r}, 'a').write('imported')\n",
        "treefill/__init__.py": f"open({str(marker)!r}, 'a').write('imported')\n",
        ".vscode/settings.json": json.dumps(settings),
    }


def test_g22_neither_trust_state_lets_a_folder_choose_what_runs(
    open_workbench: OpenWorkbench, start_treefill: StartCodeServer, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    server = start_treefill(is_trusting=False)
    editor = open_workbench(hostile_folder(marker), settings=INTERPRETER, server=server)
    (editor.folder / "evil.sh").chmod(0o755)
    (editor.folder / ".env").symlink_to(editor.folder / "evil.sh")

    editor.wait_until(
        lambda: "you have not trusted" in editor.status_label(STATUS), "treefill to say that nothing runs"
    )
    editor.press("Control+End")
    editor.type(" ")
    editor.assert_no_ghost_for(2)
    assert treefill_processes(server) == []
    for command in ("Restart the Server", "Set Up the Server", "Run the Doctor"):
        editor.run_command(f"treefill: {command}")
        editor.wait_for_notification("Nothing runs in a folder that you have not trusted")
        editor.dismiss_notifications()
    assert treefill_processes(server) == []

    editor.trust_folder()
    wait_for_ready(editor)
    editor.press("Control+End")
    editor.type("w")
    editor.wait_for_ghost("idth * height")
    assert all("evil" not in " ".join(words) for words in treefill_processes(server))
    assert not marker.exists()


def treefill_processes(server: CodeServer) -> list[list[str]]:
    """The command lines of fronts and cores."""
    return [words for words in map(command_line, server.processes()) if "treefill" in words]
