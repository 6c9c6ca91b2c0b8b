"""A model's `tokenizer.json` as the vocabulary that prompts and decoding need.

Text never becomes a control token here: whoever wants `<|fim_middle|>` asks for its id by name.
"""

import json
import re
from pathlib import Path

from tokenizers import Tokenizer

from treefill.engine.api import TokenId
from treefill.errors import BrokenModel


class TokenizerVocabulary:
    """`engine.api.Vocabulary` over the tokenizers library."""

    def __init__(self, path: Path, end_ids: frozenset[TokenId]) -> None:
        """Raises `BrokenModel` when `path` is missing or not a tokenizer."""
        self._tokenizer = _load(path)
        self._added = {
            token.content: token_id for token_id, token in self._tokenizer.get_added_tokens_decoder().items()
        }
        self._control = frozenset(self._added.values())
        self._decode_token = _byte_level if _is_byte_level(self._tokenizer) else _sentencepiece
        self.n_tokens: int = 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values())
        self.end_ids = end_ids

    @property
    def control_ids(self) -> frozenset[TokenId]:
        """Tokens that stand for no text."""
        return self._control

    def encode(self, text: str) -> list[TokenId]:
        """Tokens of ordinary text. A lone surrogate, which is no text, counts as U+FFFD."""
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        ids: list[TokenId] = self._tokenizer.encode(clean, add_special_tokens=False).ids
        return ids

    def decode(self, ids: list[TokenId] | tuple[TokenId, ...]) -> str:
        """Text of `ids`, control tokens left out, malformed UTF-8 replaced."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

    def control_id(self, name: str) -> TokenId | None:
        """The id of the control token spelt `name`, or None."""
        return self._added.get(name)

    def token_bytes(self, token_id: TokenId) -> bytes:
        """The bytes that a token stands for; empty for a control token and for an id that does not exist."""
        if token_id in self._control:
            return b""
        spelled = self._tokenizer.id_to_token(token_id)
        return self._decode_token(spelled) if spelled is not None else b""


def _load(path: Path) -> Tokenizer:
    """The tokenizer, with control tokens never matched in text and no text altered before it is cut."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
        if not all(token.special for token in tokenizer.get_added_tokens_decoder().values()):
            tokenizer = Tokenizer.from_str(_with_all_special(path.read_bytes()))
    except Exception as error:  # the library raises plain Exception for whatever it cannot read
        if not path.exists():
            raise BrokenModel(
                f"The model has no tokenizer: {path} is missing. Pull the model again."
            ) from None
        raise BrokenModel(f"{path} is not a tokenizer ({error}). Pull the model again.") from error
    tokenizer.encode_special_tokens = True
    tokenizer.normalizer = None
    return tokenizer


def _with_all_special(tokenizer_json: bytes) -> str:
    """Makers mark `<|fim_prefix|>` and its like as ordinary text; here they never are."""
    data = json.loads(tokenizer_json)
    for token in data["added_tokens"]:
        token["special"] = True
    return json.dumps(data)


def _is_byte_level(tokenizer: Tokenizer) -> bool:
    return "ByteLevel" in repr(tokenizer.decoder) or "ByteLevel" in repr(tokenizer.pre_tokenizer)


def _gpt2_stand_ins() -> dict[int, int]:
    """GPT-2's printable stand-in for each byte, by code point: itself where printable, else one from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {256 + index: byte for index, byte in enumerate(others)}


_BYTE_OF = _gpt2_stand_ins()
_HEX_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def _byte_level(spelled: str) -> bytes:
    try:
        return spelled.translate(_BYTE_OF).encode("latin-1")
    except UnicodeEncodeError:  # not spelt in stand-ins: a token added as plain text
        return spelled.encode()


def _sentencepiece(spelled: str) -> bytes:
    hex_byte = _HEX_BYTE.fullmatch(spelled)
    return bytes([int(hex_byte[1], 16)]) if hex_byte else spelled.replace("▁", " ").encode()
