"""A tokenizer file as a vocabulary: text stays text, and every token knows its bytes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.engine.tokenizer import TokenizerVocabulary
from treefill.errors import BrokenModel

from tests.helpers.tiny_model import CONTROL_TOKENS, tiny_tokenizer


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> TokenizerVocabulary:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tiny_tokenizer().save(str(path))
    return TokenizerVocabulary(path, frozenset())


def test_g14_text_that_spells_a_control_token_stays_text(vocabulary: TokenizerVocabulary) -> None:
    for name in CONTROL_TOKENS:
        ids = vocabulary.encode(f'END = "{name}"')

        assert vocabulary.control_id(name) is not None
        assert not set(ids) & vocabulary.control_ids
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
        TokenizerVocabulary(path, frozenset())
