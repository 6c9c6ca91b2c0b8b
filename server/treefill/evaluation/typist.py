"""A person at an editor, as far as a measurement needs one: which edits a text comes about by, key by key.

The editor may close brackets and quotes by itself; then closers are typed over, Enter between braces opens a line of
its own, and new lines are indented. What is suggested is never accepted, and nobody is asked anything here.
"""

from dataclasses import dataclass, field

PAIRS = {"(": ")", "[": "]", "{": "}"}
QUOTES = "\"'"


@dataclass(frozen=True, slots=True)
class Edit:
    """What one key does to the buffer."""

    start: int
    """Offset in the text before."""
    end: int
    text: str
    """What stands there instead."""
    is_new_line: bool
    """Whether a line was begun."""
    is_bracket: bool
    """Whether the editor closed or typed over something by itself."""


@dataclass(slots=True)
class Typist:
    """Types a text; `text` and `cursor` are the buffer's."""

    text: str
    cursor: int
    target: str
    """What is to be typed."""
    helps: bool = True
    """False where the editor adds nothing by itself: every character is a key."""
    at: int = 0
    """Characters of the target that are there."""
    closers: list[str] = field(default_factory=list)
    """What the editor has closed and stands behind the cursor, the nearest last."""

    def press(self) -> Edit | None:
        """One key; None at the target's end."""
        if self.at >= len(self.target):
            return None
        if self.closers and self.target.startswith(self.closers[-1], self.at):
            return self._over(self.closers.pop())
        key = self.target[self.at]
        self.at += 1
        if not self.helps:
            return self._insert(key)
        if key == "\n":
            return self._enter()
        closer = self._closer_of(key)
        if closer:
            self.closers.append(closer)
        return self._insert(key, closer)

    def _closer_of(self, key: str) -> str:
        """What the editor puts behind the cursor when this key is pressed."""
        if key in PAIRS:
            return PAIRS[key]
        if key not in QUOTES:
            return ""
        if self.text[: self.cursor].endswith(2 * key):
            return 3 * key
        is_word_before = self.text[self.cursor - 1 : self.cursor].isalnum()
        return "" if is_word_before or key in self.closers else key

    def _enter(self) -> Edit:
        """A new line, indented as the target's; between braces the closer gets a line of its own."""
        blanks = _blanks(self.target, self.at)
        self.at += len(blanks)
        closer = self.closers[-1] if self.closers else ""
        alone = self._line_of_closer(closer) if closer in PAIRS.values() else None
        if alone is None:
            return self._insert("\n" + blanks)
        self.closers[-1] = alone
        return self._insert("\n" + blanks, alone[: -len(closer)])

    def _line_of_closer(self, closer: str) -> str | None:
        """The line ending and blanks before the closer where the target has it on a line of its own."""
        depth = 0
        opener = next(bracket for bracket, other in PAIRS.items() if other == closer)
        for place in range(self.at, len(self.target)):
            depth += (self.target[place] == opener) - (self.target[place] == closer)
            if depth < 0:
                line_start = self.target.rfind("\n", self.at, place)
                blanks = self.target[line_start + 1 : place]
                return "\n" + blanks + closer if line_start >= 0 and not blanks.strip() else None
        return None

    def _insert(self, before: str, after: str = "") -> Edit:
        edit = Edit(self.cursor, self.cursor, before + after, "\n" in before, bool(after))
        self.text = self.text[: self.cursor] + before + after + self.text[self.cursor :]
        self.cursor += len(before)
        return edit

    def _over(self, closer: str) -> Edit:
        """Typing over what the editor closed replaces it by itself, as VS Code does."""
        self.at += len(closer)
        start = self.cursor
        self.cursor += len(closer)
        return Edit(start, self.cursor, self.text[start : self.cursor], "\n" in closer, True)


def _blanks(text: str, at: int) -> str:
    end = at
    while end < len(text) and text[end] in " \t":
        end += 1
    return text[at:end]
