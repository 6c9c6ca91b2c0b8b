"""Positions where a user would type: kinds in turn, files in turn, and the same ones every time."""

from collections import Counter

from treefill.evaluation.positions import FREE_TURNS, Kind, Position, choose_positions
from treefill.text import Document, line_bounds

FILES = [
    Document(f"{name}.py", "\n".join(f"    {name}_{line} = call({line})" for line in range(30)), "python")
    for name in "abc"
]


def line_of(position: Position) -> tuple[str, str]:
    """What stands left and right of the cursor in its line."""
    start, end = line_bounds(position.document.text, position.offset)
    return position.document.text[start : position.offset], position.document.text[position.offset : end]


def test_kinds_take_turns() -> None:
    positions = choose_positions(FILES, 40)
    kinds = Counter(position.kind for position in positions)

    assert kinds == dict.fromkeys(Kind, 10)


def test_each_kind_leaves_of_its_line_what_its_name_says() -> None:
    for position in choose_positions(FILES, 40):
        left, right = line_of(position)
        assert bool(left.strip()) == (position.kind is not Kind.LINE_START)
        assert bool(right.strip()) == (position.kind in (Kind.MID_GAP, Kind.MID_LINE))
        assert bool(position.cut) == (position.kind is not Kind.MID_LINE)
        assert left.startswith("    ")
        assert position.original in {document.text for document in FILES}


def test_a_cursor_in_a_line_stands_between_two_tokens() -> None:
    for position in choose_positions(FILES, 40):
        text, offset = position.original, position.offset
        assert not (text[offset - 1].isalnum() and text[offset].isalnum())


def test_where_a_block_is_wanted_nothing_is_left_right_of_the_cursor() -> None:
    kinds = {position.kind for position in choose_positions(FILES, 20, turns=FREE_TURNS)}

    assert kinds == {Kind.LINE_START, Kind.LINE_END}


def test_files_take_turns() -> None:
    paths = [position.document.path for position in choose_positions(FILES, 6)]

    assert paths == ["a.py", "b.py", "c.py"] * 2


def test_a_longer_choice_begins_like_a_shorter_one_and_another_seed_chooses_otherwise() -> None:
    short, long = choose_positions(FILES, 10), choose_positions(FILES, 20)

    assert long[:10] == short
    assert choose_positions(FILES, 10, seed=1) != short


def test_files_that_have_no_more_positions_end_the_choice() -> None:
    files = [Document("a.py", "a b", "python"), Document("empty.py", "\n\n", "python")]
    positions = choose_positions(files, 50)

    assert 0 < len(positions) < 20
    assert {position.document.path for position in positions} == {"a.py"}


def test_line_endings_stay() -> None:
    text = "first = 1\r\nsecond = 2\r\nthird = 3\r\n"
    for position in choose_positions([Document("a.py", text, "python")], 12):
        assert position.original == text
        assert position.document.text.count("\r\n") == 3


def test_the_digest_tells_one_state_of_a_file_from_another() -> None:
    changed = [Document(document.path, document.text + "\n", "python") for document in FILES]
    before = {position.digest for position in choose_positions(FILES, 10)}

    assert before.isdisjoint(position.digest for position in choose_positions(changed, 10))
