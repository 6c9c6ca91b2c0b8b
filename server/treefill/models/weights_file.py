"""The converted weights on disk: a safetensors file laid out for memory-mapping.

Written by our own streaming writer, because the library's wants every tensor in memory at once and aligns
nothing. The header is padded with spaces so that the data begin at a multiple of 64 bytes, and so does each
tensor. The format forbids holes between tensors, so where a size is not a multiple of 64 a small tensor of
zeros named `~pad.N` follows; `Weights` hides it. Any reader of safetensors can open the result.
"""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from treefill.errors import BrokenModel, UnsupportedModel
from treefill.models.quantise import QuantisedLinear
from treefill.models.safetensors_header import DTYPES, SafetensorsHeader, read_safetensors_header

FORMAT_NAME = "treefill-weights"
FORMAT_VERSION = 1
"""Raised with every change of the layout: what is stored in an older one is converted again."""
ALIGNMENT = 64
"""A cache line, and the widest vector register."""
_PAD = "~pad."
_WRITE_BYTES = 8 << 20


class Weights(Mapping[str, NDArray[Any]]):
    """The tensors of a weight file by name: read-only views of the mapped file, loaded as touched."""

    def __init__(self, path: Path) -> None:
        self._header = _checked_header(path)
        self._mapped: NDArray[np.uint8] = np.memmap(path, np.uint8, mode="r")
        self._names = [name for name in self._header.tensors if not name.startswith(_PAD)]
        self.shapes = _shapes(self._header)
        """The true [N, K] of each linear layer by name, without the padding of its blocks."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name.startswith(_PAD):
            raise KeyError(name)
        return self._header.view(self._mapped, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def linear(self, name: str) -> QuantisedLinear:
        """The int8 blocks of the linear layer `name`."""
        weight = f"{name}.weight"
        return QuantisedLinear(
            self[f"{weight}.q"], self[f"{weight}.scale"], self[f"{weight}.sum"], self.shapes[name]
        )


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """A tensor that will be written: the header comes first in the file, so all are announced."""

    name: str
    dtype: str
    """safetensors' own name, as in `F16`."""
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        """The bytes of its data."""
        return int(np.prod(self.shape, dtype=np.int64)) * DTYPES[self.dtype].itemsize


class WeightsWriter:
    """Writes a weight file in one pass: the plan first, then each tensor in the plan's order."""

    def __init__(
        self, path: Path, plan: Iterable[PlannedTensor], shapes: Mapping[str, tuple[int, int]]
    ) -> None:
        self._plan = _with_padding(plan)
        self._header = _header_bytes(self._plan, shapes)
        self._path = path
        self._next = 0
        self._file: BinaryIO | None = None

    @property
    def n_bytes(self) -> int:
        """How long the finished file will be."""
        return len(self._header) + sum(tensor.n_bytes for tensor in self._plan)

    def __enter__(self) -> Self:
        self._file = self._path.open("xb")
        self._put(self._header)
        return self

    def write(self, name: str, values: NDArray[Any]) -> None:
        """Write the next tensor of the plan."""
        planned = self._plan[self._next]
        got = (name, values.dtype, values.shape)
        expected = (planned.name, DTYPES[planned.dtype], planned.shape)
        assert got == expected, f"got {got}, the plan expects {expected}"
        self._put(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
        self._next += 1
        self._write_padding()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        self._file.close()
        if error is None:
            assert self._next == len(self._plan), f"{self._plan[self._next].name} was planned and not written"

    def _write_padding(self) -> None:
        while self._next < len(self._plan) and self._plan[self._next].name.startswith(_PAD):
            self._put(bytes(self._plan[self._next].n_bytes))
            self._next += 1

    def _put(self, data: bytes | memoryview) -> None:
        assert self._file is not None
        for start in range(0, len(data), _WRITE_BYTES):
            piece = data[start : start + _WRITE_BYTES]
            self._file.write(piece)


def _with_padding(plan: Iterable[PlannedTensor]) -> list[PlannedTensor]:
    padded: list[PlannedTensor] = []
    for tensor in plan:
        padded.append(tensor)
        n_missing = -tensor.n_bytes % ALIGNMENT
        if n_missing:
            padded.append(PlannedTensor(f"{_PAD}{len(padded)}", "U8", (n_missing,)))
    return padded


def _header_bytes(plan: list[PlannedTensor], shapes: Mapping[str, tuple[int, int]]) -> bytes:
    metadata = {"format": FORMAT_NAME, "version": str(FORMAT_VERSION), "shapes": json.dumps(shapes)}
    entries: dict[str, Any] = {"__metadata__": metadata}
    at = 0
    for tensor in plan:
        offsets = [at, at + tensor.n_bytes]
        entries[tensor.name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets}
        at += tensor.n_bytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    return struct.pack("<Q", len(text)) + text


def _checked_header(path: Path) -> SafetensorsHeader:
    header = read_safetensors_header(path)
    if header.metadata.get("format") != FORMAT_NAME:
        raise BrokenModel(f"{path} is not one of treefill's weight files; pull the model again.")
    version = header.metadata.get("version")
    if version != str(FORMAT_VERSION):
        raise UnsupportedModel(
            f"{path} has format {version}, and this version reads {FORMAT_VERSION}; pull it again."
        )
    return header


def _shapes(header: SafetensorsHeader) -> dict[str, tuple[int, int]]:
    try:
        shapes = json.loads(header.metadata["shapes"])
        return {name: (int(n), int(k)) for name, (n, k) in shapes.items()}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        raise BrokenModel(f"{header.path} does not say its layers' shapes; pull the model again.") from None
