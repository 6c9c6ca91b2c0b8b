"""Headers of safetensors files, sound and hostile."""

import json
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save
from treefill.errors import BrokenModel
from treefill.models.safetensors_header import read_safetensors_header

SOUND = save(
    {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(4, dtype=np.int8)}, {"k": "v"}
)


def with_header(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(**changes: object) -> dict[str, object]:
    return {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}


def test_a_sound_header_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sound.safetensors"
    path.write_bytes(SOUND)

    header = read_safetensors_header(path)

    assert header.metadata == {"k": "v"}
    view = header.view(np.memmap(path, np.uint8, mode="r"), "a")
    assert view.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "shorter than a header"),
        (b"\x01\x00\x00", "shorter than a header"),
        (struct.pack("<Q", 1 << 60) + b"{}", "claims 1152921504606846976 bytes"),
        (with_header(b"{" * 100), "not JSON"),
        (with_header(b"[" * 100_000), "not JSON"),
        (with_header(b"\xff\xfe"), "not JSON"),
        (with_header([1]), "not a table"),
        (with_header({"a": 1}), "not described by a table"),
        (with_header({"__metadata__": {"k": 1}}), "metadata are not text"),
        (with_header(b'{"a":1,"a":2}'), "names something twice"),
        (with_header(entry(dtype="F99")), "unknown type 'F99'"),
        (with_header(entry(dtype=["F32"])), "unknown type"),
        (with_header(entry(shape=[-1])), "no sound shape"),
        (with_header(entry(shape=[1 << 70])), "no sound shape"),
        (with_header(entry(shape="no")), "no sound shape"),
        (with_header(entry(data_offsets=[0])), "no sound offsets"),
        (with_header(entry(data_offsets=[0, 9])), "disagree"),
        (with_header(entry(shape=[1 << 40, 1 << 40], data_offsets=[0, 8])), "disagree"),
        (with_header(entry(), bytes(7)), "cut or altered"),
        (with_header(entry(), bytes(9)), "cut or altered"),
        (with_header(entry(data_offsets=[4, 12]), bytes(12)), "overlap or leave holes"),
    ],
)
def test_a_hostile_header_is_refused_by_name(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(content)
    tracemalloc.start()

    with pytest.raises(BrokenModel, match=fault) as error:
        read_safetensors_header(path)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(path) in str(error.value)
    assert peak < 32 << 20


@given(st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_altered_bytes_are_refused_or_harmless(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(SOUND)
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    path = tmp_path / "altered.safetensors"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])

    try:
        header = read_safetensors_header(path)
    except BrokenModel:
        return
    mapped = np.memmap(path, np.uint8, mode="r")
    assert all(header.view(mapped, name).nbytes == tensor.n_bytes for name, tensor in header.tensors.items())
