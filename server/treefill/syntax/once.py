"""What is built once per process, whichever threads ask for it."""

from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def once(build: Callable[[K], V]) -> Callable[[K], V]:
    """`functools.cache` for work that takes a while: of two threads that ask for the same, the later one waits.

    What raises is tried again by the next that asks.
    """
    built: dict[K, V] = {}
    locks: dict[K, Lock] = {}
    choosing = Lock()

    @wraps(build)
    def get(key: K) -> V:
        if key in built:
            return built[key]
        with choosing:
            lock = locks.setdefault(key, Lock())
        with lock:  # one a key: a language in use does not wait for another one's tables
            if key not in built:
                built[key] = build(key)
            return built[key]

    return get
