"""The weight file: aligned, readable by the safetensors library, and refused when it is not whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from treefill.errors import BrokenModel, UnsupportedModel
from treefill.models import Weights
from treefill.models.weights_file import PlannedTensor, WeightsWriter

PLAN = [
    PlannedTensor("a.weight.q", "I8", (1, 1, 16, 16, 4)),
    PlannedTensor("a.weight.scale", "F16", (1, 1, 16)),  # 32 bytes: what follows needs padding
    PlannedTensor("a.weight.sum", "I16", (1, 1, 16)),
    PlannedTensor("a.bias", "F32", (3,)),
]
VALUES: dict[str, NDArray[Any]] = {
    "a.weight.q": np.arange(1024, dtype=np.int64).astype(np.int8).reshape(1, 1, 16, 16, 4),
    "a.weight.scale": np.arange(16, dtype=np.float16).reshape(1, 1, 16),
    "a.weight.sum": np.arange(16, dtype=np.int16).reshape(1, 1, 16),
    "a.bias": np.array([1.5, 2.5, 3.5], np.float32),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "weights.safetensors"
    with WeightsWriter(path, PLAN, {"a": (3, 64)}) as writer:
        for name, values in VALUES.items():
            writer.write(name, values)
    assert path.stat().st_size == writer.n_bytes
    return path


def test_what_was_written_is_read_back(path: Path) -> None:
    weights = Weights(path)

    assert set(weights) == set(VALUES)
    assert len(weights) == 4
    for name, values in VALUES.items():
        assert (weights[name] == values).all()
        assert weights[name].dtype == values.dtype
    assert weights.linear("a").shape == (3, 64)


def test_every_tensor_is_aligned_in_the_file_and_in_memory(path: Path) -> None:
    weights = Weights(path)

    assert all(weights[name].ctypes.data % 64 == 0 for name in weights)
    header_bytes = int.from_bytes(path.read_bytes()[:8], "little")
    assert (8 + header_bytes) % 64 == 0


def test_tensors_are_mapped_read_only(path: Path) -> None:
    bias = Weights(path)["a.bias"]

    with pytest.raises(ValueError, match="read-only"):
        bias[0] = 1.0


def test_the_safetensors_library_reads_the_file(path: Path) -> None:
    loaded = load_file(path)

    for name, values in VALUES.items():
        assert (loaded[name] == values).all()


def test_padding_is_no_tensor(path: Path) -> None:
    weights = Weights(path)
    hidden = [name for name in load_file(path) if name not in weights]

    assert hidden
    with pytest.raises(KeyError):
        weights[hidden[0]]


def test_another_programs_file_is_refused(tmp_path: Path) -> None:
    save_file({"a": np.zeros(3, np.float32)}, tmp_path / "other.safetensors")

    with pytest.raises(BrokenModel, match=r"other\.safetensors is not one of treefill's"):
        Weights(tmp_path / "other.safetensors")


def test_another_version_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treefill.models.weights_file.FORMAT_VERSION", 2)

    with pytest.raises(UnsupportedModel, match="has format 1"):
        Weights(path)


def test_a_cut_file_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(BrokenModel, match="cut or altered"):
        Weights(path)
