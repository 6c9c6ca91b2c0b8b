"""What each keystroke costs: typing is replayed, one request a character, and evaluated tokens are counted.

Some lines are taken out of a file and typed again, character by character, while the rest of the file stands
below. The anchor is handed on from request to request, as an editor's session does. Text is not judged here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from treefill.completion import Anchor, CompletionRequest, complete
from treefill.engine.api import CancelFlag, Engine
from treefill.evaluation.typist import Typist
from treefill.text import Document


@dataclass(frozen=True, slots=True)
class Typing:
    """A piece of a file that is typed again."""

    document: Document
    start: int
    """Offset of a line's first character that is not blank."""
    end: int
    """Offset of a line's end."""
    n_keys: int
    """Characters that are typed; the rest up to `end` is left untyped."""

    def typist(self, *, helps: bool = False) -> Typist:
        """Who types it, before the first key; in an editor that adds nothing by itself unless it `helps`."""
        text = self.document.text
        target = text[self.start : self.end if helps else self.start + self.n_keys]
        return Typist(text[: self.start] + text[self.end :], self.start, target, helps)


@dataclass(frozen=True, slots=True)
class Keystroke:
    """What one request cost."""

    arm: str
    path: str
    n_typed: int
    """0 is the request before the first character: nothing could be reused."""
    n_prompt_tokens: int
    n_evaluated: int
    """Prompt tokens that were not reused."""
    n_healed: int
    """Tokens decoded to spell again what was typed already."""
    ttft_ms: float


@dataclass(frozen=True, slots=True)
class KeystrokeSummary:
    """One arm's requests, the one before the first character of each place left out."""

    arm: str
    n: int
    prompt_median: float
    """Tokens in the whole prompt."""
    evaluated_median: float
    evaluated_p95: float
    evaluated_max: int
    healed_mean: float
    ttft_ms_median: float


def choose_typings(documents: Sequence[Document], n_places: int, n_keys: int) -> list[Typing]:
    """Places spread evenly over each file: the same ones every time."""
    return [typing for document in documents for typing in _typings(document, n_places, n_keys)]


def replay(typings: Sequence[Typing], arms: Sequence[str], engine: Engine) -> Iterator[Keystroke]:
    """Type every place again, once for each arm, asking after each character."""
    for typing in typings:
        for arm in arms:
            yield from _type(typing, arm, engine)


def summarise_keystrokes(keystrokes: Sequence[Keystroke]) -> list[KeystrokeSummary]:
    """Each arm in a line."""
    arms = dict.fromkeys(keystroke.arm for keystroke in keystrokes)
    typed = [keystroke for keystroke in keystrokes if keystroke.n_typed]
    return [_summary(arm, [keystroke for keystroke in typed if keystroke.arm == arm]) for arm in arms]


def _typings(document: Document, n_places: int, n_keys: int) -> Iterator[Typing]:
    text = document.text
    starts = [start for start in _line_text_starts(text) if start + n_keys <= len(text)]
    for number in range(min(n_places, len(starts))):
        start = starts[(2 * number + 1) * len(starts) // (2 * n_places)]
        line_end = text.find("\n", start + n_keys)
        yield Typing(document, start, line_end if line_end >= 0 else len(text), n_keys)


def _line_text_starts(text: str) -> Iterator[int]:
    offset = 0
    for line in text.split("\n"):
        if line.strip():
            yield offset + len(line) - len(line.lstrip())
        offset += len(line) + 1


def _type(typing: Typing, arm: str, engine: Engine) -> Iterator[Keystroke]:
    anchor: Anchor | None = None
    typist = typing.typist()
    for n_typed in range(typing.n_keys + 1):
        if n_typed:
            typist.press()
        document = replace(typing.document, text=typist.text)
        request = CompletionRequest(
            document,
            typist.cursor,
            max_new_tokens=1,
            anchor_policy=arm,
            templates=False,  # it is the model that is asked
            reuse=n_typed > 0,  # only the first request of a place starts with an empty cache
        )
        answer = complete(request, engine, CancelFlag(), anchor)
        anchor = answer.anchor
        generation = answer.generation
        if generation is not None:
            yield Keystroke(
                arm=arm,
                path=typing.document.path,
                n_typed=n_typed,
                n_prompt_tokens=generation.n_prompt_tokens,
                n_evaluated=generation.n_prompt_tokens - generation.n_reused_tokens,
                n_healed=len(generation.token_ids) - generation.n_new_tokens,
                ttft_ms=generation.ttft_ms,
            )


def _summary(arm: str, keystrokes: Sequence[Keystroke]) -> KeystrokeSummary:
    evaluated = [keystroke.n_evaluated for keystroke in keystrokes]
    return KeystrokeSummary(
        arm=arm,
        n=len(keystrokes),
        prompt_median=float(np.median([keystroke.n_prompt_tokens for keystroke in keystrokes])),
        evaluated_median=float(np.median(evaluated)),
        evaluated_p95=float(np.percentile(evaluated, 95)),
        evaluated_max=max(evaluated),
        healed_mean=float(np.mean([keystroke.n_healed for keystroke in keystrokes])),
        ttft_ms_median=float(np.median([keystroke.ttft_ms for keystroke in keystrokes])),
    )
