"""The models to measure against, built from the tiny model's source."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM
from treefill.engine.backend import LOGITS_AT_ONCE
from treefill.engine.native.logits import NativeLogits
from treefill.engine.torch_backend import reference
from treefill.evaluation.fidelity import measure
from treefill.evaluation.texts import Window
from treefill.models import ModelFiles
from treefill.models.architectures import SourceModel
from treefill.models.source import open_source

from tests.helpers.tiny_model import tiny_model

IDS = tuple(range(20, 20 + 2 * LOGITS_AT_ONCE + 5))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


@pytest.fixture(scope="module")
def files(folder: Path) -> ModelFiles:
    return tiny_model(folder)


@pytest.fixture(scope="module")
def source(folder: Path, files: ModelFiles) -> SourceModel:
    return open_source(sorted((folder / "tiny").iterdir()))


def test_the_float_model_is_transformers_own(folder: Path, files: ModelFiles, source: SourceModel) -> None:
    expected = AutoModelForCausalLM.from_pretrained(folder / "tiny", dtype=torch.float32)
    with torch.inference_mode():
        logits = expected(input_ids=torch.tensor([IDS])).logits[0].numpy()
    pieces = list(reference.float_model(files, source).logits(IDS))

    assert [len(piece) for piece in pieces] == [LOGITS_AT_ONCE, LOGITS_AT_ONCE, 5]
    np.testing.assert_allclose(np.concatenate(pieces), logits, atol=1e-4)


def test_int8_and_llm_int8_stay_near_it(files: ModelFiles, source: SourceModel) -> None:
    window = Window("python", "a.py", IDS)
    models = [NativeLogits("int8", files, 512, "float32"), reference.llm_int8_model(files, source)]
    found = measure([window], reference.float_model(files, source), models)

    assert [line.model for line in found[:2]] == ["int8", "bitsandbytes"]
    for line in found:
        assert 0 < line.divergence < 0.01
        assert line.agreement > 0.9


def test_nothing_is_remembered_from_text_to_text(files: ModelFiles) -> None:
    model = NativeLogits("int8", files, 512, "float32")
    first = np.concatenate(list(model.logits(IDS[:9])))
    list(model.logits(IDS[5:]))

    np.testing.assert_array_equal(np.concatenate(list(model.logits(IDS[:9]))), first)
