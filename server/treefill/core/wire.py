"""How messages are written on the wire.

A frame is two lengths, a header and a payload. The header is JSON and is checked against its message's types; the
payload has the documents' text as UTF-8, half surrogate pairs included, so that a large file costs one copy. Lengths
are capped before anything is written or read, and nothing is ever unpickled.
"""

import json
import struct
from asyncio import StreamReader
from dataclasses import asdict, replace
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from treefill.core.messages import Edits, Message, Open
from treefill.errors import TreefillError
from treefill.text import Edit

MAX_HEADER_BYTES = 4_000_000
MAX_PAYLOAD_BYTES = 256_000_000
"""Four bytes a character for the largest file, and room."""

_LENGTHS = struct.Struct("!II")
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Message)}


class BadFrame(TreefillError):
    """Bytes that are no message of ours: the connection they came by is closed."""


def encode(message: Message) -> bytes:
    """The message as one frame. Raises `BadFrame` where the other end would not take it."""
    header, texts = _without_texts(message)
    pieces = [text.encode("utf-8", "surrogatepass") for text in texts]
    table = {"kind": type(message).__name__, "fields": header, "lengths": [len(piece) for piece in pieces]}
    head = json.dumps(table).encode()
    payload = b"".join(pieces)
    _check_lengths(len(head), len(payload))
    return _LENGTHS.pack(len(head), len(payload)) + head + payload


async def read_message(reader: StreamReader) -> Message:
    """The next message. Raises `BadFrame`, and `asyncio.IncompleteReadError` at the connection's end."""
    n_header, n_payload = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
    _check_lengths(n_header, n_payload)
    head = await reader.readexactly(n_header)
    return decode(head, await reader.readexactly(n_payload) if n_payload else b"")


def decode(head: bytes, payload: bytes) -> Message:
    """The message of one frame's two parts. Raises `BadFrame`."""
    try:
        table = json.loads(head)
        kind = table["kind"]
        message: Message = _adapter(kind).validate_python(table["fields"])
        return _with_texts(message, _texts(payload, table["lengths"]))
    except (ValueError, TypeError, KeyError, RecursionError, ValidationError) as error:
        raise BadFrame(f"A frame that is no message of ours ({type(error).__name__}).") from None


def _check_lengths(n_header: int, n_payload: int) -> None:
    if n_header > MAX_HEADER_BYTES or n_payload > MAX_PAYLOAD_BYTES:
        raise BadFrame(f"A frame of {n_header} and {n_payload} bytes is longer than any of ours.")


def _without_texts(message: Message) -> tuple[dict[str, Any], list[str]]:
    if isinstance(message, Open):
        return asdict(replace(message, text="")), [message.text]
    if isinstance(message, Edits):
        bare = tuple(replace(edit, text="") for edit in message.edits)
        return asdict(replace(message, edits=bare)), [edit.text for edit in message.edits]
    return asdict(message), []


def _with_texts(message: Message, texts: list[str]) -> Message:
    if isinstance(message, Open):
        (text,) = texts
        return replace(message, text=text)
    if isinstance(message, Edits):
        edits = zip(message.edits, texts, strict=True)
        return replace(message, edits=tuple(Edit(edit.start, edit.end, text) for edit, text in edits))
    if texts:
        raise ValueError("this kind has no texts")
    return message


def _texts(payload: bytes, lengths: list[int]) -> list[str]:
    texts, at = [], 0
    for length in lengths:
        if type(length) is not int or length < 0:
            raise ValueError("a length that is none")
        texts.append(payload[at : at + length].decode("utf-8", "surrogatepass"))
        at += length
    if at != len(payload):
        raise ValueError("lengths and payload differ")
    return texts


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[kind])
