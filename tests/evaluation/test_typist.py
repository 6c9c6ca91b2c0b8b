"""Which edits a text comes about by, key by key; whatever the editor adds, the typed text is there in the end."""

import sysconfig
from pathlib import Path

import pytest
from treefill.evaluation.typist import Edit, Typist


def typed(target: str, *, helps: bool = True, below: str = "") -> list[str]:
    """The buffer after each key, the cursor as `█`; every edit must lead from one text to the next."""
    typist = Typist(below, 0, target, helps)
    seen: list[str] = []
    old = typist.text
    while edit := typist.press():
        assert typist.text == old[: edit.start] + edit.text + old[edit.end :]
        old = typist.text
        seen.append(f"{old[: typist.cursor]}█{old[typist.cursor :]}")
    return seen


def test_an_editor_that_adds_nothing_gets_every_character() -> None:
    assert typed("f(1)\n x", helps=False) == [
        "f█", "f(█", "f(1█", "f(1)█", "f(1)\n█", "f(1)\n █", "f(1)\n x█",
    ]  # fmt: skip


def test_a_bracket_closes_itself_and_its_closer_is_typed_over() -> None:
    assert typed("f(1)") == ["f█", "f(█)", "f(1█)", "f(1)█"]


def test_quotes_close_themselves_three_of_them_too_but_not_after_a_word() -> None:
    assert typed("'a'") == ["'█'", "'a█'", "'a'█"]
    assert typed('"""a"""')[-1] == '"""a"""█'
    assert typed("don't") == ["d█", "do█", "don█", "don'█", "don't█"]


def test_enter_indents_and_between_braces_the_closer_gets_a_line() -> None:
    assert typed("{\n  a;\n}") == ["{█}", "{\n  █\n}", "{\n  a█\n}", "{\n  a;█\n}", "{\n  a;\n}█"]


def test_an_edit_says_whether_it_began_a_line_and_whether_the_editor_had_a_hand_in_it() -> None:
    typist = Typist("", 0, "{\n}")

    assert [typist.press() for _ in range(4)] == [
        Edit(0, 0, "{}", is_new_line=False, is_bracket=True),
        Edit(1, 1, "\n", is_new_line=True, is_bracket=False),
        Edit(2, 3, "}", is_new_line=False, is_bracket=True),
        None,
    ]
    assert typist.text == "{\n}"


@pytest.mark.parametrize("name", ["textwrap.py", "heapq.py", "json/decoder.py"])
def test_in_the_end_a_real_files_text_is_there(name: str) -> None:
    text = (Path(sysconfig.get_path("stdlib")) / name).read_text("utf-8")[:6000]

    last = typed(text, below="\nrest\n")[-1]

    before, after = last.split("█")
    assert before == text
    assert after.endswith("\nrest\n")
