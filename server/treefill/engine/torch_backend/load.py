"""From a model's files to a backend: transformers' own model class, its linear layers replaced.

The class is made without memory (torch's meta device); then every module that holds weights is given ours. What is
left on the meta device afterwards would be a weight that we forgot, so it is refused.
"""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from treefill.engine.torch_backend.backend import TorchBackend
from treefill.engine.torch_backend.modules import HalfEmbedding
from treefill.errors import UnsupportedModel
from treefill.models import ModelFiles, dequantise_linear

MakeLinear = Callable[[ModelFiles, str], nn.Module]
"""Builds the layer of that name from the weight file."""


def load_backend(files: ModelFiles, n_context: int) -> TorchBackend:
    """The model as LLM.int8, on CUDA where there is one.

    Raises `UnsupportedModel` when transformers' class has weights that the files do not.
    """
    n_context = min(n_context, int(files.config["max_position_embeddings"]))
    return TorchBackend("bitsandbytes", _build_llm_int8(files), n_context)


def build_model(files: ModelFiles, make_linear: MakeLinear) -> Any:
    """Transformers' model over the files' weights, its linear layers made by `make_linear`, in float32."""
    fields = {key: value for key, value in files.config.items() if key != "model_type"}
    # The output matrix is in the file even where it equals the embedding.
    config = AutoConfig.for_model(files.config["model_type"], **fields | {"tie_word_embeddings": False})
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")
    for name, module in list(model.named_modules()):
        replacement = _replacement(files, name, module, make_linear)
        if replacement is not None:
            model.set_submodule(name, replacement)
    _fill_norms(files, model)
    _refuse_what_is_missing(files, model)
    return model.eval().requires_grad_(False)


def float_linear(files: ModelFiles, name: str) -> nn.Linear:
    """The same layer in float32, for reference and for other libraries to quantise."""
    return linear_of(dequantise_linear(files.weights.linear(name)), files.weights.get(f"{name}.bias"))


def linear_of(weight: NDArray[np.float32], bias: NDArray[np.float32] | None) -> nn.Linear:
    """Torch's own layer with weights [N, K] and biases [N]."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    linear.weight = nn.Parameter(torch.from_numpy(weight), requires_grad=False)
    if bias is not None:
        linear.bias = nn.Parameter(torch.from_numpy(bias.copy()), requires_grad=False)
    return linear


def to_llm_int8(source: nn.Linear) -> nn.Module:
    """LLM.int8 of a float layer, quantised as it is moved: rows in int8, inputs with an outlier over 6 in float.

    Which inputs are outliers is decided for all rows of a call together. So where there are some, a token's result
    depends on what was evaluated with it, and reused may differ from cold in near ties; our own kernel's does not.
    """
    import bitsandbytes as bnb  # here, because its import costs a second that the int8 engine need not pay

    # It warns at every product that float32 inputs become float16 on their way to int8: that is what it is for.
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    layer: nn.Module = bnb.nn.Linear8bitLt(
        source.in_features,
        source.out_features,
        bias=source.bias is not None,
        has_fp16_weights=False,
        threshold=6.0,
    )
    layer.weight = bnb.nn.Int8Params(source.weight.data, requires_grad=False, has_fp16_weights=False)
    layer.bias = source.bias
    return layer


def _build_llm_int8(files: ModelFiles) -> Any:
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def make_linear(files: ModelFiles, name: str) -> nn.Module:
        # Moved at once, which quantises it: the float form of all layers together would take gigabytes.
        return to_llm_int8(float_linear(files, name)).to(device)

    return build_model(files, make_linear).to(device)


def _replacement(
    files: ModelFiles, name: str, module: nn.Module, make_linear: MakeLinear
) -> nn.Module | None:
    """What stands in for a module that cannot stay, or None."""
    weights = files.weights
    if isinstance(module, nn.Linear) and name in weights.shapes:
        return make_linear(files, name)
    if isinstance(module, nn.Embedding) and f"{name}.weight" in weights:
        return HalfEmbedding(weights[f"{name}.weight"])
    if name.endswith("rotary_emb"):  # no weights, but frequencies that were computed on the meta device
        return type(module)(module.config).to(torch.float32)
    return None


def _fill_norms(files: ModelFiles, model: nn.Module) -> None:
    """Norms stay as they are and are given their numbers."""
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if isinstance(weight, nn.Parameter) and weight.is_meta and f"{name}.weight" in files.weights:
            numbers = torch.from_numpy(files.weights[f"{name}.weight"].copy())
            module.weight = nn.Parameter(numbers, requires_grad=False)


def _refuse_what_is_missing(files: ModelFiles, model: nn.Module) -> None:
    tensors = [*model.named_parameters(), *model.named_buffers()]
    missing = [name for name, tensor in tensors if tensor.is_meta]
    if missing:
        raise UnsupportedModel(
            f"The model {files.name} lacks {missing[0]} and {len(missing) - 1} more weights that its architecture "
            f"({files.config['model_type']}) needs; pull it again or choose another."
        )
