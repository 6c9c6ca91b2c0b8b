"""One request on its way through the core: what was asked, of which text, and its one answer."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from treefill.completion import (
    AtOnce,
    CompletionRequest,
    Declined,
    Explanation,
    Habits,
    Memory,
    Reason,
    Suggestion,
    begin_at_once,
    complete_next,
)
from treefill.core.messages import Answer, AnswerItem, Ask, Selected
from treefill.engine.api import CancelFlag, Engine, Generation
from treefill.errors import BadInput
from treefill.text import Document

MAX_TOLD_CHARS = 6_000
"""Of each text in an explanation; more of its middle is left out."""
MAX_TOLD_REFUSALS = 50

if TYPE_CHECKING:
    from treefill.core.peer import Peer, Snapshot


class MakeRequest(Protocol):
    """Builds a request from what an editor asks for and the settings that come with it."""

    def __call__(
        self,
        options: Mapping[str, Any],
        document: Document,
        offset: int,
        *,
        neighbours: tuple[Document, ...],
        workspace_root: Path | None,
        n_candidates: int,
        is_automatic: bool,
    ) -> CompletionRequest:
        """Raises `BadInput` where the options or the offset can't be."""
        ...


@dataclass(slots=True, eq=False)
class Job:
    """A request that waits or runs."""

    peer: "Peer"
    ask: Ask
    snapshot: "Snapshot"
    """The document at the version that was asked about."""
    neighbours: tuple["Snapshot", ...]
    flag: CancelFlag = field(default_factory=CancelFlag)
    is_late: bool = False
    """True once the time limit has stopped it."""
    at_once: "asyncio.Task[None] | None" = None
    """The search for what needs no model, where it waits for one."""

    @property
    def key(self) -> tuple[int, str]:
        """Which front and document: a newer request with the same key takes over."""
        return id(self.peer), self.ask.uri

    def complete(
        self,
        engine: Engine,
        make_request: MakeRequest,
        time_limit_s: float,
        memory: Memory,
        habits: Habits,
    ) -> tuple[tuple[Suggestion | Declined, ...], Memory]:
        """Run the completion: what came of it, and what is to be remembered.

        Called beside the event loop, so that joining a large text holds up nobody; it sees the peer's mirror no more.
        """
        request = replace(self._request(make_request), time_limit_s=time_limit_s)
        return complete_next(request, engine, self.flag, memory, habits)

    def begin_at_once(self, make_request: MakeRequest, habits: Habits, has_model: bool) -> AtOnce | None:
        """What may be suggested without the model, before any parser has seen the text. Beside the event loop, too.

        `has_model` tells whether one may still be asked.
        """
        return begin_at_once(self._request(make_request), habits, has_model)

    def _request(self, make_request: MakeRequest) -> CompletionRequest:
        ask = self.ask
        document = self.snapshot.document()
        text, offset = with_selected(document.text, ask.offset, ask.selected)
        return make_request(
            ask.options,
            replace(document, text=text),
            offset,
            neighbours=tuple(neighbour.document() for neighbour in self.neighbours),
            workspace_root=Path(ask.workspace_root) if ask.workspace_root else None,
            n_candidates=ask.n_candidates,
            is_automatic=ask.is_automatic and ask.selected is None,
        )

    def answer(self, answers: tuple[Suggestion | Declined, ...]) -> None:
        """Send what came of it."""
        first = answers[0]
        items = tuple(
            item_of(answer, self.ask.selected) for answer in answers if isinstance(answer, Suggestion)
        )
        declined = first if isinstance(first, Declined) else None
        self.peer.send(
            Answer(
                self.ask.id,
                items,
                reason=declined.reason if declined else "",
                sentence=declined.sentence if declined else "",
                explanation=told(first.explanation, first.generation),
            )
        )

    def decline(self, reason: Reason, sentence: str) -> None:
        """Send that there is nothing."""
        self.peer.decline(self.ask.id, reason, sentence)


def with_selected(text: str, offset: int, selected: Selected | None) -> tuple[str, int]:
    """The text and cursor as they would be once the editor's own selected completion is accepted.

    Raises `BadInput` where the cursor is not in what is to be replaced: no suggestion could go on from there.
    """
    if selected is None:
        return text, offset
    if not 0 <= selected.start <= offset <= selected.end <= len(text):
        raise BadInput(
            f"The selected completion replaces {selected.start} to {selected.end}; the cursor is at {offset}."
        )
    return (
        text[: selected.start] + selected.text + text[selected.end :],
        selected.start + len(selected.text),
    )


def item_of(suggestion: Suggestion, selected: Selected | None) -> AnswerItem:
    """The suggestion in offsets of the document as it is; it goes on with what is selected."""
    if selected is None:
        return AnswerItem(suggestion.start, suggestion.end, suggestion.text, suggestion.source)
    n_replaced = suggestion.end - suggestion.start
    text = selected.text + suggestion.text
    return AnswerItem(selected.start, selected.end + n_replaced, text, suggestion.source)


def told(explanation: Explanation, generation: Generation | None) -> dict[str, Any]:
    """An explanation as plain data, short enough for a frame."""
    plain: dict[str, Any] = {
        "mode": explanation.mode,
        "layout": explanation.layout,
        "parts": [[part.name, _trimmed(part.text), part.n_tokens] for part in explanation.parts],
        "template": explanation.template,
        "forced": _trimmed(explanation.forced),
        "refusals": [[refusal.path, refusal.reason] for refusal in explanation.refusals[:MAX_TOLD_REFUSALS]],
        "raw_text": _trimmed(explanation.raw_text),
        "steps": [[step.name, _trimmed(step.before), _trimmed(step.after)] for step in explanation.steps],
        "syntax": asdict(explanation.syntax) if explanation.syntax else None,
        "timings_ms": {name: round(ms, 1) for name, ms in explanation.timings_ms},
    }
    if generation is not None:
        plain |= {
            "finish": generation.finish,
            "n_prompt_tokens": generation.n_prompt_tokens,
            "n_reused_tokens": generation.n_reused_tokens,
            "n_decoded_tokens": len(generation.token_ids),
            "n_new_tokens": generation.n_new_tokens,
            "n_evaluated": generation.n_evaluated,
            "n_guarded": generation.n_guarded,
            "n_refused_first": generation.n_refused_first,
            "n_undone": generation.n_undone,
            "n_forced": generation.n_forced,
            "ttft_ms": round(generation.ttft_ms, 1),
            "total_ms": round(generation.total_ms, 1),
        }
    return plain


def _trimmed(text: str) -> str:
    half = MAX_TOLD_CHARS // 2
    return text if len(text) <= MAX_TOLD_CHARS else f"{text[:half]} … {text[-half:]}"
