"""What the status item of an editor shows: busy or not, and one sentence. Told when it changes, not more often."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Status:
    """One state. The shape is the one that Copilot's language server has made customary."""

    kind: str = "Normal"
    """`Normal`, `Warning` or `Error`."""
    is_busy: bool = False
    message: str = ""
    is_loading: bool = False
    """Whether it is the model's loading that is waited for."""


class StatusKeeper:
    """Puts together what the engine does and whether a request is under way."""

    def __init__(self, tell: Callable[[Status], None]) -> None:
        self._tell = tell
        self._engine = Status("Normal", True, "starting")
        self._is_working = False
        self.current = self._engine

    @property
    def sentence(self) -> str:
        """Why nothing can be suggested while the core is not there."""
        return self._engine.message if self._engine.kind != "Normal" else "The core process is being started."

    def engine(self, state: str, sentence: str) -> None:
        """The engine or the core has changed its state."""
        self._engine = {
            "loading": Status("Normal", True, "loading the model", is_loading=True),
            "ready": Status("Normal", False, "ready"),
            "unloaded": Status("Normal", False, "ready"),
            "failed": Status("Error", False, sentence),
            "lost": Status("Warning", False, sentence),
        }.get(state, Status("Warning", False, sentence))
        self._update()

    def working(self, is_working: bool) -> None:
        """A request is under way, or none is."""
        self._is_working = is_working
        self._update()

    def _update(self) -> None:
        is_shown = self._is_working and self._engine.kind == "Normal" and not self._engine.is_busy
        now = Status("Normal", True, "working") if is_shown else self._engine
        if now != self.current:
            self.current = now
            self._tell(now)
