"""A front's way to the core process: connect, or start one; and again, more and more patiently, when it dies."""

import asyncio
import contextlib
import logging
import math
import subprocess
import time
from pathlib import Path

from treefill.core import platform
from treefill.core.link import LinkEvents
from treefill.core.messages import Message, Welcome
from treefill.core.place import CorePlace
from treefill.core.wire import BadFrame, encode, read_message
from treefill.errors import CoreError

log = logging.getLogger(__name__)

START_LIMIT_S = 20.0
"""A core that does not listen by then is given up."""
GREET_LIMIT_S = 10.0
"""What listens and has not answered by then is no core, or one that hangs."""
LOCK_LIMIT_S = START_LIMIT_S + 2 * GREET_LIMIT_S
"""Another window needs no longer to start a core."""
BACK_OFF_S = (0.2, 1.0, 4.0, 15.0, 60.0)
"""Before each next try after a core that was not connected for `STEADY_S`."""
STEADY_S = 30.0
_POLL_S = 0.02

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class CoreClient:
    """`core.link.Link` over a socket."""

    def __init__(self, place: CorePlace) -> None:
        self._place = place
        self._writer: asyncio.StreamWriter | None = None
        self._greeted_at = math.inf
        self._task: asyncio.Task[None] | None = None

    def start(self, events: LinkEvents) -> None:
        """Connect, and stay connected."""
        self._task = asyncio.get_running_loop().create_task(self._stay_connected(events))

    @property
    def is_up(self) -> bool:
        """True while a core is connected."""
        return self._writer is not None and not self._writer.is_closing()

    def send(self, message: Message) -> None:
        """Write one frame, or drop it where no core is connected or none would take it."""
        if self._writer is None or self._writer.is_closing():
            return
        try:
            self._writer.write(encode(message))
        except BadFrame as error:
            log.warning("A message (%s) was not sent: %s", type(message).__name__, error)

    async def close(self) -> None:
        """Hang up; the core lingers for the next front."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _stay_connected(self, events: LinkEvents) -> None:
        n_failures = 0
        while True:
            self._greeted_at = math.inf
            sentence = await self._live_through_one(events)
            n_failures = 1 if time.monotonic() - self._greeted_at >= STEADY_S else n_failures + 1
            events.on_lost(sentence)
            await asyncio.sleep(BACK_OFF_S[min(n_failures, len(BACK_OFF_S)) - 1])

    async def _live_through_one(self, events: LinkEvents) -> str:
        """Talk to one core until it is gone; why it is."""
        try:
            reader, self._writer = await connect_or_start(self._place)
            self._greeted_at = time.monotonic()
            for document in events.documents():
                self.send(document)
            while True:
                events.on_message(await read_message(reader))
        except (asyncio.IncompleteReadError, ConnectionError):
            return "The core process has ended unexpectedly; it is started anew."
        except CoreError as error:
            return str(error)
        except BadFrame as error:
            return f"The core process was left: {error}"
        except Exception as error:  # whatever it is, the next try may fare better
            # The kind alone: an error's text may quote what the user wrote.
            log.error("Talking to the core process has failed: %s.", type(error).__name__)
            return f"The core process was left ({type(error).__name__}); it is started anew."
        finally:
            if self._writer is not None:
                self._writer.close()
                self._writer = None


async def connect_or_start(place: CorePlace) -> Streams:
    """A greeted connection to the core of this place, started if none listens. Raises `CoreError`."""
    streams = await _greeted(place)
    if streams is not None:
        return streams
    platform.check_address(place.address)
    platform.make_private(place.folder)
    # Two windows that open together start one core: who comes second finds the first one's.
    with await _lock(place):
        streams = await _greeted(place)
        if streams is not None:
            return streams
        return await _wait_for(place, _spawned(place))


async def _lock(place: CorePlace) -> contextlib.ExitStack:
    """The right to start this core, held until the stack is closed."""
    deadline = time.monotonic() + LOCK_LIMIT_S
    while time.monotonic() < deadline:
        stack = contextlib.ExitStack()
        try:
            stack.enter_context(platform.hold_lock(place.lock))
        except BlockingIOError:
            await asyncio.sleep(_POLL_S)  # and not in a thread, which would go on waiting for who has left
        except OSError as error:
            raise CoreError(
                f"The folder {place.folder} cannot be locked ({error.strerror}): set runtime_dir to another."
            ) from None
        else:
            return stack
    raise CoreError(f"Another window has been starting the core process for {LOCK_LIMIT_S:g} s.")


def _spawned(place: CorePlace) -> "subprocess.Popen[bytes]":
    try:
        return platform.spawn((*place.command, str(place.address)), place.settings.encode(), place.log)
    except OSError as error:
        raise CoreError(
            f"The core process could not be started: {error.filename}: {error.strerror}."
        ) from None


async def _wait_for(place: CorePlace, process: "subprocess.Popen[bytes]") -> Streams:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        streams = await _greeted(place)
        if streams is not None:
            return streams
        if process.poll() is not None:
            raise CoreError(f"The core process could not be started{_last_words(place.log)}")
        await asyncio.sleep(_POLL_S)
    process.kill()
    raise CoreError(f"The core process did not listen within {START_LIMIT_S:g} s{_last_words(place.log)}")


async def _greeted(place: CorePlace) -> Streams | None:
    """A connection whose other end is the core that is meant, or None."""
    try:
        reader, writer = await platform.connect(place.address)
    except OSError:
        return None
    try:
        platform.check_peer(writer)
        writer.write(encode(place.identity))
        welcome = await asyncio.wait_for(read_message(reader), GREET_LIMIT_S)
    except (OSError, asyncio.IncompleteReadError, BadFrame):
        writer.close()
        return None
    except BaseException:
        writer.close()
        raise
    if not isinstance(welcome, Welcome) or (welcome.version, welcome.settings_hash) != (
        place.identity.version,
        place.identity.settings_hash,
    ):
        writer.close()
        raise CoreError(f"What listens at {place.address} is another core than ours: remove that file.")
    return reader, writer


def _last_words(log_path: Path) -> str:
    """The last line that a dead core has printed."""
    try:
        lines = log_path.read_text("utf-8", "replace").strip().splitlines()
    except OSError:
        lines = []
    return f": {lines[-1]}" if lines else "."
