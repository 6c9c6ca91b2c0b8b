"""Both engines on the tiny model: reused equals cold, control tokens stay out, int8 stays near float."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM
from treefill.engine import native, torch_backend
from treefill.engine.api import CancelFlag, Finish, GenerateRequest
from treefill.engine.backend import Backend
from treefill.engine.local import LocalEngine
from treefill.engine.tokenizer import TokenizerVocabulary
from treefill.engine.torch_backend.modules import HalfEmbedding
from treefill.errors import EngineError
from treefill.models import ModelFiles

from tests.helpers.tiny_model import tiny_model, write_tiny_model

PROMPT = "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + "


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    return tiny_model(tmp_path_factory.mktemp("model"))


def open_engine(files: ModelFiles, name: str) -> LocalEngine:
    vocabulary = TokenizerVocabulary(files.tokenizer_path, files.end_ids, files.config["vocab_size"])
    return LocalEngine(load_backend(files, name), vocabulary, files.name)


def load_backend(files: ModelFiles, name: str) -> Backend:
    package = native if name == "int8" else torch_backend
    return package.load_backend(files, 512)


@pytest.fixture(scope="module", params=["int8", "bitsandbytes"])
def engine(request: pytest.FixtureRequest, files: ModelFiles) -> Iterator[LocalEngine]:
    engine = open_engine(files, request.param)
    yield engine
    engine.close()


def a_request(engine: LocalEngine, text: str = PROMPT, forced: bytes = b"") -> GenerateRequest:
    return GenerateRequest(tuple(engine.vocabulary.encode(text)), forced, max_new_tokens=12)


def cold(engine: LocalEngine, request: GenerateRequest) -> tuple[int, ...]:
    generation = engine.generate(replace(request, reuse=False), CancelFlag())
    assert generation.n_reused_tokens == 0
    return generation.token_ids


def test_reused_equals_cold(engine: LocalEngine) -> None:
    """A file is typed a few characters at a time; each answer is what a fresh cache gives."""
    for end in range(5, len(PROMPT), 7):
        request = a_request(engine, PROMPT[:end])
        warm = engine.generate(request, CancelFlag())

        assert warm.token_ids == cold(engine, request)


@pytest.mark.parametrize("n_shared", [0, 1, 5, 9, 10])
def test_g11_an_unrelated_prompt_is_answered_as_by_a_new_process(engine: LocalEngine, n_shared: int) -> None:
    first = a_request(engine)
    ids = first.prompt_ids
    second = replace(first, prompt_ids=ids[:n_shared] + tuple(reversed(ids[n_shared:10])))
    expected = cold(engine, second)
    engine.generate(replace(first, prompt_ids=ids[:10], reuse=False), CancelFlag())

    generation = engine.generate(second, CancelFlag())

    assert generation.n_reused_tokens >= min(n_shared, len(second.prompt_ids) - 1)
    assert generation.token_ids == expected


def test_a_request_that_was_cancelled_leaves_a_usable_cache(engine: LocalEngine) -> None:
    request = a_request(engine)
    expected = cold(engine, request)
    flag = CancelFlag()
    cancelled = engine.generate(
        replace(request, reuse=False, should_stop=lambda text: bool(flag.cancel())), flag
    )

    assert cancelled.finish is Finish.CANCELLED
    assert engine.generate(request, CancelFlag()).token_ids == expected


def test_forced_bytes_begin_the_text(engine: LocalEngine) -> None:
    generation = engine.generate(a_request(engine, forced=b" fibo"), CancelFlag())
    spelled = b"".join(map(engine.vocabulary.token_bytes, generation.token_ids))

    assert spelled.startswith(b" fibo")
    assert spelled[5:].decode("utf-8", "ignore") == generation.text.replace("\ufffd", "")


def test_control_tokens_and_the_unused_tail_are_never_written(engine: LocalEngine) -> None:
    barred = engine.vocabulary.barred_ids
    for end in range(1, len(PROMPT), 5):
        ids = engine.generate(a_request(engine, PROMPT[:end]), CancelFlag()).token_ids

        assert all(token < engine.vocabulary.n_tokens for token in ids)
        assert not set(ids) & barred


def test_an_embedding_follows_its_ids_to_their_device() -> None:
    embedding = HalfEmbedding(np.eye(4, dtype=np.float16))

    assert embedding(torch.tensor([[2]])).tolist() == [[[0, 0, 1, 0]]]
    if torch.cuda.is_available():
        assert embedding(torch.tensor([[2]], device="cuda")).device.type == "cuda"


@pytest.mark.parametrize("token", [1_000_000, 2**31, 2**70])
def test_an_id_that_no_vocabulary_has_is_an_error_and_the_next_prompt_is_answered(
    engine: LocalEngine, token: int
) -> None:
    expected = engine.generate(a_request(engine), CancelFlag()).token_ids
    with pytest.raises(EngineError, match="could not be run"):
        engine.generate(GenerateRequest((token,)), CancelFlag())
    with pytest.raises(EngineError, match="could not be run"):
        engine.generate(replace(a_request(engine), begun=(token,)), CancelFlag())

    assert engine.generate(a_request(engine), CancelFlag()).token_ids == expected


def test_a_closed_engine_answers_with_an_error(files: ModelFiles) -> None:
    engine = open_engine(files, "int8")
    engine.close()

    with pytest.raises(EngineError, match="could not be run"):
        engine.generate(a_request(engine), CancelFlag())


@pytest.mark.parametrize(("name", "tolerance"), [("int8", 0.05), ("bitsandbytes", 0.08)])
def test_logits_stay_near_transformers_own_in_float(
    files: ModelFiles, name: str, tolerance: float, tmp_path: Path
) -> None:
    write_tiny_model(tmp_path)
    reference = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    backend = load_backend(files, name)
    ids = TokenizerVocabulary(files.tokenizer_path, files.end_ids, files.config["vocab_size"]).encode(PROMPT)
    with torch.inference_mode():
        expected = reference(torch.tensor([ids])).logits[0, -1].numpy()

    logits = backend.evaluate(ids, CancelFlag())

    assert logits is not None
    error = np.abs(logits - expected).max() / np.abs(expected).max()
    assert error < tolerance


def test_a_forward_pass_that_is_interrupted_between_layers_leaves_the_cache_as_it_was(
    files: ModelFiles,
) -> None:
    class SetsAfter(CancelFlag):
        """Set from the second look on: in the middle of the layers."""

        n_looks = 0

        @property
        def is_cancelled(self) -> bool:
            self.n_looks += 1
            return self.n_looks > 1

    backend, untouched = load_backend(files, "bitsandbytes"), load_backend(files, "bitsandbytes")
    for each in (backend, untouched):
        each.evaluate([5, 6, 7], CancelFlag())

    assert backend.evaluate([8, 9], SetsAfter()) is None

    np.testing.assert_array_equal(
        backend.evaluate([10], CancelFlag()), untouched.evaluate([10], CancelFlag())
    )
