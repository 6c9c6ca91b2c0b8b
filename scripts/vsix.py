"""Packages the extension into dist/treefill.vsix, with the server's wheel and its hash. Needs node 20 or newer."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXTENSION = ROOT / "extension"
SERVER = EXTENSION / "server"
VSIX = ROOT / "dist" / "treefill.vsix"
_STAMP = EXTENSION / "node_modules" / ".treefill-lock"


def main() -> None:
    """Install the build's own tools, build the wheel, bundle, package."""
    install_tools()
    put_wheel(build_wheel())
    VSIX.parent.mkdir(exist_ok=True)
    _npm("run", "build")
    _npm("run", "package")
    print(f"vsix: {VSIX.relative_to(ROOT)}, {VSIX.stat().st_size / 1000:,.0f} kB")


def install_tools() -> None:
    """What package-lock.json names, unless it is there."""
    lock = (EXTENSION / "package-lock.json").read_text()
    if not _STAMP.exists() or _STAMP.read_text() != lock:
        print("vsix: Installing the extension's build tools (about a minute)")
        _npm("ci", "--no-audit", "--no-fund")
        _STAMP.write_text(lock)


def build_wheel() -> Path:
    """The server for this machine and Python."""
    folder = ROOT / "build" / "vsix-wheel"
    shutil.rmtree(folder, ignore_errors=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-build-isolation",
        "--no-deps",
        "--wheel-dir",
        folder,
        ROOT,
    ]
    _quietly(pip, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def put_wheel(wheel: Path) -> None:
    """Lay it into the extension, and what it has to be beside it."""
    for old in SERVER.glob("*.whl"):
        old.unlink()
    shutil.copy(wheel, SERVER)
    wheels = [{"file": wheel.name, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}]
    (SERVER / "wheels.json").write_text(json.dumps(wheels) + "\n")


def _npm(*arguments: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("vsix: npm is needed to build the extension: install node 20 or newer.")
    _quietly([npm, *arguments], EXTENSION)


def _quietly(command: list[str | Path], folder: Path) -> None:
    """What it says is shown only where it fails."""
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nvsix: {' '.join(map(str, command[:3]))} … failed; what it said is above.")


if __name__ == "__main__":
    main()
