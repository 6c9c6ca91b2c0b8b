"""One keystroke's journey, from a place in a document to a suggestion or the reason why there is none.

What needs no model is tried first (`at_once.py`). Else plan (`plan.py`), decode in one call of the engine, clean up by
the chain of filters; the grammar has the last word (`last_word.py`). What earlier requests in the document have decoded
is gone on with (`recycle.py`). A completion never raises because there is nothing to suggest.
"""

from collections.abc import Iterator
from dataclasses import replace

from treefill.completion.at_once import answer_at_once
from treefill.completion.guard import Guarded, guard_at_cursor
from treefill.completion.habits import Habits
from treefill.completion.last_word import last_word
from treefill.completion.plan import Plan, Stopwatch, explain, plan_at, survey, unhealed
from treefill.completion.postprocess import Drop, Item, Setting, postprocess
from treefill.completion.recycle import Memory, go_on
from treefill.completion.request import (
    Anchor,
    CompletionRequest,
    Declined,
    Explanation,
    Reason,
    Suggestion,
)
from treefill.completion.stop import stop_rule
from treefill.engine.api import CancelFlag, Engine, Finish, GenerateRequest, Generation, Sampling

CANDIDATE_TEMPERATURE = 0.6
"""Further candidates are drawn at this temperature where the request itself is greedy."""

Answer = Suggestion | Declined


def complete(
    request: CompletionRequest, engine: Engine, cancel: CancelFlag, previous_anchor: Anchor | None = None
) -> Answer:
    """Suggest what comes at the cursor, or say why not."""
    place = survey(request)
    if isinstance(place, Declined):
        return place
    at_once = answer_at_once(place, previous_anchor)
    if at_once is not None:
        return at_once
    plan = plan_at(place, engine.vocabulary, engine.n_context, previous_anchor)
    return plan if isinstance(plan, Declined) else carry_out(plan, engine, cancel)


def complete_many(
    request: CompletionRequest, engine: Engine, cancel: CancelFlag, previous_anchor: Anchor | None = None
) -> tuple[Answer, ...]:
    """Up to `n_candidates` different suggestions, the request's own first; or one reason for none."""
    answers, _ = complete_next(request, engine, cancel, Memory(previous_anchor))
    return answers


def complete_next(
    request: CompletionRequest,
    engine: Engine,
    cancel: CancelFlag,
    memory: Memory,
    habits: Habits | None = None,
) -> tuple[tuple[Answer, ...], Memory]:
    """`complete_many` for a document that is being typed in: goes on with what its memory holds, and adds to it."""
    place = survey(request)
    if isinstance(place, Declined):
        return (place,), memory
    at_once = answer_at_once(place, memory.anchor, habits)
    if at_once is not None and request.n_candidates == 1:
        # Later prompts are what they would be had the model been asked.
        return (at_once,), replace(memory, anchor=at_once.anchor)
    plan = plan_at(place, engine.vocabulary, engine.n_context, memory.anchor)
    if isinstance(plan, Declined):
        return (at_once or plan,), memory
    answers, memory = _of_the_model(plan, engine, cancel, memory)
    return (_with_first(at_once, answers, request) if at_once else answers), memory


def _of_the_model(
    plan: Plan, engine: Engine, cancel: CancelFlag, memory: Memory
) -> tuple[tuple[Answer, ...], Memory]:
    begun = go_on(plan, memory)
    answer = carry_out(begun, engine, cancel) if begun else None
    is_used_up = isinstance(answer, Declined) and answer.reason in (Reason.EMPTY, Reason.NO_CHANGE)
    if begun is None or answer is None or is_used_up or _is_unhealable(answer):
        begun = plan
        answer = carry_out(plan, engine, cancel)
    memory = memory.with_answer(begun, answer.generation)
    return _with_more(answer, plan, engine, cancel), memory


def _with_first(
    at_once: Suggestion, answers: tuple[Answer, ...], request: CompletionRequest
) -> tuple[Answer, ...]:
    """Who asks by hand sees the model's answers, too, below what needed none."""
    outcome = at_once.applied_to(request.document)
    others = (
        answer
        for answer in answers
        if isinstance(answer, Suggestion) and answer.applied_to(request.document) != outcome
    )
    # The figures are the model's: it was asked.
    return (replace(at_once, generation=answers[0].generation), *others)[: request.n_candidates]


def carry_out(plan: Plan, engine: Engine, cancel: CancelFlag, sampling: Sampling | None = None) -> Answer:
    """Let the model write, and make of it what the editor is given."""
    watch = Stopwatch(plan.timings_ms)
    guarded = guard_at_cursor(plan.request, plan.situation)
    watch.lap("grammar")
    generation = _generate(plan, engine, cancel, sampling, guarded)
    if generation.finish is Finish.UNHEALABLE and not plan.begun:
        plan = unhealed(plan, engine.vocabulary)
        guarded = guard_at_cursor(plan.request, plan.situation)
        generation = _generate(plan, engine, cancel, sampling, guarded)
    watch.lap("decode")
    # Where there is nothing to check it is still told that nobody looked while it was written.
    explanation = replace(
        explain(plan), raw_text=generation.text, syntax=guarded.told(None), timings_ms=watch.timings_ms
    )
    if generation.finish is Finish.CANCELLED:
        return Declined(Reason.CANCELLED, "A newer request took over.", generation, plan.anchor, explanation)

    names = plan.layout.names if plan.layout else ()
    setting = Setting(
        plan.situation, plan.mode, plan.request.max_lines, generation.finish, names, guarded.may_end
    )
    result, steps = postprocess(guarded.kept(generation), setting)
    watch.lap("postprocess")
    explanation = replace(explanation, steps=steps, timings_ms=watch.timings_ms)
    if isinstance(result, Item):
        result, finding = last_word(result, plan.request, plan.situation, guarded.may_end)
        watch.lap("syntax")
        explanation = replace(explanation, syntax=guarded.told(finding), timings_ms=watch.timings_ms)
    if isinstance(result, Drop):
        result = guarded.reason_for(result)
        return Declined(result.reason, result.sentence, generation, plan.anchor, explanation)
    return _suggestion(result, plan, generation, explanation)


def _is_unhealable(answer: Answer) -> bool:
    return answer.generation is not None and answer.generation.finish is Finish.UNHEALABLE


def _with_more(first: Answer, plan: Plan, engine: Engine, cancel: CancelFlag) -> tuple[Answer, ...]:
    """The first answer and, where more were asked for and there is time, other suggestions than it."""
    answers = [first]
    for sampling in _further(plan.request):
        if cancel.is_cancelled or not plan.seconds_left:
            break
        answers.append(carry_out(plan, engine, cancel, sampling))
    suggestions: dict[str, Suggestion] = {}
    for answer in answers:
        if isinstance(answer, Suggestion):
            suggestions.setdefault(answer.applied_to(plan.request.document), answer)
    return tuple(suggestions.values()) or (first,)


def _suggestion(item: Item, plan: Plan, generation: Generation, explanation: Explanation) -> Suggestion:
    return Suggestion(
        text=item.text,
        start=plan.request.offset,
        end=plan.request.offset + item.n_replaced,
        source=plan.source,
        generation=generation,
        anchor=plan.anchor,
        explanation=explanation,
    )


def _generate(
    plan: Plan, engine: Engine, cancel: CancelFlag, sampling: Sampling | None, guarded: Guarded
) -> Generation:
    request = plan.request
    wanted = GenerateRequest(
        prompt_ids=plan.prompt.ids,
        forced=plan.prompt.forced,
        begun=plan.begun,
        is_begun_whole=plan.is_begun_whole,
        time_limit_s=plan.seconds_left,
        max_new_tokens=request.max_new_tokens,
        sampling=sampling or request.sampling,
        should_stop=stop_rule(plan.mode, plan.situation, request.max_lines, guarded.may_end),
        guard=guarded.guard,
        mask=guarded.mask(request.masks, engine.vocabulary),
        reuse=request.reuse,
        cache_salt=str(request.workspace_root or ""),
    )
    return engine.generate(wanted, cancel)


def _further(request: CompletionRequest) -> Iterator[Sampling]:
    temperature = request.sampling.temperature or CANDIDATE_TEMPERATURE
    for number in range(1, request.n_candidates):
        yield replace(request.sampling, temperature=temperature, seed=request.sampling.seed + number)
