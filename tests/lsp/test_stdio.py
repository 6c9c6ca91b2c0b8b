"""The protocol's base layer: whatever the chunks and whatever else is in the stream, the same bodies."""

import asyncio
import itertools
import logging
import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.lsp import stdio
from treefill.lsp.stdio import FrameReader, StdoutWriter

BODIES = st.lists(
    st.sampled_from(
        [b"", b"{}", b'{"a": "\xc3\xa9"}', b"Content-Length: 3\r\n\r\nabc", b"\r\n\r\n", b"x" * 50]
    ),
    max_size=5,
)
GARBAGE = st.sampled_from(
    [
        *(b"", b"\n", b"noise\n", b"noise\r\n\r\n", b"\xff\x00\n", b"50%|####\r", b"z" * 5_000 + b"\n"),
        *(b"Content-Type: x\r\n", b"Content-Length: ?\r\n", b"Content-Length: -5\r\n\r\n"),
    ]
)


def framed(body: bytes, head: bytes = b"Content-Length: %d\r\n\r\n") -> bytes:
    return head % len(body) + body


def read(chunks: Sequence[bytes]) -> list[bytes]:
    frames = FrameReader()
    return [body for chunk in chunks for body in frames.feed(chunk)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[i:j] for i, j in itertools.pairwise(bounds)]


@given(BODIES, st.lists(GARBAGE, min_size=5, max_size=5), st.lists(st.integers(0), max_size=8))
def test_whatever_the_chunks_and_the_garbage_between_the_same_bodies(
    bodies: list[bytes], garbage: list[bytes], places: list[int]
) -> None:
    data = b"".join(noise + framed(body) for noise, body in zip(garbage, bodies, strict=False))

    assert read(cut(data, places)) == bodies


@given(st.binary(max_size=200), st.lists(st.integers(0), max_size=6))
def test_garbage_alone_comes_to_the_same_however_it_is_cut(data: bytes, places: list[int]) -> None:
    assert read(cut(data, places)) == read([data])


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: %d\r\n\r\n",
        b"Content-Length:%d\r\n\r\n",
        b"content-length: \t%d \r\n\r\n",
        b"Content-Length: %d\n\n",
        b"Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
    ],
)
def test_headers_are_read_as_clients_write_them_byte_by_byte(head: bytes) -> None:
    data = framed(b'{"a": 1}', head) + framed(b"{}", head)

    assert read([data[i : i + 1] for i in range(len(data))]) == [b'{"a": 1}', b"{}"]
    assert read([data]) == [b'{"a": 1}', b"{}"]


def test_a_body_that_has_not_come_whole_is_waited_for() -> None:
    frames = FrameReader()
    data = framed(b"x" * 100)

    assert list(frames.feed(data[:-1])) == []
    assert list(frames.feed(data[-1:] + data[:10])) == [b"x" * 100]
    assert list(frames.feed(data[10:])) == [b"x" * 100]


@pytest.mark.parametrize("n_bytes", [stdio.MAX_BODY_BYTES + 1, 999_999_999_999, 10**30])
def test_a_message_that_announces_too_much_is_skipped_and_the_next_one_read(n_bytes: int) -> None:
    assert read([b"Content-Length: %d\r\n\r\n" % n_bytes, b"{...", framed(b"{}")]) == [b"{}"]


def test_endless_garbage_is_not_kept() -> None:
    frames = FrameReader()

    for _ in range(200):
        assert list(frames.feed(b"x" * 10_000)) == []

    assert len(frames._bytes) <= 14_096
    assert list(frames.feed(framed(b"{}"))) == [b"{}"]


def test_what_is_skipped_is_told_without_its_contents(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        read([b"password = 1\n", framed(b"{}")])

    assert caplog.messages == ["13 bytes that are no message were skipped."]


def test_whole_messages_reach_a_client_that_reads_slowly() -> None:
    """More than a pipe holds is written at once, and nothing waits for the client."""
    incoming, outgoing = os.pipe()
    messages = [bytes([65 + number]) * 100_000 for number in range(5)]

    async def story() -> bytes:
        writer = StdoutWriter(os.fdopen(outgoing, "wb", buffering=0))
        for message in messages:
            writer.write(message)
        assert writer._unsent, "the pipe is full"
        draining = asyncio.create_task(writer.drain(20))
        received = b""
        while len(received) < 500_000:
            received += await asyncio.to_thread(os.read, incoming, 50_000)
        await draining
        assert not writer._unsent
        writer.close()
        return received

    assert asyncio.run(story()) == b"".join(messages)
    os.close(incoming)


def test_a_client_that_is_gone_is_not_written_to_and_not_waited_for() -> None:
    incoming, outgoing = os.pipe()
    os.close(incoming)

    async def story() -> None:
        writer = StdoutWriter(os.fdopen(outgoing, "wb", buffering=0))
        writer.write(b"x")
        writer.write(b"y")
        assert not writer._unsent, "nothing is kept for nobody"
        await asyncio.wait_for(writer.drain(60), 20)
        writer.close()

    asyncio.run(story())


def test_a_client_that_never_reads_is_waited_for_no_longer_than_the_limit() -> None:
    incoming, outgoing = os.pipe()

    async def story() -> None:
        writer = StdoutWriter(os.fdopen(outgoing, "wb", buffering=0))
        writer.write(b"x" * 1_000_000)
        await asyncio.wait_for(writer.drain(0.05), 20)
        writer.close()

    asyncio.run(story())
    os.close(incoming)
