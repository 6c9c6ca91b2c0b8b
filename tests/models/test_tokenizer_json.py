"""Tokenizers made for completion: text is never altered, and never becomes a control token."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from treefill.errors import BrokenModel, UnsupportedModel
from treefill.models.tokenizer_json import (
    PRE_TOKENIZERS,
    BpeVocabulary,
    adds_bos,
    end_ids,
    from_bpe,
    from_published,
)

from tests.models.tiny import CONTROL, TinyModel, published_tokenizer, tiny_model

MODEL = tiny_model()


def bpe(model: TinyModel = MODEL, pre: str = "qwen2") -> BpeVocabulary:
    return BpeVocabulary(pre, model.tokens, model.types, model.merges)


def pieces(pre: str, text: str) -> list[str]:
    """How `text` is cut before merging."""
    tokenizer = Tokenizer.from_str(from_bpe("here", bpe(pre=pre)))
    return [text[start:stop] for _, (start, stop) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        # Qwen keeps a leading symbol with its word, and digits apart; GPT-2 neither.
        ("qwen2", ["def", " f", "(x", "):\n", "   ", " return", " ", "1", "2", "+(", "y", ")"]),
        ("llama-bpe", ["def", " f", "(x", "):\n", "   ", " return", " ", "12", "+(", "y", ")"]),
        ("gpt-2", ["def", " f", "(", "x", "):", "\n   ", " return", " 12", "+(", "y", ")"]),
        ("starcoder", ["def", " f", "(", "x", "):", "\n   ", " return", " ", "1", "2", "+(", "y", ")"]),
        (
            "deepseek-coder",
            ["def", " f", "(", "x", "):", "\n", "   ", " return", " ", "1", "2", "+", "(", "y", ")"],
        ),
    ],
)
def test_text_is_cut_as_the_family_does(pre: str, expected: list[str]) -> None:
    assert pieces(pre, "def f(x):\n    return 12+(y)") == expected


@pytest.mark.parametrize("pre", sorted(PRE_TOKENIZERS))
@given(text=st.text(max_size=60))
@settings(max_examples=10, deadline=None)
def test_no_text_is_altered_on_its_way_through(pre: str, text: str) -> None:
    tokenizer = Tokenizer.from_str(from_bpe("here", bpe(pre=pre)))
    tokenizer.encode_special_tokens = True

    ids = tokenizer.encode(text, add_special_tokens=False).ids

    assert tokenizer.decode(ids, skip_special_tokens=False) == text


@pytest.mark.parametrize(
    "json_text", [from_bpe("here", bpe()), from_published("here", published_tokenizer(MODEL))]
)
def test_a_file_that_spells_a_control_token_does_not_become_one(json_text: str) -> None:
    tokenizer = Tokenizer.from_str(json_text)
    text = "x = '<|fim_suffix|>'"
    control = MODEL.tokens.index("<|fim_suffix|>")

    assert control in tokenizer.encode(text).ids
    tokenizer.encode_special_tokens = True
    assert control not in tokenizer.encode(text).ids


@pytest.mark.parametrize(
    "json_text", [from_bpe("here", bpe()), from_published("here", published_tokenizer(MODEL))]
)
def test_control_tokens_keep_their_ids(json_text: str) -> None:
    tokenizer = Tokenizer.from_str(json_text)

    assert [tokenizer.token_to_id(token) for token in CONTROL] == [
        MODEL.tokens.index(token) for token in CONTROL
    ]


def test_composed_and_decomposed_letters_stay_what_they_were() -> None:
    tokenizer = Tokenizer.from_str(from_published("here", published_tokenizer(MODEL)))

    assert "NFC" in published_tokenizer(MODEL)
    for text in ("caf\u00e9", "cafe\u0301"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_normalisers_that_are_part_of_the_encoding_stay() -> None:
    document = json.loads(published_tokenizer(MODEL))
    replacement = {"type": "Replace", "pattern": {"String": "~"}, "content": "-"}
    document["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFKC"}, replacement]}

    kept = json.loads(from_published("here", json.dumps(document)))["normalizer"]

    assert kept == {"type": "Sequence", "normalizers": [replacement]}


def test_unused_ids_are_no_tokens() -> None:
    tokenizer = Tokenizer.from_str(from_bpe("here", bpe()))

    assert tokenizer.get_vocab_size() == MODEL.types.index(5)
    assert tokenizer.token_to_id("[PAD0]") is None


def test_hand_made_runs_of_white_space_are_text() -> None:
    tokens = [*MODEL.tokens[:-5], "\t\t", *MODEL.tokens[-4:]]
    types = [*MODEL.types[:-5], 4, *MODEL.types[-4:]]
    tokenizer = Tokenizer.from_str(from_bpe("here", bpe(replace(MODEL, tokens=tokens, types=types))))
    tokenizer.encode_special_tokens = True

    assert tokens.index("\t\t") in tokenizer.encode("\t\tx").ids


def test_end_tokens_are_the_named_ones_and_those_known_by_spelling() -> None:
    text = from_bpe("here", bpe())

    assert end_ids(text, [7]) == [7, MODEL.tokens.index("<|endoftext|>")]


def test_a_tokenizer_that_begins_every_text_is_noticed() -> None:
    document = json.loads(published_tokenizer(MODEL))
    bos = MODEL.tokens.index("<|endoftext|>")
    template = [
        {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ]
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": template,
        "pair": [*template, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            "<|endoftext|>": {"id": "<|endoftext|>", "ids": [bos], "tokens": ["<|endoftext|>"]}
        },
    }

    assert adds_bos(json.dumps(document), bos)
    assert not adds_bos(published_tokenizer(MODEL), bos)
    assert not adds_bos(published_tokenizer(MODEL), None)


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (replace(MODEL, types=MODEL.types[:-1]), "270 tokens and 269 token types"),
        (replace(MODEL, tokens=["x"] * len(MODEL.tokens)), "the same token twice"),
        (replace(MODEL, merges=["d x y"]), "'d x y', whose parts"),
        (replace(MODEL, merges=["d zzz"]), "'d zzz', whose parts"),
    ],
)
def test_a_vocabulary_that_contradicts_itself_is_refused(broken: TinyModel, fault: str) -> None:
    with pytest.raises(BrokenModel, match=fault):
        from_bpe("here", bpe(broken))


def test_an_unknown_pre_tokenizer_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModel, match="'default', which is not known"):
        from_bpe("here", bpe(pre="default"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"added_tokens": [1]}', '{"added_tokens": []}', "[" * 99_999]
)
def test_what_is_no_tokenizer_is_refused(text: str) -> None:
    with pytest.raises(BrokenModel):
        from_published("here", text)
