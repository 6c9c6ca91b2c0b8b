"""A text in chunks is the same text: against a slow twin, with chunks so small that their borders are everywhere."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.text import Position, PositionEncoding, Text, rope

from tests.text import utf16_twin as twin
from tests.text.utf16_twin import NEW_TEXTS, POSITIONS, TEXTS, joined

ENCODINGS = st.sampled_from(PositionEncoding)
PRIME = 2**61 - 31


@pytest.fixture(autouse=True, scope="module", params=[4, 7, 32_768])
def chunk_chars(request: pytest.FixtureRequest) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rope, "_CHUNK_CHARS", request.param)
        yield request.param


@given(TEXTS, st.integers(-2, 40), st.integers(-2, 40))
def test_a_text_is_its_characters(text: str, start: int, end: int) -> None:
    assert str(Text.of(text)) == joined(text)
    assert len(Text.of(text)) == len(joined(text))
    assert Text.of(text).slice(start, end) == joined(text)[max(start, 0) : max(end, 0)]


@given(TEXTS, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6), NEW_TEXTS), max_size=12))
def test_edits_join_halves_of_a_character_and_keep_lone_ones(
    text: str, edits: list[tuple[int, int, str]]
) -> None:
    rope_text, expected = Text.of(text), joined(text)
    for start, length, new in edits:
        start = min(start, len(expected))
        end = min(start + length, len(expected))
        before = str(rope_text)

        edited = rope_text.replace(start, end, new)

        expected = joined(expected[:start] + new + expected[end:])
        assert str(edited) == expected
        assert str(rope_text) == before
        assert edited.n_lines == len(twin.lines_of(expected))
        assert edited.checksum == Text.of(expected).checksum
        check_chunks(edited)
        rope_text = edited


@given(TEXTS)
def test_a_line_is_what_stands_between_two_endings(text: str) -> None:
    rope_text, plain = Text.of(text), joined(text)

    assert rope_text.n_lines == len(twin.lines_of(plain))
    for start, end, next_start in twin.lines_of(plain):
        for offset in {*range(start, next_start), start, end}:
            assert rope_text.line_bounds(offset) == (start, end)


@given(TEXTS, ENCODINGS)
def test_every_offset_has_its_position_and_back(text: str, encoding: PositionEncoding) -> None:
    rope_text, plain = Text.of(text), joined(text)
    for offset in range(len(plain) + 1):
        position = rope_text.position_at(offset, encoding)

        assert position == twin.position_at(plain, offset, encoding)
        is_inside_an_ending = plain[offset - 1 : offset + 1] == "\r\n"
        assert rope_text.offset_at(position, encoding) == offset - is_inside_an_ending


@given(TEXTS, POSITIONS, ENCODINGS)
def test_any_position_is_a_place_in_the_text(
    text: str, position: Position, encoding: PositionEncoding
) -> None:
    assert Text.of(text).offset_at(position, encoding) == twin.offset_at(joined(text), position, encoding)


@pytest.mark.parametrize(
    ("position", "offset"),
    [((-1, 2), 2), ((0, -1), 0), ((0, 2**40), 2), ((1, 99), 6), ((2, 0), 7), ((3, 0), 8), ((2**40, 5), 8)],
)
def test_a_position_outside_is_brought_inside(position: tuple[int, int], offset: int) -> None:
    text = Text.of("ab\r\nc🙂\nd")

    for encoding in PositionEncoding:
        assert text.offset_at(Position(*position), encoding) == offset


def test_an_offset_outside_is_the_nearest_one_inside() -> None:
    text = Text.of("ab\nc")

    assert text.position_at(-3, PositionEncoding.UTF_16) == Position(0, 0)
    assert text.position_at(99, PositionEncoding.UTF_16) == Position(1, 1)
    assert text.line_bounds(99) == (3, 4)


@given(TEXTS)
def test_the_checksum_is_a_number_of_the_utf_8_bytes_and_the_length(text: str) -> None:
    data = joined(text).encode("utf-8", "surrogatepass")

    checksum = Text.of(text).checksum

    assert checksum == len(joined(text)) * 2**61 + int.from_bytes(data, "big") % PRIME


@given(TEXTS, TEXTS)
def test_texts_are_equal_where_their_characters_are(one: str, other: str) -> None:
    assert Text.of(one) == Text.of(joined(one)).replace(0, 0, "ab").replace(0, 2, "")
    assert hash(Text.of(one)) == hash(Text.of(joined(one)))
    assert (Text.of(one) == Text.of(other)) == (joined(one) == joined(other))
    assert Text.of(one) != one


def test_leading_nul_characters_count() -> None:
    assert len({Text.of("\0" * n).checksum for n in range(50)}) == 50


@pytest.mark.parametrize("pair", ["\r\n", "\ud83d\ude42"], ids=["line ending", "emoji"])
@pytest.mark.parametrize("offset", range(21))
def test_two_halves_meet_wherever_they_are_typed(pair: str, offset: int) -> None:
    text, (first, second) = Text.of("abcdefghijklmnopqrst"), pair
    expected = Text.of(str(text)[:offset] + joined(pair) + str(text)[offset:])

    first_then_second = text.replace(offset, offset, first).replace(offset + 1, offset + 1, second)
    second_then_first = text.replace(offset, offset, second).replace(offset, offset, first)
    until_all_between_is_gone = text.replace(offset, offset, first + "-" * 12 + second)
    for n_left in (9, 5, 1, 0):
        until_all_between_is_gone = until_all_between_is_gone.replace(
            offset + 1 + n_left, len(until_all_between_is_gone) - (20 - offset) - 1, ""
        )

    for edited in (first_then_second, second_then_first, until_all_between_is_gone):
        assert edited == expected
        assert edited.n_lines == expected.n_lines
        check_chunks(edited)


@pytest.mark.parametrize("typed", ["a", "\r", "\n", "🙂", "\ud83d", "\ude42\ud83d", "a\r\nbc"])
def test_typing_and_deleting_at_one_place_leaves_no_long_or_tiny_chunks(typed: str) -> None:
    text = Text.of("x\r\n" * 20)
    for _ in range(40):
        text = text.replace(30, 30, typed)
        check_chunks(text)
    while len(text):
        text = text.replace(min(30, len(text) - 1), min(31, len(text)), "")
        check_chunks(text)


def test_edits_outside_the_text_are_refused() -> None:
    text = Text.of("abc")

    for start, end in [(-1, 0), (2, 1), (3, 4), (4, 4)]:
        with pytest.raises(IndexError, match="not within a text of 3 characters"):
            text.replace(start, end, "")


def test_a_carriage_return_typed_before_a_line_feed_makes_one_ending_of_both() -> None:
    text = Text.of("abcd\nefgh\n")
    assert text.n_lines == 3

    assert text.replace(4, 4, "\r").n_lines == 3
    assert text.replace(4, 4, "\r").line_bounds(2) == (0, 4)
    assert text.replace(5, 5, "\r").n_lines == 4


def check_chunks(text: Text) -> None:
    r"""No chunk is longer than a full one and a `\n`, or less than about half full, or ends within a pair."""
    chunks = [chunk.text for chunk in text._chunks]
    assert "".join(chunks) == str(text)
    for chunk, next_chunk in pairwise(chunks):
        assert not (chunk[-1] == "\r" and next_chunk[0] == "\n")
        assert joined(chunk[-1] + next_chunk[0]) == chunk[-1] + next_chunk[0]
    if len(chunks) > 1:
        assert min(map(len, chunks)) >= rope._CHUNK_CHARS // 2 - 1
        assert max(map(len, chunks)) <= rope._CHUNK_CHARS + 1
