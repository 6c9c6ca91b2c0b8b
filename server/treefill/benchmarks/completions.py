"""What it costs to hold completions to their grammar: the same places four times, in turn.

*free*: no grammar. *check*: each token is checked when the model proposes it. *dictionary*: a mask of the whole
vocabulary at each token that the dictionary has one for, else as *check*; what is missing is made beside the model.
*each*: a mask is made for each token. The last three must write the same tokens. The prompt is evaluated before, so the
times are of writing alone; what guard and masks take of them is on the way of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from treefill.completion import Check, CompletionRequest, complete
from treefill.engine.api import CancelFlag, Engine, GenerateRequest, Generation, Sampling
from treefill.evaluation.positions import Position
from treefill.generation.guards import Timed
from treefill.syntax.dictionary import BACKGROUND
from treefill.syntax.masks import Masks

SETTLING_S = 120.0
"""So long the background may take to be done with what it was told."""
WORTH_WRITING = 2
"""Tokens that every arm has to write at a place: of fewer there is nothing to measure."""


class Way(StrEnum):
    """How a completion is held to its grammar."""

    FREE = "free"
    CHECK = "check"
    DICTIONARY = "dictionary"
    EACH = "each"


GUARDED = (Way.CHECK, Way.DICTIONARY, Way.EACH)


@dataclass(frozen=True, slots=True)
class Run:
    """One completion."""

    generation: Generation
    guard_s: float
    """What the guard took, masks not counted."""
    mask_s: float
    """What looking masks up, or making them, took on the way of the answer."""


@dataclass(frozen=True, slots=True)
class Sum:
    """All completions of one way."""

    n_tokens: int = 0
    n_guarded: int = 0
    n_masked: int = 0
    seconds: float = 0.0
    guard_s: float = 0.0
    mask_s: float = 0.0

    def plus(self, run: Run) -> Sum:
        """With one more."""
        generation = run.generation
        return Sum(
            self.n_tokens + generation.n_new_tokens,
            self.n_guarded + generation.n_guarded,
            self.n_masked + generation.n_masked,
            self.seconds + generation.total_ms / 1000,
            self.guard_s + run.guard_s,
            self.mask_s + run.mask_s,
        )

    def ms_a_token(self, seconds: float) -> float:
        """Of so many seconds."""
        return 1000 * seconds / max(self.n_tokens, 1)


@dataclass(slots=True)
class CompletionFigures:
    """One language's results."""

    language: str
    n_taught: int = 0
    """Completions of other files that the dictionary had seen."""
    n_places: int = 0
    n_short: int = 0
    """Places left out because hardly anything was written there."""
    n_different: int = 0
    """Places where the guarded ways did not write the same tokens."""
    sums: dict[Way, Sum] = field(default_factory=lambda: dict.fromkeys(Way, Sum()))

    @property
    def share_off_the_way(self) -> float:
        """Of the time that masks take where each is made, what the dictionary takes off the way of the answer."""
        return 1 - self.sums[Way.DICTIONARY].mask_s / max(self.sums[Way.EACH].mask_s, 1e-9)

    @property
    def share_of_token(self) -> float:
        """Of the time of a token, what the dictionary's masks take."""
        return self.sums[Way.DICTIONARY].mask_s / max(self.sums[Way.DICTIONARY].seconds, 1e-9)

    @property
    def saved(self) -> float:
        """Of the time of writing where each mask is made, what the dictionary saves."""
        return 1 - self.sums[Way.DICTIONARY].seconds / max(self.sums[Way.EACH].seconds, 1e-9)


class _Watched:
    """An `Engine` whose guards and masks are timed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name, self.model = engine.name, engine.model
        self.vocabulary, self.n_context = engine.vocabulary, engine.n_context
        self.runs: list[Run] = []

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        guard = None if request.guard is None else Timed(request.guard)
        mask, mask_s = request.mask, 0.0

        def timed_mask() -> NDArray[np.uint32] | None:
            nonlocal mask_s
            began = perf_counter()
            words = mask() if mask else None
            mask_s += perf_counter() - began
            return words

        watched = replace(request, guard=guard, mask=None if mask is None else timed_mask)
        generation = self._engine.generate(watched, cancel)
        self.runs.append(Run(generation, guard.seconds if guard else 0.0, mask_s))
        return generation

    def close(self) -> None:
        """It is the engine's owner who closes it."""


def measure_completions(
    language: str,
    positions: Sequence[Position],
    engine: Engine,
    n_taught: int,
    sampling: Sampling | None = None,
    tell: Callable[[int], None] = lambda _n: None,
) -> CompletionFigures:
    """Complete at the positions in every way; the first `n_taught` only teach the dictionary.

    `tell` hears how many positions are done.
    """
    figures = CompletionFigures(language)
    for position in positions[:1]:
        _have_ready(position, engine)
    for number, position in enumerate(positions):
        tell(number)
        if number < n_taught:
            figures.n_taught += 1
            _run(position, Way.DICTIONARY, engine, sampling)
            BACKGROUND.wait(SETTLING_S)
            continue
        turn = number % len(Way)
        ways = (*list(Way)[turn:], *list(Way)[:turn])
        _run(position, Way.FREE, engine, sampling, max_new_tokens=1)  # leaves the prompt's keys and values
        runs = {way: _run(position, way, engine, sampling) for way in ways}
        _count(figures, runs)
    return figures


def _count(figures: CompletionFigures, runs: Mapping[Way, Run | None]) -> None:
    there = {way: run for way, run in runs.items() if run is not None}
    if len(there) < len(Way) or any(run.generation.n_new_tokens < WORTH_WRITING for run in there.values()):
        figures.n_short += 1
        return
    figures.n_places += 1
    figures.n_different += len({there[way].generation.token_ids for way in GUARDED}) > 1
    for way, run in there.items():
        figures.sums[way] = figures.sums[way].plus(run)


def _have_ready(position: Position, engine: Engine) -> None:
    """Grammar and vocabulary are read once a process."""
    for way in (Way.DICTIONARY, Way.EACH):
        _run(position, way, engine, None, max_new_tokens=1)
        BACKGROUND.wait(SETTLING_S)


def _run(
    position: Position, way: Way, engine: Engine, sampling: Sampling | None, max_new_tokens: int = 64
) -> Run | None:
    """None where the model was not asked."""
    watched = _Watched(engine)
    request = CompletionRequest(position.document, position.offset, templates=False)
    request = replace(
        request,
        check=Check.OFF if way is Way.FREE else Check.FULL,
        masks=Masks.CHECK if way is Way.FREE else Masks(way),
        max_new_tokens=max_new_tokens,
        sampling=sampling or request.sampling,
    )
    complete(request, watched, CancelFlag())
    if way is Way.DICTIONARY:
        BACKGROUND.wait(SETTLING_S)  # it is not to be in the way of the others
    return watched.runs[-1] if watched.runs else None


def completion_json(figures: CompletionFigures) -> dict[str, object]:
    """The figures for programs."""
    return {
        "language": figures.language,
        "taught": figures.n_taught,
        "places": figures.n_places,
        "short": figures.n_short,
        "different": figures.n_different,
        "off_the_way": round(figures.share_off_the_way, 4),
        "of_token": round(figures.share_of_token, 4),
        "saved": round(figures.saved, 4),
        "ways": {
            way: {
                "tokens": each.n_tokens,
                "guarded": each.n_guarded,
                "masked": each.n_masked,
                "seconds": round(each.seconds, 3),
                "guard_s": round(each.guard_s, 4),
                "mask_s": round(each.mask_s, 4),
            }
            for way, each in figures.sums.items()
        },
    }


def completion_markdown(all_figures: Iterable[CompletionFigures]) -> str:
    """A table a language, for people."""
    return "\n\n".join(map(_markdown, all_figures))


def _markdown(figures: CompletionFigures) -> str:
    free = figures.sums[Way.FREE]
    free_ms = free.ms_a_token(free.seconds)
    lines = [
        f"**{figures.language}**: {figures.n_places} places, {figures.n_short} left out; the dictionary had seen "
        f"{figures.n_taught} completions of other files; other tokens at {figures.n_different}.",
        "",
        "| | tokens | ms a token | beside free | guard, ms a token | masks, ms a token | under a mask |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for way, each in figures.sums.items():
        ms = each.ms_a_token(each.seconds)
        masked = f"{100 * each.n_masked / max(figures.sums[Way.EACH].n_masked, 1):.0f} %"
        lines.append(
            f"| {way} | {each.n_tokens} | {ms:.2f} | {100 * (ms / max(free_ms, 1e-9) - 1):+.1f} % "
            f"| {each.ms_a_token(each.guard_s):.3f} | {each.ms_a_token(each.mask_s):.3f} | {masked} |"
        )
    if not figures.sums[Way.DICTIONARY].n_masked or not figures.sums[Way.EACH].n_masked:
        return "\n".join([*lines, "", "No masks were told, so there is nothing to compare."])
    lines += [
        "",
        f"Of the time that masks take, the dictionary takes {100 * figures.share_off_the_way:.1f} % off the answer's "
        f"way; what is left is {100 * figures.share_of_token:.2f} % of a token's time. Writing is "
        f"{100 * figures.saved:.1f} % quicker than with a mask made for each token.",
    ]
    return "\n".join(lines)
