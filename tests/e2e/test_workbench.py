"""The harness itself, with an extension that answers at once: what a user sees is what the tests read."""

import time
from pathlib import Path

import pytest

from tests.e2e.conftest import OpenWorkbench, StartCodeServer
from tests.e2e.workbench import FAILED, SCREENSHOTS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ENDING_S = 20
STUB = "e2e.stub.counts"
"""The stub's status bar item, which stands there once the stub answers."""


def test_ghost_text_of_several_lines_stands_before_what_it_moves(open_workbench: OpenWorkbench) -> None:
    settings = {"stub.text": "1,\n    second,\n    third", "editor.autoClosingBrackets": "never"}
    workbench = open_workbench({"a.py": "f()\n"}, settings=settings)
    workbench.wait_for_status(STUB, "answered")

    workbench.press("Control+Home", "End", "ArrowLeft")
    workbench.type(" ")
    workbench.wait_for_ghost("1,\n    second,\n    third")
    workbench.press("Tab")

    assert workbench.saved() == b"f( 1,\n    second,\n    third)\n"


def test_an_extension_starts_again_with_its_host(open_workbench: OpenWorkbench) -> None:
    workbench = open_workbench({"a.txt": ""})
    workbench.wait_for_status(STUB, "answered 0")
    workbench.type("a")
    workbench.wait_for_status(STUB, "answered 1")

    workbench.restart_extension_host()

    workbench.wait_for_status(STUB, "answered 0")


def test_nothing_runs_on_after_closing(
    open_workbench: OpenWorkbench, start_code_server: StartCodeServer
) -> None:
    server = start_code_server()
    before = {process.pid for process in server.processes()}
    first = open_workbench({"a.txt": ""}, server=server)
    second = open_workbench({"a.txt": ""}, server=server)
    first.wait_until(lambda: len(server.extension_hosts()) == 2, "an extension host for each window")

    first.close()
    second.wait_until(lambda: len(server.extension_hosts()) == 1, "the first window's extension host to end")
    second.close()
    deadline_s = time.monotonic() + ENDING_S
    while {process.pid for process in server.processes()} != before and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert {process.pid for process in server.processes()} == before
    server.stop()
    assert server.processes() == []


def test_without_proposed_api_stable_providers_answer_and_proposed_ones_are_refused(
    open_workbench: OpenWorkbench, start_code_server: StartCodeServer, stub_vsix: Path
) -> None:
    gated = open_workbench({"a.txt": ""}, server=start_code_server(stub_vsix, proposals="none"))
    gated.wait_for_status(STUB, "answered")
    gated.type("a")
    gated.wait_for_ghost("answered")
    gated.press("Escape")
    gated.run_command("Stub: Register Proposed Hooks")
    refusal = gated.wait_for_notification("CANNOT use API proposal: inlineCompletionsAdditions")
    assert refusal.severity == "error"

    permissive = open_workbench({"a.txt": ""})
    permissive.wait_for_status(STUB, "answered")
    permissive.run_command("Stub: Register Proposed Hooks")
    permissive.wait_for_notification("The proposed hooks are there")


def test_what_is_waited_for_in_vain_is_told_and_kept(open_workbench: OpenWorkbench) -> None:
    workbench = open_workbench({"a.txt": ""})
    workbench.wait_for_status(STUB, "answered")

    with pytest.raises(AssertionError, match=r"0.1 s were not enough for the ghost text 'no'") as failure:
        workbench.wait_for_ghost("no", within_s=0.1)

    screenshot = SCREENSHOTS / f"failed-{workbench.name}.png"
    assert screenshot.name in str(failure.value)
    assert screenshot.stat().st_size > 10_000
    logs = [path.name for path in (FAILED / workbench.name).rglob("*.log")]
    assert {"code-server.log", "remoteexthost.log"} <= set(logs)
