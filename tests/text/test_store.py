"""Open buffers follow the editor, and a mirror in another process follows them."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.errors import BadInput
from treefill.text import Buffer, BufferStore, Change, Edit, Position, PositionEncoding, Text, rope

from tests.text import utf16_twin as twin
from tests.text.utf16_twin import NEW_TEXTS, POSITIONS, TEXTS, joined

UTF_16 = PositionEncoding.UTF_16
URI = "file:///a.py"
CHANGES = st.one_of(st.builds(Change, NEW_TEXTS, POSITIONS, POSITIONS), st.builds(Change, TEXTS))


@pytest.fixture(autouse=True, scope="module", params=[4, 32_768])
def chunk_chars(request: pytest.FixtureRequest) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rope, "_CHUNK_CHARS", request.param)
        yield request.param


def opened(text: str, uri: str = URI) -> BufferStore:
    store = BufferStore()
    store.open(uri, "python", 1, text)
    return store


def change(start: tuple[int, int], end: tuple[int, int], text: str) -> Change:
    return Change(text, Position(*start), Position(*end))


def buffer_of(store: BufferStore, uri: str = URI) -> Buffer:
    buffer = store.get(uri)
    assert buffer is not None
    return buffer


def text_in(store: BufferStore, uri: str = URI) -> str:
    return str(buffer_of(store, uri).text)


@given(TEXTS, st.lists(st.lists(CHANGES, max_size=3), max_size=6))
def test_the_editor_the_front_and_its_mirror_have_the_same_text(
    text: str, batches: list[list[Change]]
) -> None:
    front, mirror, expected = opened(text), opened(text), joined(text)
    for version, changes in enumerate(batches, start=2):
        edits = front.change(URI, version, changes, UTF_16)
        for each in changes:
            if each.start is None or each.end is None:
                expected = joined(each.text)
            else:
                expected = twin.replaced(expected, each.start, each.end, each.text)

        assert mirror.apply(URI, version, edits, buffer_of(front).text.checksum)
        assert text_in(front) == text_in(mirror) == expected
        assert buffer_of(front) == buffer_of(mirror) == Buffer(URI, "python", version, Text.of(expected))


def test_g01_every_edit_after_an_emoji_stays_in_its_place() -> None:
    store = opened('s = "🙂"  # t\nprint(s)\n')

    store.change(URI, 2, [change((0, 7), (0, 7), "!")], UTF_16)
    assert text_in(store) == 's = "🙂!"  # t\nprint(s)\n'
    assert buffer_of(store).text.offset_at(Position(0, 8), UTF_16) == len('s = "🙂!')

    store.change(URI, 3, [change((0, 5), (0, 7), "")], UTF_16)
    assert text_in(store) == 's = "!"  # t\nprint(s)\n'

    store.change(URI, 4, [change((0, 5), (0, 5), "\ud83d")], UTF_16)
    assert text_in(store) == 's = "\ud83d!"  # t\nprint(s)\n'

    store.change(URI, 5, [change((0, 6), (0, 6), "\ude42")], UTF_16)
    assert text_in(store) == 's = "🙂!"  # t\nprint(s)\n'


@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_g02_an_odd_separator_shifts_no_later_line(odd: str) -> None:
    at_a_line_start = opened(f"a = 1\n{odd}b = 2\nc = 3\n")
    in_a_string = opened(f'a = "{odd}"\nb = 2\nc = 3\n')

    for store, line in [(at_a_line_start, f"a = 1\n{odd}b = 2\n"), (in_a_string, f'a = "{odd}"\nb = 2\n')]:
        store.change(URI, 2, [change((2, 4), (2, 5), "9")], UTF_16)
        assert text_in(store) == line + "c = 9\n"


def test_g02_a_lone_carriage_return_ends_a_line() -> None:
    store = opened("a = 1\rb = 2\nc = 3\n")

    store.change(URI, 2, [change((2, 4), (2, 5), "9")], UTF_16)

    assert text_in(store) == "a = 1\rb = 2\nc = 9\n"


@pytest.mark.parametrize("is_whole_text", [True, False])
def test_g13_a_change_that_only_switches_line_endings_is_followed(is_whole_text: bool) -> None:
    windows, unix = "int f() {\r\n    \r\n}\r\n", "int f() {\n    \n}\n"
    front, mirror = opened(windows), opened(windows)

    switched = Change(unix) if is_whole_text else change((0, 0), (3, 0), unix)
    edits = front.change(URI, 2, [switched], UTF_16)

    assert text_in(front) == unix
    assert mirror.apply(URI, 2, edits, buffer_of(front).text.checksum)
    assert text_in(mirror) == unix
    assert buffer_of(front).text.position_at(14, UTF_16) == Position(1, 4)


def test_g13_line_endings_switched_line_by_line_are_followed() -> None:
    store = opened("a\r\nb\r\nc\r\n")

    store.change(URI, 2, [change((line, 1), (line + 1, 0), "\n") for line in range(3)], UTF_16)

    assert text_in(store) == "a\nb\nc\n"


def test_g16_1_two_nameless_buffers_have_each_their_own_text() -> None:
    store = opened("aaaa\nbbbb\ncccc\n", "untitled:Untitled-1")
    store.open("untitled:Untitled-2", "python", 1, "z\n")

    store.change("untitled:Untitled-1", 2, [change((2, 4), (2, 4), "!")], UTF_16)

    assert text_in(store, "untitled:Untitled-1") == "aaaa\nbbbb\ncccc!\n"
    assert text_in(store, "untitled:Untitled-2") == "z\n"


def test_g16_2_the_last_open_wins_and_an_edit_past_its_end_is_brought_inside() -> None:
    store = opened("one\ntwo\n", "file:///")
    store.open("file:///", "python", 1, "x")

    edits = store.change("file:///", 2, [change((1, 3), (1, 3), "y")], UTF_16)

    assert edits == (Edit(1, 1, "y"),)
    assert text_in(store, "file:///") == "xy"


def test_g16_3_a_buffer_that_is_not_open_is_not_changed() -> None:
    store = opened("a")
    assert store.close(URI)
    assert not store.close(URI)

    for uri in (URI, "file:///never.py"):
        with pytest.raises(BadInput, match="is not open"):
            store.change(uri, 2, [Change("b")], UTF_16)
        with pytest.raises(BadInput, match="is not open"):
            store.apply(uri, 2, [], 0)
        assert store.get(uri) is None


def test_the_buffer_touched_last_comes_last() -> None:
    store = BufferStore()
    for uri in ("a", "b", "c"):
        store.open(uri, "python", 1, "")
    assert store.uris() == ("a", "b", "c")

    store.change("b", 2, [Change("x")], UTF_16)
    store.get("a")
    assert store.uris() == ("a", "c", "b")

    store.open("a", "python", 1, "")
    assert store.uris() == ("c", "b", "a")

    store.close("b")
    store.apply("c", 2, [], Text.of("").checksum)
    assert store.uris() == ("a", "c")


def test_a_snapshot_stays_as_it_was() -> None:
    store = opened("one")
    before = buffer_of(store)

    store.change(URI, 2, [change((0, 3), (0, 3), "!")], UTF_16)

    assert (str(before.text), before.version) == ("one", 1)
    assert (text_in(store), buffer_of(store).version) == ("one!", 2)


def test_a_version_that_goes_back_is_not_applied_and_puts_the_buffer_out_of_step() -> None:
    store = opened("one")
    store.change(URI, 5, [], UTF_16)

    assert store.change(URI, 4, [change((0, 0), (0, 0), "x")], UTF_16) == ()

    assert text_in(store) == "one"
    assert (buffer_of(store).version, buffer_of(store).is_in_step) == (5, False)


def test_equal_and_newer_versions_apply() -> None:
    store = opened("one")

    store.change(URI, 1, [change((0, 0), (0, 0), "x")], UTF_16)
    store.change(URI, 9, [change((0, 0), (0, 0), "y")], UTF_16)

    assert text_in(store) == "yxone"
    assert buffer_of(store).is_in_step


def out_of_step() -> BufferStore:
    store = opened("one")
    store.change(URI, 0, [change((0, 0), (0, 0), "x")], UTF_16)
    assert not buffer_of(store).is_in_step
    return store


def test_a_buffer_out_of_step_is_not_in_step_again_by_an_edit() -> None:
    store = out_of_step()

    store.change(URI, 2, [change((0, 0), (0, 0), "y")], UTF_16)

    assert text_in(store) == "yone"
    assert not buffer_of(store).is_in_step


@pytest.mark.parametrize("version", [0, 2])
def test_a_whole_text_brings_a_buffer_back_in_step(version: int) -> None:
    store = out_of_step()

    store.change(URI, version, [Change("two"), change((0, 3), (0, 3), "!")], UTF_16)

    assert text_in(store) == "two!"
    assert (buffer_of(store).version, buffer_of(store).is_in_step) == (version, True)


def test_opening_again_brings_a_buffer_back_in_step() -> None:
    store = out_of_step()

    assert store.open(URI, "python", 1, "two").is_in_step
    assert text_in(store) == "two"


def test_a_mirror_whose_checksum_differs_is_out_of_step_until_it_agrees() -> None:
    mirror = opened("one")

    assert not mirror.apply(URI, 2, [Edit(0, 0, "x")], Text.of("yone").checksum)
    assert not buffer_of(mirror).is_in_step

    assert mirror.apply(URI, 3, [Edit(0, 4, "two")], Text.of("two").checksum)
    assert buffer_of(mirror) == Buffer(URI, "python", 3, Text.of("two"))


@pytest.mark.parametrize("outside", [Edit(4, 5, ""), Edit(-1, 0, ""), Edit(2, 1, "")])
def test_an_edit_outside_the_mirrors_text_leaves_the_text_and_puts_it_out_of_step(outside: Edit) -> None:
    mirror = opened("one")

    assert not mirror.apply(URI, 2, [Edit(0, 0, "x"), outside], Text.of("xone").checksum)

    assert text_in(mirror) == "one"
    assert not buffer_of(mirror).is_in_step
