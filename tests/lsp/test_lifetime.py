"""A server whose editor is gone goes, too, and takes everything with it."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.lsp.conftest import SLOW, StartServer, processes_of
from tests.lsp.editor import Editor

pytestmark = pytest.mark.lsp

FILE = "file:///w/a.py"


@pytest.fixture
def dummy() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that stands for the editor."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def shut_down_and_exit(editor: Editor, _dummy: "subprocess.Popen[bytes]") -> None:
    editor.begin("shutdown", None)
    editor.notify("exit", None)


def exit_alone(editor: Editor, _dummy: "subprocess.Popen[bytes]") -> None:
    editor.notify("exit", None)


def close_stdin(editor: Editor, _dummy: "subprocess.Popen[bytes]") -> None:
    assert editor.process.stdin is not None
    editor.process.stdin.close()


def kill_the_editor(_editor: Editor, dummy: "subprocess.Popen[bytes]") -> None:
    dummy.kill()  # not waited for: a zombie's server goes, too


Leave = Callable[[Editor, "subprocess.Popen[bytes]"], None]


@pytest.mark.parametrize(
    ("is_generating", "serve"),
    [
        pytest.param(True, ("serve",), id="while it writes"),
        pytest.param(True, ("serve", "--no-core"), id="while it writes, no core"),
        pytest.param(False, ("serve",), id="idle"),
    ],
)
@pytest.mark.parametrize(
    ("leave", "status", "limit_s"),
    [
        pytest.param(shut_down_and_exit, 0, 2, id="a-shutdown-and-exit"),
        pytest.param(exit_alone, 1, 2, id="b-exit-alone"),
        pytest.param(close_stdin, 1, 5, id="c-stdin-closed"),
        pytest.param(kill_the_editor, 1, 10, id="d-editor-killed"),
    ],
)
def test_g17_the_server_goes_with_its_editor(
    leave: Leave,
    status: int,
    limit_s: float,
    is_generating: bool,
    serve: tuple[str, ...],
    start: StartServer,
    dummy: "subprocess.Popen[bytes]",
    tmp_path: Path,
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    editor = start(
        {"texts": ["n" * 64], "ms_per_token": 150},
        serve=serve,
        process_id=dummy.pid,
        environment={"TMPDIR": str(temporary)},
    )
    editor.wait_ready()
    editor.open(FILE, "x = ")
    if is_generating:
        editor.begin_ask(FILE, {"line": 0, "character": 4})
        editor.wait_until(lambda editor: editor.calls)
    children = psutil.Process(editor.process.pid).children(recursive=True)

    began = time.monotonic()
    leave(editor, dummy)

    assert editor.process.wait(limit_s * SLOW) == status
    assert time.monotonic() - began < limit_s * SLOW
    assert processes_of(tmp_path) == []
    assert psutil.wait_procs(children, timeout=20)[1] == []
    assert list(temporary.iterdir()) == []
    assert [path.name for path in (tmp_path / "run").glob("*")] == []
    assert sockets_in(tmp_path) == []


def test_a_server_that_cannot_see_its_editors_process_goes_when_its_input_ends(start: StartServer) -> None:
    """As one in a container whose editor is outside."""
    editor = start({"texts": ["1"]}, process_id=2**22 + 1)
    editor.wait_until(lambda editor: "can't be seen" in editor.stderr)
    assert editor.complete("x = ‸") == "x = 1"
    assert editor.process.poll() is None

    assert editor.process.stdin is not None
    editor.process.stdin.close()
    assert editor.process.wait(5 * SLOW) == 1


@pytest.mark.parametrize("name", ["/dev/null", __file__])
def test_a_server_that_was_given_no_pipe_ends_at_the_end_of_its_input(name: str) -> None:
    command = [sys.executable, "-m", "treefill", "serve"]
    with open(name, "rb") as given:
        run = subprocess.run(
            command, stdin=given, capture_output=True, text=True, timeout=20 * SLOW, check=False
        )

    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == "treefill: Standard input was closed."


def test_a_thread_that_never_ends_does_not_keep_a_server_whose_editor_is_gone(start: StartServer) -> None:
    code = (
        "import time; from treefill.commands.serve import take_stdout; from treefill.lsp import serve_stdio; "
        "serve_stdio(lambda given: time.sleep(600), take_stdout())"
    )
    editor = start(program=("-c", code), serve=())
    time.sleep(0.3)

    began = time.monotonic()
    assert editor.shut_down() == 0
    assert time.monotonic() - began < 2 * SLOW


def test_an_interrupted_server_goes_without_a_traceback(start_alone: StartServer) -> None:
    # Who runs the tests in the background ignores interrupts, and processes inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        editor = start_alone({"texts": ["1"]})
    finally:
        signal.signal(signal.SIGINT, before)
    editor.wait_ready()

    editor.process.send_signal(signal.SIGINT)

    assert editor.process.wait(5 * SLOW) == 130
    assert "Traceback" not in editor.stderr


def sockets_in(folder: Path) -> list[str]:
    """Addresses below the folder where anybody listens."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            found += [c.laddr for c in process.net_connections(kind="unix") if str(folder) in str(c.laddr)]
    return found


def test_g17_no_server_ever_listens_on_the_network(start: StartServer) -> None:
    editor = start({"texts": ["1"]})
    assert editor.complete("x = ‸") == "x = 1"

    for pid in (editor.process.pid, editor.calls[-1]["pid"]):
        assert psutil.Process(pid).net_connections(kind="inet") == []
