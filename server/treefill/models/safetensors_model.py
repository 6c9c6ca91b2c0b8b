"""A folder of safetensors files, `config.json` and `tokenizer.json` seen as a model.

Reads through `safetensors_header`, which trusts nothing. Nothing named in `config.json` is ever run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from treefill.errors import BrokenModel, UnsupportedModel
from treefill.models.architectures import Config, FloatTensor, checked_config
from treefill.models.json_table import read_table
from treefill.models.safetensors_header import DTYPES, SafeTensor, read_safetensors_header
from treefill.models.tokenizer_json import from_published


class SafetensorsModel:
    """The files of one model, opened for conversion."""

    def __init__(self, folder: Path, weight_files: Sequence[Path]) -> None:
        self._tensors: dict[str, _Floats] = {}
        for path in weight_files:
            header = read_safetensors_header(path)
            mapped: NDArray[np.uint8] = np.memmap(path, np.uint8, mode="r")
            for name, tensor in header.tensors.items():
                if name in self._tensors:
                    raise BrokenModel(f"{folder} has the tensor {name[:80]!r} in two files.")
                self._tensors[name] = _Floats(path, tensor, mapped)
        tokenizer_path, config_path = folder / "tokenizer.json", folder / "config.json"
        self._tokenizer_json = from_published(str(tokenizer_path), _read(tokenizer_path))
        raw = read_table(str(config_path), _read(config_path), "download it again")
        self._config = checked_config(str(config_path), raw)

    @property
    def config(self) -> Config:
        """Checked: every number is there and sensible."""
        return self._config

    def tensor(self, name: str) -> FloatTensor | None:
        """The tensor that transformers calls `name`, or None."""
        return self._tensors.get(name)

    def tokenizer_json(self) -> str:
        """The tokenizer in the `tokenizers` library's form."""
        return self._tokenizer_json


@dataclass(frozen=True, slots=True)
class _Floats:
    """A `FloatTensor` over one tensor of a file."""

    path: Path
    tensor: SafeTensor
    mapped: NDArray[np.uint8] = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        if self.tensor.dtype not in ("F64", "F32", "F16", "BF16"):
            raise UnsupportedModel(
                f"{self.path} stores weights as {self.tensor.dtype}, which cannot be read."
            )
        n_row_bytes = self.tensor.n_bytes // self.shape[0]
        first = self.tensor.offset + start * n_row_bytes
        # Copied first: the format does not promise that data lie at a multiple of their size.
        raw = self.mapped[first : first + (stop - start) * n_row_bytes].copy().view(DTYPES[self.tensor.dtype])
        if self.tensor.dtype == "BF16":
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(
            over="ignore"
        ):  # a float64 beyond float32 becomes infinite, which the conversion refuses
            return raw.astype(np.float32, copy=False).reshape(stop - start, *self.shape[1:])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BrokenModel(f"{path} is missing: a safetensors model needs it beside the weights.") from None
