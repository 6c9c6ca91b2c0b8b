"""The protocol's base layer over standard input and output: framing that garbage can't derail, and no waiting."""

import asyncio
import logging
import os
import re
import selectors
import stat
import sys
from collections.abc import Iterator
from typing import BinaryIO

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 256_000_000
READ_BYTES = 1 << 18
_HEADER = re.compile(rb"Content-Length:[ \t]*(\d{1,12})[ \t]*\r?\n", re.IGNORECASE)
_HEADERS_END = re.compile(rb"\r?\n\r?\n")


class FrameReader:
    """Cuts a stream of bytes into message bodies. What is no header is skipped up to the next one."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._n_wanted: int | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that are whole now."""
        self._bytes += data
        while True:
            if self._n_wanted is None and not self._read_header():
                return
            assert self._n_wanted is not None
            if len(self._bytes) < self._n_wanted:
                return
            body = bytes(self._bytes[: self._n_wanted])
            del self._bytes[: self._n_wanted]
            self._n_wanted = None
            yield body

    def _read_header(self) -> bool:
        while True:
            found = _HEADER.search(self._bytes)
            if found is None:
                self._skip(max(self._bytes.rfind(b"\n") + 1, len(self._bytes) - 4096))
                return False
            n_bytes = int(found[1])  # before anything is deleted: a match looks into the very buffer
            self._skip(found.start())
            end = _HEADERS_END.search(self._bytes)
            if end is None:
                return False
            del self._bytes[: end.end()]
            if n_bytes <= MAX_BODY_BYTES:
                self._n_wanted = n_bytes
                return True
            log.warning("A message of %d bytes was announced, which is too long: it is skipped.", n_bytes)

    def _skip(self, n_bytes: int) -> None:
        if n_bytes > 0:
            log.warning("%d bytes that are no message were skipped.", n_bytes)
            del self._bytes[:n_bytes]


async def open_stdin() -> asyncio.StreamReader:
    """Standard input as a stream; what the loop cannot wait for, as a file or /dev/null, is read by a thread's help."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_BYTES)
    if _can_be_waited_for(0):
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(0), "rb", 0)
        )
    else:
        data = await asyncio.to_thread(sys.stdin.buffer.read)
        reader.feed_data(data)
        reader.feed_eof()
    return reader


def _can_be_waited_for(descriptor: int) -> bool:
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or stat.S_ISCHR(kind)):
        return False
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
    except OSError:
        return False
    return True


class StdoutWriter:
    """What pygls writes to: whole messages, in order, without waiting for a client that reads slowly."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._unsent = bytearray()
        self._loop = asyncio.get_running_loop()
        self._is_broken = False
        os.set_blocking(output.fileno(), False)

    def write(self, data: bytes) -> None:
        """Send, now or as soon as the client reads; not to one that is gone."""
        if not self._is_broken:
            self._unsent += data
            self._flush()

    async def drain(self, limit_s: float) -> None:
        """Wait until all is sent, or the limit has passed."""
        deadline = self._loop.time() + limit_s
        while self._unsent and self._loop.time() < deadline:
            await asyncio.sleep(0.01)

    def close(self) -> None:
        """Nothing is written any more. A part of what pygls takes for a writer."""
        self._loop.remove_writer(self._output.fileno())
        self._output.close()

    def _flush(self) -> None:
        try:
            while self._unsent:
                n_sent = os.write(self._output.fileno(), self._unsent[:READ_BYTES])
                del self._unsent[:n_sent]
        except BlockingIOError:
            self._loop.add_writer(self._output.fileno(), self._flush)
            return
        except OSError:
            self._is_broken = True
            self._unsent.clear()
        self._loop.remove_writer(self._output.fileno())
