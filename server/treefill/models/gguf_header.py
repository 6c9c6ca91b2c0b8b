"""Reads the header of a GGUF file, trusting nothing in it.

Every count and length is compared with the bytes that are really there before anything is allocated, so that
a cut, altered or hostile file gives a `BrokenModel` that names the file and the fault: never a hang, never
gigabytes. What the metadata mean, and the tensors' data, are `gguf_model`'s business.
"""

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from treefill.errors import BrokenModel

MAX_HEADER_BYTES = 64 << 20
"""Metadata and tensor table together. Vocabularies of 260,000 tokens need 15 MB; Python's strings need some
times as much as the file's, so this bounds the memory that a hostile header can claim."""
MAX_TENSORS = 1 << 16
MAX_DIMENSIONS = 4


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where one tensor's bytes lie, and what they are."""

    name: str
    shape: tuple[int, ...]
    """Row-major, outputs first: the reverse of the order in the file."""
    ggml_type: int
    """A number of ggml's `ggml_type`, known to the `gguf` package."""
    offset: int
    """Bytes from the start of the file."""
    n_bytes: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Everything before the tensors' data."""

    path: Path
    version: int
    metadata: dict[str, Any]
    """Numbers, strings and booleans; arrays of numbers as NumPy arrays, of strings as lists."""
    tensors: dict[str, GgufTensor]


def read_gguf_header(path: Path) -> GgufHeader:
    """Parse and check a GGUF file's header."""
    n_bytes = path.stat().st_size
    if n_bytes < 24:
        raise BrokenModel(f"{path} is not a GGUF file: it is only {n_bytes} bytes long; download it again.")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _Cursor(path, data).header()


_SCALARS: dict[int, str] = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING = 8
_ARRAY = 9


class _Cursor:
    """A position in the file's bytes; each step is checked before it is taken."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.data = data
        self.n_bytes = len(data)
        self.end = min(self.n_bytes, MAX_HEADER_BYTES)
        self.at = 0

    def header(self) -> GgufHeader:
        if self.data[:4] != b"GGUF":
            raise self.broken("it does not begin with GGUF")
        self.at = 4
        version = self.scalar("I")
        if version not in (2, 3):
            raise self.broken(f"its version is {version}, and only 2 and 3 are known")
        n_tensors = self.scalar("Q")
        n_pairs = self.scalar("Q")
        if n_tensors > MAX_TENSORS:
            raise self.broken(f"it claims {n_tensors} tensors")
        self.need(n_pairs, 13, "metadata pairs")  # a length, a type, and at least one byte of value
        metadata: dict[str, Any] = {}
        for _ in range(n_pairs):
            key = self.string()
            if key in metadata:
                raise self.broken(f"the metadata key {key[:64]!r} stands in it twice")
            metadata[key] = self.value(self.scalar("I"))
        return GgufHeader(self.path, version, metadata, self.tensor_table(n_tensors, metadata))

    def tensor_table(self, n_tensors: int, metadata: dict[str, Any]) -> dict[str, GgufTensor]:
        self.need(n_tensors, 32, "tensors")
        rows = [self.tensor_row() for _ in range(n_tensors)]
        alignment = metadata.get("general.alignment", 32)
        is_power_of_two = (
            type(alignment) is int and 0 < alignment <= 1 << 20 and alignment & (alignment - 1) == 0
        )
        if not is_power_of_two:
            raise self.broken("its alignment is not a power of two")
        data_offset = (self.at + alignment - 1) // alignment * alignment
        tensors: dict[str, GgufTensor] = {}
        for name, shape, ggml_type, offset in rows:
            n_bytes = self.tensor_bytes(name, shape, ggml_type)
            if name in tensors:
                raise self.broken(f"the tensor {name!r} stands in it twice")
            if offset % alignment or data_offset + offset + n_bytes > self.n_bytes:
                raise self.broken(f"the tensor {name!r} lies outside the file, which is cut or altered")
            tensors[name] = GgufTensor(name, shape, ggml_type, data_offset + offset, n_bytes)
        return tensors

    def tensor_row(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self.string()
        n_dimensions = self.scalar("I")
        if not 1 <= n_dimensions <= MAX_DIMENSIONS:
            raise self.broken(f"the tensor {name[:64]!r} has {n_dimensions} dimensions")
        shape = tuple(self.scalar("Q") for _ in range(n_dimensions))[::-1]
        return name, shape, self.scalar("I"), self.scalar("Q")

    def tensor_bytes(self, name: str, shape: tuple[int, ...], ggml_type: int) -> int:
        from gguf.constants import (
            GGML_QUANT_SIZES,
            GGMLQuantizationType,
        )  # slow to import, and only needed here

        if ggml_type not in GGMLQuantizationType.__members__.values():
            raise self.broken(f"the tensor {name!r} has the unknown type {ggml_type}")
        n_block, n_block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(ggml_type)]
        if shape[-1] % n_block:
            raise self.broken(f"the rows of the tensor {name!r} are not whole blocks")
        n_values = math.prod(shape)
        if n_values == 0:
            raise self.broken(f"the tensor {name!r} is empty")
        return n_values // int(n_block) * int(n_block_bytes)

    def value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self.scalar(_SCALARS[kind])
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array()
        raise self.broken(f"it has a metadata value of the unknown type {kind}")

    def array(self) -> Any:
        kind = self.scalar("I")
        count = self.scalar("Q")
        if kind == _STRING:
            self.need(count, 8, "strings")
            return [self.string() for _ in range(count)]
        if kind not in _SCALARS:
            raise self.broken(f"it has an array of the unknown type {kind}")
        item = np.dtype(_SCALARS[kind]).newbyteorder("<")
        self.need(count, item.itemsize, "array items")
        start, self.at = self.at, self.at + count * item.itemsize
        return np.frombuffer(self.data[start : self.at], dtype=item)

    def string(self) -> str:
        n_bytes = self.scalar("Q")
        self.need(n_bytes, 1, "bytes of text")
        start, self.at = self.at, self.at + n_bytes
        try:
            return self.data[start : self.at].decode()
        except UnicodeDecodeError:
            raise self.broken(f"the text at byte {start} is not UTF-8") from None

    def scalar(self, code: str) -> Any:
        n_bytes = struct.calcsize("<" + code)
        self.need(n_bytes, 1, "bytes")
        start, self.at = self.at, self.at + n_bytes
        return struct.unpack_from("<" + code, self.data, start)[0]

    def need(self, count: int, item_bytes: int, what: str) -> None:
        """Refuse before reading when `count` items cannot be in what is left."""
        if count * item_bytes > self.end - self.at:
            where = (
                "the file ends"
                if self.end == self.n_bytes
                else f"the header exceeds {MAX_HEADER_BYTES >> 20} MiB"
            )
            raise self.broken(f"at byte {self.at} it claims {count} {what}, and {where} before that")

    def broken(self, fault: str) -> BrokenModel:
        return BrokenModel(f"{self.path} is not a sound GGUF file: {fault}; download it again.")
