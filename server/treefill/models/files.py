"""A converted model on disk: what its folder holds, and opening it.

Opening checks that the files are whole and fit each other, without reading the weights: they are mapped, and
the system loads what is touched. Hashes are checked by `ModelStore.verify`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from treefill.errors import BrokenModel
from treefill.models.architectures import Config, Kind, Layer, checked_config, layers
from treefill.models.json_table import read_table
from treefill.models.quantise import n_blocks
from treefill.models.safetensors_header import DTYPES
from treefill.models.weights_file import PlannedTensor, Weights

WEIGHTS_FILE = "weights.safetensors"
TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "config.json"
CONVERTED_FILES = (CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """One model, ready for an engine."""

    name: str
    folder: Path
    config: Config
    """transformers' names and meanings; every key that `architectures.checked_config` sets is there."""
    weights: Weights
    tokenizer_path: Path
    """A `tokenizer.json` without a normaliser, whose control tokens are all special."""
    end_ids: frozenset[int]
    """Tokens that end a text."""


def open_folder(name: str, folder: Path) -> ModelFiles:
    """Open the converted model in `folder`. Raises `BrokenModel` naming what is wrong."""
    for file in CONVERTED_FILES:
        if not (folder / file).is_file():
            raise BrokenModel(f"{folder / file} is missing; run 'treefill model pull {name}'.")
    config_path = folder / CONFIG_FILE
    raw = read_table(str(config_path), config_path.read_bytes(), "pull the model again")
    config = checked_config(str(config_path), raw)
    weights = Weights(folder / WEIGHTS_FILE)
    _check_tensors(folder / WEIGHTS_FILE, config, weights)
    return ModelFiles(
        name, folder, config, weights, folder / TOKENIZER_FILE, frozenset(config["eos_token_id"])
    )


def planned_tensors(found: Iterable[Layer]) -> Iterator[PlannedTensor]:
    """The tensors of the weight file, in order."""
    for layer in found:
        weight = f"{layer.name}.weight"
        if layer.kind == Kind.EMBEDDING:
            yield PlannedTensor(weight, "F16", layer.shape)
        elif layer.kind == Kind.NORM:
            yield PlannedTensor(weight, "F32", layer.shape)
        else:
            n16, k64 = n_blocks(layer.shape[0], layer.shape[1])
            yield PlannedTensor(f"{weight}.q", "I8", (n16, k64, 16, 16, 4))
            yield PlannedTensor(f"{weight}.scale", "F16", (n16, k64, 16))
            yield PlannedTensor(f"{weight}.sum", "I16", (n16, k64, 16))
            if layer.has_bias:
                yield PlannedTensor(f"{layer.name}.bias", "F32", layer.shape[:1])


def _check_tensors(path: Path, config: Config, weights: Weights) -> None:
    """Native code trusts these shapes, so none may differ from what the configuration asks for."""
    found = tuple(layers(config))
    for tensor in planned_tensors(found):
        if tensor.name not in weights:
            raise BrokenModel(f"{path} lacks {tensor.name}; pull the model again.")
        values = weights[tensor.name]
        if values.shape != tensor.shape or values.dtype != DTYPES[tensor.dtype]:
            raise BrokenModel(f"{path} has {tensor.name} in another shape or type; pull the model again.")
    for layer in found:
        if layer.kind == Kind.LINEAR and weights.shapes.get(layer.name) != layer.shape:
            raise BrokenModel(f"{path} gives {layer.name} another shape; pull the model again.")
