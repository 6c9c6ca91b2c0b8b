"""The core process on its socket: who is let in, when it ends, and what it leaves behind."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from treefill.core import platform
from treefill.core import server as server_module
from treefill.core.messages import Answer, EngineState, Hello, Message, Open, Welcome
from treefill.core.place import log_of
from treefill.core.platform import posix
from treefill.core.server import run_core
from treefill.core.wire import encode, read_message

from tests.core.room import LIMIT_S, Room, ask, until

US = Hello("1.0", "abc")


class Caller:
    """One connection, spoken by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, address: Path) -> "Caller":
        return cls(*await platform.connect(address))

    def say(self, *messages: Message) -> None:
        self.writer.write(b"".join(map(encode, messages)))

    async def hear(self) -> Message:
        return await asyncio.wait_for(read_message(self.reader), LIMIT_S)

    async def is_hung_up_on(self) -> bool:
        """Wait for the end of the connection."""
        with contextlib.suppress(ConnectionError):
            while await asyncio.wait_for(self.reader.read(65_536), LIMIT_S):
                pass
        return True

    async def greet(self) -> None:
        self.say(US)
        assert await self.hear() == Welcome(US.version, US.settings_hash, os.getpid())


Story = Callable[[Path, Room, "asyncio.Task[None]"], Awaitable[None]]


def with_core(folder: Path, story: Story, linger_s: float = 60) -> None:
    """Run a story with a core at its address, and end it."""
    address = folder / "core.sock"

    async def work() -> None:
        room = Room()
        log_of(address).write_text("words\n")
        core = asyncio.create_task(run_core(address, US, lambda: room.service, linger_s))
        await until(address.exists)
        try:
            await story(address, room, core)
        finally:
            for gate in (room.engine.gate, room.engine.close_gate, room.load_gate):
                gate.set()
            if not core.done():
                os.kill(os.getpid(), 15)
            await asyncio.wait_for(core, LIMIT_S)
            await asyncio.sleep(0.02)

    asyncio.run(work())


def test_a_front_is_welcomed_told_of_the_model_and_answered(tmp_path: Path) -> None:
    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        caller = await Caller.to(address)
        await caller.greet()
        assert await caller.hear() == EngineState("loading")
        caller.say(Open("a.py", "/w/a.py", "python", 1, "x = \n"), ask(1))
        while not isinstance(answer := await caller.hear(), Answer):
            pass
        assert answer.items[0].text == "1 + 2"
        caller.writer.close()
        await until(lambda: room.n_peers == 0)

    with_core(tmp_path, story)


@pytest.mark.parametrize("hello", [Hello("2.0", "abc"), Hello("1.0", "other"), Open("a", "a", "a", 1, "")])
def test_a_front_of_another_version_or_with_other_settings_is_told_who_this_is_and_hung_up_on(
    tmp_path: Path, hello: Message
) -> None:
    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        caller = await Caller.to(address)
        caller.say(hello)
        assert isinstance(await caller.hear(), Welcome)
        assert await caller.is_hung_up_on()
        assert (room.n_peers, room.n_loads) == (0, 0)
        caller.writer.close()

    with_core(tmp_path, story)


@pytest.mark.parametrize(
    "words", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, b"\0" * 8, b"\0\0\0\x02\0\0\0\0{}"]
)
def test_what_is_no_front_is_hung_up_on(
    tmp_path: Path, words: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        caller = await Caller.to(address)
        caller.writer.write(words)
        assert await caller.is_hung_up_on()
        assert room.n_peers == 0
        caller.writer.close()

    with_core(tmp_path, story)
    assert "A connection was closed" in caplog.text


def test_a_front_that_talks_nonsense_later_is_hung_up_on_and_others_are_not(tmp_path: Path) -> None:
    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        one, other = await Caller.to(address), await Caller.to(address)
        await one.greet()
        await other.greet()
        one.writer.write(b"\xff" * 8)
        assert await one.is_hung_up_on()
        await until(lambda: room.n_peers == 1)
        other.say(Open("a.py", "/w/a.py", "python", 1, "x = \n"), ask(1))
        while not isinstance(await other.hear(), Answer):
            pass
        for caller in (one, other):
            caller.writer.close()

    with_core(tmp_path, story)


def test_who_says_nothing_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "HELLO_LIMIT_S", 0.03)

    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        caller = await Caller.to(address)
        assert await caller.is_hung_up_on()
        caller.writer.close()

    with_core(tmp_path, story)


def test_another_user_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        monkeypatch.setattr(posix, "_peer_uid", lambda _connection: os.getuid() + 1)
        caller = await Caller.to(address)
        assert await asyncio.wait_for(caller.reader.read(), LIMIT_S) == b""
        caller.writer.close()

    with_core(tmp_path, story)


def test_a_front_that_does_not_read_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_UNSENT_BYTES", 10_000)

    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        caller = await Caller.to(address)
        await caller.greet()
        await until(lambda: room.n_peers == 1)
        caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
        (peer,) = room.service._peers
        for _ in range(100):
            peer.send(EngineState("ready", "x" * 10_000))
        await until(lambda: room.n_peers == 0)
        caller.writer.close()

    with_core(tmp_path, story)


def test_the_core_ends_some_time_after_the_last_front_and_leaves_nothing(tmp_path: Path) -> None:
    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        one, other = await Caller.to(address), await Caller.to(address)
        await one.greet()
        await other.greet()
        one.writer.close()
        await asyncio.sleep(0.3)
        assert not core.done(), "one is still there"
        other.writer.close()
        await asyncio.wait_for(core, LIMIT_S)
        assert list(tmp_path.iterdir()) == []

    with_core(tmp_path, story, linger_s=0.15)


def test_a_core_that_nobody_comes_to_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "FIRST_FRONT_LIMIT_S", 0.1)

    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        await asyncio.wait_for(core, LIMIT_S)
        assert list(tmp_path.iterdir()) == []

    with_core(tmp_path, story, linger_s=0.05)


def test_a_signal_ends_the_core_and_hangs_up(tmp_path: Path) -> None:
    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        caller = await Caller.to(address)
        await caller.greet()
        os.kill(os.getpid(), 15)
        await asyncio.wait_for(core, LIMIT_S)
        assert await caller.is_hung_up_on()
        assert list(tmp_path.iterdir()) == []
        caller.writer.close()

    with_core(tmp_path, story)


def test_address_and_log_are_free_for_the_next_core_before_the_model_is(tmp_path: Path) -> None:
    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        room.engine.close_gate.clear()
        caller = await Caller.to(address)
        await caller.greet()
        while await caller.hear() != EngineState("ready", "script on the scripted engine", model="script"):
            pass
        os.kill(os.getpid(), 15)
        await until(lambda: not address.exists())
        assert not core.done()
        log_of(address).write_text("the next core's words")
        room.engine.close_gate.set()
        await asyncio.wait_for(core, LIMIT_S)
        assert log_of(address).read_text() == "the next core's words"
        caller.writer.close()

    with_core(tmp_path, story)


def test_a_core_that_was_taken_for_dead_leaves_its_successor_alone(tmp_path: Path) -> None:
    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        successor = await platform.start_server(lambda _reader, writer: writer.close(), address)
        os.kill(os.getpid(), 15)
        await asyncio.wait_for(core, LIMIT_S)
        assert address.exists()
        assert log_of(address).exists()
        successor.close()

    with_core(tmp_path, story)


def test_a_core_that_lingers_for_nobody_waits_for_the_front_that_started_it(tmp_path: Path) -> None:
    async def story(address: Path, room: Room, core: "asyncio.Task[None]") -> None:
        await asyncio.sleep(0.2)
        caller = await Caller.to(address)
        await caller.greet()
        caller.writer.close()
        await asyncio.wait_for(core, LIMIT_S)

    with_core(tmp_path, story, linger_s=0)
