"""Writes extension/server/requirements.txt: what the extension's private environment is made of, pinned by hashes.

Run it when the dependencies in pyproject.toml change, with `uv` installed (`pip install uv`).
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "extension" / "server" / "requirements.txt"
LEFT_OUT = ("torch", "transformers", "bitsandbytes")
"""Some gigabytes, for other architectures and CUDA; the native engine does without them."""
_HEADER = """\
# What the server needs beside itself, without torch: the native engine does without. Each file by its hash.
# Made from pyproject.toml by scripts/extension_lock.py.
"""


def main() -> None:
    """Resolve anew, for every system and Python from 3.11 on."""
    with tempfile.NamedTemporaryFile("w", suffix=".in") as wanted:
        wanted.write("\n".join(requirements()))
        wanted.flush()
        command = [
            sys.executable, "-m", "uv", "pip", "compile", wanted.name, "--universal", "--generate-hashes",
            "--python-version", "3.11", "--only-binary", ":all:", "--no-header", "--no-annotate",
            "--no-emit-index-url", "--quiet",
        ]  # fmt: skip
        LOCK.write_text(_HEADER + subprocess.run(command, check=True, text=True, stdout=-1).stdout)


def requirements() -> list[str]:
    """The dependencies that pyproject.toml names, less `LEFT_OUT`."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return [each for each in named if name_of(each) not in LEFT_OUT]


def name_of(requirement: str) -> str:
    """The project's name in its normal form."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


if __name__ == "__main__":
    main()
