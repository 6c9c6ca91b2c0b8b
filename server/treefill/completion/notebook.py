"""Notebook cells: Python, but for lines that speak to the notebook (`%timeit`, `!pip install`) or to another language.

Such a line is no code: its quotes and brackets open nothing. A cell that begins with `%%sql` is SQL.
"""

import re
from dataclasses import replace
from functools import lru_cache

from treefill.completion.scan import CODE, scan
from treefill.syntax.languages import language_by_id
from treefill.text import Document, line_bounds

CELL_LANGUAGES = {
    "bash": "shellscript",
    "sh": "shellscript",
    "sql": "sql",
    "html": "html",
    "javascript": "javascript",
    "js": "javascript",
    "markdown": "markdown",
    "latex": "latex",
    "svg": "xml",
}
"""What the rest of a cell is after `%%NAME`; after others, as `%%time`, it stays Python."""
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_MAGIC_LINE = re.compile(r"^(?<!\\\n)(?<!\\\r\n)([ \t]*)((?:%{1,2}[^\W\d]|!(?!=)|\?)[^\r\n]*)", re.MULTILINE)
"""A name follows the percent sign at once, and what goes on from the line above is none: `% 3)`, `!= x`. In brackets a
magic is taken for one, since those of a line above are often still open while it is written."""


def language_at(document: Document, offset: int) -> Document:
    """The document in the language of that place: another one only in a notebook's cell."""
    if not is_python_cell(document):
        return document
    start, end = line_bounds(document.text, offset)
    magic = next((each for each in _magics(document.text) if start <= each.start(2) < min(offset, end)), None)
    if magic is not None:
        return replace(document, language="shellscript" if magic[2].startswith("!") else "plaintext")
    cell = _CELL_MAGIC.match(document.text)
    return replace(document, language=CELL_LANGUAGES.get(cell[1], document.language)) if cell else document


def code_of(document: Document) -> str:
    """The text with what is no code as comments of the same length."""
    return _without_magics(document.text) if is_python_cell(document) else document.text


def is_python_cell(document: Document) -> bool:
    """True where lines may be magics."""
    return document.is_cell and document.language == "python"


@lru_cache(maxsize=4)
def _without_magics(text: str) -> str:
    pieces, at = [], 0
    for magic in _magics(text):
        pieces += [text[at : magic.start(2)], "#", "x" * (len(magic[2]) - 1)]
        at = magic.end()
    return "".join([*pieces, text[at:]])


@lru_cache(maxsize=4)
def _magics(text: str) -> tuple[re.Match[str], ...]:
    """The lines that speak to the notebook; not those in a string of several lines."""
    python, state, at = language_by_id("python"), CODE, 0
    magics = []
    for line in _MAGIC_LINE.finditer(text):
        state = scan(text[at : line.start()], python, state).state
        at = line.start() if state.quote else line.end()
        if not state.quote:
            magics.append(line)
    return tuple(magics)
