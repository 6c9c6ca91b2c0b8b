"""What is asked while the model writes: the grammar at the cursor (`syntax/matcher.py`), or the reason why it is not;
the schema that holds in the document (`schemas.py`), and the rules that hold in the language (`syntax/rules/`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from treefill.completion.all_of import AllOf
from treefill.completion.context import texts_in
from treefill.completion.notebook import code_of
from treefill.completion.postprocess import Drop
from treefill.completion.request import Check, CompletionRequest, Reason, RuleFinding, SyntaxFinding
from treefill.completion.schemas import NO_SCHEMA, HeldToSchema, schema_at_cursor
from treefill.completion.situation import Situation
from treefill.completion.stop import MayEnd, anywhere
from treefill.engine.api import Finish, Generation, Guard, Vocabulary
from treefill.errors import GrammarError
from treefill.syntax.languages import language_by_id
from treefill.syntax.masks import Mask, Masks, mask_if_ready

if TYPE_CHECKING:
    from treefill.syntax.matcher import Matcher
    from treefill.syntax.rules.guard import RuleGuard

log = logging.getLogger(__name__)

N_REMEMBERED_ENDS = 256
NOTHING_TO_CHECK = "There was no text to check."


@dataclass(frozen=True, slots=True)
class Guarded:
    """What stands guard over one completion."""

    matcher: Matcher | None = None
    reason: str = ""
    """Why there is none, as one sentence; empty where there is one, or none was wanted."""
    may_end: MayEnd = anywhere
    schema: HeldToSchema = NO_SCHEMA
    """What a JSON Schema of the user's has to say."""
    rules: RuleGuard | None = None
    """What holds the text to the user's rules; None where none hold in the language."""
    note: str = ""
    """Which rules were not read, as one sentence."""

    @property
    def guard(self) -> Guard | None:
        """All that is asked, as one. The rules come last, so that they tell what nothing else was against."""
        parts = (self.matcher, self.schema.guard, self.rules)
        guards: tuple[Guard, ...] = tuple(each for each in parts if each is not None)
        return AllOf(guards) if len(guards) > 1 else next(iter(guards), None)

    def mask(self, how: Masks, tokens: Vocabulary) -> Mask | None:
        """What the grammar allows, of all of the model's tokens; None where that is not wanted, or not known yet."""
        return mask_if_ready(how, self.matcher, tokens) if self.matcher else None

    def kept(self, generation: Generation) -> str:
        """What of the model's text is to be looked at: not what a rule has torn."""
        is_torn = self.rules is not None and generation.finish is Finish.DEAD_END
        return self.rules.without_torn(generation.text) if self.rules and is_torn else generation.text

    def reason_for(self, drop: Drop) -> Drop:
        """Why nothing is left, where a rule has refused what the model would have written."""
        is_for_want = drop.reason is Reason.EMPTY and self.rules is not None and bool(self.rules.refused)
        return Drop(Reason.RULE, self.rules.refused[-1].sentence) if self.rules and is_for_want else drop

    def told(self, finding: SyntaxFinding | None) -> SyntaxFinding | None:
        """What was found in the end, with what there is to say of the time before."""
        refused = tuple(breach.sentence for breach in self.rules.refused) if self.rules else ()
        if finding is None and (self.silence or self.schema.note or refused or self.note):
            finding = SyntaxFinding(unchecked=NOTHING_TO_CHECK)
        if finding is None:
            return None
        rules = finding.rules
        if rules is not None or refused or self.note:
            rules = replace(rules or RuleFinding(), refused=refused, note=self.note)
        return replace(finding, unguarded=self.silence, schema=self.schema.sentence, rules=rules)

    @property
    def gave_up(self) -> str:
        """Why it no longer decides; empty while it does."""
        return self.matcher.gave_up if self.matcher else ""

    @property
    def silence(self) -> str:
        """Why the grammar did not decide, from the beginning or from somewhere on; empty where it did."""
        return self.reason or self.gave_up


def guard_at_cursor(request: CompletionRequest, situation: Situation) -> Guarded:
    """The guard of a request. A completion does not fail because it has none."""
    return replace(
        _grammar_at_cursor(request, situation),
        schema=schema_at_cursor(request),
        rules=_rules_at_cursor(request, situation),
        note=request.rules.note,
    )


def _grammar_at_cursor(request: CompletionRequest, situation: Situation) -> Guarded:
    if request.check is not Check.FULL:
        return Guarded()
    # Loaded when it is first needed: the command line and a core that waits do without.
    from treefill.syntax.matcher import OutOfReach, matcher_at

    try:
        found = matcher_at(
            code_of(request.document),
            request.offset,
            situation.language,
            dict(request.grammars).get(situation.language.id),
            texts_in(situation.language, request),
            dict(request.grammars),
        )
    except GrammarError as error:
        return Guarded(reason=str(error))
    except Exception as error:  # a completion does not fail because nobody stands guard
        log.warning(
            "The grammar could not be asked (%s).", type(error).__name__
        )  # its text may quote the user's
        return Guarded(reason=f"The grammar could not be asked ({type(error).__name__}).")
    if isinstance(found, OutOfReach):
        return Guarded(reason=found.reason)

    @lru_cache(maxsize=N_REMEMBERED_ENDS)
    def may_end(text: str) -> bool:
        return found.may_end(text.encode(errors="replace"))  # half a character is no text

    return Guarded(found, may_end=may_end)


def _rules_at_cursor(request: CompletionRequest, situation: Situation) -> RuleGuard | None:
    """What holds the text to the rules while it is written; it has no last word, so it may fail."""
    if not request.rules.each:
        return None
    from treefill.syntax.rules.guard import RuleGuard
    from treefill.syntax.rules.ruling import Place

    try:
        place = Place.of(code_of(request.document), request.offset, situation.language, request.rules)
        dialect = dict(request.grammars).get(place.language.id)
        return RuleGuard(place, dialect) if place.rules else None
    except Exception as error:  # its text may quote the user's
        log.warning("The rules could not be asked while it is written (%s).", type(error).__name__)
        return None


def prepare(language_id: str) -> None:
    """Have what stands guard over a language ready before it is needed. Takes a while the first time.

    Raises `GrammarError` where its grammar cannot be loaded.
    """
    from treefill.syntax.matcher import prepare as prepare_grammar

    prepare_grammar(language_by_id(language_id))
