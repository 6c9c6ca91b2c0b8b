"""Numbers by day, language and name. Names are our own, so that nothing a user wrote can become one."""

import datetime
import re
from collections.abc import Callable, Iterator, Mapping

Key = tuple[str, str, str]
"""Day, language, name."""

OTHER_LANGUAGE = "other"
_LANGUAGE = re.compile(r"[a-z][a-z0-9+#_.-]{0,31}", re.ASCII)


def today() -> str:
    """The day where the user is, as `2026-11-30`."""
    return datetime.date.today().isoformat()


class Counts:
    """Sums that only grow, until they are taken away to be stored."""

    def __init__(self, today: Callable[[], str] = today) -> None:
        self._today = today
        self._values: dict[Key, int] = {}

    def add(self, language: str, name: str, n: int = 1) -> None:
        """Add to a sum of today's. What an editor calls a language is taken if it looks like a language's id."""
        language = language if _LANGUAGE.fullmatch(language) else OTHER_LANGUAGE
        self._add((self._today(), language, name), n)

    def put_back(self, values: Mapping[Key, int]) -> None:
        """Add what was taken and could not be stored."""
        for key, n in values.items():
            self._add(key, n)

    def take(self) -> dict[Key, int]:
        """All sums; they begin at nothing again."""
        taken, self._values = self._values, {}
        return taken

    def __iter__(self) -> Iterator[tuple[Key, int]]:
        return iter(self._values.items())

    def __bool__(self) -> bool:
        return bool(self._values)

    def _add(self, key: Key, n: int) -> None:
        if n:
            self._values[key] = self._values.get(key, 0) + n
