"""The default model in int8 against its makers' weights in float32, on a page of Python."""

import pytest
from treefill.app import App
from treefill.engine.native.logits import NativeLogits
from treefill.engine.tokenizer import TokenizerVocabulary
from treefill.engine.torch_backend import reference
from treefill.evaluation.fidelity import measure
from treefill.evaluation.texts import WINDOW, choose_windows
from treefill.settings import load_settings

pytestmark = pytest.mark.real_model


@pytest.mark.timeout(900)  # float32 is slow on a busy machine
def test_int8_stays_near_float32() -> None:
    """Wide bounds, since 511 tokens are few; `treefill eval fidelity` measures on ten times as many."""
    store = App(load_settings({"model": "qwen2.5-coder-0.5b"}).settings).store
    files = store.open("qwen2.5-coder-0.5b")
    vocabulary = TokenizerVocabulary(files.tokenizer_path, files.end_ids, files.config["vocab_size"])
    windows = choose_windows(vocabulary, [], 1)
    float_model = reference.float_model(files, store.open_source(files.name))
    *_, total = measure(windows, float_model, [NativeLogits("int8", files, WINDOW, "bfloat16")])

    assert total.n == 511
    assert total.divergence < 0.002
    assert total.agreement > 0.97
