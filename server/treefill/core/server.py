"""The core process: one socket, any number of this user's fronts, and an end when the last of them is gone."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

from treefill.core import platform
from treefill.core.messages import Hello, Message, Welcome
from treefill.core.place import log_of
from treefill.core.service import Service
from treefill.core.wire import BadFrame, encode, read_message
from treefill.errors import CoreError
from treefill.logs import log_kinds_alone

log = logging.getLogger(__name__)

HELLO_LIMIT_S = 5.0
"""A connection that has not said who it is by then is closed."""
FIRST_FRONT_LIMIT_S = 10.0
"""So long a core waits for the front that has started it, however short it lingers afterwards."""
CLOSE_LIMIT_S = 10.0
"""So long an ending core waits for what is under way."""
MAX_UNSENT_BYTES = 64_000_000
"""A front that reads so little is hung up on."""


async def run_core(
    address: Path, identity: Hello, make_service: Callable[[], Service], linger_s: float
) -> None:
    """Serve fronts until the last one has been gone for `linger_s` seconds, or a signal comes."""
    service = make_service()
    server = CoreServer(service, identity, linger_s)
    listener = await platform.start_server(server.serve, address)
    own_file = platform.file_number(address)
    loop = asyncio.get_running_loop()
    log_kinds_alone(loop)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.ended.set)
    server.linger(max(linger_s, FIRST_FRONT_LIMIT_S))
    try:
        await server.ended.wait()
    finally:
        # The address goes first: who comes now starts another core and is not hung up on. It and the log may be
        # another core's already, where this one was taken for dead.
        if platform.file_number(address) == own_file:
            platform.remove_address(address)
            log_of(address).unlink(missing_ok=True)
        listener.close()
        server.hang_up()
        with contextlib.suppress(TimeoutError):  # a model that is stuck goes with its process
            await asyncio.wait_for(service.close(), CLOSE_LIMIT_S)


class CoreServer:
    """Connections of one core."""

    def __init__(self, service: Service, identity: Hello, linger_s: float) -> None:
        self.ended = asyncio.Event()
        self._service = service
        self._identity = identity
        self._linger_s = linger_s
        self._writers: set[asyncio.StreamWriter] = set()
        self._timer: asyncio.TimerHandle | None = None

    def linger(self, limit_s: float) -> None:
        """End after a while, unless a front comes."""
        self._stop_timer()
        if not self._writers:
            self._timer = asyncio.get_running_loop().call_later(limit_s, self.ended.set)

    def hang_up(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One front, from its first frame to its last."""
        self._writers.add(writer)
        self._stop_timer()
        try:
            platform.check_peer(writer)
            if await self._is_greeted(reader, writer):
                await self._read(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass  # It is gone: that is how fronts leave.
        except (BadFrame, CoreError) as error:
            log.warning("A connection was closed: %s", error)
        finally:
            self._writers.discard(writer)
            writer.close()
            self.linger(self._linger_s)

    async def _is_greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Say who we are; a front of another version or with other settings needs a core of its own."""
        hello = await asyncio.wait_for(read_message(reader), HELLO_LIMIT_S)
        writer.write(encode(Welcome(self._identity.version, self._identity.settings_hash, os.getpid())))
        await writer.drain()
        return hello == self._identity

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def send(message: Message) -> None:
            if writer.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
                writer.transport.abort()
            elif not writer.is_closing():
                writer.write(encode(message))

        peer = self._service.connect(send)
        try:
            while True:
                peer.handle(await read_message(reader))
        finally:
            peer.leave()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
