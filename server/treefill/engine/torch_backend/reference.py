"""Models to measure against: the makers' weights in float32 and as LLM.int8, with logits at every position.

No completion runs on these. They are built straight from a model's source, so that what the conversion
loses shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from treefill.engine.api import TokenId
from treefill.engine.backend import LOGITS_AT_ONCE
from treefill.engine.torch_backend.cache import AppendableCache
from treefill.engine.torch_backend.load import build_model, linear_of, to_llm_int8
from treefill.errors import BrokenModel
from treefill.models import ModelFiles, Weights
from treefill.models.architectures import Kind, SourceModel, layers

_ROWS_AT_ONCE = 4096


class LogitsModel:
    """One model whose logits are asked for text by text."""

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self.model = model

    def logits(self, ids: Sequence[TokenId]) -> Iterator[NDArray[np.float32]]:
        """The logits after each of `ids`, in pieces [n, V] of up to `LOGITS_AT_ONCE` positions."""
        cache = AppendableCache(self.model.config.num_hidden_layers)
        for start in range(0, len(ids), LOGITS_AT_ONCE):
            piece = torch.tensor(
                [list(ids[start : start + LOGITS_AT_ONCE])], device=self.model.device
            )  # [1, n]
            with torch.inference_mode():
                out = self.model(input_ids=piece, cache=cache, use_cache=True)
                logits: NDArray[np.float32] = out.logits[0].float().cpu().numpy()
            yield logits


def float_model(files: ModelFiles, source: SourceModel) -> LogitsModel:
    """The makers' weights in float32, through transformers alone."""
    return LogitsModel("float32", build_model(_from_source(files, source), _float_linear))


def llm_int8_model(files: ModelFiles, source: SourceModel) -> LogitsModel:
    """The makers' weights as bitsandbytes' LLM.int8, on CUDA where there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def make_linear(files: ModelFiles, name: str) -> nn.Module:
        # Moved at once, which quantises it: the float form of all layers together would take gigabytes.
        return to_llm_int8(_float_linear(files, name)).to(device)

    return LogitsModel("bitsandbytes", build_model(_from_source(files, source), make_linear).to(device))


class _SourceWeights(Mapping[str, NDArray[np.float32]]):
    """A source's tensors by name, read as they are asked for: of `Weights`, what `build_model` looks at."""

    def __init__(self, source: SourceModel) -> None:
        found = tuple(layers(source.config))
        self._source = source
        self.shapes = {layer.name: layer.shape for layer in found if layer.kind is Kind.LINEAR}
        self._names = dict.fromkeys(
            name
            for layer in found
            for name in (f"{layer.name}.weight", *([f"{layer.name}.bias"] if layer.has_bias else []))
        )

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        if name not in self._names:
            raise KeyError(name)
        is_tied = name == "lm_head.weight" and self._source.config["tie_word_embeddings"]
        tensor = self._source.tensor("model.embed_tokens.weight" if is_tied else name)
        if tensor is None:
            raise BrokenModel(f"The model's source lacks the tensor {name}; pull the model again.")
        values = np.empty(tensor.shape, np.float32)
        for start in range(
            0, len(values), _ROWS_AT_ONCE
        ):  # at once, a large one costs several times its size
            stop = min(start + _ROWS_AT_ONCE, len(values))
            values[start:stop] = tensor.rows(start, stop)
        return values

    def __contains__(self, name: object) -> bool:  # Mapping's own would read the tensor
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _from_source(files: ModelFiles, source: SourceModel) -> ModelFiles:
    return replace(files, weights=cast(Weights, _SourceWeights(source)))


def _float_linear(files: ModelFiles, name: str) -> nn.Linear:
    return linear_of(np.ascontiguousarray(files.weights[f"{name}.weight"]), files.weights.get(f"{name}.bias"))
