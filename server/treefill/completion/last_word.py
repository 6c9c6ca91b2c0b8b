"""The last word on what is to be suggested: with it in place, the document must parse as well as before.

A text that brings new faults is cut back to the longest part that brings none, at the end of a line or a word; where
nothing is left, nothing is suggested. What can't be checked is suggested as
it is: an unknown language, a file that the parser must not see, no time. Parsers and their rules are `syntax`'s.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from treefill.completion.context import texts_in
from treefill.completion.notebook import code_of
from treefill.completion.postprocess import Drop, Item
from treefill.completion.request import Check, CompletionRequest, Reason, SyntaxFinding
from treefill.completion.scan import BEFORE_TEXT, scan
from treefill.completion.situation import Situation
from treefill.completion.stop import MayEnd, anywhere
from treefill.syntax.baseline import Baseline, Verdict

log = logging.getLogger(__name__)

MAX_LINE_CUTS = 16
MAX_WORD_CUTS = 24
MAX_WHOLE_CUTS = 8
_SEPARATORS = ", \t"
_LINE_END = re.compile(r"\r\n|\r|\n")
_WORD = re.compile(r"\w+|[^\w\s]")


def last_word(
    item: Item, request: CompletionRequest, situation: Situation, may_end: MayEnd = anywhere
) -> tuple[Item | Drop, SyntaxFinding | None]:
    """The item, what is left of it, or why it is dropped; and what the grammar found."""
    if request.check is Check.OFF:
        return item, None
    try:
        return _checked(item, request, situation, may_end)
    except Exception as error:  # a completion does not fail because its check does
        log.warning("The check of syntax failed (%s).", type(error).__name__)  # its text may quote the user's
        sentence = f"The check failed ({type(error).__name__})."
        return item, SyntaxFinding(unchecked=sentence)


def _checked(
    item: Item, request: CompletionRequest, situation: Situation, may_end: MayEnd
) -> tuple[Item | Drop, SyntaxFinding]:
    document, offset, language = request.document, request.offset, situation.language
    others = texts_in(language, request)
    baseline = Baseline.of(code_of(document), offset, language, document.path, dict(request.grammars), others)
    if isinstance(baseline, str):
        return item, SyntaxFinding(unchecked=baseline)
    finding = SyntaxFinding(baseline.grammar.name, baseline.n_faults, note=baseline.grammar.note)
    whole = _verdict(baseline, item, offset)
    if whole.unknown:
        return item, replace(finding, unchecked=whole.unknown)
    finding = replace(finding, n_faults_after=whole.n_faults, complaint=whole.complaint)
    if not whole.complaint:
        return item, finding
    for shorter in _likeliest(list(_cuts(item, situation)), may_end):
        verdict = _verdict(baseline, shorter, offset)
        if verdict.unknown:
            break
        if not verdict.complaint:
            cut = item.text[len(shorter.text) :]
            return shorter, replace(finding, n_faults_after=verdict.n_faults, cut=cut)
    sentence = f"What the model wrote is not valid {baseline.language.id} here: {whole.complaint}."
    return Drop(Reason.INVALID, sentence), finding


def _verdict(baseline: Baseline, item: Item, offset: int) -> Verdict:
    return baseline.verdict(offset, offset + item.n_replaced, item.text)


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
