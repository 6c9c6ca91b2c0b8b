"""The native decoder: near transformers' own, and the same bits whatever is evaluated together."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from treefill import _kernels
from treefill.engine.api import CancelFlag
from treefill.engine.native import load_backend, read_weights, step_weights
from treefill.engine.native.backend import NativeBackend
from treefill.engine.native.load import load_decoder
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


def chunks(ids: list[int]) -> list[list[int]]:
    return [ids[start : start + 64] for start in range(0, len(ids), 64)]


def last_of(backend: NativeBackend, ids: list[int]) -> np.ndarray:
    """Logits after `ids`, which go on from where the backend stands."""
    logits = [backend.evaluate(piece, CancelFlag()) for piece in chunks(ids)][-1]
    assert logits is not None
    return logits


@pytest.mark.parametrize("kv_cache_type", ["float32", "bfloat16", "int8"])
def test_the_same_bits_alone_in_a_batch_and_reused(files: ModelFiles, kv_cache_type: str) -> None:
    backend = load_backend(files, 512, kv_cache_type=kv_cache_type, kv_block_tokens=32)
    alone = after(backend, *[[token] for token in IDS])

    np.testing.assert_array_equal(after(backend, IDS[:64], IDS[64:128], IDS[128:]), alone)
    np.testing.assert_array_equal(after(backend, IDS[:1], IDS[1:50], IDS[50:113], IDS[113:]), alone)
    assert backend.begin(IDS[:140], "") == 140
    np.testing.assert_array_equal(backend.evaluate(IDS[140:], CancelFlag()), alone)


@pytest.mark.parametrize("kv_cache_type", ["float32", "bfloat16", "int8"])
def test_the_same_bits_from_blocks_that_another_prompt_shares(files: ModelFiles, kv_cache_type: str) -> None:
    """One prompt leaves another in the middle of a block; each goes on as if it were alone."""
    backend = load_backend(files, 512, kv_cache_type=kv_cache_type, kv_block_tokens=32)
    other = [*IDS[:75], *IDS[:65]]
    expected, expected_other = (
        after(backend, IDS[:64], IDS[64:128], IDS[128:]),
        after(backend, *chunks(other)),
    )
    after(backend, *chunks(IDS))

    assert backend.begin(other, "") == 75
    np.testing.assert_array_equal(last_of(backend, other[75:]), expected_other)
    assert backend.begin(IDS[:-1], "") == len(IDS) - 1
    np.testing.assert_array_equal(last_of(backend, IDS[-1:]), expected)


@pytest.mark.parametrize("kv_cache_type", ["float32", "bfloat16", "int8"])
def test_the_same_bits_beside_another_sequence(files: ModelFiles, kv_cache_type: str) -> None:
    """Two users' prompts and their verified drafts in one batch, whatever the other's length."""
    cache = _kernels.KvBlocks(2, 2, 16, 32, 12, kv_cache_type)
    decoder = load_decoder(files, cache, 192)
    flag = CancelFlag().cell
    n_vocab = files.config["vocab_size"]

    def blocks(*numbers: int) -> np.ndarray:
        return np.array(numbers, np.int32)

    def evaluate(*sequences: tuple[list[int], np.ndarray, int, int]) -> np.ndarray:
        ids = np.array([token for sequence in sequences for token in sequence[0]], np.int32)
        given = [(where, n_before, len(own), n_logits) for own, where, n_before, n_logits in sequences]
        logits = np.empty((sum(sequence[3] for sequence in sequences), n_vocab), np.float32)
        assert decoder.evaluate(ids, given, flag, logits)
        return logits

    mine, theirs = blocks(7, 2, 9), blocks(4, 5)
    evaluate((IDS[:40], mine, 0, 0))
    one_by_one = np.concatenate([evaluate(([IDS[40 + i]], mine, 40 + i, 1)) for i in range(6)])

    together = evaluate((IDS[60:80], theirs, 0, 3), (IDS[40:46], mine, 40, 6))
    alone = evaluate((IDS[60:80], blocks(1, 3), 0, 3))

    np.testing.assert_array_equal(together[3:], one_by_one)
    np.testing.assert_array_equal(together[:3], alone)


def test_smaller_caches_are_near_the_exact_one(files: ModelFiles) -> None:
    exact = after(load_backend(files, 512, kv_cache_type="float32"), *chunks(IDS))
    scale = float(np.abs(exact).max())

    for kv_cache_type, within in (("bfloat16", 0.02), ("int8", 0.04)):
        logits = after(load_backend(files, 512, kv_cache_type=kv_cache_type), *chunks(IDS))
        assert 0 < np.abs(logits - exact).max() / scale < within


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
    for _ in range(100):
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


def test_a_cache_larger_than_any_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="larger than any memory"):
        _kernels.KvBlocks.bytes_a_block(2**30, 2**30, 8, 32, "float32")


def test_memory_that_cannot_be_had_is_one_sentence(
    files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoMemory(_kernels.KvBlocks):
        def __init__(self, *_: object) -> None:
            raise MemoryError

    monkeypatch.setattr(_kernels, "KvBlocks", NoMemory)

    with pytest.raises(EngineError, match=r"MB of memory, and .* MB are free"):
        load_backend(files, 512)


def test_an_instruction_set_that_is_not_here_is_an_error_and_no_crash(files: ModelFiles) -> None:
    """Found out before any thread of the pool has work: none of them could tell."""
    code = (
        "import sys; from pathlib import Path\n"
        "from treefill.engine.api import CancelFlag\n"
        "from treefill.engine.native import load_backend\n"
        "from treefill.models.files import open_folder\n"
        "backend = load_backend(open_folder('tiny', Path(sys.argv[1])), 512)\n"
        "backend.evaluate(list(range(60)), CancelFlag())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(files.folder)],
        env=os.environ | {"TREEFILL_ISA": "mmx"}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "instruction set 'mmx' is not available here" in ran.stderr
    assert ran.returncode == 1


def test_the_weights_are_read_through_in_pieces_and_the_share_is_told(tmp_path: Path) -> None:
    weights = tiny_model(tmp_path).weights
    shares: list[float] = []

    read_weights(weights, shares.append)

    assert shares == sorted(set(shares))
    assert shares[-1] == 1.0
    assert 2 <= len(shares) <= 21
    assert sum(array.nbytes for array in step_weights(weights, "avx512vnni")) > sum(
        array.nbytes for array in step_weights(weights, "avx2")
    ), "the sums are read where the instruction set needs them"
