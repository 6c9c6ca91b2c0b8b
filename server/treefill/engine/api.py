"""What others see of an engine: tokens and bytes in, tokens and text out.

No tensor, no torch and no grammar crosses this border. `completion` builds a `GenerateRequest`,
an `Engine` answers it with a `Generation`; which library multiplies the numbers is a backend's business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TokenId = int


class CancelFlag:
    """A value handed down with a request and read between tokens: set once, never cleared."""

    __slots__ = ("_cell",)

    def __init__(self) -> None:
        self._cell = bytearray(1)

    def cancel(self) -> None:
        """Ask whoever holds this flag to stop; returns at once."""
        self._cell[0] = 1

    @property
    def is_cancelled(self) -> bool:
        """True once anybody has asked."""
        return self._cell[0] != 0

    @property
    def cell(self) -> memoryview:
        """One byte, not 0 once anybody has asked: for native code, which reads it without Python."""
        return memoryview(self._cell)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is drawn. The default is greedy: the likeliest token, always the same answer."""

    temperature: float = 0.0
    """0 is greedy; 1 draws from the model's own distribution."""
    top_k: int = 0
    """Draw among this many likeliest tokens; 0 means all."""
    top_p: float = 1.0
    """Draw among the likeliest tokens that together reach this probability."""
    seed: int = 0
    """The same seed, prompt and model draw the same tokens."""


class Guard(Protocol):
    """Says which bytes may come next; what it knows them by is its own affair. It follows one generation."""

    def allows(self, more: bytes) -> bool:
        """Whether `more` may come after what was accepted."""
        ...

    def accept(self, more: bytes) -> bool:
        """Take `more`; False, and nothing taken, where it may not come next."""
        ...

    def rollback(self, n: int) -> None:
        """Take the last `n` accepted pieces back."""
        ...

    def can_stop(self) -> bool:
        """Whether the text may end after what was accepted."""
        ...

    def forced(self) -> bytes:
        """What must come next whatever the model says; nothing where there is a choice, the end among it."""
        ...


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One prompt to be continued."""

    prompt_ids: tuple[TokenId, ...]
    """The whole prompt, control tokens included; at least one token."""
    forced: bytes = b""
    """UTF-8 bytes that the continuation must start with (token healing): typed already, but not in `prompt_ids`."""
    max_new_tokens: int = 64
    """Upper bound of the tokens decoded, those that spell `forced` not counted."""
    sampling: Sampling = Sampling()
    should_stop: Callable[[str], bool] = lambda text: False
    """Called after each token with the text so far, `forced` left out; True ends the generation."""
    reuse: bool = True
    """False forgets the key/value cache first, so that every prompt token is evaluated."""
    cache_salt: str = ""
    """Keys and values are shared only among requests of one salt: a workspace's name, so that none can tell from the
    time that an answer takes what another one holds."""
    begun: tuple[TokenId, ...] = ()
    """Tokens of the answer that are known from an earlier generation of this prompt; it goes on after them."""
    time_limit_s: float = math.inf
    """After so many seconds no further token is begun; what there is then is the answer."""
    is_begun_whole: bool = False
    """True where the model ended by itself after `begun`: nothing is evaluated."""
    guard: Guard | None = None
    """Asked before a token is taken, and of the end before the model may end. It stands where `forced` ends."""
    mask: Callable[[], NDArray[np.uint32] | None] | None = None
    """What the guard will allow, beforehand and of all tokens at once: bit `i % 32` of word `i // 32` for token `i`;
    None where that is not known. Then the choice is made among those and the guard has the last word. A mask of what
    the guard allows or more changes no token that is written, only the time that it takes. It is asked for before the
    model computes, and once more after it where it was not known then: meanwhile one can be made."""


class Finish(StrEnum):
    """Why a generation ended."""

    STOPPED = "stopped"
    """`should_stop` said so."""
    END = "end"
    """The model chose an end token."""
    LENGTH = "length"
    """`max_new_tokens`, the model's context or the time limit was reached."""
    CANCELLED = "cancelled"
    """The request's flag was set."""
    UNHEALABLE = "unhealable"
    """No token of the vocabulary spells the forced bytes."""
    DEAD_END = "dead-end"
    """None of the likeliest tokens may come next, nor after one step back."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What came of a `GenerateRequest`."""

    text: str
    """The text after `forced`; an unfinished UTF-8 sequence at its end is left out."""
    token_ids: tuple[TokenId, ...]
    """All tokens decoded, those that spell `forced` included, an end token not."""
    finish: Finish
    n_prompt_tokens: int
    n_reused_tokens: int
    """Prompt tokens whose keys and values were in the cache."""
    n_new_tokens: int
    n_evaluated: int
    """Tokens evaluated before the first new one: what was not reused, and what spells `forced`."""
    ttft_ms: float
    """From the call to the first token chosen."""
    total_ms: float
    n_guarded: int = 0
    """Tokens that were chosen under the guard's eyes."""
    n_refused_first: int = 0
    """Those of them for which it refused the model's first choice."""
    n_undone: int = 0
    """Tokens taken back because nothing could come after them."""
    n_forced: int = 0
    """Tokens that the guard alone decided, so that the model was not asked."""
    n_masked: int = 0
    """Tokens that were chosen under a mask."""


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """The bytes of all tokens, one after the other."""

    data: bytes
    offsets: Sequence[int]
    """Where each token begins, by its id, and where the last one ends."""

    @classmethod
    def of(cls, spellings: Iterable[bytes]) -> TokenBytes:
        """Of the bytes of each."""
        each = list(spellings)
        return cls(b"".join(each), (0, *accumulate(map(len, each))))


class Vocabulary(Protocol):
    """A model's tokens as text: what the prompt builder needs of a tokenizer."""

    n_tokens: int
    """Ids below this one exist; the logits may be wider."""
    end_ids: frozenset[TokenId]
    """Tokens that end a text."""

    def encode(self, text: str) -> list[TokenId]:
        """Tokens of ordinary text. Never a control token, even where `text` spells one."""
        ...

    def decode(self, ids: list[TokenId] | tuple[TokenId, ...]) -> str:
        """Text of `ids`, control tokens left out, malformed UTF-8 replaced."""
        ...

    def control_id(self, name: str) -> TokenId | None:
        """The id of the control token spelt `name`, or None where the vocabulary has none."""
        ...

    def token_bytes(self, token_id: TokenId) -> bytes:
        """The bytes that a token stands for; empty for a control token."""
        ...

    def every_token_bytes(self) -> TokenBytes:
        """The same of every token below `n_tokens`."""
        ...


class Engine(Protocol):
    """One model, ready to continue prompts. Calls may come from any thread; one runs at a time."""

    name: str
    """Which backend: `int8` or `bitsandbytes`."""
    model: str
    vocabulary: Vocabulary
    n_context: int
    """Prompt and new tokens together may not be longer."""

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        """Continue a prompt. Raises `EngineError` when the model cannot be run."""
        ...

    def close(self) -> None:
        """Free the model. The engine answers no more."""
        ...
