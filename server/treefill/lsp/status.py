"""What the status item of an editor shows: busy or not, and one sentence. Told when it changes, not more often."""

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Status:
    """One state. Kind, busy and message are what Copilot's language server has made customary; the rest is ours."""

    kind: str = "Normal"
    """`Normal`, `Warning` or `Error`."""
    is_busy: bool = False
    message: str = ""
    state: str = "starting"
    """`starting`, `loading`, `ready`, `working`, `failed` or `lost`."""
    percent: int = 0
    """How far the model is loaded, where it is loading."""
    model: str = ""
    """The model that is ready."""
    tokens_per_s: float = 0.0
    """How quickly the last suggestion was written; 0 where none has been."""

    @property
    def is_loading(self) -> bool:
        """Whether it is the model's loading that is waited for."""
        return self.state == "loading"


class StatusKeeper:
    """Puts together what the engine does and whether a request is under way."""

    def __init__(self, tell: Callable[[Status], None]) -> None:
        self._tell = tell
        self._engine = Status("Normal", True, "starting")
        self._is_working = False
        self._tokens_per_s = 0.0
        self.current = self._engine

    @property
    def sentence(self) -> str:
        """Why nothing can be suggested while the core is not there."""
        return self._engine.message if self._engine.kind != "Normal" else "The core process is being started."

    def engine(self, state: str, sentence: str, percent: int = 0, model: str = "") -> None:
        """The engine or the core has changed its state."""
        loading = f"loading the model ({percent} %)" if percent else "loading the model"
        self._engine = {
            "loading": Status("Normal", True, loading, "loading", percent),
            "ready": Status("Normal", False, "ready", "ready", model=model),
            "unloaded": Status("Normal", False, "ready", "ready", model=self._engine.model),
            "failed": Status("Error", False, sentence, "failed"),
            "lost": Status("Warning", False, sentence, "lost"),
        }.get(state, Status("Warning", False, sentence, "lost"))
        self._update()

    def working(self, is_working: bool) -> None:
        """A request is under way, or none is."""
        self._is_working = is_working
        self._update()

    def decoded(self, n_tokens: int, ms: float) -> None:
        """A suggestion of so many tokens was written in that time, the first of them left out of both."""
        if n_tokens > 0 and ms > 0:
            self._tokens_per_s = round(1000 * n_tokens / ms, 1)

    def _update(self) -> None:
        now = replace(self._engine, tokens_per_s=self._tokens_per_s)
        if self._is_working and now.state == "ready":
            now = replace(now, is_busy=True, message="working", state="working")
        if now != self.current:
            self.current = now
            self._tell(now)
