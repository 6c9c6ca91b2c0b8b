"""Code in prose: the fence that a cursor is in, its language, and its code without the fence's indentation.

    1. Like this:          the fence of a list is indented by three blanks, and so is its code, but
                           what reads it sees `print(` alone
       ```python
       print(‸)
       ```

A fence is what CommonMark calls one, at any depth of lists; inside of quotations (`> `) none is looked for. What models
wrap their answers in is another matter (`completion/postprocess/fences.py`).
"""

import re
from dataclasses import dataclass

from treefill.syntax.languages import Language, language_named

_LINE = re.compile(r"^([ \t]*)(([`~])\3{2,})([^\n]*)$", re.MULTILINE)
_NAME = re.compile(r"[\w+#.-]+")


@dataclass(frozen=True, slots=True)
class Fence:
    """The code of one fence, for a cursor in it."""

    language: Language
    marker: str
    """What began it, and what ends it at a line's beginning."""
    margin: int
    """Blanks at a line's beginning that are none of the code."""
    before: str
    """The cursor's line up to it, as it stands in the document."""
    code: str
    """Without the margin."""
    offset: int
    """The cursor in the code, in code points."""
    start: int
    """Where the code begins in the document."""

    def without_margin(self, more: str) -> str:
        """What is written at the cursor, without the margin of its lines."""
        return without_margin(self.before + more, self.margin)[
            len(without_margin(self.before, self.margin)) :
        ]

    def up_to_end(self, more: str) -> str | None:
        """The part of what is written at the cursor that comes before the fence's end; None where it does not end."""
        ended = re.search(rf"^[ \t]*{re.escape(self.marker)}", self.before + more, re.MULTILINE)
        return None if ended is None else more[: max(0, ended.start() - len(self.before))]


def fence_at(text: str, offset: int, language: Language) -> Fence | None:
    """The fence of a language that we know round the cursor, in code points; None where there is none."""
    opened: re.Match[str] | None = None
    for line in _LINE.finditer(text):
        if opened is None:
            if line.end() >= offset:
                return None
            opened = line if _opens(line, language) else None
        elif _closes(line, opened):
            if offset < line.start():
                return _fence(text, offset, opened, line.start())
            if offset <= line.end():
                return None
            opened = None
    return None if opened is None else _fence(text, offset, opened, len(text))


def without_margin(text: str, margin: int) -> str:
    """The text with at most so many blanks less at each line's beginning."""
    return re.sub(rf"^[ \t]{{1,{margin}}}", "", text, flags=re.MULTILINE) if margin else text


def _opens(line: re.Match[str], language: Language) -> bool:
    return line[3] in language.fences and not (line[3] == "`" and "`" in line[4])


def _closes(line: re.Match[str], opened: re.Match[str]) -> bool:
    return line[3] == opened[3] and len(line[2]) >= len(opened[2]) and not line[4].strip()


def _fence(text: str, offset: int, opened: re.Match[str], end: int) -> Fence | None:
    start = opened.end() + 1
    name = _NAME.search(opened[4])
    language = language_named(name[0].lstrip(".")) if name else None
    if language is None or language.fences or offset < start:
        return None
    margin = len(opened[1])
    line_start = text.rfind("\n", 0, offset) + 1
    line_end = text.find("\n", offset)
    line = text[line_start : end if line_end < 0 else line_end]
    n_cut = len(line) - len(without_margin(line, margin))
    above = without_margin(text[start:line_start], margin)
    code = above + without_margin(text[line_start:end], margin)
    at = len(above) + max(0, offset - line_start - n_cut)
    return Fence(language, opened[2], margin, text[line_start:offset], code, at, start)
