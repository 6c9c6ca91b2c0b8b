"""A model's `tokenizer.json` as the vocabulary that prompts and decoding need.

Text never becomes a control token here: whoever wants `<|fim_middle|>` asks for its id by name.
"""

from array import array
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from treefill.engine.api import TokenBytes, TokenId
from treefill.errors import BrokenModel, EngineError, UnsupportedModel, library_errors


class TokenizerVocabulary:
    """`engine.api.Vocabulary` over the tokenizers library."""

    def __init__(self, path: Path, end_ids: frozenset[TokenId], vocab_size: int) -> None:
        """Raises `BrokenModel` when `path` is no tokenizer, or one of ids that a model of `vocab_size` lacks."""
        self._tokenizer = _load(path)
        added = self._tokenizer.get_added_tokens_decoder()
        self._control = {token.content: token_id for token_id, token in added.items() if token.special}
        self._control_ids = frozenset(self._control.values())
        # Not spelt in stand-ins for bytes as the other tokens are.
        self._plain = {
            token_id: token.content.encode() for token_id, token in added.items() if not token.special
        }
        names, ids = _names_and_ids(self._tokenizer)
        self.n_tokens: int = len(names)
        if not 0 < self.n_tokens <= vocab_size:
            raise BrokenModel(
                f"{path} has {self.n_tokens} tokens and the model {vocab_size}. Pull the model again."
            )
        self.end_ids = end_ids
        self.barred_ids: frozenset[TokenId] = self._control_ids | set(range(self.n_tokens)).difference(ids)
        """What is never written: control tokens, and ids below `n_tokens` that no token has."""
        self._every = _all_at_once(names, self._plain, self._control_ids) or TokenBytes.of(
            map(self.token_bytes, range(self.n_tokens))
        )

    def encode(self, text: str) -> list[TokenId]:
        """Tokens of ordinary text. A lone surrogate, which is no text, counts as U+FFFD.

        Raises `EngineError` when the library gives up, as it does on a stored pattern that was altered.
        """
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        with library_errors(_no_tokens):
            ids: list[TokenId] = self._tokenizer.encode(clean, add_special_tokens=False).ids
        return ids

    def decode(self, ids: list[TokenId] | tuple[TokenId, ...]) -> str:
        """Text of `ids`, control tokens left out, malformed UTF-8 replaced."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

    def control_id(self, name: str) -> TokenId | None:
        """The id of the control token spelt `name`, or None."""
        return self._control.get(name)

    def every_token_bytes(self) -> TokenBytes:
        """The bytes of every token below `n_tokens`."""
        return self._every

    def token_bytes(self, token_id: TokenId) -> bytes:
        """The bytes that a token stands for; empty for a control token and for an id that does not exist."""
        if token_id in self._control_ids:
            return b""
        if token_id in self._plain:
            return self._plain[token_id]
        spelled = self._tokenizer.id_to_token(token_id)
        return _spelt_bytes(spelled) if spelled is not None else b""


def _load(path: Path) -> Tokenizer:
    """The tokenizer, with control tokens never matched in text."""
    if not path.exists():
        raise BrokenModel(f"The model has no tokenizer: {path} is missing. Pull the model again.")
    with library_errors(
        lambda fault: BrokenModel(f"{path} is not a tokenizer ({fault}). Pull the model again.")
    ):
        tokenizer = Tokenizer.from_file(str(path))
    if tokenizer.normalizer is not None or "ByteLevel" not in repr(tokenizer.pre_tokenizer):
        raise UnsupportedModel(
            f"{path} is no byte-level BPE, the one kind that is known. Pull the model again."
        )
    tokenizer.encode_special_tokens = True
    return tokenizer


def _names_and_ids(tokenizer: Tokenizer) -> tuple[list[str], Collection[TokenId]]:
    """What each id below the highest is called, empty where no token has it, and every id that a token has."""
    names = [
        tokenizer.id_to_token(token_id)
        for token_id in range(tokenizer.get_vocab_size(with_added_tokens=True))
    ]
    if None not in names:  # almost always the ids are 0 to n - 1
        return [name for name in names if name is not None], range(len(names))
    ids = tokenizer.get_vocab(with_added_tokens=True).values()
    return [tokenizer.id_to_token(token_id) or "" for token_id in range(1 + max(ids))], ids


def _all_at_once(
    names: Sequence[str], plain: Mapping[TokenId, bytes], control_ids: Collection[TokenId]
) -> TokenBytes | None:
    """The bytes of all tokens by one look into a table; None where one is not spelt in stand-ins for bytes."""
    spelled = list(names)
    for token_id in control_ids:
        spelled[token_id] = ""
    for token_id, data in plain.items():
        spelled[token_id] = data.decode("latin-1").translate(_STAND_IN)
    joined = "\uffff".join(spelled)  # which stands for no byte and no character
    codes = np.frombuffer(joined.encode("utf-16-le", "surrogatepass"), np.uint16)
    is_end = codes == 0xFFFF
    if np.count_nonzero(is_end) != len(spelled) - 1:
        return None
    data = _BYTES_OF[codes[~is_end]]
    if (data == _NO_BYTE).any():
        return None
    ends = np.flatnonzero(is_end) - np.arange(len(spelled) - 1)
    offsets = np.concatenate([[0], ends, [len(data)]]).astype(np.int64)
    return TokenBytes(data.astype(np.uint8).tobytes(), array("q", offsets.tobytes()))


def _no_tokens(fault: str) -> EngineError:
    return EngineError(f"The model's tokenizer failed on the text ({fault}). Pull the model again.")


def _gpt2_stand_ins() -> dict[int, int]:
    """GPT-2's printable stand-in for each byte, by code point: itself where printable, else one from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {256 + index: byte for index, byte in enumerate(others)}


_BYTE_OF = _gpt2_stand_ins()
_STAND_IN = {byte: code for code, byte in _BYTE_OF.items()}
_NO_BYTE = 256
_BYTES_OF = np.full(1 << 16, _NO_BYTE, np.uint16)
_BYTES_OF[list(_BYTE_OF)] = list(_BYTE_OF.values())


def _spelt_bytes(spelled: str) -> bytes:
    try:
        return spelled.translate(_BYTE_OF).encode("latin-1")
    except UnicodeEncodeError:  # not spelt in stand-ins: a token that its makers wrote as plain text
        return spelled.encode()
