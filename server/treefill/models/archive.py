"""A stored model as one file for machines without a network: a plain, uncompressed tar of four members.

An archive is a stranger's file: only the expected names, only regular files, each of the size and hash that
the archive's own manifest gives. That proves the archive whole; who made it is for its carrier to know. Headers
are read here one by one, because `tarfile` follows extensions of the format that no archive of ours has.
"""

import hashlib
import tarfile
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from treefill.errors import BrokenModel
from treefill.models.files import CONVERTED_FILES
from treefill.models.progress import Progress
from treefill.models.stored import (
    MANIFEST_FILE,
    MAX_MANIFEST_BYTES,
    FileRecord,
    StoredManifest,
    parse_manifest,
)

ORIGIN = "archive"
"""Where an imported model came from: the path on its maker's machine is nobody's business."""

_BLOCK = tarfile.BLOCKSIZE
_COPY_BYTES = 4 << 20
_MOST_TAIL_BYTES = 1 << 20
"""Zeros after the end, with which other programs fill up a record of the tape that once was."""


def write_archive(manifest: StoredManifest, folder: Path, archive: Path, progress: Progress) -> None:
    """Pack a stored model; `archive` appears once it is whole."""
    text = replace(manifest, origin=ORIGIN).to_json().encode()
    new = archive.with_name(f"{archive.name}.{uuid.uuid4().hex}.part")
    progress.start("Packing", manifest.stored_bytes)
    try:
        with new.open("xb") as out:
            out.write(header(MANIFEST_FILE, len(text)) + text + _padding(len(text)))
            for name in CONVERTED_FILES:
                _pack(out, folder / name, manifest.files[name], progress)
            out.write(bytes(2 * _BLOCK))
        new.rename(archive)
    finally:
        new.unlink(missing_ok=True)
        progress.finish()


def read_archive_manifest(archive: Path) -> StoredManifest:
    """The manifest of an archive, which is its first member."""
    with archive.open("rb") as file:
        return _read_manifest(archive, file)


def unpack_archive(archive: Path, folder: Path, progress: Progress) -> None:
    """Unpack and check the archive's files into the empty `folder`, its manifest included."""
    try:
        with archive.open("rb") as file:
            manifest = _read_manifest(archive, file)
            progress.start("Unpacking", manifest.stored_bytes)
            _unpack_files(archive, file, manifest, folder, progress)
    finally:
        progress.finish()
    (folder / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")


def header(name: str, n_bytes: int) -> bytes:
    """The header of one member, without times or owners: the same model gives the same archive.

    GNU's form, because the standard's own cannot say a size of 8 GiB or more.
    """
    member = tarfile.TarInfo(name)
    member.size = n_bytes
    member.mode = 0o644
    return member.tobuf(tarfile.GNU_FORMAT, "ascii", "strict")


def _padding(n_bytes: int) -> bytes:
    return bytes(-n_bytes % _BLOCK)


def _pack(out: BinaryIO, path: Path, record: FileRecord, progress: Progress) -> None:
    out.write(header(path.name, record.n_bytes))
    with path.open("rb") as file:
        packed = _copy(file, record.n_bytes, out, progress)
    if packed != record:
        raise BrokenModel(f"{path} has changed since it was stored; remove the model and pull it again.")
    out.write(_padding(record.n_bytes))


def _read_manifest(archive: Path, file: BinaryIO) -> StoredManifest:
    name, n_bytes = next(_members(archive, file), ("", 0))
    if name != MANIFEST_FILE or n_bytes > MAX_MANIFEST_BYTES:
        raise _not_sound(archive, f"its first member is not {MANIFEST_FILE}")
    manifest = parse_manifest(f"{archive}:{MANIFEST_FILE}", file.read(n_bytes))
    file.read(len(_padding(n_bytes)))
    return replace(manifest, origin=ORIGIN)


def _unpack_files(
    archive: Path, file: BinaryIO, manifest: StoredManifest, folder: Path, progress: Progress
) -> None:
    missing = set(CONVERTED_FILES)
    for name, n_bytes in _members(archive, file):
        # A name is one of the three expected before it is used as a path, so none can lead elsewhere.
        if name not in missing:
            raise _not_sound(archive, f"it holds the unexpected member {name[:80]!r}")
        missing.remove(name)
        record = manifest.files[name]
        if n_bytes != record.n_bytes:
            raise _not_sound(archive, f"{name} is not of the size that its manifest gives")
        with (folder / name).open("xb") as out:
            unpacked = _copy(file, n_bytes, out, progress)
        if unpacked != record:
            raise _not_sound(archive, f"{name} is cut or altered")
        file.read(len(_padding(n_bytes)))
    if missing:
        raise _not_sound(archive, f"it lacks {sorted(missing)[0]}")
    tail = file.read(_MOST_TAIL_BYTES + 1)
    if len(tail) > _MOST_TAIL_BYTES or any(tail):
        raise _not_sound(archive, "something follows its end")


def _members(archive: Path, file: BinaryIO) -> Iterator[tuple[str, int]]:
    """Name and size of each member up to the end of the archive; the caller reads its data and padding."""
    n_archive_bytes = archive.stat().st_size
    while (block := file.read(_BLOCK)) and any(block):
        try:
            member = tarfile.TarInfo.frombuf(block, "ascii", "strict")
        except (tarfile.HeaderError, ValueError):
            raise _not_sound(archive, "it is no plain tar file, or cut") from None
        # A regular file: no link, no device, no extended header that changes what the next one means.
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise _not_sound(archive, f"it holds the unexpected member {member.name[:80]!r}")
        if not 0 <= member.size <= n_archive_bytes - file.tell():
            raise _not_sound(archive, f"{member.name[:80]!r} does not fit into it")
        yield member.name, member.size


def _copy(source: BinaryIO, n_bytes: int, out: BinaryIO, progress: Progress) -> FileRecord:
    """Copy at most `n_bytes`, and say what was copied."""
    digest = hashlib.sha256()
    left = n_bytes
    while piece := source.read(min(left, _COPY_BYTES)):
        digest.update(piece)
        left -= len(piece)
        out.write(piece)
        progress.advance(len(piece))
    return FileRecord(n_bytes - left, digest.hexdigest())


def _not_sound(archive: Path, fault: str) -> BrokenModel:
    return BrokenModel(f"{archive} is not a sound model archive: {fault}; copy or export it again.")
