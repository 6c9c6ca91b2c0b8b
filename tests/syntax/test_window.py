"""Of a large text only what is around the cursor is parsed."""

import pytest
from treefill.syntax.window import MAX_WHOLE_CHARS, REACH_CHARS, window_of

UNIT = "def f(a):\n    b = a\n\n    return b\n\n\n"
LARGE = UNIT * 40_000


def test_a_text_of_ordinary_size_is_parsed_whole() -> None:
    text = UNIT * 100

    assert window_of(text, 50) == (0, len(text))


@pytest.mark.parametrize("offset", [0, 1, 777_777, len(LARGE) - 1, len(LARGE)])
def test_a_window_lies_around_the_cursor_and_ends_between_outermost_pieces(offset: int) -> None:
    start, end = window_of(LARGE, offset)

    assert start <= offset <= end
    assert end - start <= MAX_WHOLE_CHARS
    assert offset - start >= min(offset, REACH_CHARS)
    assert end - offset >= min(len(LARGE) - offset, REACH_CHARS)
    assert start == 0 or LARGE[start : start + 3] == "def"
    assert end == len(LARGE) or LARGE[end:].lstrip("\n").startswith("def")


def test_where_nothing_begins_in_column_0_lines_do() -> None:
    text = " x = 1\n" * 200_000

    start, end = window_of(text, 700_000)
    assert text[start - 1] == "\n"
    assert text[end - 1] == "\n"


def test_a_file_of_one_line_is_cut_nowhere_but_at_its_ends() -> None:
    assert window_of("x" * 1_000_000, 500_000) == (0, 1_000_000)


def test_line_endings_change_no_window() -> None:
    start, end = window_of(LARGE, 700_000)
    with_returns = LARGE.replace("\n", "\r\n")
    at = len(LARGE[:700_000].replace("\n", "\r\n"))
    starts = with_returns[slice(*window_of(with_returns, at))]

    assert LARGE[start:end].startswith("def")
    assert starts.startswith("def")
