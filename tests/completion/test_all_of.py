"""Several guards as one."""

from __future__ import annotations

import pytest
from treefill.completion.all_of import AllOf


class Letters:
    """Allows its letters, forces one where it has but one, and ends after `n_least` of them."""

    def __init__(self, letters: str, n_least: int = 0) -> None:
        self._letters = letters.encode()
        self._n_least = n_least
        self.taken: list[bytes] = []

    def allows(self, more: bytes) -> bool:
        return set(more) <= set(self._letters)

    def accept(self, more: bytes) -> bool:
        if self.allows(more):
            self.taken.append(more)
            return True
        return False

    def rollback(self, n: int) -> None:
        del self.taken[len(self.taken) - n :]

    def can_stop(self) -> bool:
        return len(b"".join(self.taken)) >= self._n_least

    def forced(self) -> bytes:
        return self._letters if len(self._letters) == 1 else b""


def test_allows_only_what_all_allow() -> None:
    guard = AllOf((Letters("abc"), Letters("bcd")))
    assert [letter for letter in "abcd" if guard.allows(letter.encode())] == ["b", "c"]


def test_a_piece_that_one_refuses_is_taken_by_none() -> None:
    first, second = Letters("abc"), Letters("b")
    guard = AllOf((first, second))
    assert guard.accept(b"b")
    assert not guard.accept(b"a")
    assert first.taken == second.taken == [b"b"]


def test_goes_back_in_all_of_them() -> None:
    first, second = Letters("ab"), Letters("ab")
    guard = AllOf((first, second))
    guard.accept(b"a")
    guard.accept(b"b")
    guard.rollback(1)
    assert first.taken == second.taken == [b"a"]


def test_ends_where_all_may_end() -> None:
    guard = AllOf((Letters("a"), Letters("a", n_least=1)))
    assert not guard.can_stop()
    guard.accept(b"a")
    assert guard.can_stop()


@pytest.mark.parametrize(("other", "forced"), [("ab", b"a"), ("b", b"")])
def test_is_forced_by_one_where_the_others_allow_it(other: str, forced: bytes) -> None:
    assert AllOf((Letters("a"), Letters(other))).forced() == forced
