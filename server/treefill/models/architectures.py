"""The model families that can be converted: their tensors by name and shape, and their configuration.

One table of layers serves both families: Llama, and Qwen2, which is Llama with biases on three projections.
Names are transformers' own. How a file spells them is `gguf_model`'s and `safetensors_model`'s business.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from treefill.errors import BrokenModel, UnsupportedModel

Config = dict[str, Any]
"""A model's configuration under transformers' names; made by `checked_config` alone."""

FAMILIES: Mapping[str, str] = {"qwen2": "Qwen2ForCausalLM", "llama": "LlamaForCausalLM"}
"""`model_type` and the class that transformers runs it with."""

ROPE_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}
"""The position encodings that transformers computes from the configuration alone, and what each needs."""


class Kind(StrEnum):
    """What is done to a tensor on its way into the weight file."""

    LINEAR = "linear"
    """int8 blocks, and a float32 bias where the source has one."""
    EMBEDDING = "embedding"
    """float16, looked up by row."""
    NORM = "norm"
    """float32."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One weight of a model, `NAME.weight`, and perhaps `NAME.bias`."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    has_bias: bool = False


class FloatTensor(Protocol):
    """A tensor of a source, read as float32 a few rows at a time: no large matrix is ever whole in memory."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Outputs first."""
        ...

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """Rows [start, stop) along the first dimension."""
        ...


class SourceModel(Protocol):
    """A model as its makers published it, opened for conversion."""

    @property
    def config(self) -> Config:
        """Checked: every number is there and sensible."""
        ...

    def tensor(self, name: str) -> FloatTensor | None:
        """The tensor that transformers calls `name`, or None."""
        ...

    def tokenizer_json(self) -> str:
        """The tokenizer in the `tokenizers` library's form."""
        ...


def layers(config: Config) -> Iterator[Layer]:
    """Every weight that the model has, in the order of computation."""
    hidden, ffn = config["hidden_size"], config["intermediate_size"]
    q_width = config["num_attention_heads"] * config["head_dim"]
    kv_width = config["num_key_value_heads"] * config["head_dim"]
    # Qwen2 has biases on these three whatever its configuration says; Llama on all four, or none.
    qkv_bias = config["model_type"] == "qwen2" or config["attention_bias"]
    o_bias = config["model_type"] == "llama" and config["attention_bias"]
    ffn_bias = config["mlp_bias"]
    yield Layer("model.embed_tokens", Kind.EMBEDDING, (config["vocab_size"], hidden))
    for i in range(config["num_hidden_layers"]):
        block = f"model.layers.{i}"
        yield Layer(f"{block}.input_layernorm", Kind.NORM, (hidden,))
        yield Layer(f"{block}.self_attn.q_proj", Kind.LINEAR, (q_width, hidden), qkv_bias)
        yield Layer(f"{block}.self_attn.k_proj", Kind.LINEAR, (kv_width, hidden), qkv_bias)
        yield Layer(f"{block}.self_attn.v_proj", Kind.LINEAR, (kv_width, hidden), qkv_bias)
        yield Layer(f"{block}.self_attn.o_proj", Kind.LINEAR, (hidden, q_width), o_bias)
        yield Layer(f"{block}.post_attention_layernorm", Kind.NORM, (hidden,))
        yield Layer(f"{block}.mlp.gate_proj", Kind.LINEAR, (ffn, hidden), ffn_bias)
        yield Layer(f"{block}.mlp.up_proj", Kind.LINEAR, (ffn, hidden), ffn_bias)
        yield Layer(f"{block}.mlp.down_proj", Kind.LINEAR, (hidden, ffn), ffn_bias)
    yield Layer("model.norm", Kind.NORM, (hidden,))
    # Tied or not, the output matrix is stored: products need blocks, and looking rows up needs rows.
    yield Layer("lm_head", Kind.LINEAR, (config["vocab_size"], hidden))


_COUNTS = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)
_MOST = 1 << 24
"""No width, count or context of a real model comes near; products of two of them stay far from overflow."""
_MOST_LAYERS = 1 << 10


def checked_config(where: str, raw: Mapping[str, Any]) -> Config:
    """Fill in what `raw` leaves to defaults, drop what no engine reads, refuse what cannot be.

    `where` names the file in messages. Nothing that could name code to run (`auto_map`) passes.
    """
    model_type: Any = raw.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        known = " and ".join(FAMILIES)
        raise UnsupportedModel(
            f"{where} is a model of the family {str(model_type)[:40]!r}; only {known} can be run."
        )
    config: Config = {"architectures": [FAMILIES[model_type]], "model_type": model_type}
    filled = _with_defaults(where, raw)
    config |= {key: _count(where, key, filled.get(key)) for key in _COUNTS}
    if config["num_hidden_layers"] > _MOST_LAYERS:
        raise BrokenModel(f"{where} claims {config['num_hidden_layers']} layers.")
    if config["num_attention_heads"] % config["num_key_value_heads"] or config["head_dim"] % 2:
        raise BrokenModel(f"{where} has numbers of attention heads that do not fit each other.")
    if raw.get("hidden_act", "silu") != "silu":
        raise UnsupportedModel(
            f"{where} uses the activation {str(raw['hidden_act'])[:40]!r}; only silu can be run."
        )
    if raw.get("use_sliding_window"):
        raise UnsupportedModel(f"{where} uses sliding-window attention, which cannot be run.")
    rope = _rope(where, raw)
    config |= {
        "hidden_act": "silu",
        "rms_norm_eps": _positive(where, "rms_norm_eps", raw.get("rms_norm_eps", 1e-6)),
        "rope_theta": rope["rope_theta"],
        "rope_parameters": rope,
        "tie_word_embeddings": bool(raw.get("tie_word_embeddings", False)),
        "attention_bias": bool(raw.get("attention_bias", model_type == "qwen2")),
        "mlp_bias": model_type == "llama" and bool(raw.get("mlp_bias", False)),
        "bos_token_id": _token(raw.get("bos_token_id"), config["vocab_size"]),
        "eos_token_id": _tokens(raw.get("eos_token_id"), config["vocab_size"]),
    }
    return config


def _with_defaults(where: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    heads = _count(where, "num_attention_heads", raw.get("num_attention_heads"))
    filled = dict(raw)
    if filled.get("num_key_value_heads") is None:
        filled["num_key_value_heads"] = heads
    if filled.get("head_dim") is None:
        filled["head_dim"] = _count(where, "hidden_size", raw.get("hidden_size")) // heads
    return filled


def _rope(where: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """`rope_parameters` of transformers 5, or `rope_theta` and `rope_scaling` as they stood before it."""
    given: Any = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    if not isinstance(given, Mapping):
        raise BrokenModel(f"{where} has no sound rope_parameters.")
    kind: Any = given.get("rope_type", given.get("type", "default"))
    if not isinstance(kind, str) or kind not in ROPE_NUMBERS:
        raise UnsupportedModel(f"{where} encodes positions by {str(kind)[:40]!r}, which cannot be run.")
    if any(table.get("partial_rotary_factor") not in (None, 1) for table in (given, raw)):
        raise UnsupportedModel(f"{where} rotates only part of each attention head, which cannot be run.")
    theta: Any = given.get("rope_theta")
    theta = theta if _is_number(theta) else raw.get("rope_theta", 10_000.0)
    rope: dict[str, Any] = {"rope_type": kind, "rope_theta": _positive(where, "rope_theta", theta)}
    for key in ROPE_NUMBERS[kind]:
        _positive(where, f"{key} in its rope_parameters", given.get(key))
        rope[key] = given[key]
    return rope


def _count(where: str, key: str, value: Any) -> int:
    if type(value) is not int or not 1 <= value <= _MOST:
        raise BrokenModel(f"{where} has no sound {key}: {str(value)[:40]}.")
    return value


def _positive(where: str, key: str, value: Any) -> float:
    if not _is_number(value) or value <= 0:
        raise BrokenModel(f"{where} has no sound {key}: {str(value)[:40]}.")
    return float(value)


def _is_number(value: Any) -> bool:
    """A number that stays one as a float: not NaN, not infinite, not an integer of a thousand digits."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e30 < value < 1e30


def _token(value: Any, vocab_size: int) -> int | None:
    return value if type(value) is int and 0 <= value < vocab_size else None


def _tokens(value: Any, vocab_size: int) -> list[int]:
    values = value if isinstance(value, list | tuple) else [value]
    return sorted({token for token in (_token(v, vocab_size) for v in values) if token is not None})
