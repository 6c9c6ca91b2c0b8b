"""One source model into the three files that the engines read: weights, tokenizer, configuration.

Streaming: one tensor at a time, large ones a few rows at a time. Needs little more memory than the int8 form
of the largest matrix. Where the files come from and go to is the store's business.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from treefill.errors import BrokenModel
from treefill.models.architectures import Config, FloatTensor, Kind, Layer, SourceModel, layers
from treefill.models.files import CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE, planned_tensors
from treefill.models.progress import Progress
from treefill.models.quantise import QuantisedLinear, empty_linear, quantise_rows, row_chunks
from treefill.models.tokenizer_json import check_tokenizer, end_ids
from treefill.models.weights_file import WeightsWriter


@dataclass(frozen=True, slots=True)
class Conversion:
    """A source that has been checked as far as it can be without reading its numbers."""

    where: str
    """The source's path, for messages."""
    source: SourceModel
    config: Config
    tokenizer_json: str
    layers: tuple[Layer, ...]

    @property
    def n_bytes(self) -> int:
        """What the converted files will need on the disk."""
        return sum(tensor.n_bytes + 256 for tensor in planned_tensors(self.layers)) + len(
            self.tokenizer_json.encode()
        )


def prepare(where: str, source: SourceModel) -> Conversion:
    """Check that every tensor is there in its shape, and the tokenizer fits."""
    config = source.config
    found = tuple(_checked_layers(where, source))
    tokenizer_json = source.tokenizer_json()
    check_tokenizer(where, tokenizer_json, config["vocab_size"])
    config = config | {"eos_token_id": end_ids(tokenizer_json, config["eos_token_id"])}
    return Conversion(where, source, config, tokenizer_json, found)


def convert(conversion: Conversion, folder: Path, progress: Progress) -> None:
    """Write the converted model's three files into the empty `folder`."""
    (folder / CONFIG_FILE).write_text(json.dumps(conversion.config, indent=2) + "\n", encoding="utf-8")
    (folder / TOKENIZER_FILE).write_text(conversion.tokenizer_json, encoding="utf-8")
    shapes = {
        layer.name: (layer.shape[0], layer.shape[1])
        for layer in conversion.layers
        if layer.kind == Kind.LINEAR
    }
    writer = WeightsWriter(folder / WEIGHTS_FILE, planned_tensors(conversion.layers), shapes)
    progress.start("Converting", sum(tensor.n_bytes for tensor in planned_tensors(conversion.layers)))
    try:
        with writer:
            for layer in conversion.layers:
                for name, values in _converted(conversion, layer):
                    writer.write(name, values)
                    progress.advance(values.nbytes)
    finally:
        progress.finish()


def _checked_layers(where: str, source: SourceModel) -> Iterator[Layer]:
    for layer in layers(source.config):
        _require(where, source, _source_name(source.config, layer), layer.shape)
        if layer.has_bias:
            _require(where, source, f"{layer.name}.bias", layer.shape[:1])
        elif source.tensor(f"{layer.name}.bias") is not None:
            raise BrokenModel(f"{where} has a bias {layer.name}.bias that its configuration denies.")
        yield layer


def _require(where: str, source: SourceModel, name: str, shape: tuple[int, ...]) -> FloatTensor:
    tensor = source.tensor(name)
    if tensor is None:
        raise BrokenModel(f"{where} lacks the tensor {name}; download it again.")
    if tensor.shape != shape:
        raise BrokenModel(f"{where} has {name} in the shape {tensor.shape}, expected {shape}.")
    return tensor


def _source_name(config: Config, layer: Layer) -> str:
    is_tied = layer.name == "lm_head" and config["tie_word_embeddings"]
    return "model.embed_tokens.weight" if is_tied else f"{layer.name}.weight"


def _converted(conversion: Conversion, layer: Layer) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """The tensors of one layer, in the plan's order."""
    where, source = conversion.where, conversion.source
    tensor = _require(where, source, _source_name(conversion.config, layer), layer.shape)
    weight = f"{layer.name}.weight"
    if layer.kind == Kind.EMBEDDING:
        yield weight, _as_float16(where, weight, tensor)
    elif layer.kind == Kind.NORM:
        yield weight, _finite(where, weight, tensor.rows(0, layer.shape[0]))
    else:
        linear = _quantised(where, weight, tensor)
        yield f"{weight}.q", linear.q
        yield f"{weight}.scale", linear.scale
        yield f"{weight}.sum", linear.sum
        if layer.has_bias:
            bias = _require(where, source, f"{layer.name}.bias", layer.shape[:1])
            yield f"{layer.name}.bias", _finite(where, f"{layer.name}.bias", bias.rows(0, layer.shape[0]))


def _quantised(where: str, name: str, tensor: FloatTensor) -> QuantisedLinear:
    n, k = tensor.shape
    linear = empty_linear(n, k)
    for start, stop in row_chunks(n, k):
        quantise_rows(_finite(where, name, tensor.rows(start, stop)), linear, start)
    return linear


def _as_float16(where: str, name: str, tensor: FloatTensor) -> NDArray[np.float16]:
    n, k = tensor.shape
    out = np.empty((n, k), np.float16)
    for start, stop in row_chunks(n, k):
        out[start:stop] = _finite(where, name, tensor.rows(start, stop))
    return out


_LARGEST = 65504.0
"""float16's range, which scales and embeddings are stored in. Sound weights stay a thousand times below."""


def _finite(where: str, name: str, values: NDArray[np.float32]) -> NDArray[np.float32]:
    low, high = float(values.min()), float(values.max())
    if not (low >= -_LARGEST and high <= _LARGEST):  # also true of NaN, which compares with nothing
        raise BrokenModel(f"{where} has numbers in {name} that no weight can have; download it again.")
    return values.astype(np.float32, copy=False)
