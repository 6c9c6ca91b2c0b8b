"""Going on with what the model has written for earlier requests in the same document.

Typing goes through a suggestion more often than against it. Then the tokens are there already: the answer is what is
left of them, cleaned up anew for the cursor's new place; and a generation that was cut half-way goes on where it
stopped. Only the model's part is kept; what stands right of the cursor may have changed by then, so the filters run
every time.
"""

from dataclasses import dataclass, replace

from treefill.completion.plan import Plan
from treefill.completion.request import Anchor, CompletionRequest
from treefill.completion.situation import Situation
from treefill.engine.api import Finish, Generation
from treefill.text import to_lf, without_surrogates

MAX_KEPT = 8
MAX_KEPT_CHARS = 4_000_000
"""Generations are kept with the text that they belong to; so many characters of that a document."""
MAX_TYPED_CHARS = 400


@dataclass(frozen=True, slots=True)
class Decoded:
    """What one request had the model write."""

    plan: Plan
    generation: Generation


@dataclass(frozen=True, slots=True)
class Memory:
    """What is known of a document from its earlier requests. Empty for a new one."""

    anchor: Anchor | None = None
    decoded: tuple[Decoded, ...] = ()
    """The newest first."""

    def with_answer(self, plan: Plan, generation: Generation | None) -> "Memory":
        """The same with one more request in it."""
        if generation is None or generation.finish is Finish.UNHEALABLE or not generation.token_ids:
            return Memory(plan.anchor, self.decoded)
        n_kept = min(MAX_KEPT, 1 + MAX_KEPT_CHARS // (1 + len(plan.request.document.text)))
        return Memory(plan.anchor, (Decoded(_without_others(plan), generation), *self.decoded)[:n_kept])

    @property
    def n_chars(self) -> int:
        """Characters of documents that are kept with it."""
        return sum(len(decoded.plan.request.document.text) for decoded in self.decoded)


def go_on(plan: Plan, memory: Memory) -> Plan | None:
    """The same plan as a continuation of something that was decoded before, or None where nothing fits."""
    for earlier in memory.decoded:
        typed = typed_since(earlier.plan, plan)
        if typed is not None and _agrees(earlier.generation, typed):
            return replace(
                plan,
                mode=earlier.plan.mode,
                anchor=earlier.plan.anchor,
                prompt=replace(earlier.plan.prompt, forced=earlier.plan.prompt.forced + typed.encode()),
                begun=earlier.generation.token_ids,
                is_begun_whole=earlier.generation.finish is Finish.END,
                source="recycled",
            )
    return None


def typed_since(earlier: Plan, now: Plan) -> str | None:
    """What was typed at the cursor between two requests, with line feeds; None where anything else changed.

    What an editor closes by itself right of the cursor counts as nothing. Half an emoji, which some editors send
    before its other half, is nothing that a model can have written.
    """
    before, after = earlier.request, now.request
    if before.document.path != after.document.path or _options(before) != _options(after):
        return None
    n_typed = after.offset - before.offset
    if not 0 <= n_typed <= MAX_TYPED_CHARS:
        return None
    old_rest = before.offset + _n_auto_closed(earlier.situation)
    new_rest = after.offset + _n_auto_closed(now.situation)
    old, new = before.document.text, after.document.text
    if len(old) - old_rest != len(new) - new_rest:
        return None
    is_same_left = new.startswith(old[: before.offset])
    is_same_right = is_same_left and new.endswith(old[old_rest:])
    typed = to_lf(new[before.offset : after.offset])
    return typed if is_same_right and typed == without_surrogates(typed) else None


def _without_others(plan: Plan) -> Plan:
    """The plan without other documents: going on never looks at them again, and they may be large."""
    request = replace(plan.request, neighbours=())
    return replace(plan, request=request, neighbours=(), refusals=())


def _agrees(generation: Generation, typed: str) -> bool:
    """True where the typed text is the beginning of what was written, or what was cut is its beginning."""
    if generation.text.startswith(typed):
        return bool(generation.text[len(typed) :].strip()) or generation.finish is Finish.CANCELLED
    return generation.finish is Finish.CANCELLED and typed.startswith(generation.text)


def _n_auto_closed(situation: Situation) -> int:
    return len(situation.auto_closed)


def _options(request: CompletionRequest) -> tuple[object, ...]:
    """All that is asked for beside the place."""
    return (
        request.document.language,
        request.mode,
        request.max_new_tokens,
        request.max_lines,
        request.sampling,
        request.anchor_policy,
        request.budgets,
        request.check,
        request.grammars,
        request.rules,
        request.schemas,
    )
