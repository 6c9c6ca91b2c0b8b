"""What the extension's package.json says agrees with the server and keeps what it promises."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import treefill
from treefill.settings import ENGINE_SETTINGS, PROTECTED_SETTINGS, Settings

from scripts.extension_lock import LEFT_OUT, LOCK, name_of, requirements
from scripts.extension_settings import PACKAGE, camel_case, with_settings

MANIFEST: dict[str, Any] = json.loads(PACKAGE.read_text())
SOURCES = "\n".join(path.read_text() for path in sorted((PACKAGE.parent / "src").glob("*.ts")))


def settings() -> dict[str, dict[str, Any]]:
    parts = MANIFEST["contributes"]["configuration"]
    return {name: schema for part in parts for name, schema in part["properties"].items()}


def test_the_settings_are_the_servers() -> None:
    found = PACKAGE.read_text()
    wanted = with_settings(found)
    if found != wanted:
        PACKAGE.write_text(wanted)
    assert found == wanted, (
        "package.json had other settings than the server; it has been rewritten: look at the diff"
    )


def test_the_version_is_the_servers() -> None:
    assert MANIFEST["version"] == treefill.__version__


@pytest.mark.parametrize("name", [*PROTECTED_SETTINGS, *ENGINE_SETTINGS, "interpreter"])
def test_g22_a_workspace_sets_nothing_that_names_a_program_or_path_or_takes_memory(name: str) -> None:
    assert settings()[f"treefill.{camel_case(name)}"]["scope"] == "machine"


@pytest.mark.parametrize("name", Settings.model_fields)
def test_what_the_editor_shows_as_a_settings_default_is_what_the_server_takes(name: str) -> None:
    schema = settings()[f"treefill.{camel_case(name)}"]
    given = {} if schema["type"] == "string" and not schema["default"] else {name: schema["default"]}
    assert getattr(Settings.model_validate(given), name) == Settings.model_fields[name].default


def test_every_command_menu_and_key_is_tried_in_a_real_editor() -> None:
    tests = "\n".join(path.read_text() for path in (Path(__file__).parents[1] / "e2e").glob("test_*.py"))
    titles = {each["command"]: each["title"] for each in MANIFEST["contributes"]["commands"]}
    by_other_means = {
        "treefill.trigger": "Alt+Backslash",
        "treefill.install": 'click_button("Set Up")',
        "treefill.menu": "click_status(STATUS)",
        "editor.action.inlineSuggest.acceptNextLine": "Control+Alt+ArrowRight",
    }
    keys = [each["command"] for each in MANIFEST["contributes"]["keybindings"]]
    wanted = {id: by_other_means.get(id, title) for id, title in titles.items()} | {
        id: by_other_means[id] for id in keys
    }
    assert {id: text for id, text in wanted.items() if text not in tests} == {}
    assert 'get_by_role("menuitem", name="Explain the Last Completion")' in tests


def test_g22_an_untrusted_workspace_is_declared() -> None:
    assert MANIFEST["capabilities"]["untrustedWorkspaces"]["supported"] == "limited"


def test_no_proposed_api_is_asked_for() -> None:
    assert "enabledApiProposals" not in MANIFEST


def test_every_command_is_carried_out_and_every_one_carried_out_is_listed() -> None:
    listed = {command["command"] for command in MANIFEST["contributes"]["commands"]}
    carried_out = set(re.findall(r'^  "(treefill\.\w+)":', SOURCES, re.MULTILINE))
    assert listed == carried_out


def test_every_command_that_is_named_anywhere_exists() -> None:
    listed = {command["command"] for command in MANIFEST["contributes"]["commands"]}
    named = set(re.findall(r"command:(treefill\.\w+)", json.dumps(MANIFEST)))
    in_menus = {
        entry["command"] for entries in MANIFEST["contributes"]["menus"].values() for entry in entries
    }
    assert named | in_menus <= listed


def test_what_the_manifest_names_is_there() -> None:
    steps = [step for each in MANIFEST["contributes"]["walkthroughs"] for step in each["steps"]]
    files = [MANIFEST["icon"], *(step["media"]["markdown"] for step in steps)]
    assert [file for file in files if not (Path(PACKAGE.parent) / file).is_file()] == []


def test_the_private_environment_has_what_the_server_needs_and_no_torch() -> None:
    pinned = {name_of(line) for line in LOCK.read_text().splitlines() if "==" in line}
    assert {name_of(each) for each in requirements()} <= pinned
    assert pinned.isdisjoint(LEFT_OUT)
