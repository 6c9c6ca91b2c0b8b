"""From a maker's files to the weight file: the same numbers under transformers' names."""

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from treefill.errors import BrokenModel, ModelError, UnsupportedModel
from treefill.models import ModelFiles, dequantise_linear, silent
from treefill.models.architectures import checked_config
from treefill.models.convert import convert, prepare
from treefill.models.files import open_folder
from treefill.models.source import open_source

from tests.models.tiny import (
    TinyModel,
    published_config,
    tiny_model,
    write_gguf,
    write_safetensors,
)


def converted(files: list[Path], folder: Path) -> ModelFiles:
    folder.mkdir()
    convert(prepare(str(files[0]), open_source(files)), folder, silent)
    return open_folder("tiny", folder)


def safetensors_files(folder: Path) -> list[Path]:
    return [folder / "config.json", folder / "tokenizer.json", folder / "model.safetensors"]


def check_weights(files: ModelFiles, model: TinyModel) -> None:
    """Every tensor of the original is there, within what its storage can hold."""
    names = {name.removesuffix(".weight") for name in model.tensors if name.endswith(".weight")}
    for name in names | {"lm_head"}:
        original = model.tensors.get(f"{name}.weight", model.tensors["model.embed_tokens.weight"])
        if f"{name}.weight" in files.weights:
            assert np.abs(files.weights[f"{name}.weight"] - original).max() < 3e-4, name
        else:
            linear = files.weights.linear(name)
            assert linear.shape == original.shape
            assert np.abs(dequantise_linear(linear) - original).max() < 4e-3, name
        if f"{name}.bias" in model.tensors:
            assert (files.weights[f"{name}.bias"] == model.tensors[f"{name}.bias"]).all()


@pytest.mark.parametrize("family", ["qwen2", "llama"])
@pytest.mark.parametrize("tied", [False, True])
def test_gguf_becomes_the_weights_it_was_made_from(family: str, tied: bool, tmp_path: Path) -> None:
    model = tiny_model(family, tied=tied)
    path = write_gguf(model, tmp_path / "tiny.gguf")

    files = converted([path], tmp_path / "out")

    check_weights(files, model)
    assert files.config["model_type"] == family
    assert files.config["tie_word_embeddings"] is tied
    assert files.config["head_dim"] == 16


@pytest.mark.parametrize("family", ["qwen2", "llama"])
def test_safetensors_become_the_weights_they_hold(family: str, tmp_path: Path) -> None:
    model = tiny_model(family)
    folder = write_safetensors(model, tmp_path / "in")

    files = converted(safetensors_files(folder), tmp_path / "out")

    check_weights(files, model)


def test_both_forms_of_a_model_have_the_same_configuration(tmp_path: Path) -> None:
    model = tiny_model()
    from_gguf = converted([write_gguf(model, tmp_path / "tiny.gguf")], tmp_path / "a")
    from_safetensors = converted(safetensors_files(write_safetensors(model, tmp_path / "in")), tmp_path / "b")

    a, b = from_gguf.config, from_safetensors.config
    assert a.pop("rms_norm_eps") == pytest.approx(b.pop("rms_norm_eps"))  # GGUF holds it in float32
    assert a == b
    assert from_gguf.end_ids == from_safetensors.end_ids == {model.tokens.index("<|endoftext|>")}


def test_bfloat16_is_widened_exactly(tmp_path: Path) -> None:
    model = tiny_model()
    folder = write_safetensors(model, tmp_path / "in")
    name = "model.norm.weight"
    bits = (model.tensors[name].view(np.uint32) >> 16).astype(np.uint16)
    rest = {key: values for key, values in model.tensors.items() if key != name}
    save_file(rest, folder / "model.safetensors")
    text = json.dumps({name: {"dtype": "BF16", "shape": [64], "data_offsets": [0, 128]}}).encode()
    shard = folder / "more.safetensors"
    shard.write_bytes(len(text).to_bytes(8, "little") + text + bits.tobytes())

    files = converted([*safetensors_files(folder), shard], tmp_path / "out")

    assert (files.weights[name].view(np.uint32) == bits.astype(np.uint32) << 16).all()


def test_nothing_that_names_code_survives(tmp_path: Path) -> None:
    folder = write_safetensors(tiny_model(), tmp_path / "in")

    files = converted(safetensors_files(folder), tmp_path / "out")

    assert "auto_map" in json.loads((folder / "config.json").read_text())
    assert "auto_map" not in files.config
    assert "evil" not in (files.folder / "config.json").read_text()


def test_a_checked_configuration_passes_its_own_check_unchanged() -> None:
    config = checked_config("here", published_config(tiny_model("llama")))

    assert checked_config("here", config) == config


@pytest.mark.parametrize(
    ("changes", "error", "fault"),
    [
        ({"model_type": "gemma2"}, UnsupportedModel, "family 'gemma2'"),
        ({"model_type": ["qwen2"]}, UnsupportedModel, "family"),
        ({"hidden_act": "gelu"}, UnsupportedModel, "activation 'gelu'"),
        ({"use_sliding_window": True}, UnsupportedModel, "sliding-window"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, UnsupportedModel, "'yarn'"),
        ({"rope_scaling": {"partial_rotary_factor": 0.5}}, UnsupportedModel, "rotates only part"),
        ({"partial_rotary_factor": 0.5}, UnsupportedModel, "rotates only part"),
        ({"rope_scaling": {"type": "linear"}}, BrokenModel, "no sound factor in its rope_parameters"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, BrokenModel, "no sound factor"),
        (
            {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}},
            BrokenModel,
            "no sound high_freq_factor",
        ),
        ({"hidden_size": 0}, BrokenModel, "no sound hidden_size"),
        ({"hidden_size": "64"}, BrokenModel, "no sound hidden_size"),
        ({"num_hidden_layers": 1 << 20}, BrokenModel, "claims 1048576 layers"),
        ({"num_hidden_layers": True}, BrokenModel, "no sound num_hidden_layers"),
        ({"num_key_value_heads": 3}, BrokenModel, "do not fit"),
        ({"rms_norm_eps": float("nan")}, BrokenModel, "no sound rms_norm_eps"),
        ({"rms_norm_eps": 10**400}, BrokenModel, "no sound rms_norm_eps"),
        ({"rope_theta": -1}, BrokenModel, "no sound rope_theta"),
        ({"vocab_size": 9}, BrokenModel, r"embed_tokens\.weight in the shape"),
        ({"tie_word_embeddings": False, "num_hidden_layers": 3}, BrokenModel, "lacks the tensor"),
        ({"model_type": "llama"}, BrokenModel, "that its configuration denies"),
    ],
)
def test_a_configuration_that_cannot_be_run_is_refused(
    changes: dict[str, object], error: type[ModelError], fault: str, tmp_path: Path
) -> None:
    folder = write_safetensors(tiny_model(), tmp_path / "in", **changes)

    with pytest.raises(error, match=fault) as caught:
        converted(safetensors_files(folder), tmp_path / "out")

    assert str(folder) in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from([*published_config(tiny_model()), "rope_scaling", "head_dim"]), JSON))
@settings(max_examples=60, deadline=None)
def test_any_configuration_is_checked_or_refused(changes: dict[str, object]) -> None:
    try:
        config = checked_config("here", published_config(tiny_model()) | changes)
    except ModelError:
        return
    assert checked_config("here", config) == config


@pytest.mark.parametrize(
    ("changes", "error", "fault"),
    [
        ({"pre": "tekken"}, UnsupportedModel, "pre-tokenizer 'tekken'"),
        ({"tokenizer_model": "llama"}, UnsupportedModel, "kind 'llama'"),
        ({"rope_scaling": gguf.RopeScalingType.YARN}, UnsupportedModel, "'yarn'"),
        ({"without": "model.layers.1.mlp.up_proj.weight"}, BrokenModel, r"lacks the tensor model\.layers\.1"),
        (
            {"without": "model.layers.0.self_attn.k_proj.bias"},
            BrokenModel,
            r"lacks the tensor .*k_proj\.bias",
        ),
        ({"without": "model.embed_tokens.weight"}, BrokenModel, "no sound vocab_size"),
    ],
)
def test_a_gguf_that_cannot_be_run_is_refused(
    changes: dict[str, object], error: type[ModelError], fault: str, tmp_path: Path
) -> None:
    path = write_gguf(tiny_model(), tmp_path / "tiny.gguf", **changes)

    with pytest.raises(error, match=fault) as caught:
        converted([path], tmp_path / "out")

    assert str(path) in str(caught.value)


def test_scaled_positions_are_passed_on(tmp_path: Path) -> None:
    path = write_gguf(tiny_model("llama"), tmp_path / "t.gguf", rope_scaling=gguf.RopeScalingType.LINEAR)

    files = converted([path], tmp_path / "out")

    assert files.config["rope_parameters"] == {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0}


def test_position_parameters_that_are_not_known_are_left_out() -> None:
    scaling = {"rope_type": "linear", "factor": 4.0, "partial_rotary_factor": 1.0, "beta": 3}

    config = checked_config("here", published_config(tiny_model()) | {"rope_scaling": scaling})

    assert config["rope_parameters"] == {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0}


def test_text_becomes_the_same_tokens_from_both_forms(tmp_path: Path) -> None:
    model = tiny_model()
    a = converted([write_gguf(model, tmp_path / "tiny.gguf", pre="gpt-2")], tmp_path / "a")
    b = converted(safetensors_files(write_safetensors(model, tmp_path / "in")), tmp_path / "b")

    text = "def f(x):\n  return in_def + 'e\u0301'\n"
    ids = Tokenizer.from_file(str(a.tokenizer_path)).encode(text).ids

    assert ids == Tokenizer.from_file(str(b.tokenizer_path)).encode(text).ids
    assert ids[0] == model.tokens.index("def")


def test_a_model_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = write_safetensors(tiny_model(), tmp_path / "in")
    (folder / "tokenizer.json").unlink()

    with pytest.raises(BrokenModel, match=r"tokenizer\.json is missing"):
        converted(safetensors_files(folder), tmp_path / "out")


def test_a_tokenizer_with_more_ids_than_rows_is_refused(tmp_path: Path) -> None:
    folder = write_safetensors(tiny_model(), tmp_path / "in")
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    document["model"]["vocab"]["zzz"] = len(tiny_model().tokens)
    path.write_text(json.dumps(document))

    with pytest.raises(BrokenModel, match="271 tokens in its tokenizer and 270"):
        converted(safetensors_files(folder), tmp_path / "out")


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff\xfe", b"[" * 100_000])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_companion_that_is_no_table_is_named(tmp_path: Path, name: str, text: bytes) -> None:
    folder = write_safetensors(tiny_model(), tmp_path / "in")
    (folder / name).write_bytes(text)

    with pytest.raises(
        BrokenModel, match=rf"in/{name} (is not JSON|holds no JSON object); download it again"
    ):
        converted(safetensors_files(folder), tmp_path / "out")
