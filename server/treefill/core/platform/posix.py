"""Linux and macOS: a Unix socket in a folder that only its owner may enter. macOS is untested."""

import asyncio
import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from treefill.core.platform.pipes import tell
from treefill.errors import CoreError

_MAX_PATH_BYTES = 103
"""Of a socket's path: 104 on macOS with the ending zero, 108 on Linux."""

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def default_folder() -> Path:
    """Where this user's sockets lie: the session's runtime folder, else one of our own beside other temporary files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "treefill"
    return Path(tempfile.gettempdir()) / f"treefill-{os.getuid()}"


def make_private(folder: Path) -> None:
    """Make the folder for its owner alone. Raises `CoreError` where it is another's or open to others."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise CoreError(
            f"The folder {folder} cannot be made ({error.strerror}): set runtime_dir to another."
        ) from None
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not is_own or stat.S_IMODE(found.st_mode) & 0o077:
        raise CoreError(
            f"The folder {folder} is not this user's alone: remove it, or set runtime_dir to another."
        )


def check_address(address: Path) -> None:
    """Raise `CoreError` where no socket can lie."""
    if len(os.fsencode(address)) > _MAX_PATH_BYTES:
        raise CoreError(f"The path {address} is too long for a socket: set runtime_dir to a shorter one.")


@contextlib.contextmanager
def hold_lock(file: Path) -> Iterator[None]:
    """One process at a time; raises `BlockingIOError` while another holds it. The file goes with its holder."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if file_number(file) != os.fstat(descriptor).st_ino:
            raise BlockingIOError(errno.EWOULDBLOCK, "its last holder has just removed it")
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


async def connect(address: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a core. Raises `OSError` where none listens."""
    return await asyncio.open_unix_connection(address)


async def start_server(handler: Handler, address: Path) -> asyncio.Server:
    """Listen at the address, whatever a dead core has left there."""
    check_address(address)
    remove_address(address)
    return await asyncio.start_unix_server(handler, address)


def file_number(address: Path) -> int | None:
    """Tells the file at an address from any other that may come to lie there."""
    try:
        return address.lstat().st_ino
    except OSError:
        return None


def remove_address(address: Path) -> None:
    """Remove the socket."""
    address.unlink(missing_ok=True)


def check_peer(writer: asyncio.StreamWriter) -> None:
    """Raise `CoreError` unless the other end is a process of this user."""
    connection = writer.get_extra_info("socket")
    uid = _peer_uid(connection)
    if uid != os.getuid():
        raise CoreError(f"The other end of the socket belongs to user {uid}, not to this one.")


def spawn(command: Sequence[str], said: bytes, log: Path) -> "subprocess.Popen[bytes]":
    """Start a process that outlives this one and reads `said`; what it prints goes to the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
            close_fds=True,
            cwd="/",
        )
    finally:
        os.close(descriptor)
    tell(process, said)
    return process


def _peer_uid(connection: socket.socket) -> int:
    if sys.platform == "darwin":
        credentials = connection.getsockopt(0, 0x001, 8)  # SOL_LOCAL, LOCAL_PEERCRED: version, then uid
        return struct.unpack("II", credentials)[1]
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", credentials)
    return int(uid)
