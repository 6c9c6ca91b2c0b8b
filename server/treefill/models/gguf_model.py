"""A GGUF file seen as a model: its configuration, tensors and tokenizer under transformers' names.

Reads through `gguf_header`, which trusts nothing; the blocks of each quantised type are turned into float32
by the `gguf` package, a few rows at a time.
"""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefill.errors import BrokenModel, UnsupportedModel
from treefill.models.architectures import Config, FloatTensor, checked_config
from treefill.models.gguf_header import GgufHeader, GgufTensor, read_gguf_header
from treefill.models.tokenizer_json import BpeVocabulary, from_bpe


class GgufModel:
    """One GGUF file, opened for conversion."""

    def __init__(self, path: Path) -> None:
        self._header = read_gguf_header(path)
        self._mapped: NDArray[np.uint8] = np.memmap(path, np.uint8, mode="r")
        self._config = _config(self._header)

    @property
    def config(self) -> Config:
        """Checked: every number is there and sensible."""
        return self._config

    def tensor(self, name: str) -> FloatTensor | None:
        """The tensor that transformers calls `name`, or None."""
        stem, _, suffix = name.rpartition(".")
        tensor = self._header.tensors.get(f"{_gguf_name(stem)}.{suffix}")
        if tensor is None:
            return None
        return _GgufFloats(self._header.path, tensor, self._mapped, self._row_order(stem, tensor))

    def tokenizer_json(self) -> str:
        """The tokenizer in the `tokenizers` library's form."""
        return from_bpe(str(self._header.path), _bpe(self._header))

    def _row_order(self, stem: str, tensor: GgufTensor) -> NDArray[np.intp] | None:
        """Llama's query and key rows are stored with each head's two halves interleaved: take them apart.

        One head of size 4: the file holds rows 0 2 1 3 of the original, whose row 1 is the file's row 2.
        """
        if self._config["model_type"] != "llama":
            return None
        if stem.endswith(".q_proj"):
            heads = self._config["num_attention_heads"]
        elif stem.endswith(".k_proj"):
            heads = self._config["num_key_value_heads"]
        else:
            return None
        n = heads * self._config["head_dim"]
        if tensor.shape[0] != n:
            return None  # of the wrong shape, which the conversion refuses by name
        return np.arange(n).reshape(heads, n // heads // 2, 2).swapaxes(1, 2).reshape(-1)


@dataclass(frozen=True, slots=True)
class _GgufFloats:
    """A `FloatTensor` over the quantised blocks of one tensor."""

    path: Path
    tensor: GgufTensor
    mapped: NDArray[np.uint8] = field(repr=False)
    row_order: NDArray[np.intp] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        raw = self.mapped[self.tensor.offset : self.tensor.offset + self.tensor.n_bytes]
        if len(self.shape) == 1:  # its blocks may span what are rows of one number here
            return self._dequantised(raw)[start:stop]
        by_row = raw.reshape(self.shape[0], -1)
        picked = by_row[start:stop] if self.row_order is None else by_row[self.row_order[start:stop]]
        return self._dequantised(picked).reshape(stop - start, *self.shape[1:])

    def _dequantised(self, picked: NDArray[np.uint8]) -> NDArray[np.float32]:
        from gguf import quants  # slow to import, and only needed for a conversion
        from gguf.constants import GGMLQuantizationType

        kind = GGMLQuantizationType(self.tensor.ggml_type)
        try:
            # An altered scale may be infinite; the conversion looks for that in the result.
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values: NDArray[np.float32] = quants.dequantize(np.ascontiguousarray(picked), kind)
        except NotImplementedError:
            raise UnsupportedModel(
                f"{self.path} stores {self.tensor.name} as {kind.name}, which is not known; take another."
            ) from None
        return values


_OUTER_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def _gguf_name(stem: str) -> str:
    """`model.layers.3.self_attn.q_proj` is `blk.3.attn_q`."""
    if stem in _OUTER_NAMES:
        return _OUTER_NAMES[stem]
    _, _, index, inner = stem.split(".", 3)
    return f"blk.{index}.{_LAYER_NAMES[inner]}"


def _config(header: GgufHeader) -> Config:
    where = str(header.path)
    family = header.metadata.get("general.architecture")
    if not isinstance(family, str):
        raise BrokenModel(f"{where} does not say its architecture; download it again.")

    def read(key: str, prefix: str = family) -> Any:
        value = header.metadata.get(f"{prefix}.{key}")
        if isinstance(value, list | np.ndarray):
            raise UnsupportedModel(f"{where} gives a {key} to every layer, which cannot be run.")
        return value

    embedding = header.tensors.get("token_embd.weight")
    raw = {
        "model_type": family,
        "hidden_size": read("embedding_length"),
        "num_hidden_layers": read("block_count"),
        "num_attention_heads": read("attention.head_count"),
        "num_key_value_heads": read("attention.head_count_kv"),
        "head_dim": read("attention.key_length"),
        "intermediate_size": read("feed_forward_length"),
        "vocab_size": embedding.shape[0] if embedding else None,
        "max_position_embeddings": read("context_length"),
        "rms_norm_eps": read("attention.layer_norm_rms_epsilon"),
        "rope_theta": read("rope.freq_base") or 10_000.0,
        "rope_scaling": _rope_scaling(read("rope.scaling.type"), read("rope.scaling.factor")),
        "tie_word_embeddings": "output.weight" not in header.tensors,
        "attention_bias": "blk.0.attn_q.bias" in header.tensors,
        "mlp_bias": "blk.0.ffn_gate.bias" in header.tensors,
        "bos_token_id": read("bos_token_id", "tokenizer.ggml"),
        "eos_token_id": [read(f"{name}_token_id", "tokenizer.ggml") for name in ("eos", "eot")],
    }
    config = checked_config(where, raw)
    if "rope_freqs.weight" in header.tensors:
        raise UnsupportedModel(f"{where} scales its position encoding by a table, which cannot be run.")
    if read("rope.dimension_count") not in (None, config["head_dim"]):
        raise UnsupportedModel(f"{where} rotates only part of each attention head, which cannot be run.")
    return config


def _rope_scaling(kind: Any, factor: Any) -> dict[str, Any] | None:
    return None if kind in (None, "none") else {"rope_type": kind, "factor": factor}


def _bpe(header: GgufHeader) -> BpeVocabulary:
    metadata, where = header.metadata, header.path
    model = metadata.get("tokenizer.ggml.model")
    if model is None:
        raise BrokenModel(f"{where} has no tokenizer; take a file that has one.")
    if not isinstance(model, str) or model != "gpt2":
        raise UnsupportedModel(
            f"{where} has a tokenizer of the kind {str(model)[:40]!r}; only byte-level BPE is known."
        )
    tokens: Any = metadata.get("tokenizer.ggml.tokens")
    merges: Any = metadata.get("tokenizer.ggml.merges")
    types: Any = metadata.get("tokenizer.ggml.token_type")
    is_whole = isinstance(tokens, list) and isinstance(merges, list) and isinstance(types, np.ndarray)
    if not is_whole:
        raise BrokenModel(f"{where} has only part of a tokenizer; download it again.")
    return BpeVocabulary(str(metadata.get("tokenizer.ggml.pre", "default")), tokens, types.tolist(), merges)
