"""Reads the header of a safetensors file, trusting nothing in it.

The length and every offset are checked against the file before anything is allocated; a fault is a
`BrokenModel` that names the file. Tensors are handed out as views of the mapped file.
"""

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefill.errors import BrokenModel

MAX_HEADER_BYTES = 64 << 20
"""Ten thousand tensors need 2 MB; a hostile length may claim terabytes."""

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),  # NumPy has no bfloat16: its bits, for the caller to widen
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}


@dataclass(frozen=True, slots=True)
class SafeTensor:
    """Where one tensor's bytes lie, and what they are."""

    dtype: str
    """safetensors' own name, a key of `DTYPES`."""
    shape: tuple[int, ...]
    offset: int
    """Bytes from the start of the file."""
    n_bytes: int


@dataclass(frozen=True, slots=True)
class SafetensorsHeader:
    """Everything before the tensors' data."""

    path: Path
    tensors: dict[str, SafeTensor]
    metadata: dict[str, str]

    def view(self, mapped: NDArray[np.uint8], name: str) -> NDArray[Any]:
        """The tensor `name` within the file's mapped bytes; nothing is copied."""
        tensor = self.tensors[name]
        raw = mapped[tensor.offset : tensor.offset + tensor.n_bytes]
        return raw.view(DTYPES[tensor.dtype]).reshape(tensor.shape)


def read_safetensors_header(path: Path) -> SafetensorsHeader:
    """Parse and check a safetensors file's header."""
    n_file_bytes = path.stat().st_size
    with path.open("rb") as file:
        prefix = file.read(8)
        if len(prefix) < 8:
            raise _broken(path, "it is shorter than a header")
        (n_header_bytes,) = struct.unpack("<Q", prefix)
        if n_header_bytes > min(n_file_bytes - 8, MAX_HEADER_BYTES):
            raise _broken(path, f"its header claims {n_header_bytes} bytes")
        entries = _parse(path, file.read(n_header_bytes))
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _broken(path, "its metadata are not text")
    start = 8 + n_header_bytes
    tensors = {name: _tensor(path, name, entry, start) for name, entry in entries.items()}
    _check_that_they_fill_the_file(path, tensors, start, n_file_bytes)
    return SafetensorsHeader(path, tensors, metadata)


def _parse(path: Path, header: bytes) -> dict[str, Any]:
    try:
        entries = json.loads(header.decode(), object_pairs_hook=_no_twins)
    except (ValueError, RecursionError):
        raise _broken(path, "its header is not JSON, or names something twice") from None
    if not isinstance(entries, dict):
        raise _broken(path, "its header is not a table")
    return entries


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key stands twice")
    return table


def _tensor(path: Path, name: str, entry: Any, start: int) -> SafeTensor:
    if not isinstance(entry, dict):
        raise _broken(path, f"the tensor {name[:64]!r} is not described by a table")
    dtype: Any = entry.get("dtype")
    shape: Any = entry.get("shape")
    offsets: Any = entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise _broken(path, f"the tensor {name[:64]!r} has the unknown type {str(dtype)[:32]!r}")
    if not _are_sizes(shape) or len(shape) > 8:
        raise _broken(path, f"the tensor {name[:64]!r} has no sound shape")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise _broken(path, f"the tensor {name[:64]!r} has no sound offsets")
    n_bytes = DTYPES[dtype].itemsize * math.prod(shape)
    if offsets[0] + n_bytes != offsets[1]:
        raise _broken(path, f"the shape and the offsets of the tensor {name[:64]!r} disagree")
    return SafeTensor(dtype, tuple(shape), start + offsets[0], n_bytes)


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in value)


def _check_that_they_fill_the_file(path: Path, tensors: dict[str, SafeTensor], start: int, end: int) -> None:
    """The format leaves no holes and no overlaps, so a cut file or a foreign tail shows here."""
    at = start
    for tensor in sorted(tensors.values(), key=lambda tensor: (tensor.offset, tensor.n_bytes)):
        if tensor.offset != at:
            raise _broken(path, "its tensors overlap or leave holes")
        at += tensor.n_bytes
    if at != end:
        raise _broken(path, f"it should be {at} bytes long and is {end}, so it is cut or altered")


def _broken(path: Path, fault: str) -> BrokenModel:
    return BrokenModel(f"{path} is not a sound safetensors file: {fault}; download it again.")
