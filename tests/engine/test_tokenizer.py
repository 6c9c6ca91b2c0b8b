"""A tokenizer file as a vocabulary: text stays text, and every token knows its bytes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.engine.api import TokenBytes
from treefill.engine.tokenizer import TokenizerVocabulary
from treefill.errors import BrokenModel, EngineError, UnsupportedModel

from tests.helpers.tiny_model import CONTROL_TOKENS, write_stored_tokenizer

VOCAB_SIZE = 500


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> TokenizerVocabulary:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    write_stored_tokenizer(path)
    return TokenizerVocabulary(path, frozenset(), VOCAB_SIZE)


def test_g14_text_that_spells_a_control_token_stays_text(vocabulary: TokenizerVocabulary) -> None:
    for name in CONTROL_TOKENS:
        ids = vocabulary.encode(f'END = "{name}"')

        assert vocabulary.control_id(name) is not None
        assert not set(ids) & vocabulary.barred_ids
        assert vocabulary.decode(ids) == f'END = "{name}"'


@given(st.text())
def test_every_text_comes_back_from_its_tokens(vocabulary: TokenizerVocabulary, text: str) -> None:
    ids = vocabulary.encode(text)

    assert vocabulary.decode(ids) == text
    assert b"".join(map(vocabulary.token_bytes, ids)) == text.encode()
    assert all(0 <= token < vocabulary.n_tokens for token in ids)


def test_half_a_surrogate_pair_raises_nothing(vocabulary: TokenizerVocabulary) -> None:
    assert vocabulary.decode(vocabulary.encode("a\ud83db")) == "a�b"


def test_control_tokens_and_unused_ids_stand_for_no_text(vocabulary: TokenizerVocabulary) -> None:
    middle = vocabulary.control_id("<|fim_middle|>")

    assert middle is not None
    assert vocabulary.token_bytes(middle) == b""
    assert vocabulary.token_bytes(vocabulary.n_tokens + 5) == b""
    assert vocabulary.control_id("<|nothing|>") is None


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff\xfe", b'{"model": 3}'])
def test_a_missing_or_broken_file_is_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(BrokenModel, match=r"tokenizer\.json .*Pull the model again"):
        TokenizerVocabulary(path, frozenset(), VOCAB_SIZE)


def altered(folder: Path, **changes: Any) -> Path:
    path = folder / "tokenizer.json"
    write_stored_tokenizer(path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {key: change(document) for key, change in changes.items()}))
    return path


def added(token_id: int, content: str, *, special: bool) -> dict[str, object]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token_id, "content": content, "special": special, **flags}


def n_tokens(document: dict[str, Any]) -> int:
    return len(document["model"]["vocab"]) + len(document["added_tokens"])


@pytest.mark.parametrize("run", ["\t\t", "   ", "\u00a0\u00a0"])
def test_added_runs_of_white_space_are_text_and_may_be_written(tmp_path: Path, run: str) -> None:
    path = altered(
        tmp_path, added_tokens=lambda d: [*d["added_tokens"], added(n_tokens(d), run, special=False)]
    )
    vocabulary = TokenizerVocabulary(path, frozenset(), VOCAB_SIZE)

    ids = vocabulary.encode(f"{run}x")

    assert vocabulary.n_tokens - 1 in ids
    assert vocabulary.decode(ids) == f"{run}x"
    assert vocabulary.n_tokens - 1 not in vocabulary.barred_ids
    assert vocabulary.control_id(run) is None


def test_ids_that_no_token_has_are_never_written(tmp_path: Path) -> None:
    def with_a_hole(document: dict[str, Any]) -> dict[str, Any]:
        vocab = document["model"]["vocab"]
        return document["model"] | {"vocab": vocab | {"zzz": n_tokens(document) + 2}}

    path = altered(tmp_path, model=with_a_hole)
    vocabulary = TokenizerVocabulary(path, frozenset(), VOCAB_SIZE)

    top = vocabulary.n_tokens - 1
    assert vocabulary.token_bytes(top) == b"zzz"
    assert {top - 1, top - 2} < vocabulary.barred_ids
    assert len(vocabulary.barred_ids) == len(CONTROL_TOKENS) + 2


def test_a_tokenizer_with_more_ids_than_the_model_is_refused(
    vocabulary: TokenizerVocabulary, tmp_path: Path
) -> None:
    path = altered(tmp_path)

    TokenizerVocabulary(path, frozenset(), vocabulary.n_tokens)
    with pytest.raises(BrokenModel, match=r"tokenizer\.json has \d+ tokens and the model 9"):
        TokenizerVocabulary(path, frozenset(), 9)


def test_a_tokenizer_without_tokens_is_refused(tmp_path: Path) -> None:
    path = altered(
        tmp_path, added_tokens=lambda _: [], model=lambda _: {"type": "BPE", "vocab": {}, "merges": []}
    )

    with pytest.raises(BrokenModel, match="has 0 tokens"):
        TokenizerVocabulary(path, frozenset(), VOCAB_SIZE)


def test_a_stored_file_on_which_the_library_panics_is_one_sentence(tmp_path: Path) -> None:
    part = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    path = altered(tmp_path, normalizer=lambda _: {"type": "Sequence", "normalizers": [part]})

    with pytest.raises(BrokenModel, match=r"tokenizer\.json is not a tokenizer .*Pull the model again"):
        TokenizerVocabulary(path, frozenset(), VOCAB_SIZE)


def test_a_stored_pattern_that_never_ends_is_one_sentence(tmp_path: Path) -> None:
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    path = altered(
        tmp_path,
        pre_tokenizer=lambda d: {"type": "Sequence", "pretokenizers": [split, d["pre_tokenizer"]]},
    )
    vocabulary = TokenizerVocabulary(path, frozenset(), VOCAB_SIZE)

    with pytest.raises(EngineError, match=r"tokenizer failed on the text .*Pull the model again"):
        vocabulary.encode("x=" + "a" * 40 + "!")


@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer"])
def test_what_is_no_byte_level_tokenizer_is_refused(tmp_path: Path, part: str) -> None:
    replacement = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    path = altered(tmp_path, **{part: lambda _: replacement if part == "normalizer" else None})

    with pytest.raises(UnsupportedModel, match="no byte-level BPE"):
        TokenizerVocabulary(path, frozenset(), VOCAB_SIZE)


def test_every_token_at_once_has_the_bytes_of_each_alone(vocabulary: TokenizerVocabulary) -> None:
    alone = [vocabulary.token_bytes(token) for token in range(vocabulary.n_tokens)]

    every = vocabulary.every_token_bytes()
    assert every.data == b"".join(alone)
    assert list(every.offsets) == list(TokenBytes.of(alone).offsets)
