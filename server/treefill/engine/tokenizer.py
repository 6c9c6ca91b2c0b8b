"""A model's `tokenizer.json` as the vocabulary that prompts and decoding need.

Text never becomes a control token here: whoever wants `<|fim_middle|>` asks for its id by name.
"""

from collections.abc import Collection
from pathlib import Path

from tokenizers import Tokenizer

from treefill.engine.api import TokenId
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
        ids = _ids(self._tokenizer)
        self.n_tokens: int = 1 + max(ids, default=-1)
        if not 0 < self.n_tokens <= vocab_size:
            raise BrokenModel(
                f"{path} has {self.n_tokens} tokens and the model {vocab_size}. Pull the model again."
            )
        self.end_ids = end_ids
        self.barred_ids: frozenset[TokenId] = self._control_ids | set(range(self.n_tokens)).difference(ids)
        """What is never written: control tokens, and ids below `n_tokens` that no token has."""

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

    def every_token_bytes(self) -> list[bytes]:
        """The bytes of every token below `n_tokens`, by its id: at once, in a tenth of the time."""
        spelled = [self._tokenizer.id_to_token(token_id) or "" for token_id in range(self.n_tokens)]
        # U+FFFF stands for no byte and no character, so it tells the tokens apart through the translation.
        translated = "\uffff".join(spelled).translate(_BYTE_OF).split("\uffff")
        try:
            found = [token.encode("latin-1") for token in translated]
        except UnicodeEncodeError:  # a token that its makers wrote as plain text
            found = []
        if len(found) != self.n_tokens:
            return [self.token_bytes(token_id) for token_id in range(self.n_tokens)]
        for token_id, plain in self._plain.items():
            found[token_id] = plain
        for token_id in self._control_ids:
            found[token_id] = b""
        return found

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


def _ids(tokenizer: Tokenizer) -> Collection[TokenId]:
    """Every id that a token has. Almost always they are 0 to n - 1, which is found out without listing them."""
    n_tokens = tokenizer.get_vocab_size(with_added_tokens=True)
    if all(tokenizer.id_to_token(token_id) is not None for token_id in range(n_tokens)):
        return range(n_tokens)
    return tokenizer.get_vocab(with_added_tokens=True).values()


def _no_tokens(fault: str) -> EngineError:
    return EngineError(f"The model's tokenizer failed on the text ({fault}). Pull the model again.")


def _gpt2_stand_ins() -> dict[int, int]:
    """GPT-2's printable stand-in for each byte, by code point: itself where printable, else one from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {256 + index: byte for index, byte in enumerate(others)}


_BYTE_OF = _gpt2_stand_ins()


def _spelt_bytes(spelled: str) -> bytes:
    try:
        return spelled.translate(_BYTE_OF).encode("latin-1")
    except UnicodeEncodeError:  # not spelt in stand-ins: a token that its makers wrote as plain text
        return spelled.encode()
