"""One keystroke's journey, from a place in a document to a suggestion or the reason why there is none.

Plan: look around, choose what the model sees. Decode: one call of the engine. Clean up: the chain of filters.
Everything around the engine's call is pure. A completion never raises because there is nothing to suggest.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

from treefill.completion.context import Chunk, gather_neighbours, is_secret
from treefill.completion.fim import FimLayout, choose_layout
from treefill.completion.mode import choose_mode
from treefill.completion.postprocess import Drop, Item, Setting, postprocess
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
    Suggestion,
)
from treefill.completion.situation import Situation, look_around
from treefill.completion.stop import stop_rule
from treefill.engine.api import CancelFlag, Engine, Finish, GenerateRequest, Generation, Sampling, Vocabulary
from treefill.syntax.languages import language_by_id

N_SPARE_TOKENS = 64
"""Kept free in the model's context for control tokens and paths."""
CANDIDATE_TEMPERATURE = 0.6
"""Further candidates are drawn at this temperature where the request itself is greedy."""


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


def complete(
    request: CompletionRequest, engine: Engine, cancel: CancelFlag, previous_anchor: Anchor | None = None
) -> Suggestion | Declined:
    """Suggest what comes at the cursor, or say why not."""
    plan = plan_completion(request, engine.vocabulary, engine.n_context, previous_anchor)
    return plan if isinstance(plan, Declined) else carry_out(plan, engine, cancel)


def complete_many(
    request: CompletionRequest, engine: Engine, cancel: CancelFlag, previous_anchor: Anchor | None = None
) -> tuple[Suggestion | Declined, ...]:
    """Up to `n_candidates` different suggestions, the request's own first; or one reason for none."""
    plan = plan_completion(request, engine.vocabulary, engine.n_context, previous_anchor)
    if isinstance(plan, Declined):
        return (plan,)
    answers = [carry_out(plan, engine, cancel, sampling) for sampling in _samplings(request)]
    suggestions: dict[str, Suggestion] = {}
    for answer in answers:
        if isinstance(answer, Suggestion):
            suggestions.setdefault(answer.applied_to(request.document), answer)
    return tuple(suggestions.values()) or (answers[0],)


def plan_completion(
    request: CompletionRequest, vocabulary: Vocabulary, n_context: int, previous_anchor: Anchor | None = None
) -> Plan | Declined:
    """Decide what the model is asked; nothing is decoded."""
    watch = _Stopwatch()
    request = _before_line_ending(request)
    document = request.document
    pattern = is_secret(document.path, request.secret_patterns)
    if pattern:
        return Declined(
            Reason.SECRET_FILE, f"{document.path} is a secrets file (matches {pattern}): left alone."
        )

    situation = look_around(document, request.offset, language_by_id(document.language))
    mode = choose_mode(request.mode, situation)
    watch.lap("look around")

    anchor = choose_anchor(document, request.offset, previous_anchor, request.anchor_policy)
    budgets = _budgets(request, anchor, vocabulary, n_context)
    neighbours, refusals = gather_neighbours(request, vocabulary, budgets.n_neighbour_tokens)
    watch.lap("neighbours")

    layout = choose_layout(vocabulary)
    prompt = _prompt(request, anchor, layout, vocabulary, budgets, neighbours)
    watch.lap("prompt")

    plan = Plan(
        request, situation, mode, layout, anchor, budgets, prompt, neighbours, refusals, watch.timings_ms
    )
    if not prompt.ids:
        sentence = "There is no text before the cursor, and the model cannot fill in a middle."
        return Declined(Reason.NO_CONTEXT, sentence, anchor=anchor, explanation=_explain(plan))
    if len(prompt.ids) + request.max_new_tokens > n_context:
        sentence = f"The model's context of {n_context} tokens is too small for this line and its answer."
        return Declined(Reason.TOO_LONG, sentence, anchor=anchor, explanation=_explain(plan))
    return plan


def carry_out(
    plan: Plan, engine: Engine, cancel: CancelFlag, sampling: Sampling | None = None
) -> Suggestion | Declined:
    """Let the model write, and make of it what the editor is given."""
    watch = _Stopwatch(plan.timings_ms)
    generation = _generate(plan, engine, cancel, sampling)
    if generation.finish is Finish.UNHEALABLE:
        plan = _unhealed(plan, engine)
        generation = _generate(plan, engine, cancel, sampling)
    watch.lap("decode")
    if generation.finish is Finish.CANCELLED:
        explanation = replace(_explain(plan), raw_text=generation.text, timings_ms=watch.timings_ms)
        return Declined(Reason.CANCELLED, "A newer request took over.", generation, plan.anchor, explanation)

    names = plan.layout.names if plan.layout else ()
    setting = Setting(plan.situation, plan.mode, plan.request.max_lines, generation.finish, names)
    result, steps = postprocess(generation.text, setting)
    watch.lap("postprocess")
    explanation = replace(_explain(plan), raw_text=generation.text, steps=steps, timings_ms=watch.timings_ms)
    if isinstance(result, Drop):
        return Declined(result.reason, result.sentence, generation, plan.anchor, explanation)
    return _suggestion(result, plan, generation, explanation)


def _suggestion(item: Item, plan: Plan, generation: Generation, explanation: Explanation) -> Suggestion:
    return Suggestion(
        text=item.text,
        start=plan.request.offset,
        end=plan.request.offset + item.n_replaced,
        source="decoded",
        generation=generation,
        anchor=plan.anchor,
        explanation=explanation,
    )


def _generate(plan: Plan, engine: Engine, cancel: CancelFlag, sampling: Sampling | None) -> Generation:
    request = plan.request
    wanted = GenerateRequest(
        prompt_ids=plan.prompt.ids,
        forced=plan.prompt.forced,
        max_new_tokens=request.max_new_tokens,
        sampling=sampling or request.sampling,
        should_stop=stop_rule(plan.mode, plan.situation, request.max_lines),
        reuse=request.reuse,
    )
    return engine.generate(wanted, cancel)


def _unhealed(plan: Plan, engine: Engine) -> Plan:
    """The same plan with the whole text in the prompt, for a vocabulary that cannot spell the healed tail."""
    prompt = _prompt(
        plan.request,
        plan.anchor,
        plan.layout,
        engine.vocabulary,
        plan.budgets,
        plan.neighbours,
        healing=Healing.NONE,
    )
    return replace(plan, prompt=prompt)


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


def _explain(plan: Plan) -> Explanation:
    return Explanation(
        mode=plan.mode,
        layout=plan.prompt.layout,
        parts=plan.prompt.parts,
        forced=plan.prompt.forced.decode(),
        refusals=plan.refusals,
        timings_ms=plan.timings_ms,
    )


def _samplings(request: CompletionRequest) -> Iterator[Sampling]:
    yield request.sampling
    temperature = request.sampling.temperature or CANDIDATE_TEMPERATURE
    for number in range(1, request.n_candidates):
        yield replace(request.sampling, temperature=temperature, seed=request.sampling.seed + number)


def _before_line_ending(request: CompletionRequest) -> CompletionRequest:
    r"""A cursor cannot stand between `\r` and `\n`: it means the end of the line."""
    is_between = request.document.text[max(0, request.offset - 1) : request.offset + 1] == "\r\n"
    return replace(request, offset=request.offset - 1) if is_between else request


def _repo_name(request: CompletionRequest) -> str:
    return PurePath(request.workspace_root).name if request.workspace_root else ""


class _Stopwatch:
    """Milliseconds by stage."""

    def __init__(self, timings_ms: tuple[tuple[str, float], ...] = ()) -> None:
        self.timings_ms = timings_ms
        self._since = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Note the time since the last lap under a name."""
        now = time.perf_counter()
        self.timings_ms = (*self.timings_ms, (stage, (now - self._since) * 1000))
        self._since = now
