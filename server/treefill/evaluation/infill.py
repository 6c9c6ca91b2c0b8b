"""Fills holes through the product's own journey and lets each problem's tests judge the result.

Every arm is a policy of the prompt's anchor, as `lines-3`, or that with a check of syntax, as `lines-3:off`, and sees
the same holes. The tests run beside the decoding, one at a time; a row comes out as soon as its verdict is known, in
the order of the holes.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

import treefill
from treefill.completion import Check, CompletionRequest, Declined, Mode, Suggestion, complete
from treefill.engine.api import CancelFlag, Engine, GenerateRequest, Generation, TokenId
from treefill.evaluation.holes import Hole, Problem
from treefill.evaluation.judge import passes
from treefill.evaluation.results import Header, Key, Row
from treefill.text import Document

ARMS = ("plain", "plain-healed", "line", "lines-3-word", "lines-3")
"""Policies of the prompt's anchor that are compared unless others are asked for."""
DOCUMENT_PATH = "solution.py"

Judge = Callable[[Problem, str], bool]
"""True where the problem's tests pass on that file."""


@dataclass(slots=True)
class Run:
    """What a run tells about itself while it goes on."""

    n_skipped: int = 0
    """Requests whose rows were there already."""
    unsound: list[str] = field(default_factory=list)
    """Problems that were left out, because their own solution fails their tests on this machine."""


def header_of(engine: Engine) -> Header:
    """The conditions of a run on that engine."""
    request = _request(Document(DOCUMENT_PATH, "", "python"), 0, ARMS[0])
    settings = {
        "mode": request.mode.value,
        "max_new_tokens": request.max_new_tokens,
        "sampling": asdict(request.sampling),
        "budgets": asdict(request.budgets),
        "n_context": engine.n_context,
    }
    return Header(engine.model, engine.name, treefill.__version__, settings)


def fill_holes(
    holes: Iterable[Hole],
    arms: Sequence[str],
    engine: Engine,
    done: Iterable[Key] = (),
    cancel: CancelFlag | None = None,
    judge: Judge = passes,
    run: Run | None = None,
) -> Generator[Row]:
    """Fill each hole by each arm, and yield the rows that are not `done` yet."""
    run = run or Run()
    cancel = cancel or CancelFlag()
    known = frozenset(done)
    waiting: deque[tuple[Row, Future[bool]]] = deque()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="treefill-judge") as pool:
        verdicts = _Verdicts(judge, pool)
        try:
            for hole in holes:
                missing = [
                    arm for arm in arms if (hole.problem.task, hole.line, hole.variant, arm) not in known
                ]
                run.n_skipped += len(arms) - len(missing)
                if not missing or not _is_sound(hole.problem, verdicts, run):
                    continue
                remembering = _Remembering(engine)
                for arm in missing:
                    row, filled = _fill(hole, arm, remembering, cancel)
                    if cancel.is_cancelled:
                        return
                    waiting.append((row, verdicts.on(hole.problem, filled)))
                    while waiting and waiting[0][1].done():
                        yield _judged(*waiting.popleft())
            while waiting:
                yield _judged(*waiting.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _fill(hole: Hole, arm: str, engine: Engine, cancel: CancelFlag) -> tuple[Row, str]:
    """A row that is not judged yet, and the filled file."""
    document = Document(DOCUMENT_PATH, hole.text, "python")
    answer = complete(_request(document, hole.start, arm), engine, cancel)
    filled = answer.applied_to(document) if isinstance(answer, Suggestion) else document.text
    generation = answer.generation
    n_prompt = generation.n_prompt_tokens if generation else 0
    n_reused = generation.n_reused_tokens if generation else 0
    row = Row(
        task=hole.problem.task,
        line=hole.line,
        variant=hole.variant,
        cut=hole.cut,
        arm=arm,
        passed=False,
        exact=hole.is_exact(filled),
        declined=answer.reason if isinstance(answer, Declined) else None,
        n_prompt_tokens=n_prompt,
        n_reused_tokens=n_reused,
        n_evaluated=n_prompt - n_reused + (len(generation.token_ids) if generation else 0),
        n_new_tokens=generation.n_new_tokens if generation else 0,
        total_ms=round(generation.total_ms, 1) if generation else 0.0,
        text=answer.text if isinstance(answer, Suggestion) else "",
        n_replaced=answer.end - answer.start if isinstance(answer, Suggestion) else 0,
    )
    return row, filled


def _request(document: Document, offset: int, arm: str) -> CompletionRequest:
    policy, _, check = arm.partition(":")
    return CompletionRequest(
        document,
        offset,
        mode=Mode.LINE,
        anchor_policy=policy,
        check=Check(check or Check.FULL),
        templates=False,
    )


def _is_sound(problem: Problem, verdicts: "_Verdicts", run: Run) -> bool:
    """The problem's own solution passes; asked once a problem."""
    is_sound = verdicts.on(problem, problem.file).result()
    if not is_sound and problem.task not in run.unsound:
        run.unsound.append(problem.task)
    return is_sound


def _judged(row: Row, verdict: "Future[bool]") -> Row:
    return Row(**asdict(row) | {"passed": verdict.result()})


class _Remembering:
    """An engine that decodes a prompt once: arms often come to the same one, and greedy decoding to the same text."""

    def __init__(self, engine: Engine) -> None:
        self.name = engine.name
        self.model = engine.model
        self.vocabulary = engine.vocabulary
        self.n_context = engine.n_context
        self._engine = engine
        self._known: dict[tuple[tuple[TokenId, ...], bytes, bool], Generation] = {}

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        """What the engine wrote, now or before."""
        key = (request.prompt_ids, request.forced, request.guard is not None)
        if key not in self._known:
            self._known[key] = self._engine.generate(request, cancel)
        return self._known[key]

    def close(self) -> None:
        """The engine belongs to the caller, who closes it."""


class _Verdicts:
    """Asks the judge once for each different file."""

    def __init__(self, judge: Judge, pool: ThreadPoolExecutor) -> None:
        self._judge = judge
        self._pool = pool
        self._known: dict[tuple[str, str], Future[bool]] = {}

    def on(self, problem: Problem, file: str) -> "Future[bool]":
        """The verdict on a file, now or soon."""
        key = (problem.task, file)
        if key not in self._known:
            self._known[key] = self._pool.submit(self._judge, problem, file)
        return self._known[key]
