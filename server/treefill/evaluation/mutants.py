"""Small changes to a file, as a slip of the keyboard or of a model makes them: most break it, some do not."""

import re
from collections.abc import Callable
from random import Random

MAX_CHANGES = 3
_PIECE = re.compile(r"\w+|\s+|[^\w\s]")
_SIGNS = "()[]{}<>:;,.=+-*/\"'`#\\ \n\t0aX_$@!?&|~^%"


def mutate(text: str, random: Random) -> str:
    """The text with one to three characters or tokens deleted, doubled, replaced or inserted; always another text."""
    for _ in range(100):
        changed = text
        for _ in range(random.randint(1, MAX_CHANGES)):
            start, end = random.choice((_character, _token))(changed, random)
            changed = random.choice(CHANGES)(changed, start, end, random)
        if changed != text:
            return changed
    return text + "x"


def shrink(text: str, is_still_wrong: Callable[[str], bool], n_tries: int = 400) -> str:
    r"""A shorter text that is wrong in the same way: lines are left out, then characters, larger pieces first.

    >>> shrink("one\ntwo\nthree x three\nfour", lambda text: "x" in text)
    'x'
    """
    for pieces in (text.splitlines(keepends=True), None):
        parts = list(text) if pieces is None else pieces
        size = max(1, len(parts) // 2)
        while size:
            start = 0
            while start < len(parts) and n_tries > 0:
                n_tries -= 1
                rest = parts[:start] + parts[start + size :]
                if is_still_wrong("".join(rest)):
                    parts = rest
                else:
                    start += size
            size //= 2
        text = "".join(parts)
    return text


def _character(text: str, random: Random) -> tuple[int, int]:
    at = random.randrange(len(text)) if text else 0
    return at, min(at + 1, len(text))


def _token(text: str, random: Random) -> tuple[int, int]:
    """The token at a random place; so long ones are drawn more often, which does no harm."""
    at, end = _character(text, random)
    line_start = text.rfind("\n", 0, at) + 1
    piece = next((each for each in _PIECE.finditer(text, line_start) if each.end() > at), None)
    return piece.span() if piece else (at, end)


def _delete(text: str, start: int, end: int, random: Random) -> str:
    return text[:start] + text[end:]


def _double(text: str, start: int, end: int, random: Random) -> str:
    return text[:end] + text[start:end] + text[end:]


def _replace(text: str, start: int, end: int, random: Random) -> str:
    return text[:start] + _other(text, random) + text[end:]


def _insert(text: str, start: int, end: int, random: Random) -> str:
    return text[:start] + _other(text, random) + text[start:]


def _other(text: str, random: Random) -> str:
    """A sign, or a token from elsewhere in the text."""
    start, end = _token(text, random)
    return random.choice((random.choice(_SIGNS), text[start:end]))


CHANGES: tuple[Callable[[str, int, int, Random], str], ...] = (_delete, _double, _replace, _insert)
