"""Tokenizers made for completion: text is never altered, and never becomes a control token."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from treefill.completion.fim import LAYOUTS, FimLayout
from treefill.errors import BrokenModel, UnsupportedModel
from treefill.models.tokenizer_json import (
    END_TOKENS,
    PRE_TOKENIZERS,
    BpeVocabulary,
    check_tokenizer,
    end_ids,
    from_bpe,
    from_published,
)

from tests.models.tiny import CONTROL, TinyModel, published_tokenizer, tiny_model

MODEL = tiny_model()
N_TOKENS = len(MODEL.tokens)


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

    assert b"NFC" in published_tokenizer(MODEL)
    for text in ("caf\u00e9", "cafe\u0301"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def sentencepiece(document: dict[str, Any]) -> None:
    """As Llama 2's makers publish it."""
    replace_space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    prepend = {"type": "Prepend", "prepend": "▁"}
    document["normalizer"] = {"type": "Sequence", "normalizers": [prepend, replace_space]}
    document["pre_tokenizer"] = None
    document["model"]["byte_fallback"] = True


def lower_case(document: dict[str, Any]) -> None:
    document["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}


def cut_at_spaces(document: dict[str, Any]) -> None:
    document["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}


def space_before(document: dict[str, Any]) -> None:
    document["pre_tokenizer"]["add_prefix_space"] = True


def no_bpe(document: dict[str, Any]) -> None:
    document["model"] = {"type": "WordLevel", "vocab": document["model"]["vocab"], "unk_token": "d"}


def spells_unknown_bytes(document: dict[str, Any]) -> None:
    document["model"]["byte_fallback"] = True


def precompiled(document: dict[str, Any]) -> None:
    """A table that the library indexes unchecked: it panics."""
    part = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    document["normalizer"] = {"type": "Sequence", "normalizers": [part]}


def prefix(document: dict[str, Any]) -> None:
    """The library cuts as many bytes off every token that is merged, whatever they are: it panics."""
    document["model"]["continuing_subword_prefix"] = "####"


def endless(document: dict[str, Any]) -> None:
    """A pattern that takes exponentially long, until the library panics."""
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, document["pre_tokenizer"]]}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (sentencepiece, "it alters text by 'Prepend'"),
        (lower_case, "it alters text by 'Lowercase'"),
        (precompiled, "it alters text by 'Precompiled'"),
        (cut_at_spaces, "it cuts text by 'Metaspace'"),
        (space_before, "it cuts text by 'ByteLevel'"),
        (endless, r"it cuts text by .Split .*\(a\+\)\+\$"),
        (no_bpe, "its model is 'WordLevel'"),
        (prefix, "it has a continuing_subword_prefix"),
        (spells_unknown_bytes, "it has a byte_fallback"),
    ],
)
def test_what_is_no_byte_level_bpe_is_refused_before_the_library_sees_it(
    change: Callable[[dict[str, Any]], None], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = json.loads(published_tokenizer(MODEL))
    change(document)
    monkeypatch.setattr("tokenizers.Tokenizer", None)

    with pytest.raises(UnsupportedModel, match=f"here has a tokenizer of another kind .*: {fault}"):
        check_tokenizer("here", json.dumps(document), N_TOKENS)


@pytest.mark.parametrize("pre", sorted(PRE_TOKENIZERS))
def test_every_known_way_of_cutting_is_taken_as_it_is(pre: str) -> None:
    text = from_bpe("here", bpe(pre=pre))

    check_tokenizer("here", text, N_TOKENS)
    assert from_published("here", text.encode()) == text


def test_nothing_of_a_maker_but_what_is_known_is_kept() -> None:
    document = json.loads(published_tokenizer(MODEL))
    plain = from_published("here", json.dumps(document).encode())
    document |= {"truncation": {"max_length": 1}, "post_processor": {"type": "Evil"}, "decoder": None}
    document["model"] |= {"dropout": 0.5, "unk_token": "d", "continuing_subword_prefix": "", "more": 1}
    document["model"]["merges"] = MODEL.merges  # as older files have them
    document["pre_tokenizer"]["trim_offsets"] = True

    assert from_published("here", json.dumps(document).encode()) == plain


@pytest.mark.parametrize(
    ("vocab", "merges"),
    [
        (None, []),
        ([], []),
        ({"a": -1}, []),
        ({"a": "1"}, []),
        ({"a": 1 << 40}, []),
        ({"a": 0, "b": 0}, []),
        ({"a": 0}, None),
        ({"a": 0}, [1]),
        ({"a": 0}, [[1, 2]]),
        ({"a": 0}, [["a", "a"]]),
    ],
)
def test_a_published_vocabulary_that_makes_no_sense_is_refused(vocab: object, merges: object) -> None:
    document = json.loads(published_tokenizer(MODEL))
    document["model"] |= {"vocab": vocab, "merges": merges}

    with pytest.raises(BrokenModel, match=r"here (is|gives|has) "):
        from_published("here", json.dumps(document).encode())


def test_a_model_with_too_few_rows_for_its_tokenizer_is_refused() -> None:
    text = from_published("here", published_tokenizer(MODEL))
    n_used = MODEL.types.index(5)

    check_tokenizer("here", text, n_used)
    with pytest.raises(BrokenModel, match=f"here has {n_used} tokens in its tokenizer and {n_used - 1}"):
        check_tokenizer("here", text, n_used - 1)


def test_a_tokenizer_without_tokens_is_refused() -> None:
    document = json.loads(published_tokenizer(MODEL)) | {"added_tokens": []}
    document["model"] = {"type": "BPE", "vocab": {}, "merges": []}

    with pytest.raises(BrokenModel, match="has 0 tokens"):
        check_tokenizer("here", from_published("here", json.dumps(document).encode()), N_TOKENS)


def test_white_space_beside_a_published_run_of_it_stays_text() -> None:
    document = json.loads(published_tokenizer(MODEL))
    run = {"id": MODEL.types.index(5), "content": "\t\t", "lstrip": True, "rstrip": True}
    document["added_tokens"].append(run | {"single_word": False, "normalized": False, "special": True})
    tokenizer = Tokenizer.from_str(from_published("here", json.dumps(document).encode()))
    tokenizer.encode_special_tokens = True

    ids = tokenizer.encode("x \t\t y").ids

    assert run["id"] in ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == "x \t\t y"


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


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.family)
def test_what_ends_a_middle_ends_a_text(layout: FimLayout) -> None:
    """Otherwise it would be barred, and the middle would never end."""
    assert set(layout.end) <= END_TOKENS


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
    "text", ["", "[]", "{}", "\xff", '{"added_tokens": [1]}', '{"added_tokens": []}', "[" * 99_999]
)
def test_what_is_no_tokenizer_is_refused(text: str) -> None:
    with pytest.raises(BrokenModel, match=r"here (is|has|holds) "):
        check_tokenizer("here", from_published("here", text.encode("latin-1")), N_TOKENS)


def test_an_added_token_with_an_id_of_its_own_is_refused() -> None:
    document = json.loads(published_tokenizer(MODEL))
    document["added_tokens"][1]["id"] += 50

    with pytest.raises(BrokenModel, match="an id that does not fit"):
        check_tokenizer("here", from_published("here", json.dumps(document).encode()), N_TOKENS + 50)
