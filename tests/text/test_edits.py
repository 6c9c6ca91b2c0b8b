"""A range of an editor's becomes an edit in code points, and does what a JavaScript string would."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.text import Edit, Position, PositionEncoding, Text, edit_for, rope

from tests.text import utf16_twin as twin
from tests.text.utf16_twin import NEW_TEXTS, POSITIONS, TEXTS, joined

UTF_16 = PositionEncoding.UTF_16
SMILEY = 's = "🙂"'


@pytest.fixture(autouse=True, scope="module", params=[4, 32_768])
def chunk_chars(request: pytest.FixtureRequest) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rope, "_CHUNK_CHARS", request.param)
        yield request.param


def spliced(text: str, edit: Edit) -> str:
    return text[: edit.start] + edit.text + text[edit.end :]


@given(TEXTS, POSITIONS, POSITIONS, NEW_TEXTS)
def test_an_edit_in_utf_16_does_what_a_javascript_string_would(
    text: str, start: Position, end: Position, new: str
) -> None:
    before = Text.of(text)

    edit = edit_for(before, start, end, new, UTF_16)

    expected = twin.replaced(text, start, end, new)
    assert spliced(joined(text), edit) == expected
    assert str(before.replace(edit.start, edit.end, edit.text)) == expected


@given(TEXTS, POSITIONS, POSITIONS, NEW_TEXTS, st.sampled_from(["utf-8", "utf-32"]))
def test_an_edit_in_other_units_starts_at_the_character_that_it_names(
    text: str, start: Position, end: Position, new: str, unit: str
) -> None:
    encoding = PositionEncoding(unit)
    plain = joined(text)
    first, last = sorted(twin.offset_at(plain, position, encoding) for position in (start, end))

    edit = edit_for(Text.of(text), start, end, new, encoding)

    assert spliced(plain, edit) == joined(plain[:first] + new + plain[last:])


@pytest.mark.parametrize(
    ("start", "end", "new", "edit"),
    [
        (5, 7, "", Edit(5, 6, "")),
        (5, 6, "", Edit(5, 6, "\ude42")),
        (6, 7, "", Edit(5, 6, "\ud83d")),
        (6, 6, "!", Edit(5, 6, "\ud83d!\ude42")),
        (6, 6, "", Edit(5, 6, "🙂")),
        (6, 7, "\ude80", Edit(5, 6, "🚀")),
        (7, 5, "x", Edit(5, 6, "x")),
        (6, 5, "x", Edit(5, 6, "x\ude42")),
        (7, 7, "!", Edit(6, 6, "!")),
    ],
)
def test_what_survives_of_a_cut_character_stands_in_the_edit(
    start: int, end: int, new: str, edit: Edit
) -> None:
    assert edit_for(Text.of(SMILEY), Position(0, start), Position(0, end), new, UTF_16) == edit


@pytest.mark.parametrize(
    ("text", "start", "end", "new", "edit"),
    [
        ("a\ud83db", 2, 2, "\ude42", Edit(1, 2, "🙂")),
        ("a\ude42b", 1, 1, "\ud83d", Edit(1, 2, "🙂")),
        ("\ud83d-\ude42", 1, 2, "", Edit(0, 3, "🙂")),
        ("\ud83d-\ude42", 1, 2, "\ude42\ud83d", Edit(0, 3, "🙂🙂")),
        ("\ud83d🙂\ude42", 2, 2, "\ude42\ud83d", Edit(1, 2, "🙂🙂")),
    ],
)
def test_halves_that_meet_become_one_character_in_the_edit(
    text: str, start: int, end: int, new: str, edit: Edit
) -> None:
    assert edit_for(Text.of(text), Position(0, start), Position(0, end), new, UTF_16) == edit


@pytest.mark.parametrize("character", [6, 7, 8])
def test_a_position_among_the_bytes_of_a_character_means_its_start(character: int) -> None:
    inside = Position(0, character)

    assert edit_for(Text.of(SMILEY), inside, inside, "!", PositionEncoding.UTF_8) == Edit(5, 5, "!")


def test_a_range_that_ends_before_its_start_is_taken_the_other_way_round() -> None:
    text = Text.of("one\ntwo\nthree")

    for start, end in [(Position(2, 1), Position(0, 1)), (Position(0, 1), Position(2, 1))]:
        assert edit_for(text, start, end, "-", UTF_16) == Edit(1, 9, "-")


def test_a_range_outside_the_text_is_brought_inside() -> None:
    text = Text.of("x")

    assert edit_for(text, Position(1, 3), Position(1, 3), "y", UTF_16) == Edit(1, 1, "y")
    assert edit_for(text, Position(-1, -1), Position(9, 9), "y", UTF_16) == Edit(0, 1, "y")
