"""Completions under masks: the same suggestions, told another way; none waits for what is not ready."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from treefill.completion import CompletionRequest, Suggestion, complete
from treefill.engine.api import CancelFlag, Generation, Sampling
from treefill.syntax import dictionary
from treefill.syntax.masks import Masks
from treefill.text import Document

from tests.helpers.choosing_engine import ChoosingEngine

WRITTEN = ("f(a]", "f(a)[0] + b")
BUFFER = "def g(a, b):\n    total = \n    return total\n"
OFFSET = BUFFER.index("= \n") + 2
N_TIMES = 6


@pytest.fixture(autouse=True)
def quickly_trusting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for least in ("N_TRIALS", "N_PLACES"):
        monkeypatch.setattr(dictionary, least, 1)
    yield
    dictionary.BACKGROUND.stop()


def answered(engine: ChoosingEngine, how: Masks, sampling: Sampling | None = None) -> tuple[str, Generation]:
    request = CompletionRequest(Document("masked.py", BUFFER, "python"), OFFSET, templates=False)
    request = replace(request, masks=how, sampling=sampling or request.sampling)
    said = complete(request, engine, CancelFlag())
    assert isinstance(said, Suggestion)
    assert said.generation is not None
    return said.text, said.generation


@pytest.mark.parametrize("how", [Masks.DICTIONARY, Masks.EACH])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0, seed=3)], ids=["greedy", "drawn"])
def test_masks_change_no_suggestion(how: Masks, sampling: Sampling) -> None:
    engine = ChoosingEngine(*WRITTEN)
    text, plain = answered(engine, Masks.CHECK, sampling)

    masked = []
    for _ in range(N_TIMES):
        said, generation = answered(engine, how, sampling)
        masked.append(generation)
        assert said == text
        assert generation.token_ids == plain.token_ids
        assert generation.n_refused_first == plain.n_refused_first
        assert dictionary.BACKGROUND.wait(60)

    assert plain.n_refused_first == (sampling.temperature == 0)
    assert plain.n_masked == masked[0].n_masked == 0, "the grammar has not read the vocabulary yet"
    assert masked[-1].n_masked > 0


def test_masks_that_are_made_each_time_need_no_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(dictionary, "dictionary_for", made.append)
    engine = ChoosingEngine(*WRITTEN)
    for _ in range(2):
        answered(engine, Masks.EACH)
        assert dictionary.BACKGROUND.wait(60)

    assert answered(engine, Masks.EACH)[1].n_masked > 0
    assert not made


def test_what_cannot_be_read_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from treefill.errors import GrammarError
    from treefill.syntax import vocabulary

    def refused(*_: object) -> None:
        raise GrammarError("The grammar cannot read the model's vocabulary.")

    monkeypatch.setattr(vocabulary, "MaskVocabulary", refused)
    engine = ChoosingEngine(*WRITTEN)
    for _ in range(3):
        text, generation = answered(engine, Masks.EACH)
        assert (text, generation.n_masked) == ("f(a)[0] + b", 0)
        assert dictionary.BACKGROUND.wait(60)


def test_the_same_model_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from treefill.syntax import vocabulary

    made: list[object] = []
    of = vocabulary.MaskVocabulary
    monkeypatch.setattr(vocabulary, "MaskVocabulary", lambda *given: made.append(given) or of(*given))
    engine = ChoosingEngine(*WRITTEN)
    for _ in range(3):
        answered(engine, Masks.EACH)
        assert dictionary.BACKGROUND.wait(60)

    assert len(made) == 1
