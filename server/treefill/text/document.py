"""A document as it stands in the editor's buffer or on the disk. Finding its language is not done here."""

import os
from dataclasses import dataclass
from pathlib import Path

from treefill.errors import BadInput

MAX_FILE_BYTES = 30_000_000
"""Larger files are refused: an editor would not colour them either."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text, never changed in place."""

    path: str
    """The file's path, or the URI of a buffer that has no file."""
    text: str
    """Exactly the buffer: line endings, a byte order mark and lone surrogates included."""
    language: str = "plaintext"
    """The language's id, as editors name it."""
    is_cell: bool = False
    """True for a notebook's cell."""


def read_document(path: str | Path, language: str | None = None) -> Document:
    """Read a file; `BadInput` says in one sentence why it cannot be used as text."""
    return Document(str(path), _decode(path, _read_bytes(Path(path))), language or "plaintext")


def document_from(data: bytes, name: str, language: str | None = None) -> Document:
    """The same for bytes that came another way; `name` is what to call them."""
    if len(data) > MAX_FILE_BYTES:
        raise BadInput(f"{name} has more than {MAX_FILE_BYTES // 1_000_000} MB: give it less text")
    return Document(name, _decode(name, data), language or "plaintext")


def _read_bytes(path: Path) -> bytes:
    if "\0" in str(path):
        raise BadInput(f"{str(path)!r} is not a path that a file can have: check the path")
    try:
        if path.is_dir():
            raise BadInput(f"{path} is a directory: name a file")
        if not path.exists():
            raise BadInput(f"{path} does not exist: check the path")
        if not path.is_file():
            raise BadInput(f"{path} is not a regular file: name a text file")
        n_bytes = path.stat().st_size
        if n_bytes > MAX_FILE_BYTES:
            raise BadInput(
                f"{path} is too large ({n_bytes / 1e6:.0f} MB): files of up to "
                f"{MAX_FILE_BYTES // 1_000_000} MB can be completed"
            )
        return _read_at_most(path, MAX_FILE_BYTES)
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror or error}): check its permissions") from error
    except ValueError as error:
        raise BadInput(f"{str(path)!r} is not a path that a file can have: {error}") from error


def _read_at_most(path: Path, n_most: int) -> bytes:
    """A file's bytes, without waiting for more: what the system makes up (`/proc`) may have no size and no end."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb", buffering=0) as file:
        data = bytearray()
        while piece := file.read(n_most + 1 - len(data)):
            data += piece
        if piece is None:
            raise BadInput(f"{path} has nothing to read yet: name a text file")
    if len(data) > n_most:
        raise BadInput(f"{path} has no end within {n_most // 1_000_000} MB: name a text file")
    return bytes(data)


def _decode(path: str | Path, data: bytes) -> str:
    nul = data.find(b"\0")
    if nul >= 0:
        raise BadInput(f"{path} is a binary file (a NUL byte at offset {nul}): only text can be completed")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path} is not UTF-8 text (byte {data[error.start]:#04x} at offset {error.start}): "
            "save it as UTF-8 first"
        ) from error
