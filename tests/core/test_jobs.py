"""What is asked with something selected, and how an answer is told."""

from dataclasses import replace

import pytest
from treefill.completion import Explanation, Suggestion, SyntaxFinding
from treefill.completion.request import Anchor, FilterStep, PromptPart, Refusal
from treefill.core.jobs import MAX_TOLD_CHARS, item_of, told, with_selected
from treefill.core.messages import Answer, AnswerItem, Selected
from treefill.core.wire import encode
from treefill.engine.api import Finish, Generation
from treefill.errors import BadInput

GENERATION = Generation("(1)", (1,), Finish.END, 1, 0, 1, 1, 0.0, 0.0)


def suggestion(text: str, start: int, end: int) -> Suggestion:
    return Suggestion(text, start, end, "decoded", GENERATION, Anchor("a.py", "line", 0, 0, ""))


@pytest.mark.parametrize(
    ("document", "selected", "n_replaced", "after"),
    [
        ("xs.co‸\n", Selected(3, 5, "count"), 0, "xs.count(1)\n"),
        ("xs.co‸)\n", Selected(3, 5, "count"), 1, "xs.count(1)\n"),
        ("xs.co‸py)\n", Selected(3, 7, "count"), 1, "xs.count(1)\n"),
        ("xs.‸co)\n", Selected(3, 5, "count"), 1, "xs.count(1)\n"),
    ],
    ids=["at its end", "a bracket right of it", "the word's rest is replaced", "the cursor at its beginning"],
)
def test_what_is_accepted_is_what_was_completed(
    document: str, selected: Selected, n_replaced: int, after: str
) -> None:
    offset, text = document.index("‸"), document.replace("‸", "")
    shown, cursor = with_selected(text, offset, selected)

    item = item_of(suggestion("(1)", cursor, cursor + n_replaced), selected)

    assert shown[:cursor] + "(1)" + shown[cursor + n_replaced :] == after
    assert text[: item.start] + item.text + text[item.end :] == after
    assert item.start <= offset <= item.end


@pytest.mark.parametrize("selected", [(3, 4), (6, 7), (0, 1), (5, 99), (-1, 5), (7, 3)])
def test_a_selection_that_does_not_hold_the_cursor_is_refused(selected: tuple[int, int]) -> None:
    with pytest.raises(BadInput, match="the cursor is at 5"):
        with_selected("xs.co = 1", 5, Selected(*selected, "count"))


def test_without_a_selection_a_suggestion_stays_where_it_is() -> None:
    assert with_selected("xs.co", 5, None) == ("xs.co", 5)
    assert item_of(suggestion("unt", 5, 6), None) == AnswerItem(5, 6, "unt", "decoded")


def test_the_longest_explanation_fits_a_frame() -> None:
    text = "a" + "\U0001f642" * 1_000_000 + "z"
    explanation = Explanation(
        parts=(PromptPart("prefix", text, 1),) * 20,
        forced=text,
        refusals=(Refusal("/w/" + "b" * 4_000, "outside"),) * 10_000,
        raw_text=text,
        steps=(FilterStep("trim", text, text),) * 12,
    )

    plain = told(explanation, GENERATION)

    assert encode(Answer(1, explanation=plain))
    assert len(plain["raw_text"]) <= MAX_TOLD_CHARS + 3
    assert (plain["raw_text"][0], plain["raw_text"][-1]) == ("a", "z")
    assert told(Explanation(raw_text="short"), None)["raw_text"] == "short"


def test_it_is_told_how_the_grammar_stood_guard() -> None:
    guarded = replace(GENERATION, n_guarded=9, n_refused_first=2, n_undone=1)

    plain = told(Explanation(syntax=SyntaxFinding(unguarded="The statement is too long.")), guarded)

    assert (plain["n_guarded"], plain["n_refused_first"], plain["n_undone"]) == (9, 2, 1)
    assert plain["syntax"]["unguarded"] == "The statement is too long."
