"""What goes into a completion and what comes out: plain values. How it is computed is told elsewhere."""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from treefill.engine.api import Generation, Sampling
from treefill.errors import BadInput
from treefill.syntax.masks import Masks
from treefill.syntax.rules import NO_RULES, Rules
from treefill.text import Document


class Mode(StrEnum):
    """How much may be suggested."""

    AUTO = "auto"
    LINE = "line"
    BLOCK = "block"


class Check(StrEnum):
    """How a suggestion is held to the language's grammar."""

    OFF = "off"
    PARSE = "parse"
    """Once it is written (`last_word.py`)."""
    FULL = "full"
    """Also while it is written."""


class Reason(StrEnum):
    """Why nothing is suggested."""

    SECRET_FILE = "secret-file"
    NOTHING_WRITTEN = "nothing-written"
    INSIDE_WORD = "inside-word"
    LONG_LINE = "long-line"
    NO_CONTEXT = "no-context"
    TOO_LONG = "too-long"
    CANCELLED = "cancelled"
    BUSY = "busy"
    TOO_SLOW = "too-slow"
    OUT_OF_STEP = "out-of-step"
    BAD_REQUEST = "bad-request"
    BAD_RULES = "bad-rules"
    NO_MODEL = "no-model"
    ENGINE_FAILED = "engine-failed"
    EMPTY = "empty"
    CONTROL_TOKENS = "control-tokens"
    PROSE = "prose"
    INCOMPLETE = "incomplete"
    REPEATS_BELOW = "repeats-below"
    REPEATS_ABOVE = "repeats-above"
    LOOP = "loop"
    NO_CHANGE = "no-change"
    INVALID = "invalid"
    RULE = "rule"


@dataclass(frozen=True, slots=True)
class Budgets:
    """How many tokens each part of the prompt may take."""

    n_neighbour_tokens: int = 384
    n_prefix_tokens: int = 768
    n_suffix_tokens: int = 192

    def fitted(self, n_available: int) -> "Budgets":
        """The same shares of what there is, where the model's context is smaller."""
        wanted = self.n_neighbour_tokens + self.n_prefix_tokens + self.n_suffix_tokens
        if wanted <= n_available:
            return self
        share = max(0, n_available) / wanted
        return Budgets(
            int(self.n_neighbour_tokens * share),
            int(self.n_prefix_tokens * share),
            int(self.n_suffix_tokens * share),
        )


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One place in one document where something is to be suggested."""

    document: Document
    offset: int
    """Where the cursor stands, in code points of the document's text."""
    neighbours: tuple[Document, ...] = ()
    """Other files that may be shown to the model."""
    workspace_root: Path | None = None
    """Neighbours outside it are refused; None stands for the document's own folder."""
    mode: Mode = Mode.AUTO
    max_new_tokens: int = 64
    max_lines: int = 12
    """A block is cut after this many lines."""
    sampling: Sampling = field(default_factory=Sampling)
    n_candidates: int = 1
    time_limit_s: float = math.inf
    """Seconds that all candidates together may take; what is written by then is made the best of."""
    is_automatic: bool = False
    """True where nobody asked: then it is held back where a suggestion would make no sense (`trigger.py`)."""
    reuse: bool = True
    """False evaluates every prompt token anew."""
    anchor_policy: str = "lines-3"
    """How the prompt is split; see `prompt.POLICIES`."""
    budgets: Budgets = field(default_factory=Budgets)
    secret_patterns: tuple[str, ...] = ()
    """The user's own glob patterns of files whose text never enters a prompt."""
    check: Check = Check.FULL
    masks: Masks = Masks.CHECK
    """What the grammar tells the model while it writes; with the full check alone. It changes no suggestion."""
    grammars: tuple[tuple[str, str], ...] = ()
    """Language id and grammar, where the user has chosen among several."""
    schemas: tuple[tuple[str, str], ...] = ()
    """Patterns of file names, or addresses, and the files with the JSON Schemas of such documents, as the user says."""
    rules: Rules = NO_RULES
    """What is suggested is held to them, whatever `check` says."""
    templates: bool = True
    """True where a template may answer before the model is asked (`templates.py`)."""
    habits: bool = True
    """True where what was often accepted in the place may do so, and may be learned (`habits.py`)."""

    def __post_init__(self) -> None:
        """A position outside the text is the caller's mistake, not a completion's."""
        if not 0 <= self.offset <= len(self.document.text):
            raise BadInput(
                f"offset {self.offset} is outside {self.document.path}: "
                f"its text has {len(self.document.text)} characters"
            )


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One piece of a prompt, for the reader of an explanation."""

    name: str
    """`prefix`, `suffix`, `middle`, `neighbour a.py:1-32`, or a control token's name."""
    text: str
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that was kept out of the prompt."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class FilterStep:
    """What one filter made of the text."""

    name: str
    before: str
    after: str
    """Empty where the filter declined."""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What the rules had to say (`treefill.syntax.rules`)."""

    rules: tuple[str, ...] = ()
    """The names of those that hold in the language."""
    refused: tuple[str, ...] = ()
    """What they refused while the model wrote, a sentence each."""
    complaint: str = ""
    """What was against one of them in the whole of the text, as one sentence; empty where nothing was."""
    cut: str = ""
    """What was therefore taken off its end."""
    note: str = ""
    """Which rules were not read, as one sentence; empty where all were."""


@dataclass(frozen=True, slots=True)
class SyntaxFinding:
    """What the language's grammar had to say."""

    grammar: str = ""
    """Its name; empty where there was none to ask."""
    n_faults_before: int = 0
    """Faults of the document as it is."""
    n_faults_after: int = 0
    """Faults of the document with the suggestion in it."""
    complaint: str = ""
    """What was wrong with the whole of the text, in a few words; empty where nothing was."""
    cut: str = ""
    """What was therefore taken off its end."""
    unchecked: str = ""
    """Why it could not be checked, as one sentence; empty where it could."""
    note: str = ""
    """What is odd about the grammar, as one sentence; empty where nothing is."""
    unguarded: str = ""
    """Why it was not asked while the model wrote, though it should have been; empty where it was."""
    schema: str = ""
    """Which JSON Schema the text was held to, or why that does not decide; empty where there is none."""
    rules: RuleFinding | None = None
    """None where no rule holds in the language, and there is nothing to say of rules."""

    @property
    def is_against(self) -> bool:
        """True where the grammar or a rule had something against the whole of the text, whatever was left of it."""
        of_rules = self.rules is not None and bool(self.rules.complaint or self.rules.cut)
        return bool(self.complaint or self.cut) or of_rules


@dataclass(frozen=True, slots=True)
class Explanation:
    """How an answer came about."""

    mode: Mode = Mode.AUTO
    layout: str = ""
    """The family of the prompt's layout, or `prefix-only`."""
    parts: tuple[PromptPart, ...] = ()
    forced: str = ""
    """Text that was typed already and that the model had to spell again."""
    refusals: tuple[Refusal, ...] = ()
    template: str = ""
    """What was offered without the model, by its name; empty where the model was asked."""
    raw_text: str = ""
    """What the model, or the template, has after the cursor."""
    steps: tuple[FilterStep, ...] = ()
    syntax: SyntaxFinding | None = None
    """None where it was not to be asked, or there was no text to check and nothing to say of the time before."""
    timings_ms: tuple[tuple[str, float], ...] = ()
    """Stages in the order they ran."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where the prompt splits a document into prefix and middle, kept from keystroke to keystroke."""

    path: str
    policy: str
    offset: int
    """Offset in the document; what is typed after it is appended to the prompt's end."""
    prefix_hash: int
    """Of the text just before the anchor, to notice an edit there."""
    suffix: str
    """Snapshot of the text right of the cursor, without what editors close by themselves."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Text to be put into the document."""

    text: str
    """Replaces the document's text from `start` to `end`; has the document's own line endings."""
    start: int
    end: int
    """Right of the cursor only over text that `text` writes again."""
    source: str
    """`decoded`: the model wrote it for this request; `recycled`: for an earlier one, and it was typed along;
    `template`: it comes from the language's folder; `habit`: the user accepted it there again and again."""
    generation: Generation | None
    """None where the model was not asked."""
    anchor: Anchor
    """To be handed back with the next request in this document."""
    explanation: Explanation = field(default_factory=Explanation)

    def applied_to(self, document: Document) -> str:
        """The document's text after accepting."""
        return document.text[: self.start] + self.text + document.text[self.end :]


@dataclass(frozen=True, slots=True)
class Declined:
    """Nothing is suggested, and this is why."""

    reason: Reason
    sentence: str
    generation: Generation | None = None
    """None where the model was not asked."""
    anchor: Anchor | None = None
    explanation: Explanation = field(default_factory=Explanation)
