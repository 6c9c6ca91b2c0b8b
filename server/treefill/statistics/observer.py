"""What one editor session counts, told by what happens in it. Pure, but for the clocks that it is given."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from treefill.statistics.acceptance import Accepted, Fate, Recogniser, Suggested
from treefill.statistics.counts import Counts
from treefill.statistics.kept import kept_share
from treefill.statistics.latency import bucket_of
from treefill.text import Buffer, Edit, Text

KEPT_AFTER_S = 60.0
"""After so long an accepted suggestion is looked for again."""
KEPT_WINDOW = 100_000
"""Characters on either side of its place that are looked through."""
N_FATES = 64
"""Suggestions of a document that are known again when they are offered again."""
OUTCOME_WINDOW = 200
DECODED, REUSED, AT_ONCE = "decoded", "reused", "at_once"
"""Ways that answers come, whose times are counted apart."""
WITHOUT_MODEL = ("template", "habit")
"""Sources of suggestions that no model was asked for."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One item of an answer, in code points of the document that it was made for."""

    start: int
    end: int
    text: str
    source: str


@dataclass(slots=True)
class _Document:
    """What is remembered of an open document."""

    recogniser: Recogniser = field(default_factory=Recogniser)
    fates: OrderedDict[int, Fate] = field(default_factory=OrderedDict)
    """By what the document would be."""


@dataclass(frozen=True, slots=True)
class _ToJudge:
    """An acceptance whose text is looked for again; the text itself is kept no longer than that."""

    language: str
    written: str
    """From the beginning of its first line."""
    place: int
    n_characters: int
    due_s: float


OnAccepted = Callable[[Buffer, Accepted, str], None]


class Observer:
    """Counts into `counts`."""

    def __init__(
        self,
        counts: Counts,
        clock_s: Callable[[], float] = time.monotonic,
        on_accepted: OnAccepted = lambda _buffer, _accepted, _source: None,
    ) -> None:
        """`on_accepted` is told of each acceptance, the document as it is then, and where the suggestion came from."""
        self._counts = counts
        self._clock_s = clock_s
        self._on_accepted = on_accepted
        self._documents: dict[str, _Document] = {}
        self._to_judge: dict[str, list[_ToJudge]] = {}

    def answered(
        self, buffer: Buffer, items: Iterable[Shown], reason: str, explanation: Mapping[str, Any], ms: float
    ) -> None:
        """A request about the document as it is in `buffer` has got its answer."""
        shown = tuple(items)
        add, language = self._counts.add, buffer.language
        for name, told in _TOKENS.items():
            n_tokens = explanation.get(told, 0)
            add(language, name, n_tokens if isinstance(n_tokens, int) else 0)
        for name, is_so in _of_syntax(explanation).items():
            add(language, name, int(is_so))
        if not shown:
            add(language, f"declined.{reason or 'empty'}")
            return
        source = shown[0].source
        way = DECODED if source == DECODED else AT_ONCE if source in WITHOUT_MODEL else REUSED
        add(language, f"latency.{way}.{bucket_of(ms)}")
        self._offered(buffer, tuple(Suggested(item.start, item.end, item.text) for item in shown), source)

    def edited(self, before: Buffer, after: Buffer, edits: tuple[Edit, ...]) -> None:
        """The document was edited."""
        document = self._documents.get(before.uri)
        accepted = document.recogniser.follow(before.text, edits) if document else None
        if document is not None and accepted is not None:
            self._accepted(after, accepted, document.recogniser.source)

    def told_accepted(self, buffer: Buffer, length: int) -> None:
        """The editor says that a suggestion of this length was accepted, all of it; its edit has come already."""
        document = self._documents.get(buffer.uri)
        accepted = document.recogniser.told(length) if document else None
        if document is not None and accepted is not None:
            self._accepted(buffer, accepted, document.recogniser.source)

    def closed(self, buffer: Buffer) -> None:
        """The document is about to be closed."""
        self._documents.pop(buffer.uri, None)
        for each in self._to_judge.pop(buffer.uri, ()):
            self._judge(each, buffer.text)

    def judge(self, get: Callable[[str], Buffer | None], is_the_end: bool = False) -> None:
        """Look again for what was accepted long enough ago, or for everything."""
        now_s = self._clock_s()
        for uri, waiting in list(self._to_judge.items()):
            buffer = get(uri)
            due = [each for each in waiting if is_the_end or each.due_s <= now_s]
            if buffer is not None:
                for each in due:
                    self._judge(each, buffer.text)
            if len(due) == len(waiting):
                del self._to_judge[uri]
            else:
                del waiting[: len(due)]  # they came in order

    @property
    def has_to_judge(self) -> bool:
        """True where `judge` has something to do, now or later."""
        return bool(self._to_judge)

    def judge_nothing(self) -> None:
        """Look for nothing again of what was accepted so far."""
        self._to_judge.clear()

    def forget(self) -> None:
        """Follow nothing of what was offered so far."""
        self._documents.clear()
        self._to_judge.clear()

    def _offered(self, buffer: Buffer, items: tuple[Suggested, ...], source: str) -> None:
        """A suggestion counts once, however often it is offered, whole or its rest."""
        document = self._documents.setdefault(buffer.uri, _Document())
        outcomes = [_outcome_of(buffer.text, item) for item in items]
        known = document.fates.get(outcomes[0])
        fate = known or Fate(source)
        document.fates.update(dict.fromkeys(outcomes, fate))
        while len(document.fates) > N_FATES:
            document.fates.popitem(last=False)
        document.recogniser.show(items, fate)
        if known is None:
            self._counts.add(buffer.language, "offered")
            self._counts.add(buffer.language, "characters_offered", items[0].n_characters)
            if source in WITHOUT_MODEL:
                self._counts.add(buffer.language, f"{source}.offered")

    def _accepted(self, after: Buffer, accepted: Accepted, source: str) -> None:
        self._on_accepted(after, accepted, source)
        if accepted.is_news:
            self._counts.add(after.language, "accepted" if accepted.is_whole else "partly_accepted")
        if accepted.is_whole and source in WITHOUT_MODEL:
            self._counts.add(after.language, f"{source}.accepted")
        self._counts.add(after.language, "characters_accepted", accepted.n_characters)
        if accepted.end > accepted.start:
            line_start, _ = after.text.line_bounds(accepted.start)
            written = after.text.slice(line_start, accepted.end)
            due_s = self._clock_s() + KEPT_AFTER_S
            each = _ToJudge(after.language, written, accepted.start, accepted.n_characters, due_s)
            self._to_judge.setdefault(after.uri, []).append(each)

    def _judge(self, each: _ToJudge, text: Text) -> None:
        share = kept_share(each.written, text.slice(each.place - KEPT_WINDOW, each.place + KEPT_WINDOW))
        self._counts.add(each.language, "characters_judged", each.n_characters)
        self._counts.add(each.language, "characters_kept", round(share * each.n_characters))


_TOKENS = {
    "reused_tokens": "n_reused_tokens",
    "evaluated_tokens": "n_evaluated",
    "decoded_tokens": "n_new_tokens",
    "syntax.guarded_tokens": "n_guarded",
    "syntax.refused_first": "n_refused_first",
    "syntax.undone": "n_undone",
}
"""What we count → how the core's explanations call it."""


def _of_syntax(explanation: Mapping[str, Any]) -> dict[str, bool]:
    """What the grammar had to do with an answer. Where it fell silent on the way it did not stand guard."""
    told = explanation.get("syntax")
    finding = told if isinstance(told, Mapping) else {}
    is_unguarded = bool(finding.get("unguarded"))
    return {
        "syntax.guarded": bool(explanation.get("n_guarded")) and not is_unguarded,
        "syntax.unguarded": is_unguarded,
        "syntax.cut": bool(finding.get("cut")),
    }


def _outcome_of(text: Text, item: Suggested) -> int:
    """Tells the document that accepting would make, the same for a suggestion and for the rest of it."""
    end = item.start + len(item.text)
    written = text.slice(item.start - OUTCOME_WINDOW, item.start) + item.text
    return hash((end, written[-OUTCOME_WINDOW:], text.slice(item.end, item.end + OUTCOME_WINDOW)))
