"""Headers of GGUF files, sound and hostile."""

import struct
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from treefill.errors import BrokenModel, ModelError
from treefill.models import silent
from treefill.models.convert import convert, prepare
from treefill.models.gguf_header import read_gguf_header
from treefill.models.gguf_model import GgufModel

from tests.models.tiny import TinyModel

MAGIC = b"GGUF" + struct.pack("<I", 3)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def header(n_tensors: int, n_pairs: int, rest: bytes = b"") -> bytes:
    return MAGIC + struct.pack("<QQ", n_tensors, n_pairs) + rest


def tensor(shape: tuple[int, ...], kind: int = 0, offset: int = 0, name: str = "t") -> bytes:
    sizes = b"".join(struct.pack("<Q", n) for n in shape)
    return text(name) + struct.pack("<I", len(shape)) + sizes + struct.pack("<IQ", kind, offset)


def test_a_sound_header_agrees_with_the_gguf_package(qwen_path: Path, qwen: TinyModel) -> None:
    ours = read_gguf_header(qwen_path)
    theirs = gguf.GGUFReader(qwen_path)

    assert set(ours.tensors) == {tensor.name for tensor in theirs.tensors}
    for tensor_ in theirs.tensors:
        mine = ours.tensors[tensor_.name]
        assert mine.shape == tuple(int(n) for n in reversed(tensor_.shape))
        assert (mine.ggml_type, mine.offset, mine.n_bytes) == (
            tensor_.tensor_type,
            tensor_.data_offset,
            tensor_.n_bytes,
        )
    assert ours.metadata["tokenizer.ggml.tokens"] == qwen.tokens
    assert ours.metadata["tokenizer.ggml.token_type"].tolist() == qwen.types
    assert ours.metadata["qwen2.context_length"] == 512


MANY = 1 << 60
ARRAY_OF_TEXT = text("k") + struct.pack("<IIQ", 9, 8, MANY)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "only 0 bytes long"),
        (b"PK\x03\x04" + bytes(40), "does not begin with GGUF"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(40), "version is 1"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(40), "version is 50331648"),
        (header(MANY, 0), f"claims {MANY} tensors"),
        (header(0, MANY), f"claims {MANY} metadata pairs"),
        (header(0, 1, struct.pack("<Q", MANY) + bytes(20)), f"claims {MANY} bytes of text"),
        (header(0, 1, text("k") + struct.pack("<IQ", 8, MANY)), f"claims {MANY} bytes of text"),
        (header(0, 1, ARRAY_OF_TEXT), f"claims {MANY} strings"),
        (header(0, 1, text("k") + struct.pack("<IIQ", 9, 4, MANY)), f"claims {MANY} array items"),
        (header(0, 1, text("k") + struct.pack("<IIQ", 9, 9, 1) + bytes(20)), "array of the unknown type 9"),
        (header(0, 1, text("k") + struct.pack("<I", 99) + bytes(20)), "unknown type 99"),
        (header(0, 2, 2 * (text("k") + struct.pack("<IB", 0, 1))), "stands in it twice"),
        (header(0, 1, struct.pack("<Q", 1) + b"\xff" + bytes(20)), "not UTF-8"),
        (header(1, 0, tensor((1, 1, 1, 1, 1))), "has 5 dimensions"),
        (header(1, 0, tensor((4,), kind=4)), "unknown type 4"),
        (header(1, 0, tensor((4,), kind=8)), "not whole blocks"),
        (header(1, 0, tensor((0, 4))), "is empty"),
        (header(1, 0, tensor((1 << 62, 1 << 62))), "lies outside the file"),
        (header(1, 0, tensor((4,), offset=1 << 62)), "lies outside the file"),
        (header(1, 0, tensor((4,), offset=3) + bytes(99)), "lies outside the file"),
        (header(2, 0, 2 * tensor((4,)) + bytes(99)), "stands in it twice"),
        (header(0, 1, text("general.alignment") + struct.pack("<II", 4, 0) + bytes(20)), "power of two"),
        (header(0, 1, text("general.alignment") + struct.pack("<II", 4, 48) + bytes(20)), "power of two"),
    ],
)
def test_a_hostile_header_is_refused_by_name(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(content)
    tracemalloc.start()

    with pytest.raises(BrokenModel, match=fault) as error:
        read_gguf_header(path)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(path) in str(error.value)
    assert peak < 32 << 20


def test_a_file_cut_anywhere_is_refused(qwen_bytes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    for n_bytes in [*range(0, 2000, 7), *range(2000, len(qwen_bytes), 9973), len(qwen_bytes) - 1]:
        path.write_bytes(qwen_bytes[:n_bytes])
        with pytest.raises(BrokenModel):
            read_gguf_header(path)


@given(st.data())
@example(None)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_altered_bytes_are_refused_or_harmless(
    qwen_bytes: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject | None
) -> None:
    """The whole way: header, configuration, tokenizer, weights. Nothing but a ModelError may come out."""
    folder = tmp_path_factory.mktemp("altered")
    content = bytearray(qwen_bytes)
    n_header = 8000  # where metadata and the tensor table lie
    if data is not None:
        for at in data.draw(st.lists(st.integers(0, n_header), min_size=1, max_size=4)):
            content[at] = data.draw(st.integers(0, 255))
    path = folder / "altered.gguf"
    path.write_bytes(content)

    said = ""
    try:
        convert(prepare(str(path), GgufModel(path)), folder, silent)
    except ModelError as error:
        said = str(error)

    assert said == "" or str(path) in said
    assert said == "" or data is not None


def test_weights_that_are_not_numbers_are_refused(qwen_bytes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "nan.gguf"
    path.write_bytes(qwen_bytes)
    place = read_gguf_header(path).tensors["blk.1.ffn_down.weight"]
    content = bytearray(qwen_bytes)
    content[place.offset : place.offset + 2] = np.array([np.nan], np.float16).tobytes()  # a block's scale
    path.write_bytes(content)

    with pytest.raises(BrokenModel, match=r"no weight can have"):
        convert(prepare(str(path), GgufModel(path)), tmp_path, silent)
