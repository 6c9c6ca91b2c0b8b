"""Notebook cells: Python, but for lines that speak to the notebook (`%timeit`, `!pip install`) or to another language.

Such a line is no code: its quotes and brackets open nothing. A cell that begins with `%%sql` is SQL.
"""

import re
from dataclasses import replace
from functools import lru_cache

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
_MAGIC_LINE = re.compile(r"^([ \t]*)([%!?][^\r\n]*)", re.MULTILINE)


def language_at(document: Document, offset: int) -> Document:
    """The document in the language of that place: another one only in a notebook's cell."""
    if not is_python_cell(document):
        return document
    start, end = line_bounds(document.text, offset)
    magic = _MAGIC_LINE.match(document.text, start, end)
    if magic is not None and offset > magic.start(2):
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
    return _MAGIC_LINE.sub(lambda line: f"{line[1]}#{'x' * (len(line[2]) - 1)}", text)
