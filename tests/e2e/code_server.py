"""A code-server process with a home of its own: what it installs, writes and starts stays in one folder."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import psutil

from scripts.e2e_tools import CODE_SERVER, NODE

Proposals = Literal["all", "none"]
"""Who may use VS Code's proposed API. code-server lets every extension; VS Code itself lets none that is installed."""

QUIET: dict[str, Any] = {
    "chat.disableAIFeatures": True,
    "editor.autoIndent": "none",
    "editor.inlineSuggest.enabled": True,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": "off",
    "files.autoSave": "off",  # a browser's VS Code saves by itself
    "files.hotExit": "off",
    "security.workspace.trust.startupPrompt": "never",
    "security.workspace.trust.banner": "never",
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "window.restoreWindows": "none",
    "workbench.editorLargeFileConfirmation": 100,  # megabytes
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
}
"""The settings of every user here: nothing pops up by itself, and keys come into the text as they are typed.

All are in the form of today: VS Code rewrites a settings.json that has older ones.
"""

_MANIFEST = json.loads((Path(__file__).parents[2] / "extension" / "package.json").read_text())
MACHINE_SETTINGS = frozenset(
    name
    for part in _MANIFEST["contributes"]["configuration"]
    for name, schema in part["properties"].items()
    if schema["scope"] == "machine"
)
"""What only the user of the machine can set that the extension runs on."""

OWNER = "E2E_CODE_SERVER"
"""An environment variable by which whatever a server has started is found again, also what outlived its parent."""

# The function that says whether an extension may use a proposed API, told by the one after it, which throws.
GATE = re.compile(
    r"function (?P<name>[\w$]+)\((?P<extension>[\w$]+),(?P<proposal>[\w$]+)\)\{return!0\}"
    r"(?=function [\w$]+\((?P=extension),(?P=proposal)\)\{if\(!(?P=name)\((?P=extension),(?P=proposal)\)\)"
    r"throw new Error\(`Extension '\$\{(?P=extension)\.identifier\.value\}' CANNOT use API proposal)"
)
SHUT = r"function \g<name>(\g<extension>,\g<proposal>){return \g<extension>.isBuiltin===!0}"
GATED_FILES = (
    "lib/vscode/out/vs/workbench/api/node/extensionHostProcess.js",
    "lib/vscode/out/vs/code/browser/workbench/workbench.js",
)


class CodeServer:
    """One server, from construction to `stop()`; each page on it gets an extension host of its own."""

    def __init__(
        self,
        folder: Path,
        extensions: Sequence[Path] = (),
        *,
        proposals: Proposals = "all",
        is_trusting: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.user_data = folder / "user-data"
        self.log = folder / "code-server.log"
        self.port = free_port()
        self.windows: list[object] = []
        """The pages that are open on it, kept by themselves."""
        self._program = CODE_SERVER if proposals == "all" else without_proposals()
        self._is_trusting = is_trusting
        self._environment = environment_in(folder) | dict(environment or {})
        self.set_up()
        for vsix in extensions:
            self._install(vsix)
        self.process = self._start()

    def set_up(self) -> None:
        """The folders of a user who has never been here."""
        for path in (self.user_data / "User", self.folder / "extensions", self.folder / "home"):
            path.mkdir(parents=True, exist_ok=True)
        # Without one, code-server writes its own with a password.
        (self.folder / "code-server.yaml").write_text("auth: none\n")

    def write_settings(
        self, settings: Mapping[str, Any], keybindings: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """The user's settings.json and keybindings.json."""
        for path, text in self.settings_files(settings).items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        (self.user_data / "User" / "keybindings.json").write_text(json.dumps(list(keybindings), indent=2))

    def settings_files(self, settings: Mapping[str, Any]) -> dict[Path, str]:
        """The two files that settings stand in: in a window whose files are another machine's, as a browser's are, what
        is of scope `machine` is not taken from the user's own."""
        of_machine = {name: value for name, value in settings.items() if name in MACHINE_SETTINGS}
        others = {name: value for name, value in settings.items() if name not in MACHINE_SETTINGS}
        return {
            self.user_data / "User" / "settings.json": json.dumps(QUIET | others, indent=2),
            self.user_data / "Machine" / "settings.json": json.dumps(of_machine, indent=2),
        }

    def url(self, folder: Path, file: str) -> str:
        """The page that opens a folder and a file in it."""
        host = f"127.0.0.1:{self.port}"
        payload = json.dumps([["openFile", f"vscode-remote://{host}{folder / file}"]])
        query = urllib.parse.urlencode({"folder": str(folder), "payload": payload})
        return f"http://{host}/?{query}"

    def extension_hosts(self) -> list[psutil.Process]:
        """The extension hosts that run, one a page; of a page that was closed, for a few seconds more."""
        return [process for process in self.processes() if "--type=extensionHost" in command_line(process)]

    def processes(self) -> list[psutil.Process]:
        """Everything that this server has started and that still runs, itself too."""
        return [process for process in psutil.process_iter() if owner_of(process) == str(self.folder)]

    def forget_backups(self) -> None:
        """Unsaved text of pages that are closed would come again in the next one."""
        shutil.rmtree(self.user_data / "User" / "Backups", ignore_errors=True)

    def keep_logs(self, into: Path) -> None:
        """Copy what the server, its windows and their extension hosts have logged."""
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        if self.log.exists():
            shutil.copy(self.log, into)
        if (self.user_data / "logs").exists():
            shutil.copytree(self.user_data / "logs", into / "logs")

    def stop(self, within_s: float = 30) -> None:
        """End the server; an AssertionError tells what it leaves running. That is ended too."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self.process.terminate()
        self.process.wait(within_s)
        _, left = psutil.wait_procs(self.processes(), timeout=within_s)
        told = [" ".join(command_line(process)) for process in left]
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        assert told == [], f"code-server has ended, and these still run after {within_s} s: {told}"

    def _install(self, vsix: Path) -> None:
        done = subprocess.run(
            [*self._command(), "--install-extension", str(vsix)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{vsix.name} was not installed: {done.stdout}{done.stderr}"

    def _start(self) -> subprocess.Popen[bytes]:
        options = [
            # Extension hosts outlive a closed page by this; three hours, unless told.
            *("--reconnection-grace-time", "2"),
            *("--bind-addr", f"127.0.0.1:{self.port}"),
            "--disable-telemetry",
            "--disable-update-check",
            "--disable-getting-started-override",
            "--ignore-last-opened",
            *(["--disable-workspace-trust"] if self._is_trusting else []),
        ]
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [*self._command(), *options],
                env=self._environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        wait_until(
            lambda: process.poll() is not None or is_answering(f"http://127.0.0.1:{self.port}/healthz"),
            30,
            lambda: f"code-server does not answer:\n{self.log.read_text(errors='replace')}",
        )
        assert process.poll() is None, f"code-server has ended:\n{self.log.read_text(errors='replace')}"
        return process

    def _command(self) -> list[str]:
        folders = [
            "--user-data-dir",
            str(self.user_data),
            "--extensions-dir",
            str(self.folder / "extensions"),
        ]
        entry = self._program / "out" / "node" / "entry.js"
        return [
            str(NODE / "bin" / "node"),
            str(entry),
            "--config",
            str(self.folder / "code-server.yaml"),
            *folders,
        ]


def without_proposals() -> Path:
    """A copy of code-server that refuses proposed API to all extensions but its own, as VS Code does; made once.

    It stands beside the original, where it finds the same packages, and shares all files but the patched ones.
    """
    copy = CODE_SERVER.with_name("code-server-without-proposals")
    if copy.exists():
        return copy
    partial = copy.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(CODE_SERVER, partial, copy_function=os.link, symlinks=True)
    for name in GATED_FILES:
        shut_gate(partial / name)
    partial.rename(copy)
    return copy


def shut_gate(bundle: Path) -> None:
    """Patch one bundle; its file is replaced, since the original is the same file."""
    patched, n_gates = GATE.subn(SHUT, bundle.read_text(encoding="utf-8"))
    assert n_gates == 1, (
        f"{bundle.name} has {n_gates} gates of proposed API, and one was expected: look at GATE"
    )
    bundle.unlink()
    bundle.write_text(patched, encoding="utf-8")


def environment_in(folder: Path) -> dict[str, str]:
    """What keeps a server's files, and those of all that it starts, in a folder."""
    home = folder / "home"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VSCODE_", "XDG_"))}
    return kept | {
        OWNER: str(folder),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "EXTENSIONS_GALLERY": "{}",  # there is none, so no window asks one
    }


def owner_of(process: psutil.Process) -> str | None:
    """The folder of the server that started a process."""
    try:
        return process.environ().get(OWNER) if process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None


def command_line(process: psutil.Process) -> list[str]:
    """Empty where it has just ended."""
    try:
        words: list[str] = process.cmdline()
    except psutil.Error:
        return []
    return words


def is_answering(url: str) -> bool:
    """Whether a server is up."""
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False


def free_port() -> int:
    """One that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool], within_s: float, complaint: Callable[[], str]) -> None:
    """Look every 20 ms whether the condition holds."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, complaint()
        time.sleep(0.02)
