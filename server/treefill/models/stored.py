"""The `manifest.json` of a stored model: where it came from, and the size and SHA-256 of every file."""

import hashlib
import json
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from treefill.errors import BrokenModel
from treefill.models.files import CONVERTED_FILES
from treefill.models.progress import Progress

MANIFEST_FILE = "manifest.json"
MAX_MANIFEST_BYTES = 1 << 20
_READ_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What a file was when it was stored."""

    n_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """What is known of a stored model."""

    name: str
    format_version: int
    """Of the converted files; an older one is converted again."""
    licence: str | None
    """None where nobody has told us."""
    origin: str
    """Where the source came from: `manifest`, a hub id, an absolute path, or `archive`."""
    source: Mapping[str, FileRecord]
    """The files that were converted, by file name."""
    files: Mapping[str, FileRecord]
    """The converted files."""

    @property
    def source_bytes(self) -> int:
        """What fetching the source again would bring."""
        return sum(record.n_bytes for record in self.source.values())

    @property
    def stored_bytes(self) -> int:
        """What the converted files take."""
        return sum(record.n_bytes for record in self.files.values())

    def to_json(self) -> str:
        """The text of `manifest.json`."""
        return json.dumps(asdict(self), indent=2) + "\n"


def read_manifest(path: Path) -> StoredManifest | None:
    """The manifest at `path`, or None where there is none."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe waits for somebody to write into it
            raise BrokenModel(f"{path} is no file; remove it and pull the model again.")
        with path.open("rb") as file:
            text = file.read(MAX_MANIFEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return parse_manifest(str(path), text)


def parse_manifest(where: str, text: bytes) -> StoredManifest:
    """Check and read the text of a `manifest.json`; `where` names it in messages."""
    try:
        if len(text) > MAX_MANIFEST_BYTES:
            raise ValueError("too long")
        document = json.loads(text.decode())
        manifest = StoredManifest(
            name=_name(document["name"]),
            format_version=_natural(document["format_version"]),
            licence=None if document["licence"] is None else _text(document["licence"], 200),
            origin=_text(document["origin"], 4096),
            source=_records(document["source"]),
            files=_records(document["files"]),
        )
        if set(manifest.files) != set(CONVERTED_FILES) or not manifest.source:
            raise ValueError("other files")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BrokenModel(f"{where} is not a sound manifest; remove the model and pull it again.") from None
    return manifest


def record_of(path: Path, progress: Progress) -> FileRecord:
    """Size and hash of a file, read once from end to end."""
    digest = hashlib.sha256()
    n_bytes = 0
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
            n_bytes += len(piece)
            progress.advance(len(piece))
    return FileRecord(n_bytes, digest.hexdigest())


def records_of(paths: Iterable[Path], label: str, progress: Progress) -> dict[str, FileRecord]:
    """Sizes and hashes of files by name, under one bar."""
    paths = list(paths)
    progress.start(label, sum(path.stat().st_size for path in paths))
    try:
        return {path.name: record_of(path, progress) for path in paths}
    finally:
        progress.finish()


def _records(value: Any) -> dict[str, FileRecord]:
    return {
        _text(name, 255): FileRecord(_natural(record["n_bytes"]), _sha256(record["sha256"]))
        for name, record in value.items()
    }


def _text(value: Any, n_most: int) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= n_most:
        raise ValueError("not a text")
    return value


def _name(value: Any) -> str:
    if not _text(value, 200).isprintable():
        raise ValueError("not a name")
    return str(value)


def _natural(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError("not a number")
    return value


def _sha256(value: Any) -> str:
    if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise ValueError("not a hash")
    return value
