"""From a regular expression to one that matches the beginnings of what it matches.

What begins `ab*c` is nothing, `a`, `a` and some `b`, or all of it: `(?:(?:a)?|a(?:(?:b*(?:b)?)|b*(?:c)?))`. In general,
with B for what it is made into,

    B(x)      = (?:x)?                   one character, or a class of them
    B(xy)     = (?:B(x)|xB(y))
    B(x|y)    = (?:B(x)|B(y))
    B(x{m,n}) = x{0,n-1}B(x)             also for `?`, `*` and `+`

so each part is written twice for each pair of brackets round it. Only what people mostly write is read: characters,
classes, groups, alternatives and how often. Of the rest it is said that it can't be done.
"""

import re

MAX_CHARS = 4_000
MAX_DEPTH = 5
_ATOM = re.compile(
    r"\\[dDsSwW]|\\[pP](?:\w|\{\^?\w+\})|\\[^\w\s]|\\[tnr]|\[\^?\]?(?:\[:\^?\w+:\]|\\[pP]\{\^?\w+\}|\\.|[^\]\\\[])*\]"
    r"|[^\\\[\](){}|?*+^$]",
    re.DOTALL,
)
_HOW_OFTEN = re.compile(r"\?|\*|\+|\{(\d+)(?:(,)(\d*))?\}")


class _Other(Exception):
    """Something that is not read."""


def beginnings_of(pattern: str) -> str | None:
    """The pattern of what may become a match; None where it can't be made."""
    try:
        reader = _Reader(pattern)
        _, made = reader.alternatives(0)
        return made if reader.at == len(pattern) and len(made) <= MAX_CHARS else None
    except (_Other, IndexError):
        return None


class _Reader:
    """Reads one pattern; each part comes as what it is and what its beginnings are."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def alternatives(self, depth: int) -> tuple[str, str]:
        """All up to a closing bracket or the end."""
        if depth > MAX_DEPTH:
            raise _Other
        parts = [self._sequence(depth)]
        while self._next() == "|":
            self.at += 1
            parts.append(self._sequence(depth))
        return _any_of([part for part, _ in parts]), _any_of([made for _, made in parts])

    def _sequence(self, depth: int) -> tuple[str, str]:
        items = []
        while self._next() not in ("", "|", ")"):
            items.append(self._item(depth))
        made = ""
        for part, begun in reversed(items):
            made = f"(?:{begun}|{part}{made})" if made else begun
        return "".join(part for part, _ in items), made

    def _item(self, depth: int) -> tuple[str, str]:
        if self._next() == "(":
            self.at += 1
            if self.pattern.startswith("?:", self.at):
                self.at += 2
            elif self._next() == "?":
                raise _Other
            part, made = self.alternatives(depth + 1)
            if self._next() != ")":
                raise _Other
            self.at += 1
        else:
            atom = _ATOM.match(self.pattern, self.at)
            if atom is None:
                raise _Other
            part, made = atom[0], f"(?:{atom[0]})?"
            self.at = atom.end()
        return self._so_often(part, made)

    def _so_often(self, part: str, made: str) -> tuple[str, str]:
        found = _HOW_OFTEN.match(self.pattern, self.at)
        if found is None:
            return part, made
        self.at = found.end()
        how = found[0]
        if self._next() in ("?", "*", "+", "{"):
            raise _Other
        n_most = {"?": 1, "*": None, "+": None}.get(how, _most(found))
        before = (
            ""
            if n_most is not None and n_most <= 1
            else f"{part}*"
            if n_most is None
            else f"{part}{{0,{n_most - 1}}}"
        )
        return f"{part}{how}", f"(?:{before}{made})" if n_most != 0 else ""

    def _next(self) -> str:
        return self.pattern[self.at : self.at + 1]


def _most(found: re.Match[str]) -> int | None:
    if found[1] is None:
        return None
    if found[2] is None:
        return int(found[1])
    return int(found[3]) if found[3] else None


def _any_of(parts: list[str]) -> str:
    return f"(?:{'|'.join(parts)})"
