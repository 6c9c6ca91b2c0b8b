"""What the core does for its fronts, whatever connects them: the queue, the model's life, one answer a request.

One thread runs the model, everything else happens on the event loop. Of two requests for a document the newer one
wins, and of all that wait the newest goes first. A front's documents never meet another front's (`peer`). Where a
request waits for the model, another thread looks for what needs none; it also learns what is accepted.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from treefill.completion import Declined, Habits, Reason, Suggestion, learn, nearest_missing
from treefill.core.habit_file import HabitFile
from treefill.core.jobs import Job, MakeRequest
from treefill.core.messages import Accepted, Ask, EngineState, Message, Started
from treefill.core.peer import Peer, Snapshot
from treefill.core.preparer import Preparer
from treefill.engine.api import Engine
from treefill.errors import BadInput, BadRules, TreefillError

T = TypeVar("T")
OpenEngine = Callable[[Callable[[float], None]], Engine]
"""Loads the model, and tells now and then which share of it has been read, from 0 to 1."""

log = logging.getLogger(__name__)

N_WAITING_MAX = 64
"""Requests that may wait; beyond that the oldest are answered empty."""
RETRY_LOAD_S = 5.0
"""After a model could not be loaded, requests are declined for so long before it is tried again."""
STOP_GRACE_S = 1.0
"""So long after the time limit a request is cancelled."""
WRITE_HABITS_EVERY_S = 30.0
HANG_GRACE_S = 5.0
"""An engine that does not heed its flag for so long will not come back."""


class Service:
    """The core without its socket. Made and used on one event loop."""

    def __init__(
        self,
        open_engine: OpenEngine,
        make_request: MakeRequest,
        request_limit_s: float,
        unload_after_s: float,
        on_hang: Callable[[], None],
        prepare: Callable[[str], None],
        habit_file: HabitFile | None = None,
        put_away: Callable[[], None] = lambda: None,
    ) -> None:
        """`prepare` makes a language ready, on any thread; it may take its time and fail. `put_away` keeps what was
        worked out beside the model; it is called when that goes.

        `habit_file` is where habits come from and are kept; None keeps them in memory only.
        """
        self._open_engine = open_engine
        self._make_request = make_request
        self._request_limit_s = request_limit_s
        self._unload_after_s = unload_after_s
        self._on_hang = on_hang
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="treefill-journey")
        self._side_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="treefill-at-once")
        self._preparer = Preparer(prepare)
        self._habits = Habits()
        self._habit_file = habit_file
        self._put_away = put_away
        self._n_habits_kept = 0
        """How much was learned when the file was last written."""
        self._habit_timer: asyncio.TimerHandle | None = None
        self._side_tasks: set[asyncio.Task[None]] = set()
        if habit_file is not None:
            self._side_thread.submit(self._read_habits, habit_file)
        self._peers: set[Peer] = set()
        self._engine: Engine | None = None
        self._state = EngineState("unloaded")
        self._failed_at: float | None = None
        self._waiting: dict[tuple[int, str], Job] = {}
        self._running: Job | None = None
        self._work: asyncio.Task[None] | None = None
        self._unload_timer: asyncio.TimerHandle | None = None
        self._is_closing = False

    def connect(self, send: Callable[[Message], None]) -> Peer:
        """Take up a front. The model is loaded at once: the first request should not wait for it."""
        peer = Peer(
            send,
            ask=self.ask,
            cancel=self.cancel,
            leave=self.leave,
            prepare=self._preparer.want,
            learn=self.learn,
        )
        self._peers.add(peer)
        send(EngineState("loading") if self._engine is None and self._may_load() else self._state)
        self._wake()
        return peer

    def ask(self, peer: Peer, ask: Ask) -> None:
        """Queue a request; an older one for the same document makes way."""
        snapshot = peer.snapshot_for(ask)
        if snapshot is None:
            peer.decline(ask.id, Reason.OUT_OF_STEP, "The document has changed meanwhile.")
            return
        job = Job(peer, ask, snapshot, peer.neighbours_for(ask))
        older = self._waiting.pop(job.key, None)
        if older is not None:
            older.decline(Reason.CANCELLED, "A newer request took over.")
        if self._running is not None and self._running.key == job.key:
            self._running.flag.cancel()
        self._waiting[job.key] = job
        if len(self._waiting) > N_WAITING_MAX:
            oldest = self._waiting.pop(next(iter(self._waiting)))
            oldest.decline(Reason.BUSY, "Too many requests wait already.")
        if self._engine is None or self._is_busy_for(job):
            job.at_once = self._beside(self._answer_at_once(job))
        self._wake()

    def learn(self, snapshot: Snapshot, accepted: Accepted) -> None:
        """A suggestion was accepted: if that happens again and again, it is a habit."""
        self._beside(self._learn(snapshot, accepted))

    def cancel(self, peer: Peer, ask_id: int) -> None:
        """Stop a request, or take it out of the queue."""
        for job in self._jobs_of(peer):
            if job.ask.id == ask_id:
                job.flag.cancel()
                if self._waiting.get(job.key) is job:
                    del self._waiting[job.key]
                    job.decline(Reason.CANCELLED, "The request was cancelled.")

    def leave(self, peer: Peer) -> None:
        """Forget a front and what it asked for."""
        self._peers.discard(peer)
        for job in self._jobs_of(peer):
            job.flag.cancel()
            if self._waiting.get(job.key) is job:
                del self._waiting[job.key]

    async def close(self) -> None:
        """Stop what runs and free the model."""
        self._is_closing = True
        self._stop_timer()
        if self._running is not None:
            self._running.flag.cancel()
        if self._work is not None:
            await self._work
        await self._unload()
        await asyncio.gather(*self._side_tasks)
        if self._habit_timer is not None:
            self._habit_timer.cancel()
        await self._keep_habits()
        await asyncio.to_thread(self._preparer.close)
        self._side_thread.shutdown(wait=True)
        self._thread.shutdown(wait=True)

    def _is_busy_for(self, job: Job) -> bool:
        """True where the model writes for another document, and whoever asks does not want its answers, too."""
        return self._running is not None and self._running.key != job.key and job.ask.n_candidates == 1

    def _jobs_of(self, peer: Peer) -> list[Job]:
        jobs = [*self._waiting.values(), *([self._running] if self._running else [])]
        return [job for job in jobs if job.peer is peer]

    def _wake(self) -> None:
        self._stop_timer()
        if not self._is_closing and (self._work is None or self._work.done()):
            self._work = asyncio.get_running_loop().create_task(self._work_off())

    async def _work_off(self) -> None:
        """Load the model where it is missing, then answer what waits, the newest first."""
        if self._engine is None and self._may_load():
            await self._load()
        while self._waiting and not self._is_closing:
            _, job = self._waiting.popitem()
            await self._run(job)
        if self._engine is not None and not self._is_closing:
            self._unload_timer = asyncio.get_running_loop().call_later(self._unload_after_s, self._doze)

    def _may_load(self) -> bool:
        return self._failed_at is None or time.monotonic() - self._failed_at >= RETRY_LOAD_S

    async def _load(self) -> None:
        loop = asyncio.get_running_loop()

        def tell_share(share: float) -> None:
            loop.call_soon_threadsafe(self._tell_loading, round(100 * share))

        self._tell(EngineState("loading"))
        try:
            self._engine = await self._on_thread(lambda: self._open_engine(tell_share))
        except TreefillError as error:
            self._fail(str(error))
        except Exception as error:  # a library that breaks while it loads: the core stays, and says so
            self._fail(f"The model could not be loaded ({type(error).__name__}: {error}).")
        else:
            self._failed_at = None
            engine = self._engine
            sentence = f"{engine.model} on the {engine.name} engine"
            self._tell(EngineState("ready", sentence, _notice(engine), model=engine.model))

    def _tell_loading(self, percent: int) -> None:
        if self._state.state == "loading" and percent != self._state.percent:
            self._tell(EngineState("loading", percent=percent))

    def _fail(self, sentence: str) -> None:
        self._failed_at = time.monotonic()
        log.error("%s", sentence)
        self._tell(EngineState("failed", sentence))

    async def _run(self, job: Job) -> None:
        engine = self._engine
        if engine is None:
            # While one was looked for, so was what needs none.
            self._waiting.setdefault(job.key, job)
            await (job.at_once or self._answer_at_once(job))
            if self._waiting.get(job.key) is job:
                del self._waiting[job.key]
                job.decline(Reason.NO_MODEL, self._state.sentence)
            return
        job.peer.send(Started(job.ask.id, job.ask.uri))
        self._running = job
        # By then the engine has stopped by itself, unless a single step takes longer.
        limit_s = self._request_limit_s + STOP_GRACE_S
        limit = asyncio.get_running_loop().call_later(limit_s, self._stop_late, job)
        try:
            answers = await self._answers(job, engine)
        finally:
            limit.cancel()
            self._running = None
        _send(job, answers)

    async def _answers(self, job: Job, engine: Engine) -> tuple[Suggestion | Declined, ...]:
        """Let the model write; whatever it does, there is an answer."""
        # Read now and not when it was asked: the request before has added to it.
        memory = job.peer.memory(job.ask.uri)
        try:
            answers, memory = await self._on_thread(
                lambda: job.complete(engine, self._make_request, self._request_limit_s, memory, self._habits)
            )
        except BadRules as error:
            return (Declined(Reason.BAD_RULES, str(error)),)
        except BadInput as error:
            return (Declined(Reason.BAD_REQUEST, str(error)),)
        except Exception as error:
            # The kind alone: an error's text may quote what the user wrote.
            log.error("A request failed: %s.", type(error).__name__)
            return (Declined(Reason.ENGINE_FAILED, f"The model could not be run ({type(error).__name__})."),)
        job.peer.remember(job.ask.uri, memory)
        if job.is_late and not any(isinstance(answer, Suggestion) for answer in answers):
            sentence = f"The model took longer than {self._request_limit_s:g} s."
            return (Declined(Reason.TOO_SLOW, sentence),)
        return answers

    async def _answer_at_once(self, job: Job) -> None:
        """Answer a request that waits, if something needs no model."""
        has_model = self._engine is not None
        try:
            found = await self._on_side_thread(
                lambda: job.begin_at_once(self._make_request, self._habits, has_model)
            )
            if found is None or self._waiting.get(job.key) is not job:
                return
            # A parser is about to see the text.
            job.peer.send(Started(job.ask.id, job.ask.uri))
            memory = job.peer.memory(job.ask.uri)
            suggestion = await self._on_side_thread(lambda: found.settle(memory.anchor))
        except Exception as error:  # the request waits on, and is told what is wrong with it
            log.warning("Nothing was looked for at once (%s).", type(error).__name__)
            return
        if suggestion is not None and self._waiting.get(job.key) is job:
            del self._waiting[job.key]
            job.peer.remember(job.ask.uri, replace(memory, anchor=suggestion.anchor))
            _send(job, (suggestion,))

    async def _learn(self, snapshot: Snapshot, accepted: Accepted) -> None:
        def work() -> bool:
            root = Path(accepted.workspace_root) if accepted.workspace_root else None
            request = self._make_request(
                accepted.options,
                snapshot.document(),
                accepted.start,
                neighbours=(),
                workspace_root=root,
                n_candidates=1,
                is_automatic=False,
            )
            return learn(request, accepted.end, self._habits)

        try:
            is_news = await self._on_side_thread(work)
        except Exception as error:  # its text may quote what the user wrote
            log.warning("Nothing was learned (%s).", type(error).__name__)
            return
        if is_news and self._habit_file is not None and self._habit_timer is None and not self._is_closing:
            loop = asyncio.get_running_loop()
            self._habit_timer = loop.call_later(WRITE_HABITS_EVERY_S, self._begin_to_keep)

    def _begin_to_keep(self) -> None:
        self._habit_timer = None
        self._beside(self._keep_habits())

    async def _keep_habits(self) -> None:
        file, n_learned = self._habit_file, self._habits.n_learned
        if file is not None and n_learned != self._n_habits_kept:
            self._n_habits_kept = n_learned
            await self._on_side_thread(lambda: file.write(self._habits.plain()))

    def _read_habits(self, file: HabitFile) -> None:
        self._habits.add(file.read())
        self._n_habits_kept = self._habits.n_learned

    def _beside(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._side_tasks.add(task)
        task.add_done_callback(self._side_tasks.discard)
        return task

    def _stop_late(self, job: Job) -> None:
        job.is_late = True
        job.flag.cancel()
        asyncio.get_running_loop().call_later(HANG_GRACE_S, self._give_up_on, job)

    def _give_up_on(self, job: Job) -> None:
        if self._running is job:
            log.error("The model does not stop: it is given up.")
            self._on_hang()

    def _doze(self) -> None:
        """Free a model that nobody has used for a while."""
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._unload_then_go_on())

    async def _unload_then_go_on(self) -> None:
        await self._unload()
        if self._waiting:  # asked while the model was being freed
            await self._work_off()

    async def _unload(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await self._on_thread(engine.close)
            for peer in self._peers:
                peer.forget()
            self._tell(EngineState("unloaded"))
            try:
                await self._on_side_thread(self._put_away)  # who asks now does not wait for it
            except Exception as error:
                log.error("What was worked out beside the model is not kept: %s.", type(error).__name__)

    def _stop_timer(self) -> None:
        if self._unload_timer is not None:
            self._unload_timer.cancel()
            self._unload_timer = None

    def _tell(self, state: EngineState) -> None:
        self._state = state
        for peer in self._peers:
            peer.send(state)

    async def _on_side_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._side_thread, work)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _send(job: Job, answers: tuple[Suggestion | Declined, ...]) -> None:
    try:
        job.answer(answers)
    except Exception as error:  # what can't be sent is answered, too
        log.error("An answer could not be sent: %s.", type(error).__name__)
        job.decline(Reason.ENGINE_FAILED, f"The answer could not be sent ({type(error).__name__}).")


def _notice(engine: Engine) -> str:
    """What a model can't do, for the user."""
    missing = nearest_missing(engine.vocabulary)
    sentence = (
        f"The model {engine.model} can't fill in the middle: its vocabulary lacks {', '.join(missing)}. "
        "It goes on from what stands before the cursor."
    )
    return sentence if missing else ""
