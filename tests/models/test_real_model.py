"""The default model as its makers published it: needs it in the store, its source kept."""

import os
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from treefill.models import ModelFiles, ModelStore, dequantise_linear
from treefill.models.catalogue import builtin_catalogue

pytestmark = pytest.mark.real_model

NAME = "qwen2.5-coder-0.5b"


@pytest.fixture(scope="module")
def store() -> ModelStore:
    cache = os.environ.get("TREEFILL_CACHE_DIR")
    return ModelStore(Path(cache) if cache else None)


@pytest.fixture(scope="module")
def files(store: ModelStore) -> ModelFiles:
    return store.open(NAME)


def test_the_configuration_is_the_makers(files: ModelFiles) -> None:
    config = files.config

    assert (config["model_type"], config["num_hidden_layers"], config["hidden_size"]) == ("qwen2", 24, 896)
    assert (config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]) == (14, 2, 64)
    assert (config["vocab_size"], config["max_position_embeddings"]) == (151_936, 32_768)
    assert config["rope_theta"] == 1e6
    assert config["tie_word_embeddings"] is False


def test_control_tokens_have_the_ids_of_the_family(files: ModelFiles) -> None:
    tokenizer = Tokenizer.from_file(str(files.tokenizer_path))
    expected = {
        "<|endoftext|>": 151643,
        "<|im_end|>": 151645,
        "<|fim_prefix|>": 151659,
        "<|fim_middle|>": 151660,
        "<|fim_suffix|>": 151661,
        "<|fim_pad|>": 151662,
        "<|repo_name|>": 151663,
        "<|file_sep|>": 151664,
    }

    assert {token: tokenizer.token_to_id(token) for token in expected} == expected
    assert tokenizer.get_vocab_size() == 151_665
    assert files.end_ids == {151643, 151645, 151662, 151663, 151664}


def test_code_becomes_the_tokens_that_the_family_reads(files: ModelFiles) -> None:
    tokenizer = Tokenizer.from_file(str(files.tokenizer_path))

    ids = tokenizer.encode("def fib(n):\n    return 10").ids

    assert ids == [750, 15801, 1445, 982, 262, 470, 220, 16, 15]


def test_the_weights_are_the_sources_within_half_a_step(store: ModelStore, files: ModelFiles) -> None:
    source = store.open_source(NAME)
    for name in ("model.layers.0.self_attn.q_proj", "model.layers.23.mlp.down_proj"):
        tensor = source.tensor(f"{name}.weight")
        assert tensor is not None
        original = tensor.rows(0, tensor.shape[0])
        linear = files.weights.linear(name)

        error = np.abs(dequantise_linear(linear) - original)

        n, k = linear.shape
        step = np.repeat(linear.scale.transpose(0, 2, 1).reshape(-1, linear.scale.shape[1]), 64, axis=1)
        assert (error <= step[:n, :k].astype(np.float32) * (0.5 + 127 * 2**-11)).all()


def test_the_space_that_the_catalogue_announces_is_what_it_takes(files: ModelFiles) -> None:
    taken = sum(path.stat().st_size for path in files.folder.iterdir())

    assert builtin_catalogue().models[NAME].converted_bytes == pytest.approx(taken, rel=0.02)
