"""The store and the disk: names as folders, free space, the lock, and errors in the user's words."""

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import filelock

from treefill.errors import BadInput, NoPermission, NoSpace, StoreBusy, StoreError
from treefill.models.progress import Progress

_MARGIN_BYTES = 64 << 20
"""Left free beyond what is needed: a disk filled to the last byte breaks other programs."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def safe_name(name: str) -> str:
    """A model's name as the name of a folder: `org/name` becomes `org%2Fname`. No two names share one."""
    safe = quote(name, safe="") if name.isprintable() else ""
    if safe.strip(".") == "" or len(safe) > 200:
        raise BadInput(f"{name[:80]!r} cannot be a model's name.")
    return safe


def megabytes(n_bytes: int) -> str:
    """Whole megabytes as people and disks count them, upwards: `492 MB`."""
    return f"{-(-n_bytes // 1_000_000):,} MB"


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the system says about `path` into the store's errors."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        if error.errno in _FULL:
            raise NoSpace(
                f"The disk of {path} is full ({megabytes(free_bytes(path))} free); free some space, "
                "or choose another folder with --cache-dir."
            ) from error
        if error.errno in _FORBIDDEN:
            raise NoPermission(
                f"{where} may not be read or written; change its permissions, "
                "or choose another folder with --cache-dir."
            ) from error
        raise StoreError(f"{where} could not be read or written: {error.strerror or error}.") from error


def free_bytes(path: Path) -> int:
    """Free space where `path` is or would be."""
    return shutil.disk_usage(next(place for place in (path, *path.parents) if place.exists())).free


def check_space(path: Path, n_needed: int, what: str) -> None:
    """Refuse to begin what cannot be finished."""
    free = free_bytes(path)
    if free < n_needed + _MARGIN_BYTES:
        raise NoSpace(
            f"{what} needs {megabytes(n_needed + _MARGIN_BYTES)} in {path}, where {megabytes(free)} are "
            "free; free some space, or choose another folder with --cache-dir."
        )


@contextlib.contextmanager
def locked(path: Path, wait_s: float, progress: Progress) -> Iterator[None]:
    """Hold the lock file `path`; the system lets go of it when a process dies."""
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        progress.say(f"Another treefill is working on the models in {path.parent}; waiting for it.")
        try:
            lock.acquire(timeout=wait_s)
        except filelock.Timeout:
            raise StoreBusy(
                f"Another treefill is still working on the models in {path.parent} after {wait_s:g} s; "
                "try again later."
            ) from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A new folder below `parent`, gone at the end unless it was renamed away."""
    folder = parent / uuid.uuid4().hex
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def replace_folder(new: Path, target: Path, scratch: Path) -> None:
    """Put the folder `new` in the place of `target`, at any moment of which one of the two is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        new.rename(target)
        return
    old = scratch / f"old-{uuid.uuid4().hex}"
    target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def write_atomically(path: Path, text: str) -> None:
    """Write a small file so that a reader sees the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        new.write_text(text, encoding="utf-8")
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
