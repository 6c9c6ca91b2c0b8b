"""What stands guard over a whole document, one layer of it each. All of them are `engine.api.Guard`.

The grammar's matcher and the schema's guard come from `syntax`; here is what a whole document needs round them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import ParamSpec, TypeVar

from treefill.engine.api import Guard

_P = ParamSpec("_P")
_R = TypeVar("_R")
_FENCE_END = re.compile(rb"^(?:```|`{1,2}\Z)", re.MULTILINE)
"""Also its first marks, which some models have tokens of their own for."""


class Anything:
    """Where no grammar is asked: everything may come, and everything may end."""

    def allows(self, more: bytes) -> bool:
        """True."""
        return True

    def accept(self, more: bytes) -> bool:
        """True."""
        return True

    def rollback(self, n: int) -> None:
        """There is nothing to take back."""

    def can_stop(self) -> bool:
        """True."""
        return True

    def forced(self) -> bytes:
        """Nothing."""
        return b""


@dataclass(slots=True)
class WholeDocument:
    """Another guard over a document in a fence: it may end where `complaint_of` has nothing against what is written.

    The model ends it by ending the fence, with a line that begins with its mark, or by a token of its own. Where the
    document is not whole such a line is a part of it, if the other guard takes it.
    """

    inner: Guard
    complaint_of: Callable[[bytes], str]
    """What is wrong with a whole document; empty where nothing is."""
    is_fenced: bool = True
    is_blind: bool = False
    """True where the other guard knows nothing of what may come: then what may end the fence does, or does not come."""
    has_ended: bool = False
    """True once the fence has."""
    pieces: list[bytes] = field(default_factory=list)
    """What was accepted; empty where it was the end of the fence."""
    _told: tuple[bytes, str] | None = None
    """The latest document that was asked about, and what was said of it."""

    @property
    def written(self) -> bytes:
        """The document so far."""
        return b"".join(self.pieces)

    def allows(self, more: bytes) -> bool:
        """Whether `more` may come next."""
        if self.has_ended:
            return False
        head = self._up_to_fence(more)
        if head is None or not self._is_whole_with(head):
            return (head is None or not self.is_blind) and self.inner.allows(more)
        return True

    def accept(self, more: bytes) -> bool:
        """Take `more`; False, and nothing taken, where it may not come next."""
        if not self.allows(more):
            return False
        head = self._up_to_fence(more)
        is_end = head is not None and self._is_whole_with(head)
        taken = head if is_end and head is not None else more
        if taken and not self.inner.accept(taken):
            return False
        self.pieces.append(taken)  # an empty one, too: what was accepted is taken back piece by piece
        self.has_ended = is_end
        return True

    def rollback(self, n: int) -> None:
        """Take the last `n` accepted pieces back."""
        n = min(n, len(self.pieces))
        if n_inner := sum(map(bool, self.pieces[len(self.pieces) - n :])):
            self.inner.rollback(n_inner)
        del self.pieces[len(self.pieces) - n :]
        self.has_ended = self.has_ended and not n

    def can_stop(self) -> bool:
        """Whether the document is whole."""
        return self.has_ended or self._can_end()

    def forced(self) -> bytes:
        """What must come next."""
        return b"" if self.has_ended else self.inner.forced()

    def _is_whole_with(self, head: bytes) -> bool:
        if not head:
            return self._can_end()
        if not self.inner.accept(head):
            return False
        self.pieces.append(head)
        can_end = self._can_end()
        self.pieces.pop()
        self.inner.rollback(1)
        return can_end

    def _can_end(self) -> bool:
        if not self.inner.can_stop():
            return False
        document = self.written
        if self._told is None or self._told[0] != document:
            self._told = (document, self.complaint_of(document))
        return not self._told[1]

    def _up_to_fence(self, more: bytes) -> bytes | None:
        """The part of it before what may be the end of the fence; None where there is none in it."""
        if not self.is_fenced or b"`" not in more:
            return None
        before = self.written
        found = _FENCE_END.search(before + more, max(0, len(before) - 1))
        at = found.start() - len(before) if found else -1
        return more[:at] if at >= 0 else None


@dataclass(slots=True)
class Timed:
    """A guard, and the seconds that it took."""

    inner: Guard
    seconds: float = 0.0

    def allows(self, more: bytes) -> bool:
        """As the inner one says."""
        return self._timed(self.inner.allows, more)

    def accept(self, more: bytes) -> bool:
        """As the inner one does."""
        return self._timed(self.inner.accept, more)

    def rollback(self, n: int) -> None:
        """As the inner one does."""
        self._timed(self.inner.rollback, n)

    def can_stop(self) -> bool:
        """As the inner one says."""
        return self._timed(self.inner.can_stop)

    def forced(self) -> bytes:
        """As the inner one says."""
        return self._timed(self.inner.forced)

    def timed(self, call: Callable[[], _R]) -> Callable[[], _R]:
        """Another call whose time counts, too."""
        return lambda: self._timed(call)

    def _timed(self, call: Callable[_P, _R], *arguments: _P.args, **named: _P.kwargs) -> _R:
        began = perf_counter()
        try:
            return call(*arguments, **named)
        finally:
            self.seconds += perf_counter() - began
