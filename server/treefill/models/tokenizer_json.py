"""Makes one `tokenizer.json` of what a source has, in a form that never changes a user's text.

It is written from scratch out of the few parts that are known, because the library behind it runs whatever a
file asks for: patterns that never end, tables that it indexes unchecked.
Two things differ from what model makers publish. There is no Unicode normaliser: NFC, say, would alter the
code in the user's buffer on its way through, and the byte positions with it; what a model has never seen
uncomposed it reads byte by byte. And every control token is marked special, so that `encode_special_tokens`
keeps a file's text from ever becoming one. Byte-level BPE alone is known; the rest is refused by name.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treefill.errors import BrokenModel, UnsupportedModel, library_errors
from treefill.models.json_table import read_table

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
    merges = _merges(where, [merge.split(" ") for merge in bpe.merges], vocabulary)
    added = [
        _added_token(i, text)
        for i, (text, kind) in enumerate(zip(bpe.tokens, bpe.types, strict=True))
        if kind in (CONTROL, USER_DEFINED)
    ]
    return _written(added, PRE_TOKENIZERS[bpe.pre], vocabulary, merges, bpe.pre in _IGNORES_MERGES)


def from_published(where: str, text: bytes) -> str:
    """A maker's `tokenizer.json` with Unicode normalisers taken out and control tokens marked special."""
    document = read_table(where, text, "download it again")
    model = document.get("model")
    if not isinstance(model, dict):
        raise _no_tokenizer(where)
    _refuse_normalizers(where, document.get("normalizer"))
    cutters = _known_cutters(where, document.get("pre_tokenizer"))
    if model.get("type", "BPE") != "BPE":
        raise _unknown_kind(where, f"its model is {str(model['type'])[:40]!r}")
    for key in ("byte_fallback", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise _unknown_kind(where, f"it has a {key}")
    vocabulary = _published_vocabulary(where, model.get("vocab"))
    merges = _merges(where, _published_merges(where, model.get("merges")), vocabulary)
    added = _published_added(where, document.get("added_tokens"))
    return _written(added, cutters, vocabulary, merges, model.get("ignore_merges") is True)


def check_tokenizer(where: str, tokenizer_json: str, vocab_size: int) -> None:
    """Refuse a tokenizer that this module would not write, or that a model has too few ids for.

    Slow: it loads the tokenizer. Done once, when a model enters the store.
    """
    import tokenizers

    # What is no text fails as JSON.
    rewritten = from_published(where, tokenizer_json.encode("utf-8", "surrogatepass"))
    with library_errors(
        lambda fault: BrokenModel(f"{where} has a tokenizer that cannot be loaded: {fault}.")
    ):
        tokenizer = tokenizers.Tokenizer.from_str(rewritten)
    top = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if not 0 <= top < vocab_size:
        raise BrokenModel(f"{where} has {top + 1} tokens in its tokenizer and {vocab_size} in its weights.")
    for token in json.loads(rewritten)["added_tokens"]:
        # The library numbers added tokens itself where the id is not where it expects the next one.
        if tokenizer.token_to_id(token["content"]) != token["id"]:
            raise BrokenModel(f"{where} gives the token {token['content'][:40]!r} an id that does not fit.")
    if rewritten != tokenizer_json:
        raise UnsupportedModel(f"{where} has a tokenizer in another form than this version's; make it again.")


def end_ids(tokenizer_json: str, eos_ids: Sequence[int]) -> list[int]:
    """The ids that end a text: those the model names, and the control tokens of `END_TOKENS`."""
    added = json.loads(tokenizer_json)["added_tokens"]
    return sorted({token["id"] for token in added if token["content"] in END_TOKENS} | set(eos_ids))


def _written(
    added: Sequence[Mapping[str, Any]],
    cutters: Sequence[Mapping[str, Any]],
    vocabulary: Mapping[str, int],
    merges: Sequence[Sequence[str]],
    ignore_merges: bool,
) -> str:
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cutters},
        "post_processor": None,
        "decoder": _BYTES,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": ignore_merges,
            "vocab": vocabulary,
            "merges": _quick_to_load(merges),
        },
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _quick_to_load(merges: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """As older files have them, a string a merge, where that says the same: a quarter of the loading time less."""
    is_same = all(pair[0].find(" ") == pair[1].find(" ") == -1 and pair[0] != "#version" for pair in merges)
    return [" ".join(pair) for pair in merges] if is_same else merges


def _added_token(token_id: int, text: str) -> dict[str, Any]:
    return {
        "id": token_id,
        "content": text,
        "single_word": False,
        # Either would swallow the text beside the token.
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        # Some makers define runs of white space as tokens by hand: those are text, all others control.
        "special": not text.isspace(),
    }


def _merges(
    where: str, pairs: Sequence[Sequence[str]], vocabulary: Mapping[str, int]
) -> Sequence[Sequence[str]]:
    for pair in pairs:
        is_sound = (
            len(pair) == 2 and pair[0] in vocabulary and pair[1] in vocabulary and "".join(pair) in vocabulary
        )
        if not is_sound:
            raise BrokenModel(
                f"{where} has the merge {' '.join(pair)[:40]!r}, whose parts are not in its vocabulary."
            )
    return pairs


def _published_vocabulary(where: str, vocabulary: Any) -> dict[str, int]:
    if not isinstance(vocabulary, dict) or not all(map(_is_id, vocabulary.values())):
        raise _no_tokenizer(where)
    if len(set(vocabulary.values())) != len(vocabulary):
        raise BrokenModel(f"{where} gives two tokens the same id; download it again.")
    return vocabulary


def _published_merges(where: str, merges: Any) -> list[list[str]]:
    """Pairs, or as older files have it, both parts with a space between."""
    if not isinstance(merges, list):
        raise _no_tokenizer(where)
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    if not all(isinstance(pair, list) and all(isinstance(part, str) for part in pair) for pair in pairs):
        raise _no_tokenizer(where)
    return pairs


def _published_added(where: str, added: Any) -> list[dict[str, Any]]:
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise _no_tokenizer(where)
    if not all(isinstance(token.get("content"), str) and _is_id(token.get("id")) for token in added):
        raise _no_tokenizer(where)
    return [_added_token(token["id"], token["content"]) for token in added]


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


_UNICODE_FORMS = frozenset({"NFC", "NFD", "NFKC", "NFKD"})


def _refuse_normalizers(where: str, normalizer: Any) -> None:
    """Unicode forms are left out; byte-level BPE has no others."""
    for part in [] if normalizer is None else _parts(normalizer, "normalizers"):
        if _kind(part) not in _UNICODE_FORMS:
            raise _unknown_kind(where, f"it alters text by {_kind(part)!r}")


def _known_cutters(where: str, cutter: Any) -> list[dict[str, Any]]:
    """The list of `PRE_TOKENIZERS` that `cutter` amounts to."""
    parts = _parts(cutter, "pretokenizers")
    cutters = [_known_cutter(part) for part in parts]
    for known in PRE_TOKENIZERS.values():
        if cutters == known:
            return known
    strange = [part for part, found in zip(parts, cutters, strict=True) if found is None]
    names = ", ".join(map(_kind, (strange or parts)[:4]))
    raise _unknown_kind(where, f"it cuts text by {names!r}")


def _known_cutter(part: Any) -> dict[str, Any] | None:
    """The cutter in this module's spelling, or None for one that stands nowhere in `PRE_TOKENIZERS`."""
    known = (cutter for cutters in PRE_TOKENIZERS.values() for cutter in cutters)
    # Offsets are not asked for, and an older file says nothing of the pattern, which it means to be used.
    spelt = {"use_regex": True} | part | {"trim_offsets": False} if _kind(part) == "ByteLevel" else part
    return next((cutter for cutter in known if cutter == spelt), None)


def _parts(value: Any, key: str) -> list[Any]:
    parts = value.get(key) if _kind(value) == "Sequence" else [value]
    return parts if isinstance(parts, list) else [parts]


def _kind(part: Any) -> str:
    """What a part of a tokenizer calls itself, with its pattern where it has one."""
    if not isinstance(part, dict):
        return str(part)[:40]
    kind = str(part.get("type"))[:40]
    return f"{kind} {str(part['pattern'])[:80]}" if "pattern" in part else kind


def _unknown_kind(where: str, fault: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"{where} has a tokenizer of another kind than byte-level BPE: {fault}, which is not known."
    )


def _no_tokenizer(where: str) -> BrokenModel:
    return BrokenModel(f"{where} is not a tokenizer.json; download it again.")
