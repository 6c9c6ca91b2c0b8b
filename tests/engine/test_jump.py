"""Which tokens of forced bytes are certain: those that the tokenizer makes of them whatever comes next."""

import pytest
from treefill.engine.jump import certain_tokens

from tests.helpers.scripted_engine import ByteVocabulary


class Longest(ByteVocabulary):
    """Bytes and some longer pieces; a text is cut into the longest that fit, from its beginning on."""

    def __init__(self, *pieces: str) -> None:
        super().__init__()
        self.pieces = [piece.encode() for piece in pieces]

    def token_bytes(self, token_id: int) -> bytes:
        return self.pieces[token_id - 300] if token_id >= 300 else super().token_bytes(token_id)

    def encode(self, text: str) -> list[int]:
        data, ids = text.encode(), []
        while data:
            fitting = [piece for piece in self.pieces if data.startswith(piece)]
            piece = max(fitting, key=len, default=data[:1])
            ids.append(300 + self.pieces.index(piece) if piece in self.pieces else piece[0])
            data = data[len(piece) :]
        return ids


def certain(vocabulary: Longest, last: str, forced: str) -> list[str]:
    ids = certain_tokens(vocabulary, vocabulary.encode(last)[-1], forced.encode())
    return [vocabulary.token_bytes(token).decode() for token in ids]


@pytest.mark.parametrize(
    ("pieces", "last", "forced", "expected"),
    [
        (("INSERT", " INTO"), "INSERT", " INTO", [" INTO"]),
        (("INSERT", " INTO", " INTO "), "INSERT", " INTO", []),  # a space may be part of it
        (("tr", "true"), "tr", "ue", []),  # the tokenizer would not have begun with `tr`
        (("de", "f "), "de", "f x", ["f ", "x"]),
        (("de", "f(", "(a"), "de", "f(", ["f("]),
        (("a", "bc", "cd("), "a", "bc", ["bc"]),
        (("a", "b", "b("), "a", "b", []),
        (("a", "é"), "a", "é", ["é"]),
    ],
)
def test_only_tokens_are_taken_that_nothing_to_come_changes(
    pieces: tuple[str, ...], last: str, forced: str, expected: list[str]
) -> None:
    assert certain(Longest(*pieces), last, forced) == expected


def test_half_a_character_is_no_text_to_cut() -> None:
    assert certain_tokens(Longest(), ord("a"), b"\xc3") == []
