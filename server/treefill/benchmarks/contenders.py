"""What can be timed: something that evaluates tokens and goes on greedily. Ours is one, and peers look like it here."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from treefill import _kernels
from treefill.engine.api import CancelFlag, Engine, GenerateRequest, Generation, TokenId
from treefill.errors import BadInput, PeerError

N_AGREEING = 8
"""First tokens that must be ours before a peer is timed; later, two roundings of one weight may part."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Some tokens that were written after a prompt."""

    ids: tuple[TokenId, ...]
    step_ms: float
    """From one token to the next, the first left out: that one is the prompt's."""


class Contender(Protocol):
    """One program with one model."""

    name: str
    n_threads: int | None
    """None where only whoever started it knows."""
    pid: int | None
    """None where it may be on another machine."""

    def set_threads(self, n_threads: int) -> None:
        """Work on so many threads from now on."""
        ...

    def prefill(self, ids: Sequence[TokenId]) -> float:
        """Milliseconds to evaluate `ids` from an empty cache, up to the first token chosen."""
        ...

    def decode(self, ids: Sequence[TokenId], n_tokens: int) -> Decoded:
        """Go on after `ids` greedily for `n_tokens`; what is cached of `ids` may be reused."""
        ...

    def close(self) -> None:
        """End what was started for it."""
        ...


class Ours:
    """The engine of this program, in this process."""

    name = "treefill"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.n_threads: int | None = _kernels.threads()
        self.pid: int | None = os.getpid()

    def set_threads(self, n_threads: int) -> None:
        """Work on so many threads; 0 chooses."""
        _kernels.set_threads(n_threads)
        self.n_threads = _kernels.threads()

    def prefill(self, ids: Sequence[TokenId]) -> float:
        """Milliseconds of a cold prompt."""
        return self._generate(ids, 1, reuse=False).ttft_ms

    def decode(self, ids: Sequence[TokenId], n_tokens: int) -> Decoded:
        """Go on after `ids`."""
        done = self._generate(ids, n_tokens, reuse=True)
        return Decoded(done.token_ids, (done.total_ms - done.ttft_ms) / max(1, n_tokens - 1))

    def check(self, ids: Sequence[TokenId], n_tokens: int) -> tuple[TokenId, ...]:
        """What is written after `ids`, cold and again from the cache: a wrong answer is not worth timing."""
        cold = self._generate(ids, n_tokens, reuse=False).token_ids
        if self._generate(ids, n_tokens, reuse=True).token_ids != cold:
            raise PeerError(
                "A reused cache writes other tokens than a cold one: nothing was timed; report it."
            )
        return cold

    def close(self) -> None:
        """Free the model."""
        self._engine.close()

    def _generate(self, ids: Sequence[TokenId], n_tokens: int, *, reuse: bool) -> Generation:
        if len(ids) + n_tokens > self._engine.n_context:
            raise BadInput(
                f"{len(ids)} tokens and {n_tokens} new ones do not fit into the context of "
                f"{self._engine.n_context}: set TREEFILL_N_CONTEXT higher."
            )
        request = GenerateRequest(tuple(ids), max_new_tokens=n_tokens, reuse=reuse)
        done = self._engine.generate(request, CancelFlag())
        if done.n_new_tokens != n_tokens:
            raise BadInput(
                f"{self._engine.model} ended after {done.n_new_tokens} of {n_tokens} tokens, so nothing can be timed: "
                "ask for fewer tokens, or use another model."
            )
        return done


def check_agreement(peer: Contender, ids: Sequence[TokenId], ours: Sequence[TokenId]) -> int:
    """How many of our first tokens the peer writes too. Raises `PeerError` where it parts too soon."""
    theirs = peer.decode(ids, len(ours)).ids
    pairs = enumerate(zip(ours, theirs, strict=False))
    n_same = next((number for number, (left, right) in pairs if left != right), min(len(ours), len(theirs)))
    if n_same < min(N_AGREEING, len(ours)):
        raise PeerError(
            f"{peer.name} writes other tokens than ours from the {_ordinal(n_same + 1)} on, so it does not run "
            "the same weights: give it the file that `make bench-peers` made of this model."
        )
    return n_same


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{endings.get(number, 'th')}"
