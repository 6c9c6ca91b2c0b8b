"""The layout is chosen by the control tokens that a vocabulary has, never by the model's name."""

import pytest
from treefill.completion import (
    LAYOUTS,
    CompletionRequest,
    Declined,
    Reason,
    Suggestion,
    choose_layout,
    complete,
    nearest_missing,
)
from treefill.engine.api import CancelFlag
from treefill.text import Document

from tests.helpers.scripted_engine import QWEN_CONTROL_TOKENS, ByteVocabulary, ScriptedEngine

VOCABULARIES = {
    "qwen2.5-coder": QWEN_CONTROL_TOKENS,
    "codegemma": (
        "<bos>",
        "<eos>",
        "<|fim_prefix|>",
        "<|fim_middle|>",
        "<|fim_suffix|>",
        "<|file_separator|>",
    ),
    "granite-4": ("<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>"),
    "starcoder2": (
        "<|endoftext|>",
        "<fim_prefix>",
        "<fim_middle>",
        "<fim_suffix>",
        "<file_sep>",
        "<repo_name>",
    ),
    "starcoder": (
        "<|endoftext|>",
        "<fim_prefix>",
        "<fim_middle>",
        "<fim_suffix>",
        "<filename>",
        "<reponame>",
    ),
    "santacoder": ("<|endoftext|>", "<fim-prefix>", "<fim-middle>", "<fim-suffix>"),
    "codellama": ("<s>", "</s>", "▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"),
    "deepseek-coder": ("<｜begin▁of▁sentence｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    "codestral": ("<s>", "</s>", "[PREFIX]", "[SUFFIX]", "[MIDDLE]"),
}


def prompt_of(control_tokens: tuple[str, ...], left: str, right: str) -> str:
    """The prompt as text, control tokens spelt out."""
    vocabulary = ByteVocabulary(control_tokens)
    engine = ScriptedEngine("x", vocabulary=vocabulary)
    complete(CompletionRequest(Document("a.py", left + right, "python"), len(left)), engine, CancelFlag())
    (request,) = engine.requests
    written = (chr(token) if token < 256 else control_tokens[token - 256] for token in request.prompt_ids)
    return "".join(written) + request.forced.decode()


@pytest.mark.parametrize("layout", LAYOUTS, ids=[layout.family for layout in LAYOUTS])
def test_each_family_is_found_by_its_control_tokens(layout: object) -> None:
    family = getattr(layout, "family")  # noqa: B009

    assert choose_layout(ByteVocabulary(VOCABULARIES[family])) == layout


@pytest.mark.parametrize(
    ("family", "prompt"),
    [
        ("qwen2.5-coder", "<|fim_prefix|>a\n<|fim_suffix|>\nb<|fim_middle|>x = "),
        ("codegemma", "<bos><|fim_prefix|>a\n<|fim_suffix|>\nb<|fim_middle|>x = "),
        ("starcoder2", "<fim_prefix>a\n<fim_suffix>\nb<fim_middle>x = "),
        ("codellama", "<s>▁<PRE>a\n▁<SUF>\nb▁<MID>x = "),
        ("deepseek-coder", "<｜begin▁of▁sentence｜><｜fim▁begin｜>a\n<｜fim▁hole｜>\nb<｜fim▁end｜>x = "),
        ("codestral", "<s>[SUFFIX]\nb[PREFIX]a\nx = "),
    ],
)
def test_each_family_reads_the_hole_in_its_own_way(family: str, prompt: str) -> None:
    vocabulary = ByteVocabulary(VOCABULARIES[family])
    engine = ScriptedEngine("x", vocabulary=vocabulary)
    document = Document("a.py", "a\nx = \nb", "python")
    complete(CompletionRequest(document, 6, anchor_policy="line"), engine, CancelFlag())

    (request,) = engine.requests
    written = [
        chr(token) if token < 256 else vocabulary.control_tokens[token - 256] for token in request.prompt_ids
    ]
    assert "".join(written) + request.forced.decode() == prompt


@pytest.mark.parametrize(("left", "right"), [("", ""), ("", "x\n"), ("x\n", ""), ("x", "")])
def test_all_three_control_tokens_stand_there_even_where_a_part_is_empty(left: str, right: str) -> None:
    prompt = prompt_of(QWEN_CONTROL_TOKENS, left, right)

    places = [prompt.index(name) for name in ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")]
    assert places == sorted(places)


def test_a_vocabulary_without_fim_tokens_continues_the_prefix() -> None:
    engine = ScriptedEngine("1", vocabulary=ByteVocabulary(("<|endoftext|>",)))
    document = Document("a.py", "x = \ny = 2\n", "python")

    answer = complete(CompletionRequest(document, 4), engine, CancelFlag())

    assert isinstance(answer, Suggestion)
    assert answer.explanation.layout == "prefix-only"
    (request,) = engine.requests
    assert bytes(request.prompt_ids) + request.forced == b"x = "


def test_a_prefix_model_without_a_prefix_has_nothing_to_go_by() -> None:
    engine = ScriptedEngine("1", vocabulary=ByteVocabulary(()))

    answer = complete(CompletionRequest(Document("a.py", "\nx", "python"), 0), engine, CancelFlag())

    assert isinstance(answer, Declined)
    assert answer.reason is Reason.NO_CONTEXT
    assert not engine.requests


def test_control_tokens_spelt_in_a_file_stay_text() -> None:
    text = 'END = "<|fim_middle|>"  # marker\nEOS = "<|endoftext|>"\nprint('
    engine = ScriptedEngine("END)<|endoftext|>\nfoo")
    neighbour = Document("b.py", "SEP = '<|file_sep|>'\nREPO = '<|repo_name|>'\nprint(SEP)\n", "python")
    request = CompletionRequest(
        Document("tok.py", text + ")\n", "python"), len(text), neighbours=(neighbour,)
    )

    answer = complete(request, engine, CancelFlag())

    assert isinstance(answer, Suggestion)
    ids = engine.requests[0].prompt_ids
    control = [engine.byte_vocabulary.control_tokens[token - 256] for token in ids if token >= 256]
    assert control == ["<|file_sep|>", "<|file_sep|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    assert "<|repo_name|>" in engine.vocabulary.decode(ids)


@pytest.mark.parametrize(
    ("control_tokens", "missing"),
    [
        (QWEN_CONTROL_TOKENS, ()),
        (("<s>", "<fim_prefix>", "<fim_suffix>", "<file_sep>"), ("<fim_middle>",)),
        (("<|endoftext|>", "[SUFFIX]"), ("[PREFIX]",)),
    ],
)
def test_what_a_vocabulary_lacks_is_named_by_its_nearest_layout(
    control_tokens: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    assert nearest_missing(ByteVocabulary(control_tokens)) == missing


def test_a_vocabulary_without_any_such_token_lacks_all_three() -> None:
    missing = nearest_missing(ByteVocabulary(["<|endoftext|>"]))

    assert {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"} <= set(missing)
