"""What is written on the wire is read again, character for character; what is no message of ours is refused."""

import asyncio
import contextlib
import json
import pickle
import struct
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from treefill.core import wire
from treefill.core.messages import (
    Accepted,
    Answer,
    AnswerItem,
    Ask,
    Cancel,
    Close,
    Edits,
    EngineState,
    Hello,
    Message,
    Open,
    OutOfStep,
    Selected,
    Started,
    Welcome,
)
from treefill.core.wire import BadFrame, encode, read_message
from treefill.text import Edit

TEXT = st.text(st.characters(exclude_categories=()), max_size=12)  # half surrogate pairs included
NUMBER = st.integers(0, 2**61)
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBER | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
TABLE = st.dictionaries(TEXT, PLAIN, max_size=3)
EDIT = st.builds(Edit, NUMBER, NUMBER, TEXT)
ITEM = st.builds(AnswerItem, NUMBER, NUMBER, TEXT, TEXT)
MESSAGES = {
    Hello: st.builds(Hello, TEXT, TEXT),
    Welcome: st.builds(Welcome, TEXT, TEXT, NUMBER),
    Open: st.builds(Open, TEXT, TEXT, TEXT, st.integers(), TEXT),
    Edits: st.builds(Edits, TEXT, st.integers(), NUMBER, st.lists(EDIT, max_size=3).map(tuple)),
    Close: st.builds(Close, TEXT),
    Ask: st.builds(
        Ask,
        id=NUMBER,
        uri=TEXT,
        version=st.integers(),
        offset=NUMBER,
        is_automatic=st.booleans(),
        n_candidates=NUMBER,
        neighbours=st.lists(TEXT, max_size=3).map(tuple),
        workspace_root=st.none() | TEXT,
        options=TABLE,
        selected=st.none() | st.builds(Selected, NUMBER, NUMBER, TEXT),
    ),
    Cancel: st.builds(Cancel, NUMBER),
    Accepted: st.builds(Accepted, TEXT, NUMBER, NUMBER, NUMBER, st.none() | TEXT, TABLE),
    OutOfStep: st.builds(OutOfStep, TEXT),
    Started: st.builds(Started, NUMBER, TEXT),
    Answer: st.builds(Answer, NUMBER, st.lists(ITEM, max_size=3).map(tuple), TEXT, TEXT, TABLE),
    EngineState: st.builds(EngineState, TEXT, TEXT),
}


@pytest.fixture(autouse=True, scope="module")
def _loop() -> Iterator[None]:
    global on_loop
    with asyncio.Runner() as runner:
        on_loop = runner.run
        yield


def read(data: bytes) -> Message:
    """The first message in the bytes."""

    async def work() -> Message:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await read_message(reader)

    return on_loop(work())


def frame(head: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("!II", len(head), len(payload)) + head + payload


def framed(kind: Any, fields: Any, lengths: Any = (), payload: bytes = b"") -> bytes:
    return frame(json.dumps({"kind": kind, "fields": fields, "lengths": lengths}).encode(), payload)


on_loop: Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine; one loop serves all tests, since making one takes longer than the test."""

OPEN = {"uri": "file:///a", "path": "/a", "language": "python", "version": 1, "text": ""}
EDITS: dict[str, Any] = {
    "uri": "file:///a",
    "version": 2,
    "checksum": 3,
    "edits": [{"start": 0, "end": 1, "text": ""}],
}


def test_every_kind_of_message_is_tried() -> None:
    assert set(MESSAGES) == set(get_args(Message))


@given(st.one_of(*MESSAGES.values()))
@example(Close("file:///\ud83d"))
@example(Answer(1, explanation={"raw_text": "\ude42\ud83d"}))
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    assert read(encode(message)) == message


@given(st.lists(st.one_of(*MESSAGES.values()), max_size=4))
def test_messages_one_after_the_other_are_told_apart(messages: list[Message]) -> None:
    async def work() -> list[Message]:
        reader = asyncio.StreamReader()
        reader.feed_data(b"".join(map(encode, messages)))
        return [await read_message(reader) for _ in messages]

    assert on_loop(work()) == messages


@pytest.mark.parametrize("piece", ["x = 1\n", "é", "日本", "🙂", "some text \ud83d", "more\ude42\r"])
def test_a_text_of_five_megabytes_comes_whole(piece: str) -> None:
    text = piece * (5_000_000 // len(piece))

    assert read(encode(Open("file:///a", "/a", "python", 1, text))) == Open(
        "file:///a", "/a", "python", 1, text
    )
    edits = (Edit(0, 0, text), Edit(3, 9, ""), Edit(1, 1, piece))
    assert read(encode(Edits("file:///a", 2, 7, edits))) == Edits("file:///a", 2, 7, edits)


@pytest.mark.parametrize("kind", ["Nothing", "object", "os.system", "", 5, None, ["Open"], {"a": 1}])
def test_a_kind_that_is_none_of_ours_is_refused(kind: Any) -> None:
    with pytest.raises(BadFrame):
        read(framed(kind, {"id": 1}))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Cancel", {"id": "one"}),
        ("Cancel", {"id": None}),
        ("Cancel", {"id": 1.5}),
        ("Cancel", {"id": [1]}),
        ("Cancel", {}),
        ("Cancel", [1]),
        ("Cancel", "id"),
        ("Cancel", None),
        ("Close", {"uri": 5}),
        ("Close", {"uri": ["file:///a"]}),
        ("Answer", {"id": 1, "items": "abc"}),
        ("Answer", {"id": 1, "items": [{"start": 0}]}),
        ("Answer", {"id": 1, "items": {"start": 0, "end": 0, "text": "", "source": ""}}),
        ("Answer", {"id": 1, "explanation": []}),
        ("Hello", {"version": "1"}),
    ],
)
def test_fields_of_a_wrong_type_are_refused(kind: str, fields: Any) -> None:
    with pytest.raises(BadFrame):
        read(framed(kind, fields))


@pytest.mark.parametrize(
    ("lengths", "payload"),
    [
        ([], b""),
        ([3], b"ab"),
        ([1], b"ab"),
        ([1, 1], b"ab"),
        ([4, -2], b"ab"),
        ([-1], b""),
        ([2.0], b"ab"),
        ([True], b"a"),
        (["2"], b"ab"),
        ([None], b"ab"),
        (None, b"ab"),
        (2, b"ab"),
        ([10**30], b"ab"),
        ([2], b"\xff\xfe"),
    ],
)
def test_lengths_that_do_not_fit_the_payload_are_refused(lengths: Any, payload: bytes) -> None:
    for kind, fields in [("Open", OPEN), ("Edits", EDITS)]:
        with pytest.raises(BadFrame):
            read(framed(kind, fields, lengths, payload))


@pytest.mark.parametrize("lengths", [[2], [1, 1, 0], [3, -1], [-1, 3]])
def test_there_are_as_many_texts_as_edits_and_none_is_shorter_than_nothing(lengths: list[int]) -> None:
    two_edits = EDITS | {"edits": EDITS["edits"] * 2}

    assert read(framed("Edits", two_edits, [2, 0], b"ab"))
    with pytest.raises(BadFrame):
        read(framed("Edits", two_edits, lengths, b"ab"))


def test_a_message_without_texts_has_none() -> None:
    assert read(framed("Cancel", {"id": 1}, [])) == Cancel(1)
    with pytest.raises(BadFrame):
        read(framed("Cancel", {"id": 1}, [2], b"ab"))


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"null",
        b"[]",
        b"1",
        b'"Cancel"',
        b"{}",
        b"\xff\xfe\x00",
        b'{"kind": "Cancel"}',
        b'{"kind": "Cancel", "fields": {"id": 1}}',
        b'{"kind": "Cancel", "fields": {"id": 1}, "lengths": []',
        b'{"kind": "Cancel", "fields": {"id": ' + b"9" * 5000 + b'}, "lengths": []}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"kind": "Answer", "fields": {"id": 1, "explanation": ' + b"[" * 100_000,
    ],
    ids=lambda head: str(head[:30]),
)
def test_a_header_that_is_cut_or_odd_or_deeply_nested_is_refused(head: bytes) -> None:
    with pytest.raises(BadFrame):
        read(frame(head))


@given(st.one_of(*MESSAGES.values()), st.data())
def test_a_frame_cut_anywhere_is_the_connections_end(message: Message, data: st.DataObject) -> None:
    whole = encode(message)

    with pytest.raises(asyncio.IncompleteReadError):
        read(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.one_of(*MESSAGES.values()), st.data())
def test_a_frame_with_a_changed_byte_is_read_or_refused_and_nothing_else(
    message: Message, data: st.DataObject
) -> None:
    whole = bytearray(encode(message))
    at = data.draw(st.integers(8, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))

    with contextlib.suppress(BadFrame):
        read(bytes(whole))


@pytest.mark.parametrize(
    ("n_header", "n_payload"),
    [
        (wire.MAX_HEADER_BYTES + 1, 0),
        (10, wire.MAX_PAYLOAD_BYTES + 1),
        (2**32 - 1, 2**32 - 1),
    ],
)
def test_a_frame_that_announces_too_much_is_refused_before_anything_is_read(
    n_header: int, n_payload: int
) -> None:
    class NothingMore(asyncio.StreamReader):
        async def readexactly(self, n: int) -> bytes:
            assert n == 8, "only the lengths may be read"
            return await super().readexactly(n)

    async def work() -> Message:
        reader = NothingMore()
        reader.feed_data(struct.pack("!II", n_header, n_payload))
        return await read_message(reader)

    with pytest.raises(BadFrame, match="longer than any of ours"):
        on_loop(work())


class Trap:
    """Says so when it is unpickled."""

    is_sprung = False

    def __reduce__(self) -> Any:
        return Trap.spring, ()

    @staticmethod
    def spring() -> "Trap":
        Trap.is_sprung = True
        return Trap()


def test_nothing_is_unpickled() -> None:
    pickled = pickle.dumps(Trap())

    for data in (frame(pickled), frame(b"{}", pickled), framed("Open", OPEN, [len(pickled)], pickled)):
        with pytest.raises(BadFrame):
            read(data)

    assert not Trap.is_sprung
    pickle.loads(pickled)
    assert Trap.is_sprung, "the trap itself works"


def test_what_the_other_end_would_refuse_is_not_even_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_HEADER_BYTES", 1_000)
    monkeypatch.setattr(wire, "MAX_PAYLOAD_BYTES", 1_000)

    for message in (Close("a" * 1_000), Open("a", "a", "python", 1, "x" * 1_001)):
        with pytest.raises(BadFrame, match="longer than any of ours"):
            encode(message)
    assert read(encode(Open("a", "a", "python", 1, "x" * 1_000)))
