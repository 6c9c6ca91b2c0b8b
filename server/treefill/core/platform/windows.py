"""Windows: a named pipe of this user. Untested, and not enough to run: see docs/server.md.

Its default rights let only the user and administrators write; who is at the other end is not checked.
"""

import asyncio
import contextlib
import errno
import os
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from treefill.core.platform.pipes import tell

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def default_folder() -> Path:
    """Where the lock lies; the pipe itself has no file."""
    return Path(os.environ.get("LOCALAPPDATA") or tempfile.gettempdir()) / "treefill" / "run"


def make_private(folder: Path) -> None:
    """Make the folder; below the user's own, it is the user's alone by what it inherits."""
    folder.mkdir(parents=True, exist_ok=True)


def check_address(address: Path) -> None:
    """A pipe's name is short."""


@contextlib.contextmanager
def hold_lock(file: Path) -> Iterator[None]:
    """One process at a time; raises `BlockingIOError` while another holds it."""
    lock = FileLock(file)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise BlockingIOError(errno.EWOULDBLOCK, "another process holds it") from None
    try:
        yield
    finally:
        lock.release()


async def connect(address: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a core. Raises `OSError` where none listens."""
    loop: Any = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.create_pipe_connection(lambda: protocol, _pipe(address))
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def start_server(handler: Handler, address: Path) -> Any:
    """Listen at the address."""
    loop: Any = asyncio.get_running_loop()

    def make_protocol() -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), handler)

    (server,) = await loop.start_serving_pipe(make_protocol, _pipe(address))
    return server


def file_number(address: Path) -> int | None:
    """A pipe has no file."""
    return None


def remove_address(address: Path) -> None:
    """A pipe goes with its last handle."""


def check_peer(writer: asyncio.StreamWriter) -> None:
    """Nothing is checked: only the pipe's default rights keep others out."""


def spawn(command: Sequence[str], said: bytes, log: Path) -> "subprocess.Popen[bytes]":
    """Start a process that outlives this one and reads `said`; what it prints goes to the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = sum(getattr(subprocess, name, 0) for name in ("DETACHED_PROCESS", "CREATE_NEW_PROCESS_GROUP"))
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, creationflags=flags
        )
    tell(process, said)
    return process


def _pipe(address: Path) -> str:
    return rf"\\.\pipe\treefill-{os.getlogin()}-{address.stem}"
