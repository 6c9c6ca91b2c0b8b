"""A contender that writes what a test says, and a clock that tests turn."""

from collections.abc import Callable, Sequence

from treefill.benchmarks.contenders import Decoded


class FakeContender:
    """Writes `ids` over and over; a step takes what `step_ms` says."""

    def __init__(
        self,
        name: str = "peer",
        ids: Sequence[int] = (1, 2, 3),
        step_ms: Callable[[int], float] = lambda n_threads: 10.0,
        n_threads: int | None = 1,
    ) -> None:
        self.name = name
        self.n_threads = n_threads
        self.pid: int | None = None
        self.n_prefilled: list[int] = []
        self.is_closed = False
        self._ids = tuple(ids)
        self._step_ms = step_ms

    def set_threads(self, n_threads: int) -> None:
        self.n_threads = n_threads

    def prefill(self, ids: Sequence[int]) -> float:
        self.n_prefilled.append(len(ids))
        return len(ids) * 2.0

    def decode(self, ids: Sequence[int], n_tokens: int) -> Decoded:
        written = (self._ids * n_tokens)[:n_tokens]
        return Decoded(written, self._step_ms(self.n_threads or 1))

    def check(self, ids: Sequence[int], n_tokens: int) -> tuple[int, ...]:
        return self.decode(ids, n_tokens).ids

    def close(self) -> None:
        self.is_closed = True
