"""Makes one `tokenizer.json` of what a source has, in a form that never changes a user's text.

Two things differ from what model makers publish. There is no Unicode normaliser: NFC, say, would alter the
code in the user's buffer on its way through, and the byte positions with it; what a model has never seen
uncomposed it reads byte by byte. And every control token is marked special, so that `encode_special_tokens`
keeps a file's text from ever becoming one. Byte-level BPE alone is known; `check_tokenizer` refuses the rest.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treefill.errors import BrokenModel, UnsupportedModel
from treefill.models.json_table import read_table

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

END_TOKENS = frozenset(
    {
        "<|endoftext|>",
        "<|im_end|>",
        "<|end_of_text|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end|>",
        "<|EOT|>",
        "<EOT>",
        "▁<EOT>",
        "</s>",
        "<eos>",
        "<end_of_turn>",
        "<｜end▁of▁sentence｜>",
        "<|fim_pad|>",
        "<|repo_name|>",
        "<|file_sep|>",
        "<|file_separator|>",
        "<fim_pad>",
        "<fim-pad>",
        "<file_sep>",
        "<filename>",
        "<repo_name>",
        "<reponame>",
    }
)
"""Control tokens after which nothing belongs to the text any more, by their spelling in the families we know:
a new file or repository ends a completion as surely as the end of the text."""

CONTROL, USER_DEFINED, UNUSED = 3, 4, 5
"""The token types of GGUF that matter here."""


@dataclass(frozen=True, slots=True)
class BpeVocabulary:
    """A byte-level BPE as GGUF describes it."""

    pre: str
    """The name of the pre-tokenizer, a key of `PRE_TOKENIZERS`."""
    tokens: Sequence[str]
    types: Sequence[int]
    merges: Sequence[str]


_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
_GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
_DIGITS = {"type": "Digits", "individual_digits": True}


def _split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


_QWEN2 = [_split(_WORDS + r"\p{N}" + _REST), _BYTES]
_LLAMA3 = [_split(_WORDS + r"\p{N}{1,3}" + _REST), _BYTES]
_STARCODER = [_DIGITS, _GPT2]
_DEEPSEEK_CODER = [
    _split(r"[\r\n]"),
    _split(r"\s?\p{L}+"),
    _split(r"\s?\p{P}+"),
    _split(r"[一-龥ࠀ-一가-퟿]+"),
    _DIGITS,
    _BYTES,
]

PRE_TOKENIZERS: Mapping[str, list[dict[str, Any]]] = {
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "gpt-2": [_GPT2],
    "starcoder": _STARCODER,
    "refact": _STARCODER,
    "smollm": _STARCODER,
    "codeshell": _STARCODER,
    "deepseek-coder": _DEEPSEEK_CODER,
}
"""How text is cut before merging, by the name that `tokenizer.ggml.pre` gives it."""

_IGNORES_MERGES = frozenset({"llama-bpe", "llama3"})
"""A piece that is itself a token is taken whole, whether or not merges lead to it."""


def from_bpe(where: str, bpe: BpeVocabulary) -> str:
    """The `tokenizer.json` of a byte-level BPE; `where` names the file in messages."""
    if bpe.pre not in PRE_TOKENIZERS:
        raise UnsupportedModel(
            f"{where} cuts text by the pre-tokenizer {bpe.pre[:40]!r}, which is not known."
        )
    if len(bpe.types) != len(bpe.tokens):
        raise BrokenModel(f"{where} has {len(bpe.tokens)} tokens and {len(bpe.types)} token types.")
    # Unused ids pad the matrix to a round width: they are no tokens, and left out they can never be written.
    vocabulary = {text: i for i, text in enumerate(bpe.tokens) if bpe.types[i] != UNUSED}
    if len(vocabulary) != sum(kind != UNUSED for kind in bpe.types):
        raise BrokenModel(f"{where} has the same token twice in its vocabulary.")
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(bpe),
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": PRE_TOKENIZERS[bpe.pre]},
        "post_processor": None,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": False,
            "use_regex": False,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": bpe.pre in _IGNORES_MERGES,
            "vocab": vocabulary,
            "merges": _merges(where, bpe.merges, vocabulary),
        },
    }
    return json.dumps(document, ensure_ascii=False)


def from_published(where: str, text: bytes) -> str:
    """A maker's `tokenizer.json` with Unicode normalisers taken out and control tokens marked special."""
    document = read_table(where, text, "download it again")
    added = document.get("added_tokens")
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise BrokenModel(f"{where} is not a tokenizer.json; download it again.")
    document["normalizer"] = _without_unicode_forms(document.get("normalizer"))
    for token in added:
        token["special"] = not str(token.get("content", "")).isspace()
        # Either would swallow the text beside the token.
        token["lstrip"] = token["rstrip"] = False
    return json.dumps(document, ensure_ascii=False)


def check_tokenizer(where: str, tokenizer_json: str, vocab_size: int) -> None:
    """Refuse a tokenizer that the library does not take, that alters text, or that a model has too few ids for.

    Slow: it loads the tokenizer. Done once, when a model enters the store.
    """
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json)
    except Exception as error:  # the library raises plain Exception
        raise BrokenModel(f"{where} has a tokenizer that cannot be loaded: {str(error)[:120]}.") from None
    if not _is_byte_level(tokenizer):
        raise UnsupportedModel(
            f"{where} has a tokenizer of another kind than byte-level BPE; none other is known."
        )
    top = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if not 0 <= top < vocab_size:
        raise BrokenModel(f"{where} has {top + 1} tokens in its tokenizer and {vocab_size} in its weights.")
    document = read_table(where, tokenizer_json.encode(), "download it again")
    for token in document.get("added_tokens") or []:
        # The library numbers added tokens itself where the id is not where it expects the next one.
        if tokenizer.token_to_id(token["content"]) != token["id"]:
            raise BrokenModel(f"{where} gives the token {token['content'][:40]!r} an id that does not fit.")


def end_ids(tokenizer_json: str, eos_ids: Sequence[int]) -> list[int]:
    """The ids that end a text: those the model names, and the control tokens of `END_TOKENS`."""
    added = json.loads(tokenizer_json)["added_tokens"]
    return sorted({token["id"] for token in added if token["content"] in END_TOKENS} | set(eos_ids))


def _added_tokens(bpe: BpeVocabulary) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            # Some makers define runs of white space as tokens by hand: those are text, all others control.
            "special": not text.isspace(),
        }
        for i, (text, kind) in enumerate(zip(bpe.tokens, bpe.types, strict=True))
        if kind in (CONTROL, USER_DEFINED)
    ]


def _merges(where: str, merges: Sequence[str], vocabulary: Mapping[str, int]) -> list[list[str]]:
    pairs = [merge.split(" ") for merge in merges]
    for pair in pairs:
        is_sound = (
            len(pair) == 2 and pair[0] in vocabulary and pair[1] in vocabulary and "".join(pair) in vocabulary
        )
        if not is_sound:
            raise BrokenModel(
                f"{where} has the merge {' '.join(pair)[:40]!r}, whose parts are not in its vocabulary."
            )
    return pairs


_UNICODE_FORMS = frozenset({"NFC", "NFD", "NFKC", "NFKD"})


def _without_unicode_forms(normalizer: Any) -> Any:
    """None where there was nothing else; byte-level BPE has no other part, and `check_tokenizer` refuses it."""
    is_sequence = isinstance(normalizer, dict) and normalizer.get("type") == "Sequence"
    parts = normalizer.get("normalizers") if is_sequence else [normalizer]
    is_nothing_else = isinstance(parts, list) and all(map(_is_unicode_form, parts))
    return None if is_nothing_else else normalizer


def _is_unicode_form(normalizer: Any) -> bool:
    return isinstance(normalizer, dict) and str(normalizer.get("type")) in _UNICODE_FORMS


_SAMPLE = "a\u0301 \n"
"""Shows a space put before a text, and a letter or white space that is not spelt by its bytes."""


def _is_byte_level(tokenizer: "Tokenizer") -> bool:
    """Whether the tokenizer merges the bytes of a text, each in GPT-2's stand-in, and nothing but them."""
    from tokenizers import models, pre_tokenizers

    bpe, cutter = tokenizer.model, tokenizer.pre_tokenizer
    if not isinstance(bpe, models.BPE) or cutter is None or tokenizer.normalizer is not None:
        return False
    if bpe.continuing_subword_prefix or bpe.end_of_word_suffix:
        return False
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return _joined(cutter) == _joined(plain)


def _joined(cutter: "PreTokenizer") -> str:
    return "".join(piece for piece, _ in cutter.pre_tokenize_str(_SAMPLE))
