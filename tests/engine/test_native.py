"""The native decoder: near transformers' own, and the same bits whatever is evaluated together."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from treefill import _kernels
from treefill.engine.api import CancelFlag
from treefill.engine.native import load_backend
from treefill.engine.native.backend import NativeBackend
from treefill.engine.native.rope import rotary_tables
from treefill.errors import EngineError
from treefill.models import ModelFiles

from tests.helpers.tiny_model import tiny_model

IDS = [int(token) for token in np.random.default_rng(3).integers(0, 256, 150)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    return tiny_model(tmp_path_factory.mktemp("model"))


def after(backend: NativeBackend, *pieces: list[int]) -> np.ndarray:
    """Logits after the pieces, on an empty cache."""
    backend.forget()
    for piece in pieces:
        logits = backend.evaluate(piece, CancelFlag())
    assert logits is not None
    return logits


def test_the_same_bits_alone_in_a_batch_and_after_a_crop(files: ModelFiles) -> None:
    backend = load_backend(files, 512)
    alone = after(backend, *[[token] for token in IDS])

    np.testing.assert_array_equal(after(backend, IDS[:64], IDS[64:128], IDS[128:]), alone)
    np.testing.assert_array_equal(after(backend, IDS[:1], IDS[1:50], IDS[50:113], IDS[113:]), alone)
    assert backend.begin(IDS[:140], "") == 140
    np.testing.assert_array_equal(backend.evaluate(IDS[140:], CancelFlag()), alone)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_the_same_bits_on_any_number_of_threads(files: ModelFiles, n_threads: int) -> None:
    backend = load_backend(files, 512)
    expected = after(backend, IDS[:60])
    try:
        _kernels.set_threads(n_threads)

        np.testing.assert_array_equal(after(backend, IDS[:60]), expected)
    finally:
        _kernels.set_threads(0)


@pytest.mark.parametrize("name", _kernels.instruction_sets())
def test_the_same_bits_on_any_instruction_set(files: ModelFiles, name: str) -> None:
    backend = load_backend(files, 512)
    expected = after(backend, IDS[:37])
    try:
        _kernels.use_instruction_set(name)

        np.testing.assert_array_equal(after(backend, IDS[:37]), expected)
    finally:
        _kernels.use_instruction_set("")


def test_a_pass_that_is_cancelled_between_layers_leaves_the_cache_as_it_was(files: ModelFiles) -> None:
    backend = load_backend(files, 512)
    expected = after(backend, IDS[:9])
    set_flag = CancelFlag()
    set_flag.cancel()
    after(backend, IDS[:8])

    assert backend.evaluate(IDS[:60], set_flag) is None
    np.testing.assert_array_equal(backend.evaluate(IDS[8:9], CancelFlag()), expected)


def test_other_threads_run_while_it_computes(files: ModelFiles) -> None:
    """The GIL is released: a thread counts while another evaluates."""
    backend = load_backend(files, 512)
    stop = threading.Event()
    counted = 0

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(20):
        after(backend, IDS[:64])
    stop.set()
    thread.join()

    assert counted > 20


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        ([], "1 to 64 tokens"),
        (list(range(65)), "1 to 64 tokens"),
        ([-1], "not in the vocabulary"),
        ([10**6], "not in"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(files: ModelFiles, ids: list[int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load_backend(files, 512).evaluate(ids, CancelFlag())


def test_a_full_cache_is_refused_and_not_overrun(files: ModelFiles) -> None:
    backend = load_backend(files, 70)
    after(backend, IDS[:64])

    with pytest.raises(ValueError, match="at most 70 tokens"):
        backend.evaluate(IDS[:7], CancelFlag())


def test_a_closed_backend_says_so(files: ModelFiles) -> None:
    backend = load_backend(files, 70)
    backend.close()

    with pytest.raises(EngineError, match="closed"):
        backend.evaluate([1], CancelFlag())


@pytest.mark.parametrize(
    "parameters",
    [
        {"rope_type": "default", "rope_theta": 10_000.0},
        {"rope_type": "linear", "rope_theta": 1e6, "factor": 4.0},
        {
            "rope_type": "llama3",
            "rope_theta": 500_000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ],
)
def test_positions_are_turned_as_transformers_turns_them(parameters: dict[str, object]) -> None:
    fields = {"hidden_size": 256, "num_attention_heads": 4, "max_position_embeddings": 32_768}
    config = AutoConfig.for_model("llama", **fields, rope_parameters=parameters)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    rotary = type(model.model.rotary_emb)(config)
    expected_cos, expected_sin = rotary(torch.zeros(1), torch.arange(3000)[None])

    cos, sin = rotary_tables({"rope_parameters": parameters}, 64, 3000)

    np.testing.assert_allclose(cos, expected_cos[0, :, :32].numpy(), atol=5e-4)
    np.testing.assert_allclose(sin, expected_sin[0, :, :32].numpy(), atol=5e-4)


def test_a_layer_of_the_wrong_shape_is_refused_by_name(files: ModelFiles, tmp_path: Path) -> None:
    q = np.zeros((1, 1, 16, 16, 4), np.int8)
    small = _kernels.Int8Linear(
        q, np.zeros((1, 1, 16), np.uint16), np.zeros((1, 1, 16), np.int16), None, 64, 16
    )
    table = np.zeros((4, 8), np.float32)

    cache = _kernels.KvBlocks(1, 2, 16, 32, 4, "float32")
    layer = {name: np.ones(64, np.float32) for name in ("input_norm", "post_norm")}

    with pytest.raises(ValueError, match="head is 16 x 64, expected 300 x 64"):
        _kernels.Decoder(
            n_heads=4, n_kv_heads=2, head_dim=16, n_ffn=160, norm_epsilon=1e-6,
            embedding=np.zeros((300, 64), np.uint16), layers=[layer], norm=np.ones(64, np.float32), head=small,
            cos=table, sin=table, cache=cache,
        )  # fmt: skip
