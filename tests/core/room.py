"""A service with a scripted engine that waits for the test, and fronts that keep what they are sent."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from treefill.app import make_request
from treefill.core.habit_file import HabitFile
from treefill.core.messages import Answer, Ask, EngineState, Message, Open
from treefill.core.peer import Peer
from treefill.core.service import Service
from treefill.engine.api import CancelFlag, Engine, GenerateRequest, Generation
from treefill.settings import Settings

from tests.helpers.scripted_engine import ScriptedEngine

OPTIONS = Settings.model_validate({}).request_options
LIMIT_S = 20.0
"""Nothing here takes so long, whatever else the machine does."""


class WaitingEngine(ScriptedEngine):
    """Before each generation it waits until `gate` is open, or its flag is set if it heeds that."""

    def __init__(self, *scripts: str | Callable[[str], str], heeds_flag: bool = True) -> None:
        super().__init__(*(scripts or ("1 + 2",)))
        self.gate = threading.Event()
        self.gate.set()
        self.close_gate = threading.Event()
        self.close_gate.set()
        self.n_entered = 0
        self.n_closed = 0
        self.n_at_once = 0
        self.gate_after: int | None = None
        """After so many generations the gate closes."""
        self.fails_with: Exception | None = None
        self._heeds_flag = heeds_flag

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        if self.n_entered == self.gate_after:
            self.gate.clear()
        self.n_entered += 1
        self.n_at_once += 1
        assert self.n_at_once == 1, "one generation runs at a time"
        try:
            while not self.gate.wait(0.002) and not (self._heeds_flag and cancel.is_cancelled):
                pass
            if self.fails_with is not None:
                raise self.fails_with
            return super().generate(request, cancel)
        finally:
            self.n_at_once -= 1

    def close(self) -> None:
        self.close_gate.wait(LIMIT_S)
        self.n_closed += 1


class Window:
    """One front."""

    def __init__(self, service: Service) -> None:
        self.sent: list[Message] = []
        self.peer: Peer = service.connect(self.sent.append)

    def open(self, uri: str = "a.py", text: str = "x = \n", version: int = 1) -> None:
        self.peer.handle(Open(uri, f"/w/{uri}", "python", version, text))

    def ask(self, ask_id: int, uri: str = "a.py", version: int = 1, **more: Any) -> None:
        self.peer.handle(ask(ask_id, uri, version, **more))

    @property
    def answers(self) -> dict[int, Answer]:
        """The answers, in order; each request has one."""
        answers = [message for message in self.sent if isinstance(message, Answer)]
        ids = [answer.id for answer in answers]
        assert len(ids) == len(set(ids)), f"answered twice: {ids}"
        return {answer.id: answer for answer in answers}

    @property
    def states(self) -> list[str]:
        return [message.state for message in self.sent if isinstance(message, EngineState)]

    async def answer(self, ask_id: int) -> Answer:
        await until(lambda: ask_id in self.answers)
        return self.answers[ask_id]


class Room:
    """A service and its engines: `engine` is the one that is loaded, `loads` what happens at each load."""

    def __init__(
        self,
        engine: WaitingEngine | None = None,
        request_limit_s: float = LIMIT_S,
        unload_after_s: float = 3600,
        habit_file: HabitFile | None = None,
    ) -> None:
        self.engine = engine or WaitingEngine()
        self.load_errors: list[Exception | None] = []
        """What the next loads raise."""
        self.load_shares: list[float] = []
        """How far each load tells that it has come."""
        self.load_gate = threading.Event()
        self.load_gate.set()
        self.n_loads = 0
        self.n_hangs = 0
        self.n_put_away = 0
        self.put_away_error: Exception | None = None
        self.prepared: list[str] = []
        self.service = Service(
            self._load,
            make_request,
            request_limit_s,
            unload_after_s,
            self._hang,
            self._prepare,
            habit_file,
            self._put_away,
        )

    def _put_away(self) -> None:
        self.n_put_away += 1
        if self.put_away_error is not None:
            raise self.put_away_error

    def _load(self, tell_share: Callable[[float], None]) -> Engine:
        self.n_loads += 1
        for share in self.load_shares:
            tell_share(share)
        self.load_gate.wait(LIMIT_S)
        error = self.load_errors.pop(0) if self.load_errors else None
        if error is not None:
            raise error
        return self.engine

    def _prepare(self, language_id: str) -> None:
        self.prepared.append(language_id)

    def _hang(self) -> None:
        self.n_hangs += 1
        self.engine.gate.set()

    @property
    def n_peers(self) -> int:
        """Fronts that are connected."""
        return len(self.service._peers)

    def window(self, *uris: str) -> Window:
        """A front with these documents open."""
        window = Window(self.service)
        for uri in uris or ("a.py",):
            window.open(uri)
        return window

    async def begun(self, n_generations: int = 1) -> None:
        """Wait until so many generations have begun."""
        await until(lambda: self.engine.n_entered >= n_generations)


def ask(ask_id: int, uri: str = "a.py", version: int = 1, **more: Any) -> Ask:
    """A request at the end of `x = `, unless something else is said."""
    values: dict[str, Any] = {
        "offset": 4,
        "is_automatic": True,
        "n_candidates": 1,
        "neighbours": (),
        "workspace_root": None,
        "options": OPTIONS,
    }
    return Ask(id=ask_id, uri=uri, version=version, **(values | more))


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something that other tasks or threads bring about."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        await asyncio.sleep(0.002)


def in_a_room(story: Callable[[Room], Coroutine[Any, Any, None]], room: Callable[[], Room] = Room) -> None:
    """Run a story, and end the service after it."""

    async def work() -> None:
        place = room()
        try:
            await story(place)
        finally:
            for gate in (place.engine.gate, place.engine.close_gate, place.load_gate):
                gate.set()
            await place.service.close()

    asyncio.run(work())
