"""A stored model as one file for machines without a network: a plain, uncompressed tar of four members.

An archive is a stranger's file: only the expected names, only regular files, each of the size and hash that
the archive's own manifest gives. That proves the archive whole; who made it is for its carrier to know.
"""

import hashlib
import io
import tarfile
import uuid
from pathlib import Path
from typing import IO

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

_COPY_BYTES = 4 << 20


def write_archive(manifest: StoredManifest, folder: Path, archive: Path, progress: Progress) -> None:
    """Pack a stored model; `archive` appears once it is whole."""
    new = archive.with_name(f"{archive.name}.{uuid.uuid4().hex}.part")
    progress.start("Packing", sum(record.n_bytes for record in manifest.files.values()))
    try:
        # USTAR headers hold no times or owners but those set here: the same model gives the same archive.
        with tarfile.open(new, "x:", format=tarfile.USTAR_FORMAT) as tar:
            text = manifest.to_json().encode()
            tar.addfile(_member(MANIFEST_FILE, len(text)), io.BytesIO(text))
            for name in CONVERTED_FILES:
                _pack(tar, folder / name, manifest.files[name], progress)
        new.rename(archive)
    finally:
        new.unlink(missing_ok=True)
        progress.finish()


def read_archive_manifest(archive: Path) -> StoredManifest:
    """The manifest of an archive, which is its first member."""
    try:
        with tarfile.open(archive, "r:") as tar:
            return _read_manifest(archive, tar)
    except tarfile.TarError:
        raise _not_sound(archive, "it is no plain tar file, or cut") from None


def unpack_archive(archive: Path, folder: Path, progress: Progress) -> None:
    """Unpack and check the archive's files into the empty `folder`, its manifest included."""
    try:
        with tarfile.open(archive, "r:") as tar:
            manifest = _read_manifest(archive, tar)
            progress.start("Unpacking", sum(record.n_bytes for record in manifest.files.values()))
            _unpack_files(archive, tar, manifest, folder, progress)
    except tarfile.TarError:
        raise _not_sound(archive, "it is no plain tar file, or cut") from None
    finally:
        progress.finish()
    (folder / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")


def _read_manifest(archive: Path, tar: tarfile.TarFile) -> StoredManifest:
    member = tar.next()
    if (
        member is None
        or member.name != MANIFEST_FILE
        or not _is_plain(member)
        or member.size > MAX_MANIFEST_BYTES
    ):
        raise _not_sound(archive, f"its first member is not {MANIFEST_FILE}")
    return parse_manifest(f"{archive}:{MANIFEST_FILE}", _opened(archive, tar, member).read())


def _unpack_files(
    archive: Path, tar: tarfile.TarFile, manifest: StoredManifest, folder: Path, progress: Progress
) -> None:
    missing = set(CONVERTED_FILES)
    while (member := tar.next()) is not None:
        # A name is one of the three expected before it is used as a path, so none can lead elsewhere.
        if member.name not in missing or not _is_plain(member):
            raise _not_sound(archive, f"it holds the unexpected member {member.name[:80]!r}")
        missing.remove(member.name)
        record = manifest.files[member.name]
        if member.size != record.n_bytes:
            raise _not_sound(archive, f"{member.name} is not of the size that its manifest gives")
        if _copy(_opened(archive, tar, member), folder / member.name, progress) != record:
            raise _not_sound(archive, f"{member.name} is cut or altered")
    if missing:
        raise _not_sound(archive, f"it lacks {sorted(missing)[0]}")


def _is_plain(member: tarfile.TarInfo) -> bool:
    """A regular file: no link, no device, no sparse file whose zeros are not in the archive."""
    return member.type in (tarfile.REGTYPE, tarfile.AREGTYPE)


def _opened(archive: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    if file is None:
        raise _not_sound(archive, f"{member.name} cannot be read")
    return file


def _copy(source: IO[bytes], target: Path, progress: Progress) -> FileRecord:
    digest = hashlib.sha256()
    n_bytes = 0
    with target.open("xb") as out:
        while piece := source.read(_COPY_BYTES):
            digest.update(piece)
            n_bytes += len(piece)
            out.write(piece)
            progress.advance(len(piece))
    return FileRecord(n_bytes, digest.hexdigest())


def _pack(tar: tarfile.TarFile, path: Path, record: FileRecord, progress: Progress) -> None:
    with path.open("rb") as file:
        reader = _HashingReader(file, progress)
        tar.addfile(_member(path.name, record.n_bytes), reader)
    if reader.sha256 != record.sha256:
        raise BrokenModel(f"{path} has changed since it was stored; remove the model and pull it again.")


def _member(name: str, n_bytes: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = n_bytes
    member.mode = 0o644
    return member


class _HashingReader(io.RawIOBase):
    """Reads another file, and hashes and reports what passes."""

    def __init__(self, file: IO[bytes], progress: Progress) -> None:
        super().__init__()
        self._file = file
        self._digest = hashlib.sha256()
        self._progress = progress

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def read(self, n_bytes: int = -1) -> bytes:
        piece = self._file.read(n_bytes)
        self._digest.update(piece)
        self._progress.advance(len(piece))
        return piece


def _not_sound(archive: Path, fault: str) -> BrokenModel:
    return BrokenModel(f"{archive} is not a sound model archive: {fault}; copy or export it again.")
