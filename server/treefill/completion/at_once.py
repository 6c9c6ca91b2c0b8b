"""Suggestions that need no model: what the user accepted again and again in the place, and the language's templates.

They obey what every suggestion obeys: the place must be one where something is suggested at all (`plan.survey`), what
stands right of the cursor is not written twice, and the grammar, the user's rules and schemas have the last word. But a
template is certain or it is nothing: where any of these would cut it, the model is asked instead.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass

from treefill.completion.context import texts_in
from treefill.completion.guard import Guarded
from treefill.completion.habits import Habit, Habits, indented, line_at
from treefill.completion.last_word import last_word
from treefill.completion.notebook import code_of
from treefill.completion.plan import Stopwatch, Survey, survey
from treefill.completion.postprocess import WITHOUT_MODEL, Drop, Item, Setting, postprocess
from treefill.completion.prompt import choose_anchor
from treefill.completion.request import (
    Anchor,
    CompletionRequest,
    Declined,
    Explanation,
    Mode,
    Suggestion,
)
from treefill.completion.schemas import schema_at_cursor
from treefill.completion.templates import proposed
from treefill.engine.api import Finish
from treefill.syntax.baseline import Baseline
from treefill.syntax.enclosing import kind_around
from treefill.text import to_lf

log = logging.getLogger(__name__)

TEMPLATE, HABIT = "template", "habit"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A text that may be suggested at once, if filters, grammar, rules and schema find nothing against it."""

    text: str
    """With line feeds."""
    source: str
    name: str
    habit: Habit | None = None


@dataclass(frozen=True, slots=True)
class AtOnce:
    """What may be suggested without a model, in two steps: no parser has seen the text before the second one."""

    place: Survey
    found: tuple[Proposal, ...]
    habits: Habits | None

    def settle(self, previous_anchor: Anchor | None = None) -> Suggestion | None:
        """The first proposal that no filter, grammar, rule or schema has anything against."""
        try:
            return _settled(self, previous_anchor)
        except Exception as error:  # a completion does not fail because this does
            log.warning("Nothing was settled at once (%s).", type(error).__name__)
            return None


def begin_at_once(
    request: CompletionRequest, habits: Habits | None = None, has_model: bool = False
) -> AtOnce | None:
    """The first step, where no model can be asked at present; None where nothing is found, or suggested at all.

    `has_model` tells whether one can be asked later.
    """
    place = survey(request)
    return None if isinstance(place, Declined) else found_at(place, habits, has_model)


def answer_at_once(
    place: Survey, previous_anchor: Anchor | None = None, habits: Habits | None = None
) -> Suggestion | None:
    """What is suggested without asking the model, though there is one; None where nothing is certain."""
    found = found_at(place, habits)
    return found.settle(previous_anchor) if found else None


def found_at(place: Survey, habits: Habits | None, has_model: bool = True) -> AtOnce | None:
    """What may be suggested there. Habits first: they are the user's own."""
    try:
        found = (*_from_habits(place, habits), *_from_templates(place, has_model))
    except Exception as error:
        log.warning("Nothing was found at once (%s).", type(error).__name__)  # its text may quote the user's
        return None
    return AtOnce(place, found, habits) if found else None


def _settled(at_once: AtOnce, previous_anchor: Anchor | None) -> Suggestion | None:
    request = at_once.place.request
    for proposal in at_once.found:
        suggestion = _suggestion(proposal, at_once.place, previous_anchor)
        if suggestion is not None:
            if proposal.habit and at_once.habits:
                at_once.habits.offered(proposal.habit, request.document.path, request.offset)
            return suggestion
    return None


def _from_habits(place: Survey, habits: Habits | None) -> Iterator[Proposal]:
    request, situation = place.request, place.situation
    line = line_at(request, situation) if habits and request.habits else None
    if habits is None or line is None:
        return
    for habit in habits.at(line):
        text = indented(habit, situation)
        if _is_allowed(text, place) and not _stands_already(text, place):
            yield Proposal(text, HABIT, f"accepted {habit.n_accepted} times here", habit)


def _from_templates(place: Survey, has_model: bool) -> Iterator[Proposal]:
    if not place.request.templates:
        return
    for template, text in proposed(place.request, place.situation, has_model=has_model):
        # Who wants lines gets the rest of this one; the grammar refuses it where it can't stand alone.
        text = text.split("\n")[0] if place.request.mode is Mode.LINE else text
        if text and _is_allowed(text, place):
            yield Proposal(text, TEMPLATE, template.name)


def _stands_already(text: str, place: Survey) -> bool:
    """True where a line of the file's top level, as an import, would come twice."""
    left = place.situation.left
    line = left + text.split("\n")[0].rstrip()
    if left[:1].isspace():
        return False
    return re.search(rf"^{re.escape(line)}[ \t]*\r?$", place.request.document.text, re.MULTILINE) is not None


def _is_allowed(text: str, place: Survey) -> bool:
    """True where it has no more lines than are wanted, and room for several."""
    n_lines = text.count("\n") + 1
    is_single = place.request.mode is Mode.LINE or not place.situation.is_right_free
    return n_lines <= (1 if is_single else place.request.max_lines)


def _suggestion(proposal: Proposal, place: Survey, previous_anchor: Anchor | None) -> Suggestion | None:
    request, situation = place.request, place.situation
    watch = Stopwatch(place.timings_ms)
    setting = Setting(situation, place.mode, request.max_lines, Finish.END)
    result, steps = postprocess(proposal.text, setting, WITHOUT_MODEL)
    if isinstance(result, Drop) or not _is_whole(result, proposal.text, situation.right):
        return None
    if proposal.habit and not _is_same_place(proposal.habit, result, proposal.text, place):
        return None
    watch.lap("template")
    result, finding = last_word(result, request, situation)
    watch.lap("syntax")
    if isinstance(result, Drop) or (finding is not None and finding.is_against):
        return None
    schema = schema_at_cursor(request)
    if schema.guard and not schema.guard.allows(to_lf(result.text).encode(errors="replace")):
        return None
    anchor = choose_anchor(request.document, request.offset, previous_anchor, request.anchor_policy)
    return Suggestion(
        text=result.text,
        start=request.offset,
        end=request.offset + result.n_replaced,
        source=proposal.source,
        generation=None,
        anchor=anchor,
        explanation=Explanation(
            mode=place.mode,
            template=proposal.name,
            raw_text=proposal.text,
            steps=steps,
            syntax=Guarded(schema=schema, note=request.rules.note).told(finding),
            timings_ms=watch.timings_ms,
        ),
    )


def _is_whole(item: Item, text: str, right: str) -> bool:
    """True where all of the text stands there afterwards: what was trimmed of it stands right of the cursor."""
    return (to_lf(item.text) + right[item.n_replaced :]).startswith(text.rstrip())


def _is_same_place(habit: Habit, item: Item, text: str, place: Survey) -> bool:
    """True where the line would be what it was when the habit was accepted, and the grammar calls the place the same.

    A bracket that the habit ends with may stand there already.
    """
    request, situation = place.request, place.situation
    written = to_lf(item.text) + situation.right[item.n_replaced :]
    if written.rstrip() != (text + habit.right).rstrip():
        return False
    baseline = Baseline.of(
        code_of(request.document), request.offset, situation.language, request.document.path,
        dict(request.grammars), texts_in(situation.language, request),
    )  # fmt: skip
    end = request.offset + item.n_replaced
    return (
        not isinstance(baseline, str) and kind_around(baseline, request.offset, end, item.text) == habit.kind
    )
