"""Set up everything that the Makefile's targets need: `.venv`, the pinned packages, the built kernels.

Run by the system's Python with nothing but its standard library. Quick the second time: what was done is remembered
in `.venv/treefill-setup.json`, and only what has changed since is done again. `--tests` also looks for what only
the tests need.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

FOR_TESTS = "--tests" in sys.argv
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STATE = VENV / "treefill-setup.json"
DOWNLOAD_MB = 500
"""All wheels of constraints.txt together, torch's CPU build (192 MB) included; the model's size is told apart."""
TESTS_DOWNLOAD_MB = 198
"""What only the tests need comes on top: Triton."""
ONLY_FOR_TESTS = ("triton",)
TORCH_INDEX = os.environ.get("TORCH_INDEX", "https://download.pytorch.org/whl/cpu")
"""Where torch's CPU build for Linux is; empty means that pip's own sources have it."""


def main() -> None:
    """Do what is missing, a line a step."""
    complain_about_missing_packages()
    done: dict[str, str] = json.loads(STATE.read_text()) if STATE.exists() else {}
    packages = digest([ROOT / "constraints.txt", ROOT / "pyproject.toml"])
    kernels = digest([*ROOT.glob("kernels/**/*"), *ROOT.glob("grammars/**/*"), ROOT / "pyproject.toml"])
    with_tests = f"{packages} and what only tests need"
    wanted = with_tests if FOR_TESTS else packages
    if done.get("packages") not in (wanted, with_tests):
        install_packages()
        done = done | {"packages": wanted} if done.get("packages") == packages else {"packages": wanted}
        STATE.write_text(json.dumps(done))
    if done.get("kernels") != kernels:
        say("Building the kernels (about a minute)")
        pip("install", "--no-build-isolation", "--no-deps", "--editable", str(ROOT))
        STATE.write_text(json.dumps(done | {"kernels": kernels}))


def complain_about_missing_packages() -> None:
    """Name the one line that installs what the system lacks, and stop."""
    if sys.version_info < (3, 11):
        sys.exit(
            f"setup: treefill needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}."
        )
    missing = [package for package, is_here in needed_packages() if not is_here]
    if missing:
        sys.exit(
            f"setup: something is missing. Install it and try again:\n  sudo apt install {' '.join(missing)}"
        )


def needed_packages() -> list[tuple[str, bool]]:
    """Debian's name of each package, and whether what it brings is here."""
    needed = [
        ("python3-venv", has_module("venv") and has_module("ensurepip")),
        ("python3-dev", Path(sysconfig.get_path("include"), "Python.h").exists()),
        ("g++", shutil.which("g++") is not None or shutil.which("c++") is not None),
        ("make", shutil.which("make") is not None),
        ("cmake", shutil.which("cmake") is not None),
    ]
    if FOR_TESTS:  # they run the kernels of instruction sets that this machine lacks
        needed += [
            ("libsimde-dev", Path("/usr/include/simde/x86/avx512.h").exists()),
            ("g++-aarch64-linux-gnu", shutil.which("aarch64-linux-gnu-g++") is not None),
            ("qemu-user", shutil.which("qemu-aarch64") is not None),
        ]
    return needed


def has_module(name: str) -> bool:
    """Debian ships venv and ensurepip apart from Python."""
    return (
        subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode
        == 0
    )


def install_packages() -> None:
    """Make `.venv` and install what constraints.txt pins."""
    if not PYTHON.exists():
        say(f"Making {VENV.relative_to(ROOT)}")
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    size = DOWNLOAD_MB + (TESTS_DOWNLOAD_MB if FOR_TESTS else 0)
    say(f"About to download up to {size} MB of Python packages (fewer where pip has them cached)")
    pinned = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    if not FOR_TESTS:
        pinned = [line for line in pinned if not line.startswith(ONLY_FOR_TESTS)]
    pip("install", "--progress-bar", "on", *torch_index(), *pinned)


def torch_index() -> list[str]:
    """Where Linux finds torch without CUDA: the makers' own index, if it answers."""
    if not TORCH_INDEX or sys.platform != "linux":
        return []
    try:
        urllib.request.urlopen(TORCH_INDEX, timeout=3).close()
    except OSError:
        say(f"{TORCH_INDEX} does not answer: torch comes from pip's own sources.")
        say("If those have it with CUDA alone, that is several GB; TORCH_INDEX=URL names another index.")
        return []
    return ["--extra-index-url", TORCH_INDEX]


def pip(*arguments: str) -> None:
    """Run the environment's pip; its own messages say what failed."""
    run = subprocess.run(
        [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments],
        cwd=ROOT,
        check=False,
    )
    if run.returncode:
        sys.exit(
            "setup: pip failed; its message stands above. Mend that and run make again: it goes on from there."
        )


def digest(paths: list[Path]) -> str:
    """One hash of all files' names and contents."""
    total = hashlib.sha256(sys.version.encode())
    for path in sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts):
        total.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def say(line: str) -> None:
    """Progress, at once also in a log."""
    print(f"setup: {line}", flush=True)


if __name__ == "__main__":
    main()
