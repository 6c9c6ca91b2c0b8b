"""A front's way to a core: connect, or start one, and again when it dies. The program that is started is a fake."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from treefill.core import client as client_module
from treefill.core import platform, wire
from treefill.core.client import BACK_OFF_S, STEADY_S, CoreClient, connect_or_start
from treefill.core.link import LinkEvents
from treefill.core.messages import Cancel, Close, EngineState, Hello, Message, Open, Welcome
from treefill.core.place import CorePlace
from treefill.core.platform import posix
from treefill.core.wire import encode, read_message
from treefill.errors import CoreError

US = Hello("1.0", "abcdef0123456789")
WELCOME = encode(Welcome(US.version, US.settings_hash, 1))
SETTINGS = '{"threads": 2}'
LISTENS = """
import os, socket, sys, threading
with open(sys.argv[1], "a") as starts:
    starts.write(f"{os.getpid()}\\n")
address = sys.argv[-1]
if os.path.exists(address):
    os.unlink(address)
listener = socket.socket(socket.AF_UNIX)
listener.bind(address)
listener.listen()
while True:
    connection, _ = listener.accept()
    connection.recv(100_000)
    connection.sendall(bytes.fromhex(sys.argv[2]))
    threading.Thread(target=connection.recv, args=(1,)).start()
"""
FAILS = "print('Traceback'); print('No space left on the device.'); raise SystemExit(1)"
T = TypeVar("T")
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class Home:
    """A folder for sockets, and the pids of the cores that were started for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "run"
        self.starts = folder / "starts"
        self.processes: list[subprocess.Popen[bytes]] = []
        """What was started, fakes that did not come far included."""

    def place(self, program: str = LISTENS, *arguments: str) -> CorePlace:
        given = arguments or (str(self.starts), WELCOME.hex())
        return CorePlace(self.folder, US, (sys.executable, "-c", program, *given), SETTINGS)

    @property
    def address(self) -> Path:
        return self.place().address

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.starts.read_text().split()] if self.starts.exists() else []

    @contextlib.asynccontextmanager
    async def listener(self, handler: Handler) -> AsyncIterator[None]:
        """Something that listens at the address before anybody connects."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        server = await platform.start_server(handler, self.address)
        try:
            yield
        finally:
            server.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    home = Home(tmp_path)

    def spawn(command: Sequence[str], said: bytes, log: Path) -> "subprocess.Popen[bytes]":
        home.processes.append(posix.spawn(command, said, log))
        return home.processes[-1]

    monkeypatch.setattr(platform, "spawn", spawn)
    yield home
    for process in home.processes:
        process.kill()
        process.wait(10)


def run(story: Coroutine[Any, Any, T]) -> T:
    """Run a story to its end, and until what it has closed is closed."""

    async def work() -> T:
        try:
            return await story
        finally:
            for _ in range(20):
                await asyncio.sleep(0.001)

    return asyncio.run(work())


async def reached(place: CorePlace) -> None:
    """Connect or start, and hang up."""
    _, writer = await connect_or_start(place)
    writer.close()


def refusal(place: CorePlace) -> str:
    """Why no core can be reached."""
    with pytest.raises(CoreError) as caught:
        run(reached(place))
    return str(caught.value)


async def welcoming(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    assert await read_message(reader) == US
    writer.write(WELCOME)
    await reader.read()
    writer.close()


# Connecting and starting.


def test_a_core_that_listens_is_used(home: Home) -> None:
    async def story() -> None:
        async with home.listener(welcoming):
            await reached(home.place())

    run(story())
    assert home.pids == []


def test_a_core_is_started_where_none_listens_and_is_found_by_the_next(home: Home) -> None:
    run(reached(home.place()))
    run(reached(home.place()))

    assert len(home.pids) == 1
    assert home.folder.stat().st_mode & 0o777 == 0o700
    assert home.place().log.stat().st_mode & 0o077 == 0


def test_many_that_come_at_once_start_one_core(home: Home) -> None:
    async def story() -> None:
        await asyncio.gather(*(reached(home.place()) for _ in range(5)))

    run(story())
    assert len(home.pids) == 1


def test_a_socket_that_a_dead_core_has_left_is_no_hindrance(home: Home) -> None:
    home.folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(home.address))
    assert home.address.exists()

    run(reached(home.place()))

    assert len(home.pids) == 1


@pytest.mark.parametrize("kind", ["socket", "file", "link"])
def test_a_core_listens_in_place_of_what_is_at_its_address(home: Home, kind: str) -> None:
    home.folder.mkdir(mode=0o700)
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(home.address))
    elif kind == "file":
        home.address.write_text("somebody else's")
    else:
        home.address.symlink_to(home.folder / "nowhere")

    async def story() -> None:
        async with home.listener(welcoming):
            await reached(home.place())

    run(story())
    assert home.pids == []


# What cannot be started.


@pytest.mark.parametrize(
    ("program", "words"), [(FAILS, ": No space left on the device."), ("raise SystemExit(1)", ".")]
)
def test_a_core_that_cannot_start_says_why_with_its_last_words(home: Home, program: str, words: str) -> None:
    assert refusal(home.place(program)) == f"The core process could not be started{words}"


def test_a_core_that_never_listens_is_given_up_and_ended(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "START_LIMIT_S", 0.3)

    sentence = refusal(home.place("import time; print('thinking', flush=True); time.sleep(60)"))

    assert sentence.startswith("The core process did not listen within 0.3 s")
    assert home.processes[0].wait(10) == -signal.SIGKILL


def test_a_program_that_is_not_there_is_told_in_a_sentence(home: Home) -> None:
    place = CorePlace(home.folder, US, ("/nowhere/python",), SETTINGS)

    assert refusal(place) == (
        "The core process could not be started: /nowhere/python: No such file or directory."
    )


def test_a_log_that_cannot_be_written_is_told_in_a_sentence(home: Home) -> None:
    home.place().log.mkdir(parents=True)
    home.folder.chmod(0o700)

    sentence = refusal(home.place())

    assert sentence == f"The core process could not be started: {home.place().log}: Is a directory."


def test_a_folder_that_cannot_be_locked_is_told_in_a_sentence(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(posix.fcntl, "flock", no_locks)

    sentence = f"The folder {home.folder} cannot be locked (No locks available): set runtime_dir to another."
    assert refusal(home.place()) == sentence


# Whose folder it is.


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o777])
def test_a_folder_that_others_may_enter_is_refused(home: Home, mode: int) -> None:
    home.folder.mkdir()
    home.folder.chmod(mode)

    assert refusal(home.place()) == (
        f"The folder {home.folder} is not this user's alone: remove it, or set runtime_dir to another."
    )
    assert home.pids == []


def test_another_users_folder_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.folder.mkdir(mode=0o700)
    someone_else = os.getuid() + 1
    monkeypatch.setattr(posix.os, "getuid", lambda: someone_else)

    assert "is not this user's alone" in refusal(home.place())


def test_a_link_to_a_folder_is_refused(home: Home, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    home.folder.symlink_to(tmp_path / "elsewhere")

    assert "is not this user's alone" in refusal(home.place())


def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(home: Home) -> None:
    home.folder.write_text("a file in the way")
    assert f"The folder {home.folder} cannot be made (File exists)" in refusal(home.place())

    inside = CorePlace(home.folder / "deeper", US, home.place().command, SETTINGS)
    assert refusal(inside) == (
        f"The folder {inside.folder} cannot be made (Not a directory): set runtime_dir to another."
    )


def test_a_path_that_is_too_long_for_a_socket_is_told_before_anything_is_started(
    home: Home, tmp_path: Path
) -> None:
    place = CorePlace(tmp_path / ("long" * 30), US, home.place().command, SETTINGS)

    sentence = f"The path {place.address} is too long for a socket: set runtime_dir to a shorter one."
    assert refusal(place) == sentence
    assert (home.pids, place.folder.exists()) == ([], False)


# Who listens there.


def test_a_core_of_another_version_or_with_other_settings_is_refused(home: Home) -> None:
    for other in (Welcome("2.0", US.settings_hash, 1), Welcome(US.version, "other", 1), Cancel(1)):

        async def answering(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, other: Message = other
        ) -> None:
            await read_message(reader)
            writer.write(encode(other))
            await reader.read()
            writer.close()

        async def story(answering: Handler = answering) -> None:
            async with home.listener(answering):
                with pytest.raises(CoreError, match="is another core than ours: remove that file"):
                    await reached(home.place())

        run(story())
    assert home.pids == []


@pytest.mark.parametrize("words", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 20])
def test_a_listener_that_is_no_core_makes_way_for_one(home: Home, words: bytes) -> None:
    async def foreign(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        writer.close()

    async def story() -> None:
        async with home.listener(foreign):
            await reached(home.place())

    run(story())
    assert len(home.pids) == 1


def test_a_listener_that_says_nothing_makes_way_for_a_core(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def story() -> None:
        async with home.listener(silent):
            await reached(home.place())

    monkeypatch.setattr(client_module, "GREET_LIMIT_S", 0.3)
    run(story())
    assert len(home.pids) == 1


def test_a_listener_of_another_user_is_told_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = []

    async def listening(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        writer.close()

    monkeypatch.setattr(posix, "_peer_uid", lambda _connection: os.getuid() + 1)

    async def story() -> None:
        async with home.listener(listening):
            with pytest.raises(CoreError, match="belongs to user"):
                await reached(home.place())
            while not heard:
                await asyncio.sleep(0.002)

    run(story())
    assert heard == [b""]
    assert home.pids == []


# Staying connected.


class Front:
    """What a link tells its front."""

    def __init__(self, *documents: Open) -> None:
        self.documents = documents
        self.messages: list[Message] = []
        self.losses: list[str] = []
        self.events = LinkEvents(self.messages.append, self.losses.append, lambda: self.documents)


async def until(condition: Callable[[], Any]) -> None:
    for _ in range(5_000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it did not come to pass")


def test_a_new_core_is_told_every_document_first(home: Home) -> None:
    heard: list[list[Message]] = []

    async def core(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_message(reader)
        writer.write(WELCOME + encode(EngineState("ready")))
        heard.append([])
        with contextlib.suppress(asyncio.IncompleteReadError):
            while not any(isinstance(message, Cancel) for message in heard[-1]):
                heard[-1].append(await read_message(reader))
        writer.close()  # as if it had died

    async def story() -> None:
        front = Front(Open("a.py", "/a.py", "python", 3, "x"), Open("b.py", "/b.py", "python", 1, ""))
        link = CoreClient(home.place())
        assert not link.is_up
        link.send(Cancel(99))  # dropped: nobody is there
        async with home.listener(core):
            link.start(front.events)
            await until(lambda: link.is_up)
            link.send(Cancel(1))
            await until(lambda: front.losses)
            assert not link.is_up
            link.send(Cancel(98))
            await until(lambda: link.is_up)
            link.send(Cancel(2))
            await until(lambda: len(heard) == 2 and Cancel(2) in heard[1])
            await link.close()

        assert heard == [[*front.documents, Cancel(1)], [*front.documents, Cancel(2)]]
        assert front.messages == [EngineState("ready")] * 2
        assert front.losses[0] == "The core process has ended unexpectedly; it is started anew."

    run(story())


def test_a_core_that_talks_nonsense_is_left(home: Home) -> None:
    async def core(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_message(reader)
        writer.write(WELCOME + b"\xff" * 8)
        await reader.read()
        writer.close()

    async def story() -> None:
        front, link = Front(), CoreClient(home.place())
        async with home.listener(core):
            link.start(front.events)
            await until(lambda: front.losses)
            await link.close()
        assert front.losses[0].startswith("The core process was left: A frame of 4294967295")

    run(story())


def test_a_message_that_is_too_long_costs_itself_alone(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard = []

    async def core(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_message(reader)
        writer.write(WELCOME)
        heard.append(await read_message(reader))
        await reader.read()
        writer.close()

    async def story() -> None:
        front, link = Front(), CoreClient(home.place())
        async with home.listener(core):
            link.start(front.events)
            await until(lambda: link.is_up)
            monkeypatch.setattr(wire, "MAX_HEADER_BYTES", 500)
            link.send(Close("secret" * 100))
            link.send(Cancel(1))
            await until(lambda: heard)
            await link.close()
        assert (heard, front.losses) == ([Cancel(1)], [])

    run(story())
    assert "A message (Close) was not sent" in caplog.text
    assert "secret" not in caplog.text


def test_hanging_up_is_no_loss(home: Home) -> None:
    left = []

    async def core(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await welcoming(reader, writer)
        left.append(True)

    async def story() -> None:
        front, link = Front(), CoreClient(home.place())
        async with home.listener(core):
            link.start(front.events)
            await until(lambda: link.is_up)
            await link.close()
            assert not link.is_up
            await until(lambda: left)
            link.send(Cancel(1))
            await link.close()
        assert front.losses == []

    run(story())


class Clock:
    """Stands in for `asyncio` and `time` in the client: nobody waits, and what would be waited for is kept."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(client_module, "asyncio", clock)
    monkeypatch.setattr(client_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


class Writer:
    """Stands in for a connection's writer."""

    def close(self) -> None: ...

    def is_closing(self) -> bool:
        return False


def lives(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, seconds: list[float], refused_after_s: float | None = None
) -> Front:
    """Try so many cores, each connected for so long, or none at all; what the front was told."""
    left = list(seconds)

    async def connect(_place: CorePlace) -> Any:
        if not left:
            await asyncio.Event().wait()
        if refused_after_s is not None:
            left.pop(0)
            clock.now += refused_after_s
            raise CoreError("It cannot be.")
        return None, Writer()

    async def read(_reader: object) -> Message:
        clock.now += left.pop(0)
        raise ConnectionResetError

    monkeypatch.setattr(client_module, "connect_or_start", connect)
    monkeypatch.setattr(client_module, "read_message", read)

    async def story() -> Front:
        front, link = Front(), CoreClient(CorePlace(Path("/nowhere"), US, (), SETTINGS))
        link.start(front.events)
        await until(lambda: len(clock.waits) == len(seconds))
        await link.close()
        return front

    return run(story())


def test_each_further_try_is_waited_for_longer_up_to_a_minute(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = lives(clock, monkeypatch, [0] * 7)

    assert clock.waits == [*BACK_OFF_S, BACK_OFF_S[-1], BACK_OFF_S[-1]]
    assert front.losses == ["The core process has ended unexpectedly; it is started anew."] * 7


def test_a_core_that_takes_long_to_fail_is_waited_for_longer_too(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = lives(clock, monkeypatch, [0] * 7, refused_after_s=2 * STEADY_S)

    assert clock.waits == [*BACK_OFF_S, BACK_OFF_S[-1], BACK_OFF_S[-1]]
    assert front.losses == ["It cannot be."] * 7


def test_whatever_goes_wrong_on_the_way_is_a_loss_and_is_tried_again(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    n_tries = 0

    async def connect(place: CorePlace) -> Any:
        nonlocal n_tries
        n_tries += 1
        if n_tries == 1:
            raise RuntimeError("secret text")
        return await connect_or_start(place)

    monkeypatch.setattr(client_module, "connect_or_start", connect)
    monkeypatch.setattr(client_module, "BACK_OFF_S", (0.01,))

    async def story() -> None:
        front, link = Front(), CoreClient(home.place())
        async with home.listener(welcoming):
            link.start(front.events)
            await until(lambda: link.is_up)
            await link.close()
        assert front.losses == ["The core process was left (RuntimeError); it is started anew."]

    run(story())
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


# One starts it.


def test_who_leaves_while_another_window_starts_a_core_is_gone_at_once_and_holds_nothing(home: Home) -> None:
    home.folder.mkdir(mode=0o700)
    lock = home.place().lock

    async def story() -> None:
        before = set(threading.enumerate())
        link = CoreClient(home.place())
        with platform.hold_lock(lock):
            link.start(Front().events)
            await asyncio.sleep(0.1)
            await asyncio.wait_for(link.close(), 20)
        with platform.hold_lock(lock):
            assert lock.exists()
        assert set(threading.enumerate()) <= before, "no thread goes on waiting"

    run(story())
    assert list(home.folder.iterdir()) == []
    assert home.pids == []


def test_another_window_that_never_finishes_starting_a_core_is_told_of(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "LOCK_LIMIT_S", 0.1)
    home.folder.mkdir(mode=0o700)

    with platform.hold_lock(home.place().lock):
        assert refusal(home.place()) == "Another window has been starting the core process for 0.1 s."


def test_a_core_with_other_settings_is_not_waited_for(home: Home) -> None:
    home.folder.mkdir(mode=0o700)
    other = CorePlace(home.folder, Hello("1.0", "1234567890"), (), "")

    with platform.hold_lock(other.lock):
        run(reached(home.place()))

    assert len(home.pids) == 1


def test_settings_are_read_by_the_core_alone(home: Home) -> None:
    """A command line is there for every user to see."""
    words = "import sys; print(sys.stdin.read(), *sys.argv); raise SystemExit(1)"

    assert refusal(home.place(words, "one")) == (
        f"The core process could not be started: {SETTINGS} -c one {home.address}"
    )
    assert SETTINGS not in home.processes[0].args


def test_a_core_that_has_lived_for_a_while_is_started_anew_at_once(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives(clock, monkeypatch, [0, 0, 0, STEADY_S, 1, STEADY_S * 100])

    assert clock.waits == [*BACK_OFF_S[:3], BACK_OFF_S[0], BACK_OFF_S[1], BACK_OFF_S[0]]
