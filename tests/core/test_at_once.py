"""What needs no model does not wait for it; what is accepted again and again is learned, and kept if that is wanted."""

import asyncio
import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from treefill.completion import Habits, Reason
from treefill.core import habit_file as habit_file_module
from treefill.core import service as service_module
from treefill.core.habit_file import HabitFile
from treefill.core.messages import Accepted, Answer, Cancel, Started
from treefill.errors import UnknownModel

from tests.core.room import OPTIONS, Room, Window, in_a_room, until

GUARDED = "def main():\n    pass\n\n\nif __"
GUARD = 'name__ == "__main__":\n    main()'
TEST = "class T:\n    def test(self):\n        self.assert"
EQUAL = "Equal(actual, expected)"


def ask_for_guard(window: Window, ask_id: int, uri: str = "guarded.py", **more: Any) -> None:
    window.open(uri, GUARDED)
    window.ask(ask_id, uri, offset=len(GUARDED), **more)


def accept(window: Window, times: int, uri: str = "test.py", **options: Any) -> None:
    """Tell that a suggestion was accepted, as a front does."""
    for version in range(1, times + 1):
        window.open(uri, f"{TEST}{EQUAL}\n", version=version)
        end = len(TEST) + len(EQUAL)
        window.peer.handle(Accepted(uri, version, len(TEST), end, None, {**OPTIONS, **options}))


async def offered(window: Window, ask_id: int, uri: str = "test.py") -> Answer:
    window.open(uri, f"{TEST}\n")
    window.ask(ask_id, uri, offset=len(TEST))
    return await window.answer(ask_id)


def source_of(answer: Answer) -> str:
    return answer.items[0].source if answer.items else answer.reason


def test_a_template_does_not_wait_until_the_model_is_loaded() -> None:
    async def story(room: Room) -> None:
        room.load_gate.clear()
        window = room.window()
        window.ask(1)
        ask_for_guard(window, 2)

        answer = await window.answer(2)
        assert [(item.text, item.source) for item in answer.items] == [(GUARD, "template")]
        assert answer.explanation["template"] == "main guard"
        assert "n_prompt_tokens" not in answer.explanation
        assert window.sent.index(Started(2, "guarded.py")) < window.sent.index(answer)
        assert Started(1, "a.py") not in window.sent, "nothing is under way that might end the process"
        assert "ready" not in window.states

        room.load_gate.set()
        assert source_of(await window.answer(1)) == "decoded"

    in_a_room(story)


def test_a_template_comes_though_there_is_no_model() -> None:
    async def story(room: Room) -> None:
        room.load_errors = [UnknownModel("There is no model.")] * 9
        window = room.window()
        ask_for_guard(window, 1)
        window.ask(2)

        assert source_of(await window.answer(1)) == "template"
        assert source_of(await window.answer(2)) == Reason.NO_MODEL

        ask_for_guard(window, 3)
        assert source_of(await window.answer(3)) == "template"
        assert room.engine.n_entered == 0

    in_a_room(story)


def test_a_template_does_not_wait_while_the_model_writes_in_another_document() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window()
        window.ask(1)
        await room.begun()
        ask_for_guard(window, 2)

        assert source_of(await window.answer(2)) == "template"
        assert 1 not in window.answers
        room.engine.gate.set()
        assert source_of(await window.answer(1)) == "decoded"

    in_a_room(story)


def test_who_asks_by_hand_while_the_model_is_loaded_gets_what_there_is() -> None:
    async def story(room: Room) -> None:
        room.load_gate.clear()
        window = room.window()
        ask_for_guard(window, 1, n_candidates=3, is_automatic=False)

        assert [item.source for item in (await window.answer(1)).items] == ["template"]

    in_a_room(story)


def test_switched_off_it_waits_for_the_model() -> None:
    async def story(room: Room) -> None:
        room.load_gate.clear()
        window = room.window()
        ask_for_guard(window, 1, options={**OPTIONS, "templates": False})
        await asyncio.sleep(0.2)
        assert window.answers == {}

        room.load_gate.set()
        assert source_of(await window.answer(1)) == "decoded"

    in_a_room(story)


@pytest.mark.parametrize("is_there", [True, False], ids=["a model", "no model"])
def test_nothing_is_offered_while_the_rules_cannot_be_read(is_there: bool, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("nonsense")

    async def story(room: Room) -> None:
        if not is_there:
            room.load_errors = [UnknownModel("There is no model.")] * 9
        window = room.window()
        ask_for_guard(window, 1, options={**OPTIONS, "rules": str(rules)})

        answer = await window.answer(1)
        assert (answer.items, answer.reason) == ((), Reason.BAD_RULES if is_there else Reason.NO_MODEL)

    in_a_room(story)


def test_every_request_is_answered_once_whatever_comes_first() -> None:
    async def story(room: Room) -> None:
        room.load_gate.clear()
        window = room.window()
        for number in range(1, 20):
            ask_for_guard(window, number)
            if number % 3 == 0:
                window.peer.handle(Cancel(number))
            if number % 4 == 0:
                await asyncio.sleep(0.003)
        ask_for_guard(window, 20)
        room.load_gate.set()

        assert source_of(await window.answer(20)) == "template"
        await until(lambda: len(window.answers) == 20)

    in_a_room(story)


def test_a_request_that_cannot_be_made_is_declined_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def story(room: Room) -> None:
        room.load_gate.clear()
        window = room.window()
        window.ask(1, offset=999)
        await until(lambda: caplog.messages)
        room.load_gate.set()

        assert source_of(await window.answer(1)) == Reason.BAD_REQUEST

    with caplog.at_level(logging.WARNING):
        in_a_room(story)
    assert caplog.messages == ["Nothing was looked for at once (BadInput)."]


def test_what_is_accepted_five_times_is_offered_at_once() -> None:
    async def story(room: Room) -> None:
        window = room.window()
        accept(window, 4)
        assert source_of(await offered(window, 1)) == "decoded"

        accept(window, 5, uri="other.py")
        await until(lambda: room.service._habits.n_learned == 9)
        answer = await offered(window, 2)

        assert [(item.text, item.source) for item in answer.items] == [(EQUAL, "habit")]
        assert answer.explanation["template"] == "accepted 9 times here"

    in_a_room(story)


def test_habits_are_forgotten_with_the_session_unless_they_are_kept(tmp_path: Path) -> None:
    async def learning(room: Room) -> None:
        accept(room.window(), 5)
        await until(lambda: room.service._habits.n_learned == 5)

    async def using(room: Room) -> None:
        sources.append(source_of(await offered(room.window(), 1)))

    sources: list[str] = []
    in_a_room(learning)
    in_a_room(using)
    assert list(tmp_path.iterdir()) == []

    file = HabitFile(tmp_path / "state")
    in_a_room(learning, lambda: Room(habit_file=file))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.path.parent.iterdir()] == ["habits.json"]

    in_a_room(using, lambda: Room(habit_file=file))
    assert sources == ["decoded", "habit"]


def test_kept_habits_are_written_after_a_while_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "WRITE_HABITS_EVERY_S", 0.05)
    file = HabitFile(tmp_path)

    async def story(room: Room) -> None:
        accept(room.window(), 5)
        await until(lambda: len(file.read()) == 1 and file.read()[0]["n"] == 5)

    in_a_room(story, lambda: Room(habit_file=file))


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x00\xff", b"[]", b"{}", b'{"version": 2, "habits": []}', b'{"version": 1, "habits": 1}',
        b'{"version": 1, "habits": [null, {"text": 1}]}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_damaged_file_costs_no_completion_and_is_written_anew(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = HabitFile(tmp_path)
    file.path.write_bytes(content)

    async def story(room: Room) -> None:
        window = room.window()
        window.ask(1)
        assert source_of(await window.answer(1)) == "decoded"
        accept(window, 5)
        await until(lambda: room.service._habits.n_learned == 5)

    in_a_room(story, lambda: Room(habit_file=file))

    assert [entry["text"] for entry in file.read()] == [EQUAL]
    assert all(
        content.decode(errors="replace")[:3] not in message or not content for message in caplog.messages
    )


def test_what_is_too_large_or_no_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = HabitFile(tmp_path)
    file.write([{"text": "x" * 100}])
    assert len(file.read()) == 1

    monkeypatch.setattr(habit_file_module, "MAX_BYTES", 50)
    assert file.read() == []
    monkeypatch.undo()
    file.path.unlink()
    os.mkfifo(file.path)
    assert file.read() == []


def test_what_is_written_is_no_larger_than_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(habit_file_module, "MAX_BYTES", 1_000)
    file = HabitFile(tmp_path)

    file.write([{"text": f"{number:090}"} for number in range(50)])

    kept = [int(entry["text"]) for entry in file.read()]
    assert kept
    assert kept == list(range(kept[0], 50)), "the oldest go first"
    assert file.path.stat().st_size <= 1_000


def test_a_folder_that_cannot_be_written_costs_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("no folder")
    file = HabitFile(tmp_path / "state")

    file.write([{"text": "my_secret"}])

    assert len(caplog.messages) == 1
    assert "my_secret" not in caplog.text
    assert file.read() == []


def test_everything_that_is_kept_is_read_again(tmp_path: Path) -> None:
    habits, again, file = Habits(), Habits(), HabitFile(tmp_path)
    habits.add(
        [
            {
                "scope": "/w\ud800",
                "language": "python",
                "left": "é = ",
                "right": "",
                "kind": "k",
                "text": "f(🦊)",
                "n": 7,
            }
        ]
    )

    file.write(habits.plain())
    again.add(file.read())

    assert again.plain() == habits.plain() != []
    assert json.loads(file.path.read_text("ascii"))["version"] == 1
