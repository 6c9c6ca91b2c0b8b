"""The measure of the dictionary: what it finds, and what a preset and a predictor give, on files of a few bytes."""

from __future__ import annotations

import json

import pytest
from treefill import _kernels
from treefill.benchmarks.dictionary import (
    DictionarySizes,
    _Dictionary,
    _Predictor,
    figures_json,
    figures_markdown,
    is_for_choosing,
    measure_dictionary,
)
from treefill.syntax.vocabulary import MaskVocabulary
from treefill.text import Document


class Bytes:
    """A vocabulary of single bytes."""

    n_tokens = 256
    spelled = tuple(bytes([byte]) for byte in range(256))

    def token_bytes(self, token_id: int) -> bytes:
        return self.spelled[token_id]

    def encode(self, text: str) -> list[int]:
        return list(text.encode())


VOCABULARY = Bytes()
MASKS = MaskVocabulary(VOCABULARY)


def files(n: int) -> list[Document]:
    texts = (f'{{"a{number}": [1, {number}, {{"b": null}}]}}\n' for number in range(1_000))
    return [Document(f"{number}.json", text, "json") for number, text in enumerate(texts)][:n]


def test_figures_are_of_files_that_nothing_was_chosen_by() -> None:
    documents = files(60)
    measured = [each for each in documents if not is_for_choosing(each.text)]
    assert 0 < len(measured) < len(documents)
    sizes = DictionarySizes(n_boundaries=300, n_compared=300, n_file_boundaries=100)
    figures = measure_dictionary("json", documents, VOCABULARY, MASKS, sizes)
    assert figures.n_files <= len(measured)
    assert figures.n_mined == 300
    arms = figures.arms
    assert {arm.n_asked for arm in arms.values()} == {300}
    assert {arm.n_wrong for arm in arms.values()} == {0}
    assert figures.n_compared == 300
    assert arms["cold"].n_hits < arms["warm"].n_hits <= arms["foreseen"].n_hits
    assert arms["preset"].n_hits > arms["cold"].n_hits
    assert figures.preset.n_made > 0
    assert "preset" in figures_markdown([figures])
    assert json.loads(json.dumps(figures_json(figures)))["arms"]["warm"]["hits"] == arms["warm"].n_hits


def test_the_predictor_has_made_what_followed_before() -> None:
    dictionary = _Dictionary("json", MASKS, 1 << 20)
    predictor = _Predictor(dictionary)

    def at(text: bytes) -> bytes:
        acceptor = _kernels.Acceptor(dictionary.grammar)
        acceptor.accept(text)
        is_hit = dictionary.knows(acceptor)
        dictionary.learn(acceptor)
        place = predictor.at(acceptor, is_hit)
        assert acceptor.text == text
        return place

    predictor.note(at(b"["), b"[1")
    assert predictor.n_made == 0
    at(b"[")
    assert predictor.n_made == 1, "what follows had not been asked for itself"
    at(b"[[1")
    assert (predictor.n_made, predictor.n_used) == (1, 1)


def test_the_predictor_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treefill.benchmarks.dictionary.MAX_TRANSITIONS", 3)
    predictor = _Predictor(_Dictionary("json", MASKS, 1 << 20))
    for place, more in ((b"p", b"a"), (b"p", b"b"), (b"q", b"a"), (b"p", b"a"), (b"p", b"c")):
        predictor.note(place, more)
    assert predictor._after == {b"p": [b"c", b"b"], b"q": [b"a"]}
