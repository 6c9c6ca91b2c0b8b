"""Several guards as one: what may come next is what all of them allow."""

from __future__ import annotations

from dataclasses import dataclass

from treefill.engine.api import Guard


@dataclass(frozen=True, slots=True)
class AllOf:
    """A guard made of guards, of which the first is asked first. They follow the same text from the same place."""

    guards: tuple[Guard, ...]

    def allows(self, more: bytes) -> bool:
        """Whether all of them allow `more`."""
        return all(guard.allows(more) for guard in self.guards)

    def accept(self, more: bytes) -> bool:
        """Have all of them take `more`; False, and none has taken it, where one refuses."""
        for number, guard in enumerate(self.guards):
            if not guard.accept(more):
                for taken in self.guards[:number]:
                    taken.rollback(1)
                return False
        return True

    def rollback(self, n: int) -> None:
        """Have all of them take the last `n` accepted pieces back."""
        for guard in self.guards:
            guard.rollback(n)

    def can_stop(self) -> bool:
        """Whether the text may end for all of them."""
        return all(guard.can_stop() for guard in self.guards)

    def forced(self) -> bytes:
        """What one of them leaves no choice about; nothing where another one is against it: then the model is asked,
        and finds that nothing may come.
        """
        forced = next(filter(None, (guard.forced() for guard in self.guards)), b"")
        return forced if forced and self.allows(forced) else b""
