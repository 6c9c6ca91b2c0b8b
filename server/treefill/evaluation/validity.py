"""Whether completions keep a file sound: asked at random positions of real files, with each check that there is.

Every arm is one kind of check and sees the same positions, one after the other, so that the prompt's keys and values
are reused; it has been evaluated once before, so that no arm's time has more of it than another's. Arms that nothing
guards while the model writes ask it for the same text: that is decoded once, and its time counts for each of them.
What a completion breaks is counted by a parse of the whole file of its own (`faults.py`). A position that takes long,
declines or fails is a row like any other.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

import treefill
from treefill.completion import Check, CompletionRequest, Declined, Mode, Reason, Suggestion, complete
from treefill.completion.request import SyntaxFinding
from treefill.engine.api import CancelFlag, Engine, Finish, GenerateRequest, Generation
from treefill.errors import EngineError
from treefill.evaluation.faults import count_faults, find_faults
from treefill.evaluation.positions import Position
from treefill.evaluation.results import Header, Key
from treefill.evaluation.statistics import bootstrap_interval
from treefill.text import Document

ARMS = tuple(Check)
"""The checks that are compared, the one that the others are compared with first."""
MODES = (Mode.LINE, Mode.BLOCK)
ALL = "all"
"""Stands for every language together."""
SLOW_MS = 10_000
"""A request that takes longer is told of."""


@dataclass(frozen=True, slots=True)
class ValidityRow:
    """What one arm suggested at one position."""

    FORMAT: ClassVar[str] = "treefill-validity-1"
    language: str
    path: str
    digest: str
    """Of the file as it stood."""
    offset: int
    kind: str
    mode: str
    arm: str
    declined: str | None
    """The reason why nothing was shown."""
    text: str
    """What was shown."""
    n_replaced: int
    """Characters right of the cursor that `text` replaces, because it writes them again."""
    n_faults_before: int
    """In the file as it stood."""
    added_errors: int
    """How many more there are after accepting."""
    n_faults_inside: int
    """How many begin inside the text shown: the file may have had as many before, where it lacked that text."""
    grammar: str
    """What the check read the file with; empty where nothing was checked."""
    unchecked: str
    """Why the check could not be made, as one sentence; empty where it could."""
    cut: str
    """What the check took off the end."""
    n_new_tokens: int
    n_guarded: int
    """Tokens that were chosen under a check's eyes."""
    n_refused_first: int
    """Among them, those where the model's first choice was refused."""
    n_undone: int
    """Tokens taken back because nothing could come after them."""
    finish: str
    """Why the generation ended; empty where there was none."""
    ms: float
    """From the request to its answer, the prompt already evaluated."""

    @property
    def key(self) -> Key:
        """What no two rows of a file have in common."""
        return (*self.place, self.arm)

    @property
    def place(self) -> tuple[str, str, str, int, str, str]:
        """Where and how it was asked: the arms have it in common."""
        return (self.language, self.path, self.digest, self.offset, self.kind, self.mode)


@dataclass(slots=True)
class ValidityRun:
    """What a run tells about itself while it goes on."""

    n_skipped: int = 0
    """Requests whose rows were there already."""


@dataclass(frozen=True, slots=True)
class ValiditySummary:
    """One arm in one language and mode."""

    language: str
    mode: str
    arm: str
    n: int
    shown: int
    declined: int
    reasons: dict[str, int]
    """Why it declined, and how often."""
    n_chars: int
    """Characters shown."""
    n_cut: int
    """Suggestions that the check took something off."""
    n_unchecked: int
    """Requests at which it could not be made."""
    chars_ratio: float | None
    """The same as a multiple of what the first arm shows."""
    n_breaking: int
    """Completions that added errors."""
    added_errors: int
    n_faults_inside: int
    refused_first: float | None
    """Share of the checked tokens where the model's first choice was refused."""
    n_dead_ends: int
    """Generations that ended because nothing likely could come next."""
    n_undone: int
    ms_p50: float
    n_slow: int
    """Requests of more than ten seconds."""


@dataclass(frozen=True, slots=True)
class ValidityDifference:
    """Characters shown by an arm less those shown by the first one, at the same positions."""

    language: str
    mode: str
    arm: str
    baseline: str
    n: int
    n_fewer: int
    n_same: int
    n_more: int
    chars: float
    """On average a position, with the bounds of a 95 % interval over files."""
    chars_low: float
    chars_high: float


@dataclass(frozen=True, slots=True)
class ValidityReport:
    """The numbers of one results file."""

    header: Header
    n_rows: int
    n_positions: int
    """Positions that all arms were asked at: everything below is about them. One that is asked in two modes is two."""
    added_errors: dict[str, int] = field(default_factory=dict)
    """By arm, over all languages and modes."""
    summaries: Sequence[ValiditySummary] = ()
    differences: Sequence[ValidityDifference] = ()


def validity_header(engine: Engine, seed: int) -> Header:
    """The conditions of a run on that engine."""
    request = CompletionRequest(Document("", ""), 0)
    settings = {
        "seed": seed,
        "max_new_tokens": request.max_new_tokens,
        "max_lines": request.max_lines,
        "anchor_policy": request.anchor_policy,
        "sampling": asdict(request.sampling),
        "budgets": asdict(request.budgets),
        "n_context": engine.n_context,
    }
    return Header(engine.model, engine.name, treefill.__version__, settings, ValidityRow.FORMAT)


def ask_everywhere(
    positions: Iterable[tuple[Position, Mode]],
    arms: Sequence[str],
    engine: Engine,
    done: Iterable[Key] = (),
    cancel: CancelFlag | None = None,
    run: ValidityRun | None = None,
) -> Generator[ValidityRow]:
    """Ask each arm at each position, and yield the rows that are not `done` yet."""
    run = run or ValidityRun()
    cancel = cancel or CancelFlag()
    known = frozenset(done)
    for position, mode in positions:
        missing = [arm for arm in arms if (*_place(position, mode), arm) not in known]
        run.n_skipped += len(arms) - len(missing)
        if not missing:
            continue
        n_faults = count_faults(position.document.text, position.document.language)
        _evaluate_prompt(position, mode, engine, cancel)
        once = _DecodedOnce(engine)
        for arm in missing:
            row = _ask(position, mode, arm, n_faults, once, cancel)
            if cancel.is_cancelled:
                return
            yield row


def validity_report(header: Header, rows: Sequence[ValidityRow], arms: Sequence[str]) -> ValidityReport:
    """Sum up the rows of `arms` at the positions that all of them have; arms without a row are left out."""
    arms = [arm for arm in arms if any(row.arm == arm for row in rows)]
    common = _common(rows, arms)
    n_positions = len(common) // len(arms) if arms else 0
    added = {arm: sum(row.added_errors for row in common if row.arm == arm) for arm in arms}
    groups = list(_groups(common, arms))
    return ValidityReport(
        header,
        len(rows),
        n_positions,
        added,
        [_summary(language, mode, by_arm, arm) for language, mode, by_arm in groups for arm in arms],
        [
            _difference(language, mode, by_arm, arm, arms[0])
            for language, mode, by_arm in groups
            for arm in arms[1:]
        ],
    )


class _DecodedOnce:
    """An `Engine` for one position, which knows again what it was asked without a guard: decoding is deterministic."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name, self.model = engine.name, engine.model
        self.vocabulary, self.n_context = engine.vocabulary, engine.n_context
        self.spared_ms = 0.0
        """What was not decoded again would have taken so long."""
        self._known: dict[object, Generation] = {}

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        if request.guard is not None:
            return self._engine.generate(request, cancel)
        asked = (
            request.prompt_ids, request.forced, request.begun, request.is_begun_whole,
            request.max_new_tokens, request.sampling, request.reuse, request.cache_salt,
        )  # fmt: skip
        if asked in self._known:
            self.spared_ms += self._known[asked].total_ms
        else:
            self._known[asked] = self._engine.generate(request, cancel)
        return self._known[asked]

    def close(self) -> None:
        """It is the engine's owner who closes it."""


def _ask(
    position: Position, mode: Mode, arm: str, n_faults: int, engine: _DecodedOnce, cancel: CancelFlag
) -> ValidityRow:
    started, engine.spared_ms = time.perf_counter(), 0.0
    try:
        answer = complete(_request(position, mode, Check(arm)), engine, cancel)
    except EngineError as error:
        answer = Declined(Reason.ENGINE_FAILED, str(error))
    ms = (time.perf_counter() - started) * 1000 + engine.spared_ms
    shown = answer if isinstance(answer, Suggestion) else None
    faults: list[int] = []
    start = end = 0
    if shown is not None:
        faults = find_faults(shown.applied_to(position.document), position.document.language)
        start = len(position.document.text[: shown.start].encode())
        end = start + len(shown.text.encode())
    generation = answer.generation
    finding = answer.explanation.syntax or SyntaxFinding()
    return ValidityRow(
        *_place(position, mode),
        arm=arm,
        declined=answer.reason.value if isinstance(answer, Declined) else None,
        text=shown.text if shown else "",
        n_replaced=shown.end - shown.start if shown else 0,
        n_faults_before=n_faults,
        added_errors=max(0, len(faults) - n_faults),
        n_faults_inside=sum(start <= each < end for each in faults),
        grammar=finding.grammar,
        unchecked=finding.unchecked,
        cut=finding.cut,
        n_new_tokens=generation.n_new_tokens if generation else 0,
        n_guarded=generation.n_guarded if generation else 0,
        n_refused_first=generation.n_refused_first if generation else 0,
        n_undone=generation.n_undone if generation else 0,
        finish=generation.finish.value if generation else "",
        ms=round(ms, 1),
    )


def _evaluate_prompt(position: Position, mode: Mode, engine: Engine, cancel: CancelFlag) -> None:
    """Leave the prompt's keys and values in the cache."""
    try:
        complete(replace(_request(position, mode, Check.OFF), max_new_tokens=1), engine, cancel)
    except EngineError:
        return  # each arm meets it again, and has a row of it


def _request(position: Position, mode: Mode, check: Check) -> CompletionRequest:
    return CompletionRequest(position.document, position.offset, mode=mode, check=check, templates=False)


def _place(position: Position, mode: Mode) -> tuple[str, str, str, int, str, str]:
    document = position.document
    return (
        document.language,
        document.path,
        position.digest,
        position.offset,
        position.kind.value,
        mode.value,
    )


def _common(rows: Sequence[ValidityRow], arms: Sequence[str]) -> list[ValidityRow]:
    arms_at: dict[Any, set[str]] = defaultdict(set)
    for row in rows:
        arms_at[row.place].add(row.arm)
    wanted = frozenset(arms)
    return [row for row in rows if row.arm in wanted and wanted <= arms_at[row.place]]


_ByArm = dict[str, list[ValidityRow]]


def _groups(rows: Sequence[ValidityRow], arms: Sequence[str]) -> Iterable[tuple[str, str, _ByArm]]:
    """Each language and mode, and each mode over all languages where there are several."""
    languages = list(dict.fromkeys(row.language for row in rows))
    modes = list(dict.fromkeys(row.mode for row in rows))
    for language in [*languages, *([ALL] if len(languages) > 1 else [])]:
        for mode in modes:
            found = [row for row in rows if row.mode == mode and language in (row.language, ALL)]
            if found:
                yield language, mode, {arm: [row for row in found if row.arm == arm] for arm in arms}


def _summary(language: str, mode: str, by_arm: _ByArm, arm: str) -> ValiditySummary:
    rows = by_arm[arm]
    n_chars, n_first = _n_chars(rows), _n_chars(next(iter(by_arm.values())))
    n_guarded = sum(row.n_guarded for row in rows)
    reasons = Counter(row.declined for row in rows if row.declined is not None)
    return ValiditySummary(
        language=language,
        mode=mode,
        arm=arm,
        n=len(rows),
        shown=len(rows) - reasons.total(),
        declined=reasons.total(),
        reasons=dict(reasons.most_common()),
        n_chars=n_chars,
        n_cut=sum(bool(row.cut) for row in rows),
        n_unchecked=sum(bool(row.unchecked) for row in rows),
        chars_ratio=n_chars / n_first if n_first else None,
        n_breaking=sum(row.added_errors > 0 for row in rows),
        added_errors=sum(row.added_errors for row in rows),
        n_faults_inside=sum(row.n_faults_inside for row in rows),
        refused_first=sum(row.n_refused_first for row in rows) / n_guarded if n_guarded else None,
        n_dead_ends=sum(row.finish == Finish.DEAD_END for row in rows),
        n_undone=sum(row.n_undone for row in rows),
        ms_p50=float(np.median([row.ms for row in rows])),
        n_slow=sum(row.ms > SLOW_MS for row in rows),
    )


def _difference(language: str, mode: str, by_arm: _ByArm, arm: str, baseline: str) -> ValidityDifference:
    theirs = {row.place: len(row.text) for row in by_arm[baseline]}
    differences = [len(row.text) - theirs[row.place] for row in by_arm[arm]]
    low, high = bootstrap_interval(differences, [row.path for row in by_arm[arm]])
    return ValidityDifference(
        language=language,
        mode=mode,
        arm=arm,
        baseline=baseline,
        n=len(differences),
        n_fewer=sum(each < 0 for each in differences),
        n_same=sum(each == 0 for each in differences),
        n_more=sum(each > 0 for each in differences),
        chars=float(np.mean(differences)),
        chars_low=low,
        chars_high=high,
    )


def _n_chars(rows: Iterable[ValidityRow]) -> int:
    return sum(len(row.text) for row in rows)
