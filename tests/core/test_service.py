"""The queue, the model's life and one answer a request, whatever connects the fronts."""

import asyncio
import logging
import time
from types import SimpleNamespace

import pytest
from treefill.completion import Reason
from treefill.core import jobs as jobs_module
from treefill.core import service as service_module
from treefill.core.messages import Answer, Cancel, Close, Edits, EngineState, OutOfStep, Selected, Started
from treefill.core.service import N_WAITING_MAX
from treefill.errors import EngineError, UnknownModel
from treefill.text import Edit, Text

from tests.core.room import Room, WaitingEngine, in_a_room, until


def test_a_request_is_started_and_answered() -> None:
    async def story(room: Room) -> None:
        window = room.window()
        window.ask(1)
        answer = await window.answer(1)

        assert [(item.start, item.end, item.text, item.source) for item in answer.items] == [
            (4, 4, "1 + 2", "decoded")
        ]
        assert (answer.reason, answer.sentence) == ("", "")
        assert answer.explanation["raw_text"] == "1 + 2"
        assert window.sent.index(Started(1, "a.py")) < window.sent.index(answer)

    in_a_room(story)


def test_loading_tells_how_far_it_has_come_each_percent_once() -> None:
    async def story(room: Room) -> None:
        room.load_shares = [0.101, 0.104, 0.5, 1.0]
        window = room.window()
        window.ask(1)
        await window.answer(1)

        loading = [m.percent for m in window.sent if isinstance(m, EngineState) and m.state == "loading"]
        assert loading == [0, 0, 10, 50, 100]

    in_a_room(story)


def test_of_two_requests_for_a_document_the_newer_one_wins() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window()
        window.ask(1)
        await room.begun()
        window.ask(2)
        window.ask(3)
        room.engine.gate.set()

        assert (await window.answer(3)).items
        reasons = {number: answer.reason for number, answer in window.answers.items()}
        assert reasons == {2: Reason.CANCELLED, 1: Reason.CANCELLED, 3: ""}
        assert Started(2, "a.py") not in window.sent, "what waits and is overtaken costs nothing"

    in_a_room(story)


def test_requests_for_other_documents_wait_and_the_newest_goes_first() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window("a.py", "b.py", "c.py")
        window.ask(1, "a.py")
        await room.begun()
        window.ask(2, "b.py")
        window.ask(3, "c.py")
        room.engine.gate.set()
        await until(lambda: len(window.answers) == 3)

        assert list(window.answers) == [1, 3, 2]
        assert all(answer.items for answer in window.answers.values())

    in_a_room(story)


def test_the_same_document_in_two_windows_is_two_documents() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        one, other = room.window(), room.window()
        one.ask(1)
        await room.begun()
        other.ask(1)
        room.engine.gate.set()

        assert (await one.answer(1)).items
        assert (await other.answer(1)).items

    in_a_room(story)


def test_beyond_the_limit_the_one_that_waits_longest_is_answered_empty() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window(*(f"{number}.py" for number in range(N_WAITING_MAX + 3)))
        window.ask(0, "0.py")
        await room.begun()
        for number in range(1, N_WAITING_MAX + 3):
            window.ask(number, f"{number}.py")

        assert [(number, answer.reason) for number, answer in window.answers.items()] == [
            (1, Reason.BUSY),
            (2, Reason.BUSY),
        ]
        room.engine.gate.set()
        await until(lambda: len(window.answers) == N_WAITING_MAX + 3)
        assert sum(bool(answer.items) for answer in window.answers.values()) == N_WAITING_MAX + 1

    in_a_room(story)


def test_a_request_cancelled_in_the_queue_never_runs() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window("a.py", "b.py")
        window.ask(1, "a.py")
        await room.begun()
        window.ask(2, "b.py")
        window.peer.handle(Cancel(2))

        assert window.answers[2].reason == Reason.CANCELLED
        room.engine.gate.set()
        assert (await window.answer(1)).items
        assert Started(2, "b.py") not in window.sent

    in_a_room(story)


def test_a_request_cancelled_while_it_runs_makes_way() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window("a.py", "b.py")
        window.ask(1, "a.py")
        await room.begun()
        window.peer.handle(Cancel(1))

        answer = await window.answer(1)
        assert (answer.items, answer.reason) == ((), Reason.CANCELLED)
        room.engine.gate.set()
        window.ask(2, "b.py")
        assert (await window.answer(2)).items

    in_a_room(story)


def test_another_windows_request_and_a_number_that_is_none_are_not_cancelled() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        one, other = room.window(), room.window("b.py", "c.py")
        one.ask(1)
        await room.begun()
        other.ask(2, "b.py")
        other.peer.handle(Cancel(1))
        one.peer.handle(Cancel(2))
        other.peer.handle(Cancel(99))
        room.engine.gate.set()

        assert (await one.answer(1)).items
        assert (await other.answer(2)).items

    in_a_room(story)


def test_a_window_that_leaves_takes_its_requests_with_it() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        leaving, staying = room.window("a.py", "b.py"), room.window()
        leaving.ask(1, "a.py")
        await room.begun()
        leaving.ask(2, "b.py")
        staying.ask(1)
        assert room.n_peers == 2
        leaving.peer.leave()
        await room.begun(2)
        room.engine.gate.set()

        assert (await staying.answer(1)).items
        assert room.n_peers == 1
        assert room.engine.n_entered == 2, "what waited for the window that left is not worked on"
        assert 2 not in leaving.answers

    in_a_room(story)


@pytest.mark.parametrize("version", [0, 2])
def test_a_request_for_another_version_is_declined_and_the_document_wanted_anew(version: int) -> None:
    async def story(room: Room) -> None:
        window = room.window()
        window.ask(1, version=version)

        assert window.sent[-2:] == [
            OutOfStep("a.py"),
            Answer(1, reason=Reason.OUT_OF_STEP, sentence="The document has changed meanwhile."),
        ]
        window.open(version=version)
        window.ask(2, version=version)
        assert (await window.answer(2)).items

    in_a_room(story)


def test_a_mirror_that_differs_is_not_asked_until_it_is_opened_anew() -> None:
    async def story(room: Room) -> None:
        window = room.window()
        window.peer.handle(Edits("a.py", 2, Text.of("y = \n").checksum, (Edit(0, 1, "z"),)))
        assert window.sent[-1] == OutOfStep("a.py")
        window.ask(1, version=2)
        assert window.answers[1].reason == Reason.OUT_OF_STEP

        window.open(text="y = \n", version=2)
        window.ask(2, version=2)
        assert (await window.answer(2)).items
        assert room.engine.middle_of(room.engine.requests[-1]).startswith("y =")

    in_a_room(story)


def test_a_document_that_was_never_opened_or_is_closed_is_wanted_anew() -> None:
    async def story(room: Room) -> None:
        window = room.window()
        window.peer.handle(Close("a.py"))
        for number, uri in enumerate(("a.py", "never.py")):
            window.ask(number, uri)
            assert window.sent[-2] == OutOfStep(uri)
            assert window.answers[number].reason == Reason.OUT_OF_STEP

        window.peer.handle(Edits("never.py", 2, 0, ()))
        assert window.sent[-1] == OutOfStep("never.py")

    in_a_room(story)


def test_what_is_asked_is_of_the_text_at_that_moment() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window("a.py", "b.py")
        window.ask(1, "a.py")
        await room.begun()
        window.ask(2, "b.py")
        edits = Edits("b.py", 2, Text.of("later = \n").checksum, (Edit(0, 1, "later"),))
        window.peer.handle(edits)
        room.engine.gate.set()

        assert (await window.answer(2)).items[0].start == 4
        assert room.engine.middle_of(room.engine.requests[-1]).startswith("x =")

    in_a_room(story)


def test_a_suggestion_goes_on_with_what_the_editors_own_list_has_selected() -> None:
    async def story(room: Room) -> None:
        room.engine = WaitingEngine("(1)")
        window = room.window()
        window.open(text="xs.co\n")
        window.ask(1, offset=5, selected=Selected(3, 5, "count"))

        (item,) = (await window.answer(1)).items
        assert (item.start, item.end, item.text) == (3, 5, "count(1)")

    in_a_room(story)


def test_a_model_that_cannot_be_loaded_declines_with_its_sentence_and_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(service_module, "time", SimpleNamespace(monotonic=lambda: now))

    async def story(room: Room) -> None:
        nonlocal now
        room.load_errors = [UnknownModel("There is no model."), OSError("disk"), None]
        window = room.window()
        window.ask(1)
        assert (await window.answer(1)) == Answer(1, reason=Reason.NO_MODEL, sentence="There is no model.")
        assert window.sent[-2:] == [EngineState("failed", "There is no model."), window.answers[1]]

        now += service_module.RETRY_LOAD_S - 0.1
        window.ask(2)
        assert ((await window.answer(2)).sentence, room.n_loads) == ("There is no model.", 1)

        now += 0.2
        window.ask(3)
        assert (await window.answer(3)).reason == Reason.NO_MODEL
        assert window.answers[3].sentence == "The model could not be loaded (OSError: disk)."

        now += service_module.RETRY_LOAD_S
        window.ask(4)
        assert (await window.answer(4)).items
        assert window.states == ["loading", "loading", "failed", "loading", "failed", "loading", "ready"]

    in_a_room(story)


def test_a_window_that_opens_after_a_failure_is_told_of_it_and_not_that_the_model_is_loading() -> None:
    async def story(room: Room) -> None:
        room.load_errors = [UnknownModel("There is no model.")]
        first = room.window()
        await until(lambda: "failed" in first.states)

        second = room.window()
        await asyncio.sleep(0.01)

        assert [message for message in second.sent if isinstance(message, EngineState)] == [
            EngineState("failed", "There is no model.")
        ]

    in_a_room(story)


def test_windows_are_told_of_the_model_from_the_moment_they_open() -> None:
    async def story(room: Room) -> None:
        room.load_gate.clear()
        first, second = room.window(), room.window()
        assert (first.states, second.states) == (["loading"], ["loading"])
        room.load_gate.set()
        await until(lambda: "ready" in first.states and "ready" in second.states)
        third = room.window()

        assert third.sent[0] == EngineState("ready", "script on the scripted engine", model="script")
        assert room.n_loads == 1

    in_a_room(story)


def test_what_is_asked_while_the_model_loads_is_answered_once_it_is_there() -> None:
    async def story(room: Room) -> None:
        room.load_gate.clear()
        window = room.window()
        window.ask(1)
        await asyncio.sleep(0.01)
        assert window.answers == {}
        room.load_gate.set()

        assert (await window.answer(1)).items

    in_a_room(story)


def test_what_cannot_be_put_away_keeps_no_model_from_being_freed_and_loaded_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(room: Room) -> None:
        room.put_away_error = ValueError("secret text")
        window = room.window()
        await until(lambda: room.n_put_away == 1)
        window.ask(1)

        assert (await window.answer(1)).items
        assert room.n_loads == 2
        assert "What was worked out beside the model is not kept: ValueError." in caplog.text
        assert "secret" not in caplog.text

    in_a_room(story, lambda: Room(unload_after_s=0.03))


def test_an_idle_model_is_freed_and_comes_back_for_the_next_request() -> None:
    async def story(room: Room) -> None:
        window = room.window()
        await until(lambda: "unloaded" in window.states)
        await until(lambda: (room.engine.n_closed, room.n_put_away) == (1, 1))
        window.ask(1)

        assert (await window.answer(1)).items
        assert room.n_loads == 2
        await until(lambda: window.states.count("unloaded") == 2)
        assert window.states == [
            *("loading", "loading", "ready", "unloaded"),
            *("loading", "ready", "unloaded"),
        ]

    in_a_room(story, lambda: Room(unload_after_s=0.03))


def test_a_model_that_comes_back_is_not_given_the_tokens_of_the_one_before() -> None:
    """Meanwhile the user may have chosen another model, whose tokens mean something else."""

    async def story(room: Room) -> None:
        window = room.window()
        window.ask(1)
        await window.answer(1)
        await until(lambda: "unloaded" in window.states)
        room.engine = WaitingEngine("9")
        window.peer.handle(Edits("a.py", 2, Text.of("x = 1\n").checksum, (Edit(4, 4, "1"),)))
        window.ask(2, version=2, offset=5)

        assert (await window.answer(2)).items[0].text == "9"
        assert room.engine.requests[0].begun == ()

    in_a_room(story, lambda: Room(unload_after_s=0.03))


def test_what_is_asked_while_the_model_is_being_freed_is_answered() -> None:
    async def story(room: Room) -> None:
        room.engine.close_gate.clear()
        window = room.window()
        await until(lambda: room.service._engine is None and "ready" in window.states)
        window.ask(1)
        await asyncio.sleep(0.01)
        assert window.answers == {}
        room.engine.close_gate.set()

        assert (await window.answer(1)).items
        assert (room.engine.n_closed, room.n_loads) == (1, 2)

    in_a_room(story, lambda: Room(unload_after_s=0.03))


def test_a_model_that_is_used_is_not_freed() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window()
        window.ask(1)
        await room.begun()
        await asyncio.sleep(0.1)
        assert room.engine.n_closed == 0
        room.engine.gate.set()

        assert (await window.answer(1)).items

    in_a_room(story, lambda: Room(unload_after_s=0.03))


@pytest.mark.parametrize("error", [EngineError("secret text"), RuntimeError("secret text"), MemoryError()])
def test_g20_a_model_that_breaks_declines_and_the_next_request_works(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(room: Room) -> None:
        window = room.window()
        room.engine.fails_with = error
        window.ask(1)
        answer = await window.answer(1)
        assert answer.reason == Reason.ENGINE_FAILED
        assert answer.sentence == f"The model could not be run ({type(error).__name__})."
        room.engine.fails_with = None
        window.ask(2)

        assert (await window.answer(2)).items

    with caplog.at_level(logging.DEBUG):
        in_a_room(story)
    assert caplog.messages.count(f"A request failed: {type(error).__name__}.") == 1
    assert "secret text" not in caplog.text, "an error may quote what the user wrote"


def test_options_that_cannot_be_are_declined() -> None:
    async def story(room: Room) -> None:
        window = room.window()
        window.ask(1, options={"mode": "poetry"})
        answer = await window.answer(1)
        assert answer.reason == Reason.BAD_REQUEST
        assert answer.sentence.startswith("The setting mode is 'poetry' (request): ")

        window.ask(2, offset=99)
        assert (await window.answer(2)).reason == Reason.BAD_REQUEST
        assert "offset 99 is outside /w/a.py" in window.answers[2].sentence
        window.ask(3)
        assert (await window.answer(3)).items

    in_a_room(story)


def test_an_answer_that_cannot_be_sent_is_answered_with_nothing_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(*_: object) -> dict[str, object]:
        raise ValueError("secret text")

    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window("a.py", "b.py")
        window.ask(1, "a.py")
        await room.begun()
        window.ask(2, "b.py")
        with monkeypatch.context() as patch:
            patch.setattr(jobs_module, "told", breaks)
            room.engine.gate.set()
            answer = await window.answer(1)
        assert answer == Answer(
            1, reason=Reason.ENGINE_FAILED, sentence="The answer could not be sent (ValueError)."
        )
        await window.answer(2)
        window.ask(3)
        assert (await window.answer(3)).items

    in_a_room(story)


def test_a_request_that_takes_too_long_is_stopped_and_the_next_one_answered() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window()
        window.ask(1)

        answer = await window.answer(1)
        assert (answer.items, answer.reason) == ((), Reason.TOO_SLOW)
        assert answer.sentence == "The model took longer than 0.05 s."
        room.engine.gate.set()
        window.ask(2)
        assert (await window.answer(2)).items
        assert room.n_hangs == 0

    in_a_room(story, lambda: Room(request_limit_s=0.05))


def test_candidates_share_the_time_limit_and_those_that_are_finished_are_sent() -> None:
    async def story(room: Room) -> None:
        def slowly(_middle: str) -> str:
            time.sleep(0.3)
            return f"{room.engine.n_entered}"

        room.engine = WaitingEngine(slowly)
        window = room.window()
        window.ask(1, is_automatic=False, n_candidates=3)
        answer = await window.answer(1)

        assert [item.text for item in answer.items] == ["1", "2"], "the third is not begun"
        first, second = (request.time_limit_s for request in room.engine.requests)
        assert second <= first - 0.3

    in_a_room(story, lambda: Room(request_limit_s=0.5))


def test_a_candidate_that_is_stopped_late_does_not_take_the_others_along() -> None:
    async def story(room: Room) -> None:
        room.engine.gate_after = 1
        window = room.window()
        window.ask(1, is_automatic=False, n_candidates=3)
        answer = await window.answer(1)

        assert [item.text for item in answer.items] == ["1 + 2"]

    in_a_room(story, lambda: Room(request_limit_s=0.05))


def test_a_model_that_heeds_no_flag_ends_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "HANG_GRACE_S", 0.05)

    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window()
        window.ask(1)
        await until(lambda: room.n_hangs)

        assert 1 not in window.answers or window.answers[1].reason == Reason.TOO_SLOW

    in_a_room(story, lambda: Room(WaitingEngine(heeds_flag=False), request_limit_s=0.05))


def test_a_model_that_stops_in_time_does_not_end_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "HANG_GRACE_S", 0.05)

    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window("a.py", "b.py")
        window.ask(1, "a.py")
        assert (await window.answer(1)).reason == Reason.TOO_SLOW
        room.engine.gate.set()
        window.ask(2, "b.py")
        assert (await window.answer(2)).items
        await asyncio.sleep(0.1)

        assert room.n_hangs == 0

    in_a_room(story, lambda: Room(request_limit_s=0.05))


def test_the_end_stops_what_runs_and_frees_the_model() -> None:
    async def story(room: Room) -> None:
        room.engine.gate.clear()
        window = room.window("a.py", "b.py")
        window.ask(1, "a.py")
        await room.begun()
        window.ask(2, "b.py")
        await room.service.close()

        assert room.engine.n_closed == 1
        assert room.engine.n_entered == 1

    in_a_room(story)
