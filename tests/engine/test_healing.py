"""Tokens that may come next while typed bytes are spelled, against looking at every token."""

from hypothesis import given
from hypothesis import strategies as st
from treefill.engine.api import TokenBytes
from treefill.engine.healing import PrefixIndex

ALPHABET = st.sampled_from([b"a", b"b", b" ", b"\xff", b"\xfe", b"\x00"])
SPELLING = st.lists(ALPHABET, max_size=4).map(b"".join)


class SpelledVocabulary:
    """A vocabulary of given spellings; empty ones stand for control tokens."""

    end_ids: frozenset[int] = frozenset()

    def __init__(self, spellings: list[bytes]) -> None:
        self.spellings = spellings
        self.n_tokens = len(spellings)

    def token_bytes(self, token_id: int) -> bytes:
        return self.spellings[token_id]

    def every_token_bytes(self) -> TokenBytes:
        return TokenBytes.of(self.spellings)

    def encode(self, text: str) -> list[int]:
        raise AssertionError("healing looks tokens up, it does not encode")

    def decode(self, ids: list[int] | tuple[int, ...]) -> str:
        raise AssertionError("healing looks tokens up, it does not decode")

    def control_id(self, name: str) -> int | None:
        return None


@given(spellings=st.lists(SPELLING, max_size=30), remaining=SPELLING.filter(bool))
def test_allowed_are_beginnings_and_continuations(spellings: list[bytes], remaining: bytes) -> None:
    allowed = PrefixIndex(SpelledVocabulary(spellings)).allowed(remaining)

    expected = [
        token
        for token, spelled in enumerate(spellings)
        if spelled and (spelled.startswith(remaining) or remaining.startswith(spelled))
    ]
    assert allowed.tolist() == expected
