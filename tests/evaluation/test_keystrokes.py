"""Typing replayed: which characters, which requests, and what of each prompt was evaluated."""

from itertools import pairwise

import pytest
from treefill.evaluation.keystrokes import (
    Keystroke,
    Typing,
    choose_typings,
    replay,
    summarise_keystrokes,
)
from treefill.text import Document

from tests.helpers.scripted_engine import ScriptedEngine

DOCUMENT = Document(
    "shop.py",
    "".join(f"def price_{number}(item):\n    return item.price * {number}\n\n" for number in range(30)),
    "python",
)


def typed(arm: str, n_keys: int = 12) -> list[Keystroke]:
    typings = choose_typings([DOCUMENT], 1, n_keys)
    return list(replay(typings, [arm], ScriptedEngine("x = 1\n")))


def test_a_place_is_typed_from_a_lines_text_on_and_ends_with_a_line() -> None:
    typings = choose_typings([DOCUMENT], 3, 40)

    assert len(typings) == 3
    for typing in typings:
        before = DOCUMENT.text[: typing.start].rpartition("\n")[2]
        assert before.strip() == ""
        assert DOCUMENT.text[typing.end] == "\n"
        assert typing.end - typing.start >= 40


def test_what_is_typed_stands_before_the_cursor_and_the_rest_of_the_file_below() -> None:
    typing = Typing(Document("a.py", "a\nbcdef\ng\n", "python"), 2, 7, 3)

    typist = typing.typist()
    seen = [(typist.text, typist.cursor)]
    while typist.press():
        seen.append((typist.text, typist.cursor))

    assert seen == [("a\n\ng\n", 2), ("a\nb\ng\n", 3), ("a\nbc\ng\n", 4), ("a\nbcd\ng\n", 5)]


def test_each_character_is_one_request_and_the_first_of_a_place_is_cold() -> None:
    keystrokes = typed("lines-3")

    assert [keystroke.n_typed for keystroke in keystrokes] == list(range(13))
    assert keystrokes[0].n_evaluated == keystrokes[0].n_prompt_tokens


@pytest.mark.parametrize("arm", ["line", "lines-3"])
def test_with_an_anchor_a_keystroke_evaluates_next_to_nothing(arm: str) -> None:
    """One character is one token here: new are the characters typed since, and the last token."""
    keystrokes = typed(arm)

    assert max(keystroke.n_evaluated for keystroke in keystrokes[1:]) <= 6
    assert all(later.n_prompt_tokens >= earlier.n_prompt_tokens for earlier, later in pairwise(keystrokes))


def test_without_an_anchor_a_keystroke_evaluates_the_text_below_again() -> None:
    n_below = 170  # the suffix's budget of 192 tokens, cut at a line's end

    for keystroke in typed("plain")[1:]:
        assert keystroke.n_evaluated > n_below


def test_arms_are_summed_up_without_their_cold_requests() -> None:
    keystrokes = [
        Keystroke("line", "a.py", 0, 500, 500, 0, 900.0),
        Keystroke("line", "a.py", 1, 501, 2, 1, 40.0),
        Keystroke("line", "a.py", 2, 503, 4, 0, 60.0),
    ]
    (summary,) = summarise_keystrokes(keystrokes)

    assert (summary.arm, summary.n, summary.evaluated_median, summary.evaluated_max) == ("line", 2, 3.0, 4)
    assert (summary.prompt_median, summary.healed_mean, summary.ttft_ms_median) == (502.0, 0.5, 50.0)


def test_a_file_that_is_too_short_has_no_place() -> None:
    assert choose_typings([Document("a.py", "x = 1\n", "python")], 2, 40) == []
