r"""Lines end at `\n`, `\r\n` and `\r`, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.errors import BadInput
from treefill.text import (
    Document,
    count_lines,
    line_bounds,
    line_ending_at,
    offset_at,
    position_at,
    to_lf,
    with_line_ending,
    without_surrogates,
)

TEXTS = st.lists(
    st.sampled_from(
        [
            "a",
            "bc",
            "\n",
            "\r\n",
            "\r",
            "\t",
            "\x0c",
            "\x0b",
            "\x1c",
            "\x85",
            "\u2028",
            "\u2029",
            "🙂",
            "\ud83d",
        ]
    )
).map("".join)


def lines_of(text: str) -> list[str]:
    return to_lf(text).split("\n")


@given(TEXTS)
def test_every_position_has_its_offset_and_back(text: str) -> None:
    document = Document("a.py", text)
    for number, line in enumerate(lines_of(text), start=1):
        for column in range(1, len(line) + 2):
            assert position_at(document, offset_at(document, number, column)) == (number, column)


@given(TEXTS)
def test_lines_are_counted_as_an_editor_does(text: str) -> None:
    assert count_lines(text) == len(lines_of(text))


@given(TEXTS, st.data())
def test_a_line_is_what_stands_between_two_endings(text: str, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(lines_of(text))))
    line = lines_of(text)[number - 1]
    offset = offset_at(Document("a.py", text), number, 1 + data.draw(st.integers(0, len(line))))

    start, end = line_bounds(text, offset)

    assert text[start:end] == line


@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_odd_separators_end_no_line(odd: str) -> None:
    document = Document("a.py", f"a = 1\n{odd}b = 2\nc = 3\n")

    assert offset_at(document, 3, 5) == document.text.index("3")


def test_a_position_past_the_end_says_how_much_there_is() -> None:
    document = Document("a.py", "ab\r\ncde")

    assert offset_at(document, 2, 4) == 7
    with pytest.raises(BadInput, match=r"line 3 is past the end of a.py: it has 2 lines"):
        offset_at(document, 3, 1)
    with pytest.raises(BadInput, match="its last column is 3"):
        offset_at(document, 1, 4)
    with pytest.raises(BadInput, match="count from 1"):
        offset_at(document, 0, 1)
    with pytest.raises(BadInput, match="count from 1"):
        offset_at(document, 1, 0)


def test_an_empty_document_has_one_place() -> None:
    assert offset_at(Document("a.py", ""), 1, 1) == 0
    with pytest.raises(BadInput, match=r"it has 1 line$"):
        offset_at(Document("a.py", ""), 2, 1)


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("a\nb‸c\r\n", "\r\n"),
        ("a\r\nb‸c\n", "\n"),
        ("a\rb‸", "\r"),
        ("a\r\nb‸", "\r\n"),
        ("a\nb‸", "\n"),
        ("‸", "\n"),
        ("a‸", "\n"),
        ("a\n\r\n‸", "\r\n"),
    ],
)
def test_the_cursors_line_decides_the_ending(text: str, ending: str) -> None:
    offset = text.index("‸")

    assert line_ending_at(text.replace("‸", ""), offset) == ending


@given(st.lists(st.sampled_from(["a", "\n", "\n\n"])).map("".join), st.sampled_from(["\n", "\r\n", "\r"]))
def test_line_endings_come_back_as_they_were(text: str, ending: str) -> None:
    assert to_lf(with_line_ending(text, ending)) == text


def test_half_a_surrogate_pair_can_be_encoded() -> None:
    assert without_surrogates("a\ud83db").encode() == "a\ufffdb".encode()
