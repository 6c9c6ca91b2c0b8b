"""One document from a request in words: prompt, guard, decode, close if need be, check.

It ends where the document is whole: by its grammar, by its schema where there is one, and by the parsers that will
read it (`validity.py`). There is no document that is not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from time import perf_counter

import yaml

from treefill.completion.all_of import AllOf
from treefill.engine.api import CancelFlag, Engine, Finish, GenerateRequest, Generation, Guard, Sampling
from treefill.errors import BadInput, TreefillError
from treefill.generation.closing import Closed, close, shorten
from treefill.generation.guards import Anything, Timed, WholeDocument
from treefill.generation.masks import MaskTokens, mask_for
from treefill.generation.prompt import FENCE, prompt_for
from treefill.generation.validity import complaint_of, parsers_of
from treefill.syntax.languages import Language, language_by_id
from treefill.syntax.masks import Masks
from treefill.syntax.matcher import Matcher, OutOfReach, matcher_at
from treefill.syntax.rules import NO_RULES, Rules
from treefill.syntax.rules.guard import RuleGuard
from treefill.syntax.rules.ruling import Place, Ruling
from treefill.syntax.schema import (
    ANY_JSON,
    Schema,
    SchemaGuard,
    SchemaTokens,
    complaint_by,
    schema_guard,
    tokens_of,
)


class Unfinished(TreefillError):
    """What was written is no whole document, and no short ending makes it one."""


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """What is to be written."""

    wish: str
    """In words, or a text that the document is to be made of."""
    language: Language
    schema: Schema | None = None
    """For JSON and YAML: what the document must be like besides."""
    max_new_tokens: int = 1024
    sampling: Sampling = field(default_factory=Sampling)
    masks: Masks = Masks.CHECK
    rules: Rules = NO_RULES
    """The document is held to those of its language: while it is written where `masks` lets it be guarded, and when it
    is whole in any case.
    """


@dataclass(frozen=True, slots=True)
class Written:
    """A whole document, and how it came about."""

    text: str
    """With a line feed at its end."""
    generation: Generation
    parsers: tuple[str, ...]
    """Who has found nothing wrong with it."""
    seconds: float
    """For all of it, but for what is done once a process."""
    guard_s: float
    """Of these, what guard and masks took."""
    n_cut_bytes: int = 0
    """Taken off the end of what the model wrote, for want of an end."""
    added: str = ""
    """What was put there instead."""
    unguarded: str = ""
    """Why the grammar was not asked while it was written, as one sentence; empty where it was, or was not to be."""
    notes: tuple[str, ...] = field(default=())
    """What of the schema was not held to."""
    refused: tuple[str, ...] = field(default=())
    """What rules refused while it was written, a sentence each."""


@dataclass(frozen=True, slots=True)
class _Guards:
    document: WholeDocument
    matcher: Matcher | None
    schema: SchemaGuard | None
    rules: RuleGuard | None
    """None where no rule is about the language that is written, or nothing is guarded while it is written."""
    ruling: Ruling | None
    """What judges it by these rules when it is whole."""
    unguarded: str

    def breach_in(self, document: str) -> str:
        """What is against a rule in it, as a part of a sentence; empty where nothing is."""
        return _breach_in(document, self.ruling)


def write(
    request: DocumentRequest, engine: Engine, cancel: CancelFlag, tokens: MaskTokens | None = None
) -> Written:
    """Have the document written. `tokens` are needed where masks are made.

    Raises `BadInput` for a wish that is too long, `GrammarError` where the language's grammar cannot be loaded, and
    `Unfinished` where no whole document came of it.
    """
    if not request.wish.strip():
        raise BadInput("The request is empty: say on standard input what is to be written.")
    written_in = _written_in(request)
    shown = request.schema.source if request.schema else ""
    prompt = prompt_for(request.wish, written_in, engine.vocabulary, shown)
    n_left = engine.n_context - len(prompt.ids)
    if n_left < 1:
        raise BadInput(
            f"The request has {len(prompt.ids)} tokens with what is put round it, and the model takes fewer than "
            f"{engine.n_context}: shorten it."
        )
    guards = _guards(request, written_in, prompt.is_fenced, tokens)
    timed = Timed(guards.document)
    mask = mask_for(request.masks, guards.matcher, guards.schema, tokens) if tokens is not None else None
    wanted = GenerateRequest(
        prompt_ids=prompt.ids,
        max_new_tokens=min(request.max_new_tokens, n_left),
        sampling=request.sampling,
        should_stop=lambda text: (
            guards.document.has_ended or _ends_fence(text, prompt.is_fenced, request.masks)
        ),
        reuse=False,
        guard=None if request.masks is Masks.OFF else timed,
        mask=None if mask is None else timed.timed(mask),
    )
    began = perf_counter()
    generation = engine.generate(wanted, cancel)
    document, closed = _brought_to_an_end(guards, generation, request, written_in)
    text = _in_wanted_form(document, request)
    seconds = perf_counter() - began
    return Written(
        text,
        generation,
        (*parsers_of(request.language), *(["schema"] if request.schema else [])),
        seconds,
        timed.seconds,
        closed.n_cut_bytes,
        closed.added.decode(errors="replace"),
        guards.unguarded,
        request.schema.notes if request.schema else (),
        tuple(breach.sentence for breach in guards.rules.refused) if guards.rules else (),
    )


def _written_in(request: DocumentRequest) -> Language:
    """The language that the model writes: YAML under a schema is written as JSON, which the schema can follow."""
    if request.schema is None:
        return request.language
    if request.language.id not in ("json", "yaml"):
        raise BadInput(
            f"A schema is for JSON and YAML, not for {request.language.id}: leave one of them out."
        )
    return language_by_id("json")


def _guards(
    request: DocumentRequest, language: Language, is_fenced: bool, tokens: MaskTokens | None
) -> _Guards:
    wanted = request.schema or ANY_JSON
    # JSON that is to be YAML is judged when it is that: the rules for JSON are not about it.
    place = _place_of(request) if language is request.language else None

    def complaint(document: bytes) -> str:
        try:
            text = document.decode()
        except UnicodeDecodeError:
            return "it has half a character"
        by_schema = request.masks is Masks.OFF and request.schema is not None  # else its guard has said so
        found = complaint_of(text, language) or (complaint_by(wanted, text) if by_schema else "")
        return found or _breach_in(text, ruling)

    unguarded = ""
    matcher: Matcher | None = None
    schema: SchemaGuard | None = None
    rules: RuleGuard | None = None
    ruling = Ruling(place, "") if place else None
    if request.masks is not Masks.OFF:
        rules = RuleGuard(place) if place else None
        found = matcher_at("", 0, language)
        matcher = found if isinstance(found, Matcher) else None
        unguarded = found.reason if isinstance(found, OutOfReach) else ""
        if language.id == "json":
            masked = tokens if request.masks is not Masks.CHECK else None
            schema = schema_guard(wanted, _schema_tokens(masked) if masked else None)
    # One after the other, the quicker one first.
    parts: list[Guard] = [each for each in (matcher, schema, rules) if each is not None]
    inner: Guard = AllOf(tuple(parts)) if parts else Anything()
    is_blind = matcher is None and schema is None
    return _Guards(
        WholeDocument(inner, complaint, is_fenced, is_blind), matcher, schema, rules, ruling, unguarded
    )


def _place_of(request: DocumentRequest) -> Place | None:
    """Where rules are asked what they are against; None where there are none for the language."""
    place = Place.of("", 0, request.language, request.rules)
    return place if place.rules else None


def _take_off_torn(guard: WholeDocument, rules: RuleGuard) -> None:
    """Take back the line that a rule has torn, with all of its pieces: half of it would say something else."""
    whole = guard.written.decode(errors="ignore")
    kept = rules.without_torn(whole)
    kept = kept[: kept.rfind("\n") + 1] if len(kept) < len(whole) else whole
    while guard.pieces and len(guard.written) > len(kept.encode()):
        guard.rollback(1)


def _breach_in(document: str, ruling: Ruling | None) -> str:
    breach = ruling.breach(0, document) if ruling else None
    return breach.told if breach else ""


def _against_a_rule(told: str) -> Unfinished:
    return Unfinished(f"There is no document, because {told}: ask for something else, or change the rule.")


@lru_cache(maxsize=1)
def _schema_tokens(tokens: MaskTokens) -> SchemaTokens:
    return tokens_of(tokens.vocabulary.spelled)


def _ends_fence(text: str, is_fenced: bool, masks: Masks) -> bool:
    """True where nobody stands guard and the model has ended its fence."""
    return masks is Masks.OFF and is_fenced and f"\n{FENCE}" in f"\n{text}"


def _brought_to_an_end(
    guards: _Guards, generation: Generation, request: DocumentRequest, language: Language
) -> tuple[str, Closed]:
    """The document, closed where it has to be. Raises `Unfinished`."""
    if generation.finish is Finish.CANCELLED:
        raise Unfinished("Stopped before the document was whole.")
    if request.masks is Masks.OFF:
        document = f"\n{generation.text}".partition(f"\n{FENCE}")[0].removeprefix("\n")
        if breach := guards.breach_in(document):
            raise _against_a_rule(breach)
        complaint = guards.document.complaint_of(document.encode())
        if complaint:
            raise Unfinished(
                f"What was written is not whole {language.id} ({complaint}): leave --masks off out."
            )
        return document, Closed(0, b"")
    guard = guards.document
    if guards.rules is not None and generation.finish is Finish.DEAD_END:
        _take_off_torn(guard, guards.rules)
    closed: Closed | None = Closed(0, b"") if guard.written.strip() else None
    if closed is not None and not guard.can_stop():
        if guard.is_blind:
            unread, guard = guard.written, WholeDocument(Anything(), guard.complaint_of, is_blind=True)
            closed = shorten(guard, unread, language)
        else:
            closed = close(guard, guard.pieces, language)
    if closed is None:
        refused = guards.rules.refused if guards.rules and generation.finish is Finish.DEAD_END else ()
        if breach := refused[-1].told if refused else guards.breach_in(generation.text):
            raise _against_a_rule(breach)
        complaint = guard.complaint_of(generation.text.encode()) or "it has no end"
        raise Unfinished(
            f"The document is not whole after {generation.n_new_tokens} tokens ({complaint}), and no short ending "
            "makes it so: raise --max-tokens, or ask for less."
        )
    return guard.written.decode(), closed


def _in_wanted_form(document: str, request: DocumentRequest) -> str:
    """With one line feed at its end; JSON that is to be YAML as YAML. Raises `Unfinished`."""
    if request.schema is None or request.language.id != "yaml":
        return document.rstrip("\n") + "\n"
    value = json.loads(document)
    text = str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
    place = _place_of(request)
    if breach := _breach_in(text, Ruling(place, "") if place else None):
        raise _against_a_rule(breach)
    complaint = complaint_of(text, request.language)
    if complaint or yaml.safe_load(text) != value:
        raise Unfinished(
            f"The document cannot be said in YAML ({complaint or 'it means something else there'})."
        )
    return text
