"""Decode, prefill, and decode beside other work: tokens a second of ours and its peers, taking turns."""

import math
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treefill import _kernels
from treefill.benchmarks.bandwidth import Bandwidth, WeightsReader
from treefill.benchmarks.busy import busy_processes
from treefill.benchmarks.contenders import Contender, Ours, check_agreement
from treefill.benchmarks.memory import Memory, measure_memory
from treefill.benchmarks.rounds import Spread, load_average, take_turns
from treefill.engine.api import TokenId, Vocabulary
from treefill.errors import BadInput, PeerError
from treefill.evaluation.texts import LEFT_OUT, installed_documents

N_CHECKED = 24
"""Tokens that are compared before anything is timed."""
N_CHECKED_AFTER = 128
"""Tokens of the prompt that they are written after."""
N_TRIED = 3
"""Tokens by which a thread count is chosen: under load, a poor one takes seconds for each."""

Progress = Callable[[str], None]
"""Told what is being done now."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the figures are of."""

    model: str
    processor: str
    n_cores: int
    instruction_set: str
    """The one that our kernels use."""
    load_before: float
    """Other work: the system's one-minute load average, before anything was loaded."""
    load_after: float
    """The same after the last; our own work is in it."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One contender in one situation."""

    contender: str
    n_threads: int | None
    n_prompt_tokens: int
    n_busy: int
    """Other processes that wanted a core all the time."""
    ms: Spread
    """A token when decoding, the whole prompt when prefilling."""
    tokens_per_s: Spread


@dataclass(frozen=True, slots=True)
class SpeedReport:
    """One measurement."""

    bench: str
    conditions: Conditions
    timed: list[Timed]
    n_agreeing: dict[str, int] = field(default_factory=dict)
    """Contender → how many of our first `N_CHECKED` tokens it wrote too."""
    bandwidth: Bandwidth | None = None
    memory: dict[str, Memory] = field(default_factory=dict)


def prompt_of(vocabulary: Vocabulary, n_tokens: int) -> tuple[TokenId, ...]:
    """So many tokens of Python's standard library."""
    ids: list[TokenId] = []
    for document in installed_documents():
        if document.language == "python" and len(ids) < n_tokens:
            ids += vocabulary.encode(document.text[int(LEFT_OUT * len(document.text)) :])
    if len(ids) < n_tokens:
        raise BadInput(
            f"Python's standard library here has {len(ids)} tokens to measure with, and {n_tokens} are wanted: ask for "
            "fewer."
        )
    return tuple(ids[:n_tokens])


class Speed:
    """Ours and its peers on one prompt."""

    def __init__(
        self,
        ours: Ours,
        peers: Sequence[Contender],
        ids: Sequence[TokenId],
        model: str,
        load_before: float,
        progress: Progress,
    ) -> None:
        self._ours = ours
        self._peers = peers
        self._ids = tuple(ids)
        self._model = model
        self._progress = progress
        self._load_before = load_before

    def decode(
        self, n_prompt: int, n_tokens: int, n_rounds: int, reader: WeightsReader | None = None
    ) -> SpeedReport:
        """One token after the other; where there is a reader, it takes its turns, too."""
        ids = self._ids[:n_prompt]
        agreeing = self._check()
        self._progress("Decoding")
        each = [self._ours, *self._peers]
        actions = [_decoding(contender, ids, n_tokens) for contender in each]
        *spreads, last = take_turns([*actions, reader.read_ms if reader else float], n_rounds)
        bandwidth = reader.bandwidth(last) if reader else None
        timed = _timed(each, spreads, len(ids), lambda ms: 1000 / ms)
        return SpeedReport("decode", self._conditions(), timed, agreeing, bandwidth)

    def memory(self) -> dict[str, Memory]:
        """Of each whose process can be looked at."""
        self._progress("Looking at memory")
        found = {each.name: measure_memory(each, self._ids) for each in [self._ours, *self._peers]}
        return {name: each for name, each in found.items() if each is not None}

    def prefill(self, sizes: Sequence[int], n_rounds: int) -> SpeedReport:
        """Whole prompts from an empty cache."""
        agreeing = self._check()
        each = [self._ours, *self._peers]
        timed: list[Timed] = []
        for size in sizes:
            self._progress(f"Prefilling {size} tokens")
            ids = self._ids[:size]
            spreads = take_turns([_prefilling(contender, ids) for contender in each], n_rounds)
            timed += _timed(each, spreads, size, lambda ms, n=size: 1000 * n / ms)  # type: ignore[misc]
        return SpeedReport("prefill", self._conditions(), timed, agreeing)

    def load(self, n_busy: Sequence[int], n_prompt: int, n_tokens: int, n_rounds: int) -> SpeedReport:
        """Decode beside busy processes: ours at its own choice of threads, each peer at the number that suits it."""
        ids = self._ids[:n_prompt]
        agreeing = self._check()
        each = [self._ours, *self._peers]
        timed: list[Timed] = []
        for n in n_busy:
            with busy_processes(n):
                for peer in self._peers:
                    self._progress(f"Choosing {peer.name}'s threads beside {n} busy processes")
                    _choose_threads(peer, ids)
                self._progress(f"Decoding beside {n} busy processes")
                spreads = take_turns([_decoding(contender, ids, n_tokens) for contender in each], n_rounds)
                timed += _timed(each, spreads, len(ids), lambda ms: 1000 / ms, n)
        return SpeedReport("load", self._conditions(), timed, agreeing)

    def _check(self) -> dict[str, int]:
        self._progress("Checking the answers")
        ids = self._ids[:N_CHECKED_AFTER]
        ours = self._ours.check(ids, N_CHECKED)
        return {peer.name: check_agreement(peer, ids, ours) for peer in self._peers}

    def _conditions(self) -> Conditions:
        return Conditions(
            self._model,
            processor_name(),
            os.cpu_count() or 1,
            _kernels.instruction_set(),
            self._load_before,
            load_average(),
        )


def _decoding(contender: Contender, ids: Sequence[TokenId], n_tokens: int) -> Callable[[], float]:
    return lambda: _positive(contender, contender.decode(ids, n_tokens).step_ms)


def _prefilling(contender: Contender, ids: Sequence[TokenId]) -> Callable[[], float]:
    return lambda: _positive(contender, contender.prefill(ids))


def _positive(contender: Contender, ms: float) -> float:
    """`ms`, which a peer may have said. Raises `PeerError` where it is no time that anything takes."""
    if not 0 < ms < math.inf:
        raise PeerError(
            f"{contender.name} says that it took {ms:g} ms, which nothing does: nothing was timed."
        )
    return ms


def _timed(
    contenders: Sequence[Contender],
    spreads: Sequence[Spread],
    n_prompt: int,
    rate: Callable[[float], float],
    n_busy: int = 0,
) -> list[Timed]:
    return [
        Timed(contender.name, contender.n_threads, n_prompt, n_busy, ms, ms.map(rate))
        for contender, ms in zip(contenders, spreads, strict=True)
    ]


def _choose_threads(peer: Contender, ids: Sequence[TokenId]) -> None:
    """The number from 1 to the cores' by which a few tokens come soonest; a running server's is not ours to choose."""
    if peer.n_threads is None:
        return
    found: dict[int, float] = {}
    for n_threads in range(1, (os.cpu_count() or 1) + 1):
        peer.set_threads(n_threads)
        found[n_threads] = min(peer.decode(ids, 1 + N_TRIED).step_ms for _ in range(3))
    peer.set_threads(min(found, key=lambda n_threads: found[n_threads]))


def processor_name() -> str:
    """As the system calls it."""
    return next(_processor_names(), platform.processor() or platform.machine())


def _processor_names() -> Iterator[str]:
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.exists() else ():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            yield value.strip()
