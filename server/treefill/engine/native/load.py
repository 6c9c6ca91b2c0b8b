"""From a model's files to the native decoder. Which tensors there are is the table of `models.architectures`."""

import numpy as np
from numpy.typing import NDArray

from treefill import _kernels
from treefill.engine.native.backend import NativeBackend
from treefill.engine.native.memory import CachePlan, free_memory, plan_cache, too_little
from treefill.engine.native.rope import rotary_tables
from treefill.engine.prefix_tree import PrefixTree
from treefill.errors import BrokenModel
from treefill.models import ModelFiles
from treefill.models.architectures import Config


def foresee_cache(
    config: Config, n_context: int, kv_cache_type: str, kv_cache_mb: int, kv_block_tokens: int
) -> CachePlan:
    """What this machine has room for; raises as `plan_cache` does."""
    block_bytes = _kernels.KvBlocks.bytes_a_block(*_cache_shape(config), kv_block_tokens, kv_cache_type)
    n_wanted = min(n_context, int(config["max_position_embeddings"]))
    return plan_cache(n_wanted, kv_block_tokens, block_bytes, kv_cache_mb, free_memory())


def load_backend(
    files: ModelFiles,
    n_context: int,
    *,
    kv_cache_type: str = "bfloat16",
    kv_cache_mb: int = 0,
    kv_block_tokens: int = 256,
) -> NativeBackend:
    """A backend over the files; every model that the store converts is of the family.

    The context is shorter than asked for where memory is short; raises `EngineError` where there is not enough for any.
    """
    plan = foresee_cache(files.config, n_context, kv_cache_type, kv_cache_mb, kv_block_tokens)
    try:
        cache = _kernels.KvBlocks(
            *_cache_shape(files.config), plan.block_tokens, plan.n_blocks, kv_cache_type
        )
    except MemoryError:  # a limit of the process alone, which nothing told of
        raise too_little(plan.n_bytes, free_memory()) from None
    decoder = load_decoder(files, cache, plan.n_context)
    tree = PrefixTree(plan.n_blocks, plan.block_tokens)
    return NativeBackend(decoder, cache, tree, plan.n_context, int(files.config["vocab_size"]))


def load_decoder(files: ModelFiles, cache: _kernels.KvBlocks, n_context: int) -> _kernels.Decoder:
    """The decoder of the files, over `cache`. Raises `BrokenModel` when weights and configuration disagree."""
    config = files.config
    n_layers, n_kv_heads, head_dim = _cache_shape(config)
    embedding = files.weights["model.embed_tokens.weight"].view(np.uint16)
    if embedding.shape[0] != config["vocab_size"]:
        raise BrokenModel(
            f"{files.name} has {embedding.shape[0]} tokens in its weights and {config['vocab_size']} in its "
            "configuration. Pull the model again."
        )
    cos, sin = rotary_tables(config, head_dim, n_context)
    return _kernels.Decoder(
        n_heads=int(config["num_attention_heads"]),
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        n_ffn=int(config["intermediate_size"]),
        norm_epsilon=float(config["rms_norm_eps"]),
        embedding=embedding,
        layers=[_layer(files, number) for number in range(n_layers)],
        norm=_norm(files, "model.norm"),
        head=_linear(files, "lm_head"),
        cos=cos,
        sin=sin,
        cache=cache,
    )


def _cache_shape(config: Config) -> tuple[int, int, int]:
    """Layers, key/value heads, and the numbers of a head."""
    head_dim = int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])
    return int(config["num_hidden_layers"]), int(config["num_key_value_heads"]), head_dim


def _layer(files: ModelFiles, number: int) -> dict[str, NDArray[np.float32] | _kernels.Int8Linear]:
    name = f"model.layers.{number}"
    return {
        "input_norm": _norm(files, f"{name}.input_layernorm"),
        "query": _linear(files, f"{name}.self_attn.q_proj"),
        "key": _linear(files, f"{name}.self_attn.k_proj"),
        "value": _linear(files, f"{name}.self_attn.v_proj"),
        "output": _linear(files, f"{name}.self_attn.o_proj"),
        "post_norm": _norm(files, f"{name}.post_attention_layernorm"),
        "gate": _linear(files, f"{name}.mlp.gate_proj"),
        "up": _linear(files, f"{name}.mlp.up_proj"),
        "down": _linear(files, f"{name}.mlp.down_proj"),
    }


def _norm(files: ModelFiles, name: str) -> NDArray[np.float32]:
    weight: NDArray[np.float32] = files.weights[f"{name}.weight"]
    return weight


def _linear(files: ModelFiles, name: str) -> _kernels.Int8Linear:
    n_outputs, n_inputs = files.weights.shapes[name]
    layer = files.weights.linear(name)
    bias = files.weights.get(f"{name}.bias")
    return _kernels.Int8Linear(layer.q, layer.scale.view(np.uint16), layer.sum, bias, n_inputs, n_outputs)
