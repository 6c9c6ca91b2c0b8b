"""Regular expressions that a rule may have: they take linear time, whatever they are and whatever text they meet.

They are RE2's: well kept, on wheels for each Python that we run on, and made for patterns of people that one does not
know. Python's own `re` goes back and forth, exponentially often for some patterns. What linear time costs is what RE2
leaves out: looking ahead or behind, and referring back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from treefill.syntax.rules.beginnings import beginnings_of

MAX_PATTERN_CHARS = 1_000
MAX_PATTERN_BYTES = 1 << 18
"""Memory of one pattern's program and of what it remembers while it matches."""
MAX_TEXT_CHARS = 20_000
"""Longer texts are not matched."""
MAX_FORCED_CHARS = 80
_TRIED = "".join(map(chr, range(32, 127))) + "\t\n\r\0äЖ中😀\u0301\u00a0"
RANGE_BYTES = 200
"""So much of the least and of the greatest text that a pattern matches is looked at."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern, which a text must match from its beginning to its end."""

    text: str
    """As it is written in the rule."""
    _compiled: Any = field(compare=False, repr=False)
    least: bytes = field(compare=False, repr=False)
    """No text that matches comes before this one, byte by byte."""
    greatest: bytes | None = field(compare=False, repr=False)
    """No text that matches comes after this one; None where that is not known."""
    _beginnings: Any = field(compare=False, repr=False)
    """What matches the beginnings of what matches; None where there is no such pattern."""

    def fits(self, text: str) -> bool:
        """Whether the whole of the text matches."""
        return self._compiled.fullmatch(text.encode(errors="replace").decode()) is not None

    def fits_for_good(self, beginning: str) -> bool:
        """Whether all that begins so matches: told of patterns that end with `.*` and have no alternatives."""
        return self.text.endswith(".*") and "|" not in self.text and self.fits(beginning)

    def may_begin(self, beginning: str) -> bool:
        """False only where nothing that begins so can match.

        It is told exactly where the pattern is made of what people mostly write (`beginnings.py`). Else it is told by
        the least and the greatest text, roughly and in favour of the text: `get_(?i:id)` may begin with `get_it`, not
        with `set`.
        """
        data = beginning.encode(errors="replace")
        if self._beginnings is not None:
            return self._beginnings.fullmatch(data.decode()) is not None
        is_too_late = self.greatest is not None and data > self.greatest
        return not is_too_late and data >= self.least[: len(data)]

    def forced(self, beginning: str) -> str:
        """What must follow such a beginning; nothing where there is a choice, or where that can't be told.

        It is found by trying: the letters of ASCII, those that the pattern names, and some of other kinds.
        """
        text = beginning
        while len(text) < len(beginning) + MAX_FORCED_CHARS and not self.fits(text):
            possible = self._letters_after(text)
            if possible is None or len(possible) != 1:
                break
            text += possible[0]
        return text[len(beginning) :]

    def is_over(self, text: str) -> bool:
        """Whether the text matches and nothing that is longer does, as far as that can be told."""
        return self.fits(text) and self._letters_after(text) == []

    def _letters_after(self, beginning: str) -> list[str] | None:
        """Those that may follow; None where they can't be told."""
        if self._beginnings is None or "\\p" in self.text.lower():
            return None
        letters = sorted({*_TRIED, *self.text})
        return [letter for letter in letters if self.may_begin(beginning + letter)]


def compile_pattern(text: str, only_beginning: bool = False) -> Pattern:
    """Read a pattern; with `only_beginning` it says how a text begins. A dot stands for a line's end, too.

    Raises `ValueError` with what is wrong as its text.
    """
    if len(text) > MAX_PATTERN_CHARS:
        raise ValueError(f"a pattern of at most {MAX_PATTERN_CHARS} characters")
    import re2

    try:
        re2.compile(text, _options())  # alone first: `a)(b` is no pattern, though `(a)(b)` is one
        whole = f"(?:{text}).*" if only_beginning else f"(?:{text})"
        compiled = re2.compile(rf"\A{whole}\z", _options())
    except (re2.error, UnicodeEncodeError) as error:
        detail = error.args[0] if isinstance(error, re2.error) else "half a character"
        told = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
        raise ValueError(f"a regular expression of RE2 ({told})") from None
    try:
        least, greatest = compiled.possiblematchrange(RANGE_BYTES)
    except re2.error:
        least, greatest = b"", None
    return Pattern(text, compiled, least, greatest, _compiled_beginnings(whole))


def _compiled_beginnings(pattern: str) -> Any:
    import re2

    made = beginnings_of(pattern)
    try:
        return re2.compile(rf"\A{made}\z", _options()) if made is not None else None
    except re2.error:  # it takes too much memory
        return None


@dataclass(frozen=True, slots=True)
class Patterns:
    """What is allowed and what is forbidden."""

    allow: tuple[Pattern, ...] = ()
    """Where there are any, one of them must match."""
    forbid: tuple[Pattern, ...] = ()

    def refuses(self, text: str) -> bool:
        """Whether the text is forbidden, or not among what is allowed, or too long to be matched."""
        if len(text) > MAX_TEXT_CHARS or any(pattern.fits(text) for pattern in self.forbid):
            return True
        return bool(self.allow) and not any(pattern.fits(text) for pattern in self.allow)

    def may_begin(self, beginning: str) -> bool:
        """False only where what begins so can become nothing that is allowed."""
        if any(pattern.fits_for_good(beginning) for pattern in self.forbid):
            return False
        return not self.allow or any(pattern.may_begin(beginning) for pattern in self.allow)


@cache
def _options() -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False  # they would quote the pattern
    options.max_mem = MAX_PATTERN_BYTES
    options.never_capture = True
    options.dot_nl = True
    return options
