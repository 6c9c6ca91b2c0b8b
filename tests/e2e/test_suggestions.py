"""Ghost text from the real model, in a real editor: what is shown is what comes into the file."""

import pytest

from tests.e2e.conftest import OpenWorkbench, StartCodeServer
from tests.e2e.latency import measure
from tests.e2e.workbench import BUILD, Workbench

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PLACES = {
    "area.py": ("def rectangle_area(width, height):\n    return ", "width * height"),
    "area.cpp": ("int add(int a, int b) {\n    return ", "a + b;"),
    "area.sql": ("CREATE TABLE users (id INTEGER, name TEXT);\n\nSELECT id, name\nFROM ", "users"),
}
"""A file → what stands in it, and what any model suggests there."""


def type_at_end(workbench: Workbench, text: str) -> None:
    workbench.press("Control+End")
    workbench.type(text)


@pytest.mark.parametrize("file", PLACES)
def test_a_suggestion_comes_and_tab_writes_it_into_the_file(open_editor: OpenWorkbench, file: str) -> None:
    text, expected = PLACES[file]
    editor = open_editor({file: text[:-1]})

    type_at_end(editor, text[-1])
    ghost = editor.wait_for_ghost()
    editor.screenshot(f"ghost-text-{file.rpartition('.')[2]}")
    assert expected in ghost
    editor.press("Tab")
    editor.wait_for_no_ghost()

    assert editor.saved().decode().startswith(text + ghost)


def test_a_suggestion_is_taken_word_by_word_and_given_back_by_undo(open_editor: OpenWorkbench) -> None:
    text, _ = PLACES["area.py"]
    editor = open_editor({"area.py": text[:-1]})

    type_at_end(editor, text[-1])
    editor.wait_for_ghost("width * height")
    editor.press("Control+ArrowRight")
    editor.wait_for_ghost(" * height")
    assert editor.lines()[-1] == "    return width"
    editor.press("Tab")
    editor.wait_until(lambda: editor.lines()[-1] == "    return width * height", "the rest to be accepted")
    editor.press("Control+z")
    editor.wait_until(lambda: editor.lines()[-1] == "    return width", "the rest to be given back")

    assert editor.saved().decode() == f"{text}width"


def test_a_suggestion_of_several_lines_is_taken_line_by_line(open_editor: OpenWorkbench) -> None:
    text = "def factorial(n):\n    "
    editor = open_editor({"factorial.py": text})

    editor.press("Control+End", "Alt+Backslash")
    ghost = editor.wait_for_ghost()
    first, *others = ghost.split("\n")
    assert others, "a whole body is suggested where it is asked for by hand"
    editor.press("Control+Alt+ArrowRight")
    editor.wait_until(
        lambda: len(editor.lines()) > 1 and editor.lines()[1] == f"    {first}", "its first line"
    )
    editor.press("Escape")

    assert editor.saved().decode().startswith(f"{text}{first}")


def test_who_types_along_keeps_the_suggestion_and_who_types_against_it_does_not(
    open_editor: OpenWorkbench,
) -> None:
    text, _ = PLACES["area.py"]
    editor = open_editor({"area.py": text[:-1]})

    type_at_end(editor, text[-1])
    editor.wait_for_ghost("width * height")
    editor.type("wid")
    editor.wait_for_ghost("th * height")
    editor.type("X")
    editor.wait_until(lambda: editor.ghost_text() != "th * height", "another suggestion, or none")
    editor.press("Escape")

    assert editor.saved().decode() == f"{text}widX"


def test_a_file_that_is_left_while_its_suggestion_is_made_stays_as_it_was_typed(
    open_editor: OpenWorkbench,
) -> None:
    text, _ = PLACES["area.py"]
    editor = open_editor({"area.py": text[:-1], "other.py": "x = 1\n"})

    type_at_end(editor, text[-1])
    editor.open_file("other.py")
    editor.assert_no_ghost_for(1.5)
    assert editor.lines() == ["x = 1", ""]
    editor.open_file("area.py")

    assert editor.saved("area.py").decode() == text
    assert (editor.folder / "other.py").read_bytes() == b"x = 1\n"


def test_suggestions_are_asked_for_by_hand_and_cycled_through(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"names.py": "def greet(name):\n    print("})

    editor.press("Control+End", "Alt+Backslash")
    seen = {editor.wait_for_ghost()}
    for _ in range(2):
        editor.press("Alt+BracketRight")
        editor.wait_until(
            lambda: editor.ghost_text() not in (None, *seen) or len(seen) > 1, "another suggestion"
        )
        seen.add(editor.ghost_text() or "")

    assert len(seen) >= 2


def test_nothing_needs_an_api_that_is_not_stable(
    open_editor: OpenWorkbench, start_treefill: StartCodeServer
) -> None:
    text, _ = PLACES["area.py"]
    editor = open_editor({"area.py": text[:-1]}, server=start_treefill(proposals="none"))

    type_at_end(editor, text[-1])
    editor.wait_for_ghost("width * height")
    editor.screenshot("ghost-text")  # docs/images has it
    editor.press("Tab")

    assert editor.saved().decode() == f"{text}width * height"


def test_a_cell_of_a_file_in_memory_is_completed_too(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": ""})

    editor.run_command("treefill: See a Completion")

    assert "celsius" in editor.wait_for_ghost()


def test_the_time_from_a_key_to_its_ghost_text_is_measured_beside_a_stubs(
    open_editor: OpenWorkbench, open_workbench: OpenWorkbench
) -> None:
    stub = open_workbench({"a.txt": ""})
    stub.wait_for_status("e2e.stub.counts", "answered")
    of_stub = measure(stub, "x" * 21)
    text, _ = PLACES["area.py"]
    editor = open_editor({"area.py": text[:-1]})
    type_at_end(editor, text[-1])
    editor.wait_for_ghost("width * height")
    of_treefill = measure(editor, "width * heigh")

    told = f"A key to its ghost text: a stub {of_stub}; treefill, typed along, {of_treefill}"
    (BUILD / "latency.txt").write_text(told + "\n")
    assert all(sample_ms > 0 for sample_ms in of_treefill.samples_ms)
