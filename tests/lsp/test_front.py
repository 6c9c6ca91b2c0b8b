"""The front's own work without the protocol: the core is a link that the test answers for."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from treefill.core.link import Connection, LinkEvents
from treefill.core.messages import (
    N_NEIGHBOURS,
    Accepted,
    Answer,
    AnswerItem,
    Ask,
    Cancel,
    Close,
    Edits,
    EngineState,
    Message,
    Open,
    OutOfStep,
    Selected,
    Started,
)
from treefill.core.peer import Peer
from treefill.lsp import front as front_module
from treefill.lsp.convert import path_of
from treefill.lsp.front import N_CANDIDATES, Front, FrontAnswer
from treefill.lsp.status import Status
from treefill.text import Change, Edit, Position, PositionEncoding, Text

URI = "file:///w/a.py"


class FakeLink:
    """A core that says what the test says; `is_up` as long as it is not lost."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk
        self.sent: list[Message] = []
        self.is_up = False
        self.is_closed = False

    def start(self, events: LinkEvents) -> None:
        self.events = events
        self.come_up()

    def come_up(self) -> None:
        self.is_up = True
        self.sent.extend(self.events.documents())
        self.events.on_message(EngineState("ready", "a model"))

    def send(self, message: Message) -> None:
        if self.is_up:
            self.sent.append(message)
            self._desk.peer.handle(message)

    async def close(self) -> None:
        self.is_up, self.is_closed = False, True

    def die(self, sentence: str = "The core process has ended unexpectedly; it is started anew.") -> None:
        self.is_up = False
        self.events.on_lost(sentence)

    def answer(
        self, ask_id: int, text: str = "1 + 2", start: int | None = None, end: int | None = None
    ) -> None:
        """Answer with one item at the place that was asked about."""
        ask = next(each for each in self.asks if each.id == ask_id)
        start = ask.offset if start is None else start
        item = AnswerItem(start, start if end is None else end, text, "decoded")
        self.events.on_message(Answer(ask_id, (item,), explanation={"raw_text": text}))

    @property
    def asks(self) -> list[Ask]:
        return [message for message in self.sent if isinstance(message, Ask)]

    @property
    def cancelled(self) -> list[int]:
        return [message.id for message in self.sent if isinstance(message, Cancel)]


class Desk:
    """A front, what it tells, and its core."""

    def __init__(self) -> None:
        self.statuses: list[Status] = []
        self.told: list[str] = []
        self.links: list[FakeLink] = []
        self.front = Front(self.statuses.append, self.told.append, path_of)
        self.peer = Peer(lambda message: None, *(lambda *_: None for _ in range(5)))
        """What a core would have made of all that was sent."""

    @property
    def link(self) -> FakeLink:
        return self.links[-1]

    async def connect(self, key: str = "one", limit_s: float = 20, **more: Any) -> None:
        connection = Connection(self._make_link, key, {"mode": "auto"}, limit_s)
        await self.front.connect(replace(connection, **more))

    def _make_link(self) -> FakeLink:
        self.links.append(FakeLink(self))
        return self.links[-1]

    async def ask(
        self, column: int = 4, line: int = 0, uri: str = URI, **more: Any
    ) -> "asyncio.Task[FrontAnswer]":
        """A request that is under way."""
        values: dict[str, Any] = {"is_automatic": True, **more}
        request = self.front.take(uri, Position(line, column), **values)
        task = asyncio.create_task(self.front.answer(request))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return task

    def type(self, text: str, column: int, uri: str = URI, version: int | None = None) -> None:
        place = Position(0, column)
        self.front.change(uri, version, [Change(text, place, place)])


def at_a_desk(story: Callable[[Desk], Coroutine[Any, Any, None]], is_connected: bool = True) -> None:
    """Run a story with `x = ` open in version 1."""

    async def work() -> None:
        desk = Desk()
        if is_connected:
            await desk.connect()
        desk.front.open(URI, "python", 1, "x = \n")
        await story(desk)
        await desk.front.close()
        assert all(task is asyncio.current_task() for task in asyncio.all_tasks())

    asyncio.run(work())


# One answer a request.


def test_a_request_goes_to_the_core_and_its_answer_comes_in_the_editors_positions() -> None:
    async def story(desk: Desk) -> None:
        desk.front.open(URI, "python", 1, 's = "🙂"\nx = )\n')
        task = await desk.ask(4, line=1)
        (ask,) = desk.link.asks
        assert (ask.uri, ask.version, ask.offset, ask.is_automatic, ask.options) == (
            URI,
            1,
            12,
            True,
            {"mode": "auto"},
        )
        desk.link.answer(ask.id, "f()", end=13)
        answer = await task

        (item,) = answer.items
        assert (item.start, item.end, item.text, item.source) == (
            Position(1, 4),
            Position(1, 5),
            "f()",
            "decoded",
        )
        assert (answer.reason, answer.sentence) == ("", "")

    at_a_desk(story)


@pytest.mark.parametrize(
    ("encoding", "column"),
    [(PositionEncoding.UTF_8, 9), (PositionEncoding.UTF_16, 7), (PositionEncoding.UTF_32, 6)],
)
def test_g01_columns_are_in_the_encoding_that_was_agreed_on(encoding: PositionEncoding, column: int) -> None:
    async def story(desk: Desk) -> None:
        desk.front.encoding = encoding
        desk.front.open(URI, "python", 1, 's = "🙂"\n')
        task = await desk.ask(column)
        assert desk.link.asks[0].offset == 6
        desk.link.answer(1, "!")

        assert (await task).items[0].start == Position(0, column)

    at_a_desk(story)


def test_an_invoked_request_has_several_to_choose_from() -> None:
    async def story(desk: Desk) -> None:
        tasks = [await desk.ask(is_automatic=True), await desk.ask(is_automatic=False)]
        assert [(ask.is_automatic, ask.n_candidates) for ask in desk.link.asks] == [
            (True, 1),
            (False, N_CANDIDATES),
        ]
        desk.link.answer(2)
        await asyncio.gather(*tasks)

    at_a_desk(story)


def test_g09_a_newer_request_supersedes_the_older_one_in_its_document_alone() -> None:
    async def story(desk: Desk) -> None:
        desk.front.open("file:///w/b.py", "python", 1, "y = \n")
        other = await desk.ask(uri="file:///w/b.py")
        tasks = [await desk.ask() for _ in range(5)]
        assert desk.link.cancelled == [2, 3, 4, 5]
        for number in (2, 3, 4, 5, 6, 1):
            desk.link.answer(number)
        answers = [await task for task in tasks]

        assert [answer.reason for answer in answers] == ["superseded"] * 4 + [""]
        assert answers[-1].items
        assert (await other).items

    at_a_desk(story)


def test_g10_an_answer_for_a_text_that_is_gone_is_not_shown() -> None:
    async def story(desk: Desk) -> None:
        task = await desk.ask()
        desk.type("9", 4)
        desk.link.answer(1)

        answer = await task
        assert (answer.items, answer.reason) == ((), "out-of-date")

    at_a_desk(story)


def test_a_request_is_about_the_text_as_it_stood_when_the_request_came() -> None:
    async def story(desk: Desk) -> None:
        request = desk.front.take(URI, Position(0, 4), is_automatic=True)
        desk.type("long_", 0)

        assert (await desk.front.answer(request)).reason == "out-of-date"
        assert desk.link.asks == [], "nobody is asked about a text that is gone"

    at_a_desk(story)


def test_an_answer_for_a_document_that_is_closed_or_opened_anew_is_not_shown() -> None:
    async def story(desk: Desk) -> None:
        closing = await desk.ask()
        desk.front.close_document(URI)
        assert (await closing).items == ()
        assert desk.link.sent[-2:] == [Cancel(1), Close(URI)]

        desk.front.open(URI, "python", 1, "x = \n")
        opening = await desk.ask()
        desk.front.open(URI, "python", 1, "y = 1\n")
        desk.link.answer(2)
        assert ((await opening).items, (await opening).reason) == ((), "superseded")

    at_a_desk(story)


def test_a_cancelled_request_is_cancelled_in_the_core_and_the_status_is_quiet_again() -> None:
    async def story(desk: Desk) -> None:
        task = await desk.ask()
        assert desk.statuses[-1] == Status("Normal", True, "working", "working")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert desk.link.cancelled == [1]
        assert desk.statuses[-1] == Status("Normal", False, "ready", "ready")
        desk.link.answer(1)
        answer = await _answered(desk, await desk.ask())
        assert answer.items

    at_a_desk(story)


async def _answered(desk: Desk, task: "asyncio.Task[FrontAnswer]") -> FrontAnswer:
    """The request's answer, once the core has answered the last one."""
    desk.link.answer(desk.link.asks[-1].id)
    return await task


def test_answers_that_nobody_waits_for_are_ignored() -> None:
    async def story(desk: Desk) -> None:
        task = await desk.ask()
        for message in (Answer(99), Started(99, URI), Ask(1, URI, 1, 0, True, 1, (), None, {}), Close(URI)):
            desk.link.events.on_message(message)
        assert not task.done()
        desk.link.answer(1)
        desk.link.answer(1, "again")

        assert (await task).items[0].text == "1 + 2"

    at_a_desk(story)


def test_g20_a_core_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_module, "LIMIT_MARGIN_S", 0.01)

    async def story(desk: Desk) -> None:
        await desk.connect(limit_s=0.01)
        answer = await (await desk.ask())

        assert (answer.items, answer.reason) == ((), "too-slow")
        assert desk.link.cancelled == [1]
        assert desk.statuses[-1] == Status("Normal", False, "ready", "ready")

    at_a_desk(story)


def test_what_the_core_declines_is_declined_with_its_reason() -> None:
    async def story(desk: Desk) -> None:
        task = await desk.ask()
        desk.link.events.on_message(Answer(1, reason="secret-file", sentence="Left alone."))

        assert await task == FrontAnswer((), "secret-file", "Left alone.")
        assert desk.front.explain(URI)["reason"] == "secret-file"

    at_a_desk(story)


def test_what_the_editors_list_has_selected_goes_along() -> None:
    async def story(desk: Desk) -> None:
        selected = (Position(0, 4), Position(0, 4), "count")
        task = await desk.ask(selected=selected)
        assert desk.link.asks[0].selected == Selected(4, 4, "count")
        desk.link.answer(1, "count(1)")
        assert (await task).items

        again = await desk.ask()
        assert len(desk.link.asks) == 2, "what goes with a selection is not offered without it"
        await _answered(desk, again)

    at_a_desk(story)


# What is not even asked.


def refused(desk: Desk, answer: FrontAnswer, reason: str) -> bool:
    return answer.items == () and answer.reason == reason and bool(answer.sentence) and not desk.link.asks


def test_g16_3_a_document_that_is_not_open_gives_nothing() -> None:
    async def story(desk: Desk) -> None:
        for uri in ("file:///w/never.py", "file:///etc/hostname"):
            assert refused(desk, await (await desk.ask(uri=uri)), "not-open")
            desk.front.change(uri, 2, [Change("x")])
            desk.front.close_document(uri)
            assert desk.front.explain(uri) == {"sentence": "The document is not open."}
        assert desk.front._explained == {}, "nothing is kept of a document that is not open"

    at_a_desk(story)


def test_a_version_that_goes_back_gives_nothing_until_the_whole_text_comes() -> None:
    async def story(desk: Desk) -> None:
        desk.type("1", 4, version=5)
        desk.type("2", 4, version=4)
        assert refused(desk, await (await desk.ask()), "out-of-step")
        desk.type("3", 4, version=6)
        assert refused(desk, await (await desk.ask()), "out-of-step")
        desk.front.change(URI, 7, [Change("y = \n")])

        assert desk.link.sent[-1] == Open(URI, "/w/a.py", "python", 7, "y = \n")
        assert (await _answered(desk, await desk.ask())).items

    at_a_desk(story)


def test_a_change_that_cannot_be_followed_gives_nothing_until_the_whole_text_comes() -> None:
    async def story(desk: Desk) -> None:
        desk.front.lose_track(URI)
        desk.front.lose_track("file:///w/never.py")
        assert refused(desk, await (await desk.ask()), "out-of-step")
        assert desk.front.explain(URI)["is_in_step"] is False
        desk.front.change(URI, 2, [Change("y = \n")])

        assert (await _answered(desk, await desk.ask())).items

    at_a_desk(story)


def test_a_request_for_an_earlier_version_gives_nothing() -> None:
    async def story(desk: Desk) -> None:
        desk.type("1", 4)
        assert refused(desk, await (await desk.ask(version=1)), "out-of-date")

        assert (await _answered(desk, await desk.ask(version=2))).items

    at_a_desk(story)


def test_a_document_that_is_too_large_gives_nothing_and_a_smaller_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front_module, "MAX_CHARS", 5)

    async def story(desk: Desk) -> None:
        desk.type("1", 4)
        assert refused(desk, await (await desk.ask()), "too-large")
        desk.front.change(URI, None, [Change("", Position(0, 4), Position(0, 5))])

        assert (await _answered(desk, await desk.ask())).items

    at_a_desk(story)


def test_a_document_that_is_too_large_is_not_sent_until_it_is_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front_module, "MAX_CHARS", 5)

    async def story(desk: Desk) -> None:
        desk.link.sent.clear()
        desk.type("1", 4)
        desk.type("2", 5)
        desk.front.open("file:///w/large.py", "python", 1, "too large")
        assert desk.link.sent == []

        desk.front.change(URI, None, [Change("", Position(0, 2), Position(0, 6))])

        assert [type(message) for message in desk.link.sent] == [Open]
        assert desk.link.sent[0].text == "x \n"

    at_a_desk(story)


# Following the editor.


def test_each_edit_reaches_the_core_with_the_texts_checksum() -> None:
    async def story(desk: Desk) -> None:
        desk.front.change(
            URI, 7, [Change("1", Position(0, 4), Position(0, 4)), Change("y", Position(0, 0), Position(0, 1))]
        )

        assert desk.link.sent[-1] == Edits(
            URI, 7, Text.of("y = 1\n").checksum, (Edit(4, 4, "1"), Edit(0, 1, "y"))
        )
        desk.type("2", 5, version=None)
        edits = desk.link.sent[-1]
        assert isinstance(edits, Edits)
        assert edits.version == 8

    at_a_desk(story)


def test_a_thousand_edits_at_once_reach_the_core_as_the_text_that_they_come_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(desk: Desk) -> None:
        place = Position(0, 4)
        desk.front.change(URI, 2, [Change("1", place, place)] * (front_module.MAX_EDITS + 1))
        assert desk.link.sent[-1] == Open(URI, "/w/a.py", "python", 2, f"x = {'1' * 1001}\n")

        monkeypatch.setattr(front_module, "MAX_CHARS", 10)
        desk.front.change(URI, 3, [Change("123456"), Change("x = \n")])
        assert desk.link.sent[-1] == Open(URI, "/w/a.py", "python", 3, "x = \n")

    at_a_desk(story)


def test_a_mirror_that_is_out_of_step_is_sent_the_text_anew() -> None:
    async def story(desk: Desk) -> None:
        desk.type("1", 4)
        n_sent = len(desk.link.sent)
        desk.link.events.on_message(OutOfStep(URI))
        desk.link.events.on_message(OutOfStep("file:///w/never.py"))

        assert desk.link.sent[n_sent:] == [Open(URI, "/w/a.py", "python", 2, "x = 1\n")]

    at_a_desk(story)


def test_what_is_explained_has_the_document_and_the_last_answer() -> None:
    async def story(desk: Desk) -> None:
        assert desk.front.explain(URI) == {
            "text": "x = \n",
            "version": 1,
            "is_in_step": True,
            "sentence": "Nothing has been asked in this document yet.",
        }
        await _answered(desk, await desk.ask())

        assert desk.front.explain(URI) == {
            "text": "x = \n",
            "version": 1,
            "is_in_step": True,
            "sentence": "",
            "reason": "",
            "source": "decoded",
            "raw_text": "1 + 2",
        }

    at_a_desk(story)


def test_an_older_requests_end_does_not_hide_how_the_newest_came_about() -> None:
    async def story(desk: Desk) -> None:
        await _answered(desk, await desk.ask())
        older = await desk.ask(is_automatic=False)
        assert (await (await desk.ask())).items[0].source == "typed through"
        assert (await older).reason == "superseded"
        assert desk.front.explain(URI)["source"] == "typed through"

        late = await desk.ask(is_automatic=False)
        desk.type("9", 4)
        desk.link.answer(desk.link.asks[-1].id)
        assert (await late).reason == "out-of-date"
        assert desk.front.explain(URI)["reason"] == "out-of-date", "and what came to nothing is told, too"

    at_a_desk(story)


# Typed through.


def test_what_is_typed_through_is_offered_without_asking_the_core() -> None:
    async def story(desk: Desk) -> None:
        await _answered(desk, await desk.ask())
        for column, character in enumerate("1 +", start=4):
            desk.type(character, column)
            answer = await (await desk.ask(column + 1))
            (item,) = answer.items
            assert (item.text, item.source) == ("1 + 2"[column - 3 :], "typed through")

        assert len(desk.link.asks) == 1
        assert desk.front.explain(URI)["source"] == "typed through"

        desk.type("9", 7)
        await _answered(desk, await desk.ask(8))
        assert len(desk.link.asks) == 2, "typed against it"

    at_a_desk(story)


def test_an_answer_that_comes_late_is_kept_for_who_types_along() -> None:
    async def story(desk: Desk) -> None:
        task = await desk.ask()
        desk.type("1", 4)
        desk.link.answer(1)
        assert (await task).items == ()

        answer = await (await desk.ask(5))
        assert answer.items[0].text == " + 2"
        assert len(desk.link.asks) == 1

    at_a_desk(story)


def test_an_answer_for_another_text_or_for_other_settings_is_not_kept() -> None:
    async def story(desk: Desk) -> None:
        n_asks = 0
        for happens in (
            lambda: desk.front.close_document(URI),
            lambda: desk.front.open(URI, "python", 1, "x = \n"),
            lambda: desk.front.lose_track(URI),
        ):
            task = await desk.ask()
            n_asks += 1
            desk.link.answer(n_asks)
            happens()  # the answer has come, and its request has not been told yet
            assert (await task).items == ()
            desk.front.open(URI, "python", 1, "x = \n")
            await _answered(desk, await desk.ask())
            n_asks += 1
            assert len(desk.link.asks) == n_asks
            desk.front.open(URI, "python", 1, "x = \n")

        task = await desk.ask()
        desk.front.lose_track(URI)
        desk.link.answer(desk.link.asks[-1].id)
        assert (await task).reason == "out-of-date"
        assert not desk.front._typed_through._kept

        desk.front.open(URI, "python", 1, "x = \n")
        task = await desk.ask()
        await desk.connect(options={"mode": "line"})
        desk.link.answer(desk.link.asks[-1].id)
        assert (await task).items
        assert not desk.front._typed_through._kept

    at_a_desk(story)


def test_an_invoked_request_and_other_settings_ask_anew() -> None:
    async def story(desk: Desk) -> None:
        await _answered(desk, await desk.ask())
        await _answered(desk, await desk.ask(is_automatic=False))
        await desk.connect(options={"mode": "line"})
        await _answered(desk, await desk.ask())

        assert [ask.options for ask in desk.link.asks] == [{"mode": "auto"}] * 2 + [{"mode": "line"}]

    at_a_desk(story)


def test_what_was_suggested_is_offered_while_the_core_is_gone() -> None:
    async def story(desk: Desk) -> None:
        await _answered(desk, await desk.ask())
        desk.link.die()
        desk.type("1", 4)

        assert (await (await desk.ask(5))).items[0].text == " + 2"

    at_a_desk(story)


def test_another_document_and_one_opened_anew_are_asked_about() -> None:
    async def story(desk: Desk) -> None:
        await _answered(desk, await desk.ask())
        desk.front.open("file:///w/b.py", "python", 1, "x = \n")
        await _answered(desk, await desk.ask(uri="file:///w/b.py"))
        desk.front.open(URI, "python", 1, "x = \n")
        await _answered(desk, await desk.ask())

        assert len(desk.link.asks) == 3

    at_a_desk(story)


# What the user has switched off.


def test_nothing_is_asked_where_the_user_has_switched_it_off_and_it_says_so() -> None:
    async def story(desk: Desk) -> None:
        await desk.connect(is_enabled=False)
        answer = await (await desk.ask())
        assert (answer.items, answer.reason) == ((), "disabled")
        assert "enabled" in desk.front.explain(URI)["sentence"]

        await desk.connect(disabled_languages=frozenset({"python"}))
        answer = await (await desk.ask())
        assert answer.sentence == "The setting disabled_languages names python."
        assert desk.link.asks == []

        await desk.connect(disabled_languages=frozenset({"markdown"}))
        assert (await _answered(desk, await desk.ask())).items
        assert len(desk.links) == 1, "the core is the same"

    at_a_desk(story)


# A core that dies.


def test_a_core_that_is_lost_answers_what_was_under_way_with_nothing_and_is_told_once() -> None:
    async def story(desk: Desk) -> None:
        desk.front.open("file:///w/b.py", "python", 1, "y = \n")
        tasks = [await desk.ask(), await desk.ask(uri="file:///w/b.py")]
        desk.link.die("It is gone.")
        assert [(await task).reason for task in tasks] == ["core-lost"] * 2

        answer = await (await desk.ask())
        assert (answer.reason, answer.sentence) == ("no-core", "It is gone.")
        assert desk.statuses[-1] == Status("Warning", False, "It is gone.", "lost")
        desk.link.die("It is gone.")
        assert desk.told == ["It is gone."]

        n_sent = len(desk.link.sent)
        desk.type("1", 4)
        desk.link.come_up()
        assert desk.link.sent[n_sent : n_sent + 2] == [
            Open("file:///w/b.py", "file:///w/b.py"[7:], "python", 1, "y = \n"),
            Open(URI, "/w/a.py", "python", 2, "x = 1\n"),
        ]
        assert (await _answered(desk, await desk.ask(5))).items
        assert desk.statuses[-1] == Status("Normal", False, "ready", "ready")

    at_a_desk(story)


def test_a_core_that_dies_again_long_afterwards_is_told_of_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(front_module, "time", SimpleNamespace(monotonic=lambda: now))

    async def story(desk: Desk) -> None:
        nonlocal now
        for _ in range(5):  # one trouble, however often it is tried
            desk.link.die("It is gone.")
            now += front_module.QUIET_S - 1
        assert desk.told == ["It is gone."]

        now += 1
        desk.link.come_up()
        desk.link.die("It is gone.")
        assert desk.told == ["It is gone."] * 2

    at_a_desk(story)


async def crash(desk: Desk, is_started: bool = True, uri: str = URI) -> None:
    """The core dies over a request, and comes up again."""
    task = await desk.ask(uri=uri)
    if is_started:
        desk.link.events.on_message(Started(desk.link.asks[-1].id, uri))
    desk.link.die()
    assert (await task).items == ()
    desk.link.come_up()


def test_a_document_that_kills_the_core_twice_is_left_alone_until_it_is_edited() -> None:
    async def story(desk: Desk) -> None:
        desk.front.open("file:///w/b.py", "python", 1, "y = \n")
        await crash(desk)
        await crash(desk)
        n_asks = len(desk.link.asks)
        answer = await (await desk.ask())
        assert answer.reason == "quarantined"
        assert answer.sentence == (
            "The core has died twice over this document: it is left alone until it is edited."
        )
        assert desk.front.explain(URI)["reason"] == "quarantined"
        assert len(desk.link.asks) == n_asks
        assert (await _answered(desk, await desk.ask(uri="file:///w/b.py", neighbours=(URI,)))).items
        assert neighbours_of(desk) == (), "nor is it shown to the core beside another document"

        desk.type("1", 4)
        await crash(desk)
        assert (await (await desk.ask())).reason == "quarantined", "one more chance, and only one"

        desk.type("2", 4)
        assert (await _answered(desk, await desk.ask())).items

    at_a_desk(story)


def test_a_core_that_dies_after_nobody_waits_any_more_is_still_this_documents_doing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A core that hangs ends seconds after its request was given up; who types has asked anew by then."""
    monkeypatch.setattr(front_module, "LIMIT_MARGIN_S", 0.01)

    async def story(desk: Desk) -> None:
        await desk.connect(limit_s=0.01)
        given_up = await desk.ask()
        desk.link.events.on_message(Started(desk.link.asks[-1].id, URI))
        assert (await given_up).reason == "too-slow"
        desk.link.die()
        desk.link.come_up()

        cancelled = await desk.ask()
        desk.link.events.on_message(Started(desk.link.asks[-1].id, URI))
        cancelled.cancel()
        await asyncio.wait([cancelled])
        desk.link.die()
        desk.link.come_up()
        assert (await (await desk.ask())).reason == "quarantined"

        desk.type("1", 4)
        superseded = await desk.ask()
        desk.link.events.on_message(Started(desk.link.asks[-1].id, URI))
        desk.type("2", 4)
        newer = await desk.ask()
        desk.link.die()
        desk.link.come_up()
        assert [(await task).reason for task in (superseded, newer)] == ["superseded", "core-lost"]
        assert (await (await desk.ask())).reason == "quarantined"

    at_a_desk(story)


def test_a_core_that_has_answered_dies_of_something_else() -> None:
    async def story(desk: Desk) -> None:
        for _ in range(4):
            cancelled = await desk.ask()
            ask_id = desk.link.asks[-1].id
            desk.link.events.on_message(Started(ask_id, URI))
            cancelled.cancel()
            await asyncio.wait([cancelled])
            desk.link.events.on_message(Answer(ask_id, reason="cancelled"))
            desk.link.die()
            desk.link.come_up()

        assert (await _answered(desk, await desk.ask())).items

    at_a_desk(story)


def test_a_request_that_was_only_waiting_is_not_to_blame() -> None:
    async def story(desk: Desk) -> None:
        for _ in range(4):
            await crash(desk, is_started=False)

        assert (await _answered(desk, await desk.ask())).items

    at_a_desk(story)


def test_a_document_that_is_opened_anew_has_its_chances_again() -> None:
    async def story(desk: Desk) -> None:
        await crash(desk)
        await crash(desk)
        desk.front.close_document(URI)
        desk.front.open(URI, "python", 1, "x = \n")
        await crash(desk)

        assert (await _answered(desk, await desk.ask())).items

    at_a_desk(story)


# Settings.


def test_before_there_is_a_core_nothing_is_suggested_and_the_reason_is_told() -> None:
    async def story(desk: Desk) -> None:
        answer = await (await desk.ask())
        assert (answer.reason, answer.sentence) == ("no-core", "The core process is being started.")

        await desk.connect()
        assert desk.link.sent == [Open(URI, "/w/a.py", "python", 1, "x = \n")]

    at_a_desk(story, is_connected=False)


def test_settings_that_lead_to_another_core_leave_the_old_one() -> None:
    async def story(desk: Desk) -> None:
        task = await desk.ask()
        await desk.connect(key="two")
        assert ((await task).reason, desk.links[0].is_closed) == ("core-lost", True)
        assert desk.link.sent == [Open(URI, "/w/a.py", "python", 1, "x = \n")]
        assert desk.told == [], "nothing has gone wrong"

        assert (await _answered(desk, await desk.ask())).items

    at_a_desk(story)


def test_settings_that_lead_to_the_same_core_keep_it_and_what_is_under_way() -> None:
    async def story(desk: Desk) -> None:
        task = await desk.ask()
        await desk.connect(options={"mode": "line"})

        assert len(desk.links) == 1
        assert (await _answered(desk, task)).items

    at_a_desk(story)


def test_complaints_and_a_model_that_fails_are_told_once() -> None:
    async def story(desk: Desk) -> None:
        for _ in range(3):
            await desk.connect(complaints=("There is no setting modle.",))
            desk.link.events.on_message(EngineState("failed", "There is no model."))
            desk.link.events.on_message(EngineState("loading"))

        assert desk.told == ["There is no setting modle.", "There is no model."]

    at_a_desk(story)


# Other documents.


def neighbours_of(desk: Desk) -> tuple[str, ...]:
    return desk.link.asks[-1].neighbours


def test_neighbours_are_the_documents_edited_last() -> None:
    async def story(desk: Desk) -> None:
        names = [f"file:///w/{number}.py" for number in range(N_NEIGHBOURS + 2)]
        for name in names:
            desk.front.open(name, "python", 1, "")
        desk.type("1", 0, uri=names[1])
        await _answered(desk, await desk.ask())

        assert neighbours_of(desk) == (names[1], *reversed(names[3:]))

    at_a_desk(story)


def test_a_notebooks_cells_come_before_other_documents() -> None:
    async def story(desk: Desk) -> None:
        for name in ("file:///w/b.py", "file:///w/c.py"):
            desk.front.open(name, "python", 1, "")
        await _answered(desk, await desk.ask(neighbours=("#2", "file:///w/b.py")))

        assert neighbours_of(desk) == ("#2", "file:///w/b.py", "file:///w/c.py")

    at_a_desk(story)


def test_a_document_without_a_place_has_no_neighbours_but_its_notebooks_cells() -> None:
    async def story(desk: Desk) -> None:
        desk.front.open("untitled:1", "python", 1, "x = \n")
        await _answered(desk, await desk.ask(uri="untitled:1", neighbours=("#1",)))

        assert neighbours_of(desk) == ("#1",)
        assert desk.link.asks[-1].workspace_root is None

    at_a_desk(story)


@pytest.mark.parametrize(
    ("folders", "root"),
    [
        ([], None),
        (["/w"], "/w"),
        (["/"], "/"),
        (["/w", "/w/deep", "/w/deeper"], "/w/deep"),
        (["/w/deep", "/w"], "/w/deep"),
        (["/other", "/w/dee"], None),
    ],
)
def test_the_root_is_the_innermost_workspace_folder(folders: list[str], root: str | None) -> None:
    async def story(desk: Desk) -> None:
        desk.front.workspace_folders = tuple(map(Path, folders))
        desk.front.open("file:///w/deep/a.py", "python", 1, "x = \n")
        await _answered(desk, await desk.ask(uri="file:///w/deep/a.py"))

        assert desk.link.asks[-1].workspace_root == root

    at_a_desk(story)


# Statistics.


def test_what_becomes_of_a_suggestion_is_counted(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.connect(statistics_file=tmp_path / "state" / "statistics.sqlite")
        nothing = await desk.ask()
        desk.link.events.on_message(Answer(1, reason="inside-word"))
        await nothing
        asked = await desk.ask()
        desk.link.answer(2)
        await asked
        desk.type("1 + 2", 4)
        again = await desk.ask(uri="file:///w/not-open.py")
        await again
        desk.front.close_document(URI)

        told = await desk.front.statistics.report()

        (python,) = told["languages"]
        assert python.pop("syntax")["guarded"] == 0
        assert python == {
            "language": "python",
            "offered": 1,
            "accepted": 1,
            "partly_accepted": 0,
            "characters_accepted": 5,
        }
        assert told["declined"] == {"inside-word": 1}
        assert told["latency_ms"]["decoded"]["n"] == 1
        assert told["kept_share"] == 1

    at_a_desk(story)


def test_positions_are_counted_in_characters_whatever_the_editor_counts(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.connect(statistics_file=tmp_path / "statistics.sqlite")
        desk.front.open(URI, "python", 2, "🙂🙂 = \n")
        asked = await desk.ask(7)
        desk.link.answer(1)
        await asked
        desk.type("1 + 2", 7)

        assert (await desk.front.statistics.report())["total"]["accepted"] == 1

    at_a_desk(story)


@pytest.mark.parametrize("statistics", ["statistics.sqlite", None])
@pytest.mark.parametrize(
    ("source", "text", "is_told"),
    [
        ("decoded", "1 + 2", True),
        ("habit", "1 + 2", True),
        ("template", "1 + 2", False),
        ("decoded", "1", False),
        ("decoded", "7 + 8", False),
    ],
    ids=["accepted", "a habit", "a template", "typed", "something else"],
)
def test_the_core_is_told_what_was_accepted_whole(
    source: str, text: str, is_told: bool, statistics: str | None, tmp_path: Path
) -> None:
    async def story(desk: Desk) -> None:
        file = tmp_path / statistics if statistics else None
        await desk.connect(statistics_file=file, learns_habits=True)
        task = await desk.ask()
        desk.link.events.on_message(Answer(1, (AnswerItem(4, 4, "1 + 2", source),)))
        await task
        desk.type(text, 4, version=2)

        told = [message for message in desk.link.sent if isinstance(message, Accepted)]
        assert told == ([Accepted(URI, 2, 4, 9, None, {"mode": "auto"})] if is_told else [])
        if is_told:
            assert isinstance(desk.link.sent[-2], Edits), "the core has the text by then"

    at_a_desk(story)


def test_the_core_is_told_nothing_where_habits_are_switched_off() -> None:
    async def story(desk: Desk) -> None:
        await desk.connect(learns_habits=False)
        task = await desk.ask()
        desk.link.answer(1)
        await task
        desk.type("1 + 2", 4)

        assert not any(isinstance(message, Accepted) for message in desk.link.sent)

    at_a_desk(story)


def test_with_statistics_switched_off_nothing_is_counted_though_habits_are_learned() -> None:
    async def story(desk: Desk) -> None:
        await desk.connect(learns_habits=True)
        task = await desk.ask()
        desk.link.answer(1)
        await task
        desk.type("1 + 2", 4)

        report = await desk.front.statistics.report()
        assert (report["since"], report["total"]["accepted"]) == (None, 0)

    at_a_desk(story)


def test_bad_rules_are_told_the_user_once() -> None:
    async def story(desk: Desk) -> None:
        for _ in range(2):
            task = await desk.ask()
            number = desk.link.asks[-1].id
            bad = Answer(number, reason="bad-rules", sentence="r.toml:1:1: expected a name.")
            desk.link.events.on_message(bad)
            assert (await task).reason == "bad-rules"
        assert desk.told == ["r.toml:1:1: expected a name."]

    at_a_desk(story)


@pytest.mark.parametrize("is_trusted", [True, False])
def test_the_core_hears_of_the_trust_that_the_editor_tells(is_trusted: bool) -> None:
    async def story(desk: Desk) -> None:
        desk.front.workspace_folders = (Path("/w"),)
        desk.front.trusts_workspace = is_trusted
        await desk.connect(options={"mode": "auto", "trusted_workspaces": ["/mine"]})
        await desk.ask()
        assert desk.link.asks[-1].options["trusted_workspaces"] == (
            ["/mine", "/w"] if is_trusted else ["/mine"]
        )

    at_a_desk(story, is_connected=False)
