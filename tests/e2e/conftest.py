"""Workbenches for tests: on a server that all tests share, or on one of a test's own."""

import itertools
import re
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest
from playwright.sync_api import Browser, sync_playwright

from scripts.e2e_tools import chromium
from tests.e2e.code_server import CodeServer
from tests.e2e.vsix import pack
from tests.e2e.workbench import Keybindings, Workbench, forget_old_evidence

CHROMIUM_FLAGS = [
    "--no-sandbox",  # which does not work for root, nor in most containers
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

VSIX = Path(__file__).parents[2] / "dist" / "treefill.vsix"
STATUS = "treefill.treefill.treefill.status"
"""The extension's status item."""
INTERPRETER = {"treefill.interpreter": sys.executable}
SETTINGS = INTERPRETER | {"editor.autoClosingBrackets": "never", "editor.autoClosingQuotes": "never"}
CORE_LINGER_S = "10"
"""The setting's default; these tests' cores end sooner."""
CLOSE_ALL = [{"key": "f12", "command": "workbench.action.closeAllEditors"}]
STUB = Path(__file__).with_name("stub_extension")
FAILED = pytest.StashKey[bool]()


class OpenWorkbench(Protocol):
    """Opens a folder that has these files, and the first of them; on the shared server, unless told."""

    def __call__(
        self,
        files: Mapping[str, str | bytes],
        *,
        settings: Mapping[str, Any] | None = None,
        keybindings: Keybindings = (),
        server: CodeServer | None = None,
    ) -> Workbench: ...


class StartCodeServer(Protocol):
    """Makes a `CodeServer` with a fresh user; the arguments are its own, but for the folder."""

    def __call__(self, *extensions: Path, **options: Any) -> CodeServer: ...


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests; each workbench has its own profile in it. Nothing of it is left at the end."""
    forget_old_evidence()
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    with sync_playwright() as playwright:
        chromium_browser = playwright.chromium.launch(
            executable_path=chromium(), headless=True, args=CHROMIUM_FLAGS
        )
        started = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
        yield chromium_browser
        chromium_browser.close()
    _, alive = psutil.wait_procs(started, timeout=10)
    assert alive == []


@pytest.fixture(scope="session")
def stub_vsix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension that answers at once, packed."""
    return pack(STUB, tmp_path_factory.mktemp("vsix"))


@pytest.fixture(scope="session")
def code_server(tmp_path_factory: pytest.TempPathFactory, stub_vsix: Path) -> Iterator[CodeServer]:
    """One server for all tests, with the stub extension; windows on it get the settings that the test says."""
    server = CodeServer(tmp_path_factory.mktemp("shared"), [stub_vsix])
    yield server
    server.stop()


@pytest.fixture
def start_code_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartCodeServer]:
    """Servers of the test's own: another user, other extensions, other options."""
    servers: list[CodeServer] = []

    def start(*extensions: Path, **options: Any) -> CodeServer:
        servers.append(CodeServer(tmp_path_factory.mktemp("own"), extensions, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def treefill_vsix() -> Path:
    """The extension as it is published."""
    assert VSIX.exists(), "There is no dist/treefill.vsix: `make vsix` makes it, and `make e2e` calls that."
    return VSIX


@pytest.fixture(scope="session")
def runtime_dir() -> Iterator[Path]:
    """Where these tests' cores are met, and no other; its path is short, as a socket's must be."""
    with tempfile.TemporaryDirectory(prefix="treefill-e2e-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def start_treefill(
    tmp_path_factory: pytest.TempPathFactory, treefill_vsix: Path, runtime_dir: Path
) -> Iterator[StartCodeServer]:
    """Servers with the extension, whose treefill finds the model that the tests' own environment names."""
    servers: list[CodeServer] = []

    def start(*more: Path, **options: Any) -> CodeServer:
        own = {"TREEFILL_RUNTIME_DIR": str(runtime_dir), "TREEFILL_CORE_LINGER_S": "1"}
        environment = own | options.pop("environment", {})
        folder = tmp_path_factory.mktemp("treefill")
        servers.append(CodeServer(folder, [treefill_vsix, *more], environment=environment, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def window(
    browser: Browser, start_treefill: StartCodeServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    """One window with the extension and the real model, for all tests that need none of their own."""
    folder = write_files(tmp_path_factory.mktemp("workspace"), {"readme.txt": ""})
    workbench = Workbench(
        start_treefill(),
        browser,
        folder,
        "readme.txt",
        settings=SETTINGS,
        keybindings=CLOSE_ALL,
        name="window",
    )
    yield workbench
    workbench.close()


@pytest.fixture
def open_editor(
    request: pytest.FixtureRequest,
    open_workbench: OpenWorkbench,
    start_treefill: StartCodeServer,
    tmp_path: Path,
) -> Iterator[OpenWorkbench]:
    """A window with the extension, the server of this checkout and the real model ready, and these files.

    It is the one that tests share, unless a test has settings or a server of its own.
    """
    shared: list[Workbench] = []

    def open_one(files: Mapping[str, str | bytes], **options: Any) -> Workbench:
        if options:
            options["settings"] = SETTINGS | (options.get("settings") or {})
            options["server"] = options.get("server") or start_treefill()
            workbench = open_workbench(files, **options)
        else:
            workbench = request.getfixturevalue("window")
            shared.append(workbench)
            workbench.name = re.sub(r"\W+", "-", request.node.name)
            workbench.has_evidence = False
            folder = write_files(workbench.root / f"test-{next(_numbers)}", files)
            workbench.enter(folder, next(iter(files)))
        wait_for_ready(workbench)
        return workbench

    yield open_one
    for workbench in shared:
        if request.node.stash.get(FAILED, False) and not workbench.has_evidence:
            workbench.keep_evidence()
        workbench.close_files("F12")


_numbers = itertools.count()


def wait_for_ready(workbench: Workbench) -> None:
    """Wait until the status item says that the model is there."""
    workbench.wait_until(
        lambda: "Ready: " in workbench.status_label(STATUS),
        "treefill to be ready",
        within_s=90,
        instead=lambda: f"it was {workbench.status_label(STATUS)!r}",
    )


@pytest.fixture
def open_workbench(
    request: pytest.FixtureRequest,
    browser: Browser,
    code_server: CodeServer,
    start_code_server: StartCodeServer,  # whose servers end after their windows
    tmp_path: Path,
) -> Iterator[OpenWorkbench]:
    """Workbenches that are closed after the test; of a test that failed, their last state is kept."""
    workbenches: list[Workbench] = []

    def open_one(
        files: Mapping[str, str | bytes],
        *,
        settings: Mapping[str, Any] | None = None,
        keybindings: Keybindings = (),
        server: CodeServer | None = None,
    ) -> Workbench:
        folder = write_files(tmp_path / f"workspace-{len(workbenches)}", files)
        options: dict[str, Any] = {"settings": settings, "keybindings": keybindings, "name": name}
        workbenches.append(Workbench(server or code_server, browser, folder, next(iter(files)), **options))
        return workbenches[-1]

    name = re.sub(r"\W+", "-", request.node.name)
    yield open_one
    for workbench in reversed(workbenches):
        if request.node.stash.get(FAILED, False) and not workbench.has_evidence:
            workbench.keep_evidence()
        workbench.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember for the fixtures whether the test has failed."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A folder with these files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder
