"""Rules at one place of one document: which of them hold there, and the last word on what is put in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import thread_time

from treefill.errors import GrammarError
from treefill.syntax.baseline import Baseline
from treefill.syntax.dialect import dialect_of
from treefill.syntax.fences import Fence, fence_at
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.hazards import hazard
from treefill.syntax.languages import Kinds, Language
from treefill.syntax.parse import encoded, parse
from treefill.syntax.rules.form import Breach, CannotTell, Rule, Rules
from treefill.syntax.rules.header import header_breach
from treefill.syntax.rules.judge import Placed, breach_in_tree, breach_in_words
from treefill.syntax.rules.kinds import KindsOfNodes, kinds_in
from treefill.syntax.rules.read_only import writing

TIME_LIMIT_S = 1.0
"""For all that is judged at one place; what is not judged by then is refused."""
DIALECT_CHARS = 12_000


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor in code, be it a fence's."""

    code: str
    offset: int
    """In code points of the code."""
    language: Language
    rules: tuple[Rule, ...]
    """Those that hold here; where there are none, nothing else is looked at."""
    fence: Fence | None = None

    @classmethod
    def of(cls, text: str, offset: int, language: Language, rules: Rules) -> Place:
        """The cursor at `offset` of a document."""
        fence = fence_at(text, offset, language) if language.fences and rules.each else None
        if fence is not None:
            return cls(fence.code, fence.offset, fence.language, rules.in_language(fence.language), fence)
        return cls(text, offset, language, rules.in_language(language))

    def code_of(self, written: str) -> str:
        """What of a text written at the cursor is code."""
        if self.fence is None:
            return written
        ended = self.fence.up_to_end(written)
        return self.fence.without_margin(written if ended is None else ended)

    @property
    def rules_of_trees(self) -> tuple[Rule, ...]:
        """Those that a tree is needed for."""
        return tuple(
            each for each in self.rules if each.names or each.calls or each.strings or each.kinds or each.docs
        )

    @property
    def rules_of_headers(self) -> tuple[Rule, ...]:
        """Those about a file's first lines; a fence has none."""
        return () if self.fence else tuple(each for each in self.rules if each.header)

    @property
    def read_only(self) -> Rule | None:
        """The one that lets SQL only read, where there is one."""
        return next((each for each in self.rules if each.is_read_only and self.language.id == "sql"), None)

    def grammar(self, dialect: str | None = None, others: Sequence[str] = ()) -> LoadedGrammar | None:
        """What the code is parsed with; None where there is nothing. Raises `GrammarError`."""
        if not self.language.grammars:
            return None
        near = max(0, self.offset - DIALECT_CHARS)
        part = self.code[near : self.offset + DIALECT_CHARS]
        return load(dialect_of(self.language, part, self.offset - near, dialect, others))


@dataclass(slots=True)
class Ruling:
    """The last word at one place. Whatever can't be judged is refused."""

    place: Place
    path: str
    dialects: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[str] = ()
    """Texts in the same language, which tell the dialect where this one does not."""
    _deadline_s: float = field(default_factory=lambda: thread_time() + TIME_LIMIT_S)
    _baseline: Baseline | None = None

    def breach(self, n_replaced: int, text: str) -> Breach | None:
        """What is against a rule in `text` at the cursor, in the place of so many characters right of it."""
        place = self.place
        before, after = place.code[: place.offset], place.code[place.offset + n_replaced :]
        code = place.code_of(text)
        if found := header_breach(before, code, after, place.rules_of_headers):
            return found
        if rule := place.read_only:
            found_sql = writing(before + code + after, len(before), len(before) + len(code))
            if found_sql:  # it may stand right of the cursor, in the same statement
                return rule.breach(found_sql.what, min(found_sql.at - len(before), len(code)))
        rules = place.rules_of_trees
        if not rules or not code:
            return None
        try:
            return self._by_tree(before, code, after, n_replaced, rules)
        except CannotTell as error:
            return rules[0].breach(f"what cannot be judged: {error}")

    def _by_tree(
        self, before: str, code: str, after: str, n_replaced: int, rules: tuple[Rule, ...]
    ) -> Breach | None:
        is_described = self.place.language.kinds != Kinds()
        placed = self._placed(code, n_replaced) if is_described else None
        if placed is not None:
            return breach_in_tree(placed, self.place.language, rules)
        return breach_in_words(before, code, after, self.place.language, rules, self._kinds())

    def _placed(self, code: str, n_replaced: int) -> Placed | None:
        """The tree with the code in it, or None where there is no tree to be had."""
        if thread_time() > self._deadline_s:
            return None
        base = self._base()
        if base is None:
            return None
        at = self.place.offset - base.start
        head, tail = base.text[:at], base.text[at + n_replaced :]
        if hazard(head + code + tail, base.grammar.grammar):
            return None
        head_bytes, code_bytes = encoded(head), encoded(code)
        data = head_bytes + code_bytes + encoded(tail)
        parsed = parse(data, base.grammar, base.before, self._deadline_s)
        if parsed is None:
            return None
        return Placed(parsed, len(head_bytes), len(head_bytes) + len(code_bytes), base.before)

    def _base(self) -> Baseline | None:
        """The document as it is; in a fence, the fence's code."""
        if self._baseline is None:
            place = self.place
            path = f"{self.path}#{place.fence.start}" if place.fence else self.path
            found = Baseline.of(
                place.code, place.offset, place.language, path, dict(self.dialects), self.others
            )
            self._baseline = found if isinstance(found, Baseline) else None
        return self._baseline

    def _kinds(self) -> KindsOfNodes | None:
        try:
            return kinds_in(self.place.language) if self.place.language.grammars else None
        except GrammarError:
            return None
