"""A language is made ready while its document is only looked at, and nobody waits for it."""

import threading
import time

import pytest
from treefill.core.preparer import Preparer
from treefill.syntax.once import once

from tests.core.room import Room, in_a_room, until

LIMIT_S = 20.0


def test_a_language_is_prepared_when_its_first_document_opens() -> None:
    async def story(room: Room) -> None:
        window = room.window("a.py", "b.py")
        window.open("a.py", version=7)
        await until(lambda: room.prepared)
        room.window("c.py")

        await room.service.close()

        assert room.prepared == ["python"]

    in_a_room(story)


def test_a_language_that_takes_long_holds_up_neither_the_loop_nor_a_completion() -> None:
    gate = threading.Event()

    class Slow(Room):
        def _prepare(self, language_id: str) -> None:
            gate.wait(LIMIT_S)

    async def story(room: Room) -> None:
        window = room.window()
        window.ask(1)

        assert (await window.answer(1)).items
        gate.set()

    in_a_room(story, Slow)


def test_one_that_fails_is_a_line_in_the_log_and_the_next_is_prepared(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    prepared = []

    def prepare(language_id: str) -> None:
        if language_id == "klingon":
            raise LookupError("some text")
        prepared.append(language_id)

    preparer = Preparer(prepare)
    preparer.want("klingon", "a.kl")
    preparer.want("python", "a.py")
    deadline = time.monotonic() + LIMIT_S
    while not prepared and time.monotonic() < deadline:
        time.sleep(0.002)
    preparer.close()

    assert prepared == ["python"]
    assert "Nothing was prepared for klingon (LookupError)." in caplog.text


def test_one_that_failed_is_not_tried_at_each_further_document_and_the_thread_lives_on() -> None:
    """Whoever completes in it meets the error again, and is told."""
    tried: list[str] = []

    def prepare(language_id: str) -> None:
        tried.append(language_id)
        if language_id != "python":
            raise SystemError

    preparer = Preparer(prepare)
    for language, path in (("klingon", "a.kl"), ("klingon", "b.kl"), ("c", "a.c"), ("python", "a.py")):
        preparer.want(language, path)
    deadline = time.monotonic() + LIMIT_S
    while "python" not in tried and time.monotonic() < deadline:
        time.sleep(0.002)
    preparer.want("klingon", "c.kl")
    preparer.want("json", "a.json")
    while "json" not in tried and time.monotonic() < deadline:
        time.sleep(0.002)
    preparer.close()

    assert tried == ["klingon", "c", "python", "json"]


def test_after_closing_nothing_is_begun() -> None:
    prepared: list[str] = []
    preparer = Preparer(prepared.append)
    preparer.close()
    preparer.want("python", "a.py")

    assert prepared == []


def test_two_threads_that_want_the_same_build_it_once() -> None:
    gate, built = threading.Event(), []

    @once
    def build(key: str) -> object:
        built.append(key)
        gate.wait(LIMIT_S)
        return object()

    got: list[object] = []
    threads = [threading.Thread(target=lambda: got.append(build("a"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()

    assert built == ["a"]
    assert len(got) == 4
    assert len(set(map(id, got))) == 1


def test_what_fails_is_tried_again() -> None:
    tries = iter([LookupError(), None])

    @once
    def build(key: str) -> str:
        error = next(tries)
        if error:
            raise error
        return key

    with pytest.raises(LookupError):
        build("a")
    assert build("a") == "a"
