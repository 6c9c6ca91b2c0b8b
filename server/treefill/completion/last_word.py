"""The last word on what is to be suggested: with it in place, the document must parse as well as before, and nothing in
it may be against the user's rules.

A text that brings new faults is cut back to the longest part that brings none, at the end of a line or a word, and one
that is against a rule to the lines before; where nothing is left, nothing is suggested. What can't be checked by the
grammar is suggested as it is: an unknown language, a file that the parser must not see, no time. What can't be judged
by a rule is not suggested: a rule is the user's will. Parsers and rules are `syntax`'s.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from treefill.completion.context import texts_in
from treefill.completion.notebook import code_of
from treefill.completion.postprocess import Drop, Item
from treefill.completion.request import Check, CompletionRequest, Reason, RuleFinding, SyntaxFinding
from treefill.completion.scan import BEFORE_TEXT, scan
from treefill.completion.situation import Situation
from treefill.completion.stop import MayEnd, anywhere
from treefill.syntax.baseline import Baseline, Verdict

if TYPE_CHECKING:
    from treefill.syntax.rules import Breach
    from treefill.syntax.rules.ruling import Ruling

log = logging.getLogger(__name__)

NOT_WANTED = "The grammar was not to be asked."

MAX_LINE_CUTS = 16
MAX_WORD_CUTS = 24
MAX_WHOLE_CUTS = 8
_SEPARATORS = ", \t"
_LINE_END = re.compile(r"\r\n|\r|\n")
_WORD = re.compile(r"\w+|[^\w\s]")


def last_word(
    item: Item, request: CompletionRequest, situation: Situation, may_end: MayEnd = anywhere
) -> tuple[Item | Drop, SyntaxFinding | None]:
    """The item, what is left of it, or why it is dropped; and what the grammar and the rules found."""
    grammar = _Grammar.of(request, situation)
    try:
        ruling = _ruling(request, situation)
        if ruling is None and request.check is Check.OFF:
            return item, None
        return _judged(item, situation, may_end, grammar, ruling)
    except (
        Exception
    ) as error:  # a completion fails for no check of syntax; but a rule that can't be judged is kept
        log.warning(
            "The rules could not be judged (%s).", type(error).__name__
        )  # its text may quote the user's
        sentence = f"The rules could not be judged ({type(error).__name__})."
        return Drop(Reason.RULE, sentence), replace(grammar.finding, rules=RuleFinding(complaint=sentence))


def _judged(
    item: Item, situation: Situation, may_end: MayEnd, grammar: _Grammar, ruling: Ruling | None
) -> tuple[Item | Drop, SyntaxFinding]:
    whole = grammar.verdict(item)
    breach = ruling.breach(item.n_replaced, item.text) if ruling else None
    finding = grammar.finding_of(whole)
    if ruling:
        names = tuple(rule.name for rule in ruling.place.rules)
        rules = RuleFinding(names, complaint=breach.sentence if breach else "")
        finding = replace(finding, rules=rules)
    if not whole.complaint and not breach:
        return item, finding
    for shorter in _likeliest(list(_cuts(item, situation)), may_end):
        if breach and not (_is_before(breach, shorter, item) and may_end(shorter.text)):
            continue
        verdict = grammar.verdict(shorter)
        if verdict.unknown and not whole.unknown:
            break
        if verdict.complaint or (ruling and ruling.breach(shorter.n_replaced, shorter.text)):
            continue
        cut = item.text[len(shorter.text) :]
        if breach and finding.rules:
            finding = replace(finding, rules=replace(finding.rules, cut=cut))
        return shorter, replace(
            finding, n_faults_after=verdict.n_faults, cut=cut if whole.complaint else finding.cut
        )
    if breach:
        return Drop(Reason.RULE, breach.sentence), finding
    sentence = f"What the model wrote is not valid {grammar.language_id} here: {whole.complaint}."
    return Drop(Reason.INVALID, sentence), finding


def _is_before(breach: Breach, shorter: Item, item: Item) -> bool:
    """Whether whole lines are left, without the one that is against a rule: half of it would say something else."""
    rest = item.text[len(shorter.text) :].lstrip(" \t")
    return len(shorter.text) <= breach.at and rest.startswith(("\r", "\n"))


def _ruling(request: CompletionRequest, situation: Situation) -> Ruling | None:
    """What judges by the rules that hold at the cursor; None where none do."""
    if not request.rules.each:
        return None
    from treefill.syntax.rules.ruling import Place, Ruling

    document = request.document
    place = Place.of(code_of(document), request.offset, situation.language, request.rules)
    if not place.rules:
        return None
    others = texts_in(situation.language, request)
    return Ruling(place, document.path, dict(request.grammars), others)


@dataclass(frozen=True, slots=True)
class _Grammar:
    """What the grammar says at the cursor, or why it says nothing. It never fails."""

    offset: int
    baseline: Baseline | None
    silence: str = ""

    @classmethod
    def of(cls, request: CompletionRequest, situation: Situation) -> _Grammar:
        if request.check is Check.OFF:
            return cls(request.offset, None, NOT_WANTED)
        document, offset, language = request.document, request.offset, situation.language
        try:
            others = texts_in(language, request)
            dialects = dict(request.grammars)
            found = Baseline.of(code_of(document), offset, language, document.path, dialects, others)
        except Exception as error:  # a completion does not fail because its check does
            return cls(offset, None, _failure(error))
        return cls(offset, None, found) if isinstance(found, str) else cls(offset, found)

    @property
    def language_id(self) -> str:
        return self.baseline.language.id if self.baseline else ""

    @property
    def finding(self) -> SyntaxFinding:
        """Of the document as it is."""
        base = self.baseline
        if base is None:
            return SyntaxFinding(unchecked=self.silence)
        return SyntaxFinding(base.grammar.name, base.n_faults, note=base.grammar.note)

    def verdict(self, item: Item) -> Verdict:
        if self.baseline is None:
            return Verdict(unknown=self.silence)
        try:
            return self.baseline.verdict(self.offset, self.offset + item.n_replaced, item.text)
        except Exception as error:
            return Verdict(unknown=_failure(error))

    def finding_of(self, verdict: Verdict) -> SyntaxFinding:
        """With the item in place."""
        if verdict.unknown:
            return replace(self.finding, unchecked=verdict.unknown)
        return replace(self.finding, n_faults_after=verdict.n_faults, complaint=verdict.complaint)


def _failure(error: Exception) -> str:
    log.warning("The check of syntax failed (%s).", type(error).__name__)  # its text may quote the user's
    return f"The check failed ({type(error).__name__})."


def _likeliest(cuts: list[Item], may_end: MayEnd) -> list[Item]:
    """The cuts that are worth a parse, the longest first: those in order, and more that the guard takes for whole.

    The guard answers in microseconds, so it is asked about all of them.
    """
    n_ordered = MAX_LINE_CUTS + MAX_WORD_CUTS
    if may_end is anywhere:
        return cuts[:n_ordered]
    whole = islice((cut for cut in cuts[n_ordered:] if may_end(cut.text)), MAX_WHOLE_CUTS)
    return sorted([*cuts[:n_ordered], *whole], key=lambda cut: -len(cut.text))


def _cuts(item: Item, situation: Situation) -> Iterator[Item]:
    """What is left of it when it ends earlier: whole lines, the most first; then words, those of its first two lines
    before the others.
    """
    text = item.text
    line_ends = [match.start() for match in _LINE_END.finditer(text)]
    n_word_text = line_ends[1] if len(line_ends) > 1 else len(text)
    all_word_ends = [match.end() for match in _WORD.finditer(text)]
    word_ends = [end for end in all_word_ends if end <= n_word_text]
    separated = [
        end
        for line_end in (*line_ends, len(text))
        if (end := len(text[:line_end].rstrip(_SEPARATORS))) < line_end
    ]
    spans = [span for span in scan(text, situation.language, situation.state).spans if span[1] <= len(text)]
    replaced = situation.right[: item.n_replaced]
    if replaced:
        # Which of several places it is written again at does not matter: a cut keeps all of them or none.
        spans.append((text.find(replaced), text.rfind(replaced) + len(replaced) - 1))
    seen = {text}
    line_cuts = sorted({*line_ends, *separated}, reverse=True)[:MAX_LINE_CUTS]
    for end in (*line_cuts, *word_ends[::-1][:MAX_WORD_CUTS], *all_word_ends[::-1]):
        shorter = text[:end].rstrip()
        # What the text itself opens and closes is not left open, and what it writes again not left half-written.
        is_torn = any(BEFORE_TEXT < start < len(shorter) <= stop for start, stop in spans)
        if not shorter or shorter in seen or is_torn:
            continue
        seen.add(shorter)
        cut = Item(shorter, item.n_replaced if replaced in shorter else 0)
        if shorter != situation.right[: cut.n_replaced]:  # else nothing would change
            yield cut
