"""A tiny seeded Qwen2 with a small tokenizer, written as its makers would publish it: nothing is downloaded."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from treefill.models import ModelFiles, ModelStore
from treefill.models.tokenizer_json import from_published

CONTROL_TOKENS = [
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
]
N_UNUSED = 9
"""Ids at the end of the logits that no token has."""

_TEXT = """
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)

class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

for number in range(10):
    print(fibonacci(number))
"""


def tiny_model(folder: Path) -> ModelFiles:
    """The model, converted in a store below `folder`."""
    published = folder / "tiny"
    published.mkdir(parents=True)
    write_tiny_model(published)
    return ModelStore(folder / "cache").pull(str(published))


def write_tiny_model(published: Path) -> None:
    """`config.json`, `model.safetensors` and `tokenizer.json` of the model."""
    tokenizer = tiny_tokenizer()
    tokenizer.save(str(published / "tokenizer.json"))
    config = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 160,
        "vocab_size": tokenizer.get_vocab_size() + N_UNUSED,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "eos_token_id": tokenizer.token_to_id("<|endoftext|>"),
    }
    (published / "config.json").write_text(json.dumps(config))
    save_file(_random_weights(config), published / "model.safetensors")


def write_stored_tokenizer(path: Path) -> None:
    """The tokenizer alone, as the store would write it."""
    path.write_text(from_published(str(path), tiny_tokenizer().to_str().encode()), encoding="utf-8")


def tiny_tokenizer() -> Tokenizer:
    """A byte-level BPE tokenizer trained on a few lines of Python."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([_TEXT], trainer)
    # As the makers of Qwen do: control tokens that are not marked special.
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in CONTROL_TOKENS])
    return tokenizer


def _random_weights(config: dict[str, object]) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(7)
    hidden, ffn, vocab = 64, 160, int(str(config["vocab_size"]))

    def matrix(n_outputs: int, n_inputs: int) -> NDArray[np.float32]:
        # Small enough that no activation passes 6: LLM.int8 treats such outliers by what else is in the batch.
        return random.normal(scale=0.1, size=(n_outputs, n_inputs)).astype(np.float32)

    weights = {"model.embed_tokens.weight": matrix(vocab, hidden), "lm_head.weight": matrix(vocab, hidden)}
    weights["model.norm.weight"] = np.ones(hidden, np.float32)
    for i in range(2):
        layer = f"model.layers.{i}"
        for name, n_outputs in (("q", hidden), ("k", 32), ("v", 32)):
            weights[f"{layer}.self_attn.{name}_proj.weight"] = matrix(n_outputs, hidden)
            weights[f"{layer}.self_attn.{name}_proj.bias"] = matrix(n_outputs, 1).ravel()
        weights[f"{layer}.self_attn.o_proj.weight"] = matrix(hidden, hidden)
        weights[f"{layer}.mlp.gate_proj.weight"] = matrix(ffn, hidden)
        weights[f"{layer}.mlp.up_proj.weight"] = matrix(ffn, hidden)
        weights[f"{layer}.mlp.down_proj.weight"] = matrix(hidden, ffn)
        weights[f"{layer}.input_layernorm.weight"] = np.ones(hidden, np.float32)
        weights[f"{layer}.post_attention_layernorm.weight"] = np.ones(hidden, np.float32)
    return weights
