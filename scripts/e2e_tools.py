"""Set up what the end-to-end tests drive, in `build/e2e/tools`: code-server, and the Node.js that it needs.

The versions are those of `tests/e2e/tools`; nothing is compiled and no install script is run. Quick the second time:
what was installed is remembered by its versions. Silent but for a line unless something fails; the whole story is in
`build/e2e.log`. Chromium is the system's own, see `chromium()`.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINNED = ROOT / "tests" / "e2e" / "tools"
TOOLS = ROOT / "build" / "e2e" / "tools"
STAMP = TOOLS / "installed"
LOG = ROOT / "build" / "e2e.log"
DOWNLOAD_MB = 240
"""Both packages and what they depend on, measured on x86-64; installed it is 0.8 GB."""

NODE = TOOLS / "node_modules" / f"node-linux-{'arm64' if platform.machine() == 'aarch64' else 'x64'}"
CODE_SERVER = TOOLS / "node_modules" / "code-server"
CHROMIUM_PROGRAMS = ("chromium", "google-chrome", "chromium-browser")


def main() -> None:
    """Do what is missing."""
    try:
        chromium()
    except FileNotFoundError as error:
        sys.exit(f"e2e-tools: {error}")
    if STAMP.exists() and STAMP.read_text() == versions():
        return
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        sys.exit("e2e-tools: the end-to-end tests run on Linux, on x86-64 or AArch64.")
    if shutil.which("npm") is None:
        sys.exit("e2e-tools: npm is missing. Install Node.js with its npm and try again; Debian: nodejs npm.")
    print(f"e2e-tools: About to download up to {DOWNLOAD_MB} MB from npm", flush=True)
    install()


def chromium() -> Path:
    """The system's Chromium: what CHROMIUM names, or the first of its names on the PATH."""
    named = os.environ.get("CHROMIUM")
    candidates = (named,) if named else CHROMIUM_PROGRAMS
    found = next((path for path in map(shutil.which, candidates) if path), None)
    if found is None:
        missing = f"CHROMIUM={named} is no program" if named else "there is no Chromium"
        raise FileNotFoundError(
            f"{missing}: install it (Debian: sudo apt install chromium), or name a Chrome by CHROMIUM=PATH."
        )
    return Path(found)


def install() -> None:
    """From an empty folder, in two steps: code-server's own packages, then those of the VS Code inside it."""
    shutil.rmtree(TOOLS, ignore_errors=True)
    TOOLS.mkdir(parents=True)
    LOG.write_text("")
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(PINNED / name, TOOLS)
    # Without scripts: one of them would compile an authentication library that nothing here uses. With optional
    # packages: the file watcher is one.
    npm("ci", cwd=TOOLS)
    # Not `ci`: the versions are pinned by VS Code's own list, which lacks an entry.
    vscode = CODE_SERVER / "lib" / "vscode"
    npm("install", "--omit=dev", cwd=vscode)
    shutil.copy(PINNED / "spdlog.js", vscode / "node_modules" / "@vscode" / "spdlog" / "index.js")
    STAMP.write_text(versions())


def npm(command: str, *options: str, cwd: Path) -> None:
    """Run npm; its words go to the log, and on the screen if it fails."""
    words = ["npm", command, *options, "--ignore-scripts", "--no-audit", "--no-fund"]
    with LOG.open("a") as log:
        done = subprocess.run(words, cwd=cwd, stdout=log, stderr=log, check=False)
    if done.returncode:
        print(LOG.read_text(errors="replace"), file=sys.stderr)
        sys.exit(f"e2e-tools: {' '.join(words)} failed; its message stands above.")


def versions() -> str:
    """One hash of all that says what is installed and how."""
    told_by = [*sorted(path for path in PINNED.iterdir() if path.is_file()), Path(__file__)]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in told_by)).hexdigest()


if __name__ == "__main__":
    main()
