"""Servers for tests: one of a test's own, or one that the tests of a file share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest

from tests.lsp.editor import Editor

SLOW = 3
"""The cases' time limits are for an idle machine; tests stretch them by this."""


class StartServer(Protocol):
    """Makes an `Editor` with its server; the arguments are its own, but for the folder."""

    def __call__(self, script: dict[str, Any] | None = None, **options: Any) -> Editor: ...


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartServer]:
    """A server of the test's own. Whatever it did, it spoke the protocol and nothing of it is left."""
    editors: list[Editor] = []

    def start_one(script: dict[str, Any] | None = None, **options: Any) -> Editor:
        editors.append(Editor(options.pop("folder", tmp_path), script, **options))
        return editors[-1]

    yield start_one
    close_and_check(editors)


@pytest.fixture
def start_alone(start: StartServer) -> StartServer:
    """The same with the core in the server's own process: quicker, where the core is not what is tested."""

    def start_one(script: dict[str, Any] | None = None, **options: Any) -> Editor:
        return start(script, serve=("serve", "--no-core"), **options)

    return start_one


@pytest.fixture(scope="module")
def shared_editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One server for the tests of a file: see `editor`."""
    editor = Editor(tmp_path_factory.mktemp("shared"))
    editor.wait_ready()
    yield editor
    close_and_check([editor])


@pytest.fixture
def editor(shared_editor: Editor) -> Iterator[Editor]:
    """The file's server, with no document open; the test says by `play` what the model writes."""
    yield shared_editor
    for uri in list(shared_editor.texts):
        shared_editor.close_document(uri)


def close_and_check(editors: list[Editor]) -> None:
    """End the servers; every byte was a message, every request was answered at most once."""
    for editor in editors:
        editor.close()
    for editor in editors:
        assert editor.stray == b""
        assert set(editor.n_answers.values()) <= {1}
        assert processes_of(editor.folder) == []


def processes_of(folder: Path, within_s: float = 20) -> list[str]:
    """The command lines of core processes that still use the folder after a while."""
    found = [process for process in psutil.process_iter(["cmdline"]) if _uses(process, folder)]
    _, alive = psutil.wait_procs(found, timeout=within_s)
    return [" ".join(process.info["cmdline"] or []) for process in alive]


def _uses(process: psutil.Process, folder: Path) -> bool:
    return any(str(folder) in word for word in process.info["cmdline"] or [])
