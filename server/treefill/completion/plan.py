"""Everything that is decided before the model is asked. All of it is pure.

Look around, hold back what is not worth asking, choose the mode (`survey`); then the anchor, the neighbours and the
prompt (`plan_at`).
"""

import math
import time
from dataclasses import dataclass, replace
from pathlib import PurePath

from treefill.completion.context import Chunk, gather_neighbours, is_secret
from treefill.completion.fim import FimLayout, choose_layout
from treefill.completion.mode import choose_mode
from treefill.completion.notebook import language_at
from treefill.completion.prompt import Healing, Prompt, build_prompt, choose_anchor, shown_middle
from treefill.completion.request import (
    Anchor,
    Budgets,
    CompletionRequest,
    Declined,
    Explanation,
    Mode,
    Reason,
    Refusal,
)
from treefill.completion.situation import Situation, look_around
from treefill.completion.trigger import hold_back
from treefill.engine.api import TokenId, Vocabulary
from treefill.syntax.languages import language_by_id

N_SPARE_TOKENS = 64
"""Kept free in the model's context for control tokens and paths."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is decided before the model is asked."""

    request: CompletionRequest
    situation: Situation
    mode: Mode
    layout: FimLayout | None
    anchor: Anchor
    budgets: Budgets
    """The request's own, or less where the model's context is small."""
    prompt: Prompt
    neighbours: tuple[Chunk, ...]
    refusals: tuple[Refusal, ...]
    timings_ms: tuple[tuple[str, float], ...]
    begun: tuple[TokenId, ...] = ()
    """Tokens of the answer that an earlier request has decoded."""
    is_begun_whole: bool = False
    """True where the model itself ended after them."""
    source: str = "decoded"
    """Of the suggestion that will come of it."""
    deadline_s: float = math.inf
    """By the clock of `time.perf_counter`: then no further token is begun, nor a further candidate."""

    @property
    def seconds_left(self) -> float:
        """What the model may still take."""
        return max(0.0, self.deadline_s - time.perf_counter())


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of the place before anything is asked for it, and without a model."""

    request: CompletionRequest
    """In the language of the place."""
    situation: Situation
    mode: Mode
    deadline_s: float
    """By the clock of `time.perf_counter`."""
    timings_ms: tuple[tuple[str, float], ...]


def survey(request: CompletionRequest) -> Survey | Declined:
    """Look around, or say why nothing is suggested there. The request's time runs from here."""
    watch = Stopwatch()
    deadline_s = time.perf_counter() + request.time_limit_s
    request = _in_its_language(_before_line_ending(request))
    document = request.document
    pattern = is_secret(document.path, request.secret_patterns)
    if pattern:
        return Declined(
            Reason.SECRET_FILE, f"{document.path} is a secrets file (matches {pattern}): left alone."
        )

    situation = look_around(document, request.offset, language_by_id(document.language))
    held_back = hold_back(request, situation)
    if held_back:
        return Declined(*held_back)
    mode = choose_mode(request.mode, situation)
    watch.lap("look around")
    return Survey(request, situation, mode, deadline_s, watch.timings_ms)


def plan_completion(
    request: CompletionRequest, vocabulary: Vocabulary, n_context: int, previous_anchor: Anchor | None = None
) -> Plan | Declined:
    """Decide what the model is asked; nothing is decoded."""
    found = survey(request)
    return found if isinstance(found, Declined) else plan_at(found, vocabulary, n_context, previous_anchor)


def plan_at(
    found: Survey, vocabulary: Vocabulary, n_context: int, previous_anchor: Anchor | None = None
) -> Plan | Declined:
    """The same for a place that was looked around already."""
    request, document, watch = found.request, found.request.document, Stopwatch(found.timings_ms)
    anchor = choose_anchor(document, request.offset, previous_anchor, request.anchor_policy)
    budgets = _budgets(request, anchor, vocabulary, n_context)
    neighbours, refusals = gather_neighbours(request, vocabulary, budgets.n_neighbour_tokens)
    watch.lap("neighbours")

    layout = choose_layout(vocabulary)
    prompt = _prompt(request, anchor, layout, vocabulary, budgets, neighbours)
    watch.lap("prompt")

    plan = Plan(
        request,
        found.situation,
        found.mode,
        layout,
        anchor,
        budgets,
        prompt,
        neighbours,
        refusals,
        watch.timings_ms,
        deadline_s=found.deadline_s,
    )
    if not prompt.ids:
        sentence = "There is no text before the cursor, and the model cannot fill in a middle."
        return Declined(Reason.NO_CONTEXT, sentence, anchor=anchor, explanation=explain(plan))
    if len(prompt.ids) + request.max_new_tokens > n_context:
        sentence = f"The model's context of {n_context} tokens is too small for this line and its answer."
        return Declined(Reason.TOO_LONG, sentence, anchor=anchor, explanation=explain(plan))
    return plan


def unhealed(plan: Plan, vocabulary: Vocabulary) -> Plan:
    """The same plan with the whole text in the prompt, for a vocabulary that cannot spell the healed tail."""
    prompt = _prompt(
        plan.request,
        plan.anchor,
        plan.layout,
        vocabulary,
        plan.budgets,
        plan.neighbours,
        healing=Healing.NONE,
    )
    return replace(plan, prompt=prompt)


def explain(plan: Plan) -> Explanation:
    """What is known of an answer before there is one."""
    return Explanation(
        mode=plan.mode,
        layout=plan.prompt.layout,
        parts=plan.prompt.parts,
        forced=plan.prompt.forced.decode(),
        refusals=plan.refusals,
        timings_ms=plan.timings_ms,
    )


class Stopwatch:
    """Milliseconds by stage."""

    def __init__(self, timings_ms: tuple[tuple[str, float], ...] = ()) -> None:
        self.timings_ms = timings_ms
        self._since = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Note the time since the last lap under a name."""
        now = time.perf_counter()
        self.timings_ms = (*self.timings_ms, (stage, (now - self._since) * 1000))
        self._since = now


def _prompt(
    request: CompletionRequest,
    anchor: Anchor,
    layout: FimLayout | None,
    vocabulary: Vocabulary,
    budgets: Budgets,
    neighbours: tuple[Chunk, ...],
    healing: Healing | None = None,
) -> Prompt:
    """What the model reads; `healing` overrules the anchor's policy."""
    return build_prompt(
        request.document,
        request.offset,
        anchor,
        layout,
        vocabulary,
        budgets,
        neighbours,
        _repo_name(request),
        healing,
    )


def _budgets(request: CompletionRequest, anchor: Anchor, vocabulary: Vocabulary, n_context: int) -> Budgets:
    """The request's budgets, smaller where the model's context leaves less beside the text being typed."""
    n_middle = len(vocabulary.encode(shown_middle(request.document, request.offset, anchor)))
    return request.budgets.fitted(n_context - request.max_new_tokens - n_middle - N_SPARE_TOKENS)


def _before_line_ending(request: CompletionRequest) -> CompletionRequest:
    r"""A cursor cannot stand between `\r` and `\n`: it means the end of the line."""
    is_between = request.document.text[max(0, request.offset - 1) : request.offset + 1] == "\r\n"
    return replace(request, offset=request.offset - 1) if is_between else request


def _in_its_language(request: CompletionRequest) -> CompletionRequest:
    return replace(request, document=language_at(request.document, request.offset))


def _repo_name(request: CompletionRequest) -> str:
    return PurePath(request.workspace_root).name if request.workspace_root else ""
