"""How the extension starts, what it says where it can't, and that nothing is left of it afterwards."""

import json
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.e2e.code_server import command_line
from tests.e2e.conftest import CORE_LINGER_S, STATUS, OpenWorkbench, StartCodeServer, wait_for_ready
from tests.e2e.workbench import BUILD, Workbench
from tests.helpers.tiny_model import tiny_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

TEXT = "def rectangle_area(width, height):\n    return"


def expect_a_suggestion(editor: Workbench) -> None:
    editor.press("Control+End")
    editor.type(" ")
    editor.wait_for_ghost("width * height")
    editor.press("Escape")


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_what_is_no_python_is_told_once_and_mended_without_reloading(
    open_workbench: OpenWorkbench, start_treefill: StartCodeServer, tmp_path: Path
) -> None:
    old = program(tmp_path / "old", 'echo \'{"version": [3, 9], "treefill": null, "tags": []}\'')
    editor = open_workbench(
        {"area.py": TEXT}, settings={"treefill.interpreter": "/nowhere/python"}, server=start_treefill()
    )
    told = editor.wait_for_notification(
        "/nowhere/python (setting) is no Python that runs. Change the setting"
    )
    assert (told.severity, told.buttons) == ("warning", ("Change Setting", "Show Log"))

    editor.change_settings({"treefill.interpreter": old})
    editor.wait_for_notification("is Python 3.9, and treefill needs 3.11 or newer.")

    editor.change_settings({"treefill.interpreter": sys.executable})
    wait_for_ready(editor)
    expect_a_suggestion(editor)


def test_a_server_that_dies_at_once_is_given_up_with_one_message(
    open_workbench: OpenWorkbench, start_treefill: StartCodeServer, tmp_path: Path
) -> None:
    answer = '{"version": [3, 11], "treefill": "0.1.0", "tags": []}'
    broken = program(
        tmp_path / "broken", f"case $1 in -c) echo '{answer}';; *) echo no libraries >&2; exit 3;; esac"
    )
    editor = open_workbench(
        {"area.py": TEXT}, settings={"treefill.interpreter": broken}, server=start_treefill()
    )

    told = editor.wait_for_notification("treefill: The server", within_s=60)
    assert told.severity == "error"
    assert "Show Log" in told.buttons
    editor.assert_no_ghost_for(3)
    assert len([each for each in editor.notifications() if "treefill" in each.message]) == 1

    editor.change_settings({"treefill.interpreter": sys.executable})
    wait_for_ready(editor)


def test_a_server_that_is_killed_comes_again_until_it_is_too_often(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT}, settings={})
    for _ in range(3):
        kill_front(editor)
        editor.wait_until(lambda: len(fronts(editor)) == 1, "another server")
        wait_for_ready(editor)
    kill_front(editor)

    told = editor.wait_for_notification("ended unexpectedly several times")
    assert told.buttons == ("Restart", "Show Log")
    editor.click_button("Restart")
    wait_for_ready(editor)
    expect_a_suggestion(editor)


def kill_front(editor: Workbench) -> None:
    (front,) = fronts(editor)
    front.kill()
    psutil.wait_procs([front], timeout=10)
    editor.wait_until(lambda: front not in fronts(editor), "the server to be gone")


def fronts(editor: Workbench) -> list[psutil.Process]:
    return [each for each in editor.server.processes() if command_line(each)[-2:] == ["treefill", "serve"]]


def test_a_setting_of_the_wrong_type_is_told_and_mended_without_reloading(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT}, settings={"treefill.maxLines": "many"})
    told = editor.wait_for_notification("max_lines")
    assert "'many'" in told.message

    editor.change_settings({"treefill.maxLines": 4})
    expect_a_suggestion(editor)


def test_without_a_model_one_is_chosen_and_pulled(
    open_workbench: OpenWorkbench, start_treefill: StartCodeServer, tmp_path: Path
) -> None:
    server = start_treefill(environment={"TREEFILL_CACHE_DIR": str(tmp_path / "empty")})
    editor = open_workbench(
        {"area.py": TEXT}, settings={"treefill.interpreter": sys.executable}, server=server
    )
    told = editor.wait_for_notification("treefill model pull")
    assert told.buttons == ("Choose Model…", "Show Log")

    editor.click_button("Choose Model…")
    editor.pick("smollm2-135m")
    editor.wait_for_notification("treefill: smollm2-135m")  # its progress

    editor.wait_until(
        lambda: "Ready: smollm2-135m" in editor.status_label(STATUS),
        "the model to be pulled and loaded",
        within_s=300,
        instead=lambda: f"it was {editor.status_label(STATUS)!r}",
    )


def test_a_window_without_a_folder_is_served_too(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT}, settings={})
    editor.page.goto(f"http://127.0.0.1:{editor.server.port}/?ew=true")
    wait_for_ready(editor)

    editor.run_command("treefill: Switch On or Off in This Workspace")
    editor.wait_for_notification("No folder is open that could be switched off.")
    editor.run_command("treefill: See a Completion")

    assert "celsius" in editor.wait_for_ghost()


def test_a_large_file_is_left_alone_and_the_editor_stays_quick(open_editor: OpenWorkbench) -> None:
    large = "x = 1  # a line of a file that some program has written\n" * 720_000
    editor = open_editor({"large.py": large, "area.py": TEXT})

    editor.press("Control+Home")
    began = time.monotonic()
    editor.type("y = ")
    editor.wait_until(lambda: editor.lines()[0].startswith("y = x"), "the keys to be there")
    assert time.monotonic() - began < 5
    editor.assert_no_ghost_for(2)
    editor.open_file("area.py")
    expect_a_suggestion(editor)


def test_closing_the_last_window_ends_front_and_core(
    open_workbench: OpenWorkbench, start_treefill: StartCodeServer
) -> None:
    server = start_treefill(environment={"TREEFILL_CORE_LINGER_S": CORE_LINGER_S})
    editor = open_workbench(
        {"area.py": TEXT}, settings={"treefill.interpreter": sys.executable}, server=server
    )
    wait_for_ready(editor)
    running = [each for each in server.processes() if "treefill" in command_line(each)]
    assert len(running) >= 2, "a front and a core"

    began = time.monotonic()
    editor.close()
    _, alive = psutil.wait_procs(running, timeout=30)
    (BUILD / "closing.txt").write_text(
        f"Front and core were gone {time.monotonic() - began:.1f} s after closing.\n"
    )

    assert alive == []


def test_removing_everything_asks_and_leaves_nothing(
    open_workbench: OpenWorkbench, start_treefill: StartCodeServer, tmp_path: Path
) -> None:
    tiny_model(tmp_path)
    store = tmp_path / "cache"
    server = start_treefill(environment={"TREEFILL_CACHE_DIR": str(store), "TREEFILL_MODEL": "tiny"})
    editor = open_workbench(
        {"area.py": TEXT}, settings={"treefill.interpreter": sys.executable}, server=server
    )
    wait_for_ready(editor)
    assert list((store / "models").iterdir())

    editor.run_command("treefill: Remove treefill and Its Models…")
    assert "Remove treefill and its models?" in editor.dialog_text()
    editor.click_button("Remove")

    editor.wait_until(lambda: not list((store / "models").iterdir()), "the model to be deleted")
    editor.wait_until(lambda: not is_installed(server.folder), "the extension to be uninstalled")


def is_installed(folder: Path) -> bool:
    """As code-server itself keeps it."""
    text = (folder / "extensions" / "extensions.json").read_text()
    if not text:
        return True  # it is being written
    found = json.loads(text)
    return any(each["identifier"]["id"] == "treefill.treefill" for each in found)


def test_the_private_environment_is_made_at_the_press_of_a_button(
    open_workbench: OpenWorkbench, start_treefill: StartCodeServer
) -> None:
    editor = open_workbench({"area.py": TEXT}, server=start_treefill())
    told = editor.wait_for_notification("The treefill server is not installed on this machine yet.")
    assert told.buttons == ("Set Up", "Show Log")

    editor.click_button("Set Up")
    editor.wait_for_status(STATUS, "installing")
    editor.wait_until(
        lambda: "Ready: " in editor.status_label(STATUS),
        "the environment to be made and the model to be loaded",
        within_s=300,
    )
    expect_a_suggestion(editor)
