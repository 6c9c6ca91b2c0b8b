"""Does a text still parse as well as before, once something is put into it?

`Baseline.of` looks at the text as it is; `Baseline.verdict` at what it would become. A text may have faults already,
near the cursor or far from it: only more than before counts against what is put in. What cannot be checked is unknown,
with the reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import thread_time

from treefill.errors import GrammarError
from treefill.syntax.dialect import dialect_of
from treefill.syntax.fences import Fence, fence_at
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.hazards import hazard
from treefill.syntax.languages import Language
from treefill.syntax.parse import Fault, Parsed, RecentTrees, encoded, parse
from treefill.syntax.policies import Splice, complaint_of
from treefill.syntax.window import window_of

TIME_LIMIT_S = 0.15
"""Of the processor, for the text as it is, and once more for all that is put into it."""

N_SPARE_BYTES = 64
"""A fault may take in so much more of what stood there than before."""

TREES = RecentTrees()
"""Of the documents that are being typed in."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the grammar says of a text with something put into it."""

    n_faults: int = 0
    complaint: str = ""
    """What is wrong with what was put in, in a few words; empty where nothing is."""
    unknown: str = ""
    """Why that can't be told, as one sentence; empty where it can."""


@dataclass(slots=True)
class Baseline:
    """A text at the place where something is to be put in."""

    language: Language
    grammar: LoadedGrammar
    text: str
    """The part of the document that is parsed."""
    start: int
    """Where that part begins in the document."""
    before: Parsed
    fence: Fence | None = None
    """The code is all of a fence's, and the document's places are outside of it."""
    deadline_s: float = field(default_factory=lambda: thread_time() + TIME_LIMIT_S)
    """By the clock of `time.thread_time`: later verdicts are unknown."""

    @property
    def n_faults(self) -> int:
        """Of the text as it is."""
        return len(self.before.faults)

    @classmethod
    def of(
        cls,
        text: str,
        offset: int,
        language: Language,
        path: str,
        dialects: dict[str, str] | None = None,
        others: Sequence[str] = (),
    ) -> "Baseline | str":
        """The text as it is, or why it can't be checked, as one sentence.

        `others` are texts in the same language, which tell the dialect where this one does not.
        """
        if language.fences:
            return cls._in_fence(text, offset, language, path, dialects)
        if not language.grammars:
            return f"There is no grammar for {language.id}."
        start, end = window_of(text, offset)
        part = text[start:end]
        try:
            wanted = (dialects or {}).get(language.id)
            grammar = load(dialect_of(language, part, offset - start, wanted, others))
            refused = hazard(part, grammar.grammar)
            if refused:
                return refused
            parsed = TREES.parse(path, encoded(part), grammar, thread_time() + TIME_LIMIT_S)
        except GrammarError as error:
            return str(error)
        if parsed is None:
            return "It is left unparsed: there was no time for it, or too much in it is wrong."
        return cls(language, grammar, part, start, parsed)

    @classmethod
    def _in_fence(
        cls, text: str, offset: int, language: Language, path: str, dialects: dict[str, str] | None
    ) -> "Baseline | str":
        fence = fence_at(text, offset, language)
        if fence is None:
            return "Prose is free: the cursor is in no fence of a language that is known."
        # Trees are gone on with by their path, and each fence has its own.
        found = cls.of(fence.code, fence.offset, fence.language, f"{path}#{fence.start}", dialects)
        if isinstance(found, cls):
            found.fence = fence
        return found

    def verdict(self, start: int, end: int, text: str) -> Verdict:
        """What comes of `text` in the place of the document's characters from `start` to `end`."""
        if self.fence:
            ended = self.fence.up_to_end(text)
            text = self.fence.without_margin(text if ended is None else ended)
            start, end = self.fence.offset, self.fence.offset + end - start
        head, tail = self.text[: start - self.start], self.text[end - self.start :]
        refused = hazard(head + text + tail, self.grammar.grammar)
        if refused:
            return Verdict(unknown=refused)
        head_bytes, text_bytes = encoded(head), encoded(text)
        data = head_bytes + text_bytes + encoded(tail)
        after = parse(data, self.grammar, self.before, self.deadline_s)
        if after is None:
            return Verdict(unknown="There was no time to check it.")
        n_start, n_end = len(head_bytes), len(head_bytes) + len(text_bytes)
        splice = Splice(
            self.before, after, n_start, len(self.before.data) - len(data) + n_end - n_start, n_end
        )
        if _is_worse(splice):
            # An old tree that is gone on with may see faults in other places than a fresh one.
            fresh = self._fresh(splice)
            if fresh is None:
                return Verdict(unknown="There was no time to check it.")
            splice = fresh
            if _is_worse(splice):
                return Verdict(len(splice.after.faults), _complaint(splice))
        return Verdict(len(splice.after.faults), complaint_of(splice, self.language.id))

    def _fresh(self, splice: Splice) -> Splice | None:
        """The same from trees that begin anew, or None where there is no time."""
        if not self.before.is_fresh:
            before = parse(self.before.data, self.grammar, None, self.deadline_s)
            if before is None:
                return None
            self.before = before
        after = parse(splice.after.data, self.grammar, None, self.deadline_s)
        return None if after is None else replace(splice, before=self.before, after=after)


def _is_worse(splice: Splice) -> bool:
    """More faults than before, or worse ones: something wrong weighs more than something missing.

    Nor may a fault spread far over what stood there before; how far one reaches is a matter of luck, so there is room.
    """
    before, after = splice.before.faults, splice.after.faults
    if len(after) > len(before) or _n_wrong(after) > _n_wrong(before):
        return True
    return _n_old_bytes(splice) > 2 * sum(map(_n_bytes, before)) + _n_line_bytes(splice) + N_SPARE_BYTES


def _n_wrong(faults: tuple[Fault, ...]) -> int:
    return sum(not fault.is_missing for fault in faults)


def _n_old_bytes(splice: Splice) -> int:
    """Bytes in faults that were not put in."""
    shared = (
        max(0, min(fault.end_byte, splice.end) - max(fault.start_byte, splice.start))
        for fault in splice.after.faults
    )
    return sum(map(_n_bytes, splice.after.faults)) - sum(shared)


def _n_line_bytes(splice: Splice) -> int:
    data = splice.before.data
    line_end = data.find(b"\n", splice.start)
    return (line_end if line_end >= 0 else len(data)) - (data.rfind(b"\n", 0, splice.start) + 1)


def _n_bytes(fault: Fault) -> int:
    return fault.end_byte - fault.start_byte


def _complaint(splice: Splice) -> str:
    """Which fault it is, as well as it can be told."""
    near = [f for f in splice.after.faults if f.end_byte >= splice.start and f.start_byte <= splice.end]
    fault = (near or splice.after.faults)[0]
    if fault.is_missing:
        return "something is missing"
    piece = splice.after.data[max(fault.start_byte, splice.start) : min(fault.end_byte, splice.end)]
    word = piece.decode(errors="replace").strip().split("\n")[0][:20]
    return f"{word!r} has no place there" if word else "what follows has no place there any more"
