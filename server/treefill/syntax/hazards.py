"""Texts that a grammar's scanner would take the process down with. They are left unparsed.

A scanner in C is asked to write its state into 1,024 bytes, and not every one of them counts. No `try` catches what
comes of that, so this is told before the parser sees the text. Each check is sound, not exact: it refuses some texts
that would do no harm, none that anybody writes.

The scanner of Python keeps two bytes for each open block's indentation, one for each open string, and looks at the
limit before both bytes of the first, not between them. With an open string at 511 blocks the second byte is one too
many. At most 255 strings are counted, so up to 383 blocks (2 + 255 + 2 × 383 = 1,023) nothing can happen. A block's
indentation is greater than that of the block around it, so there are no more open blocks than different indentations
in the text. (`grammars/python/language.toml` has the number.)

The scanner of SQL's other dialects takes one byte too little for a dollar quote's tag, which mostly lies in what the
allocator rounds up to; up to 15 characters it does everywhere.
"""

import re

from treefill.syntax.languages import Grammar

_MAX_INDENT_CHARS = 8_000
"""With tabs of eight columns more of them overflow the scanner's 16 bits, and then indentations may repeat."""
_INDENT = re.compile(r"\n([ \t\f\r]+)")
_DEEP = re.compile(r"\n[ \t\f\r]{47}")
"""Without it no line is indented by more than 376 columns, so there are no more indentations than that."""
_CONTINUED_BLANK = re.compile(r"\n[ \t\f\r]*\\\r?(?=\n)")
_TAG = re.compile(r"\$[^\s$]*(?=\$)")


def hazard(text: str, grammar: Grammar) -> str:
    """Why the text must not be parsed, as one sentence; empty where it may be."""
    if "\0" in text:
        return "It is left unparsed: it holds a NUL character."
    if grammar.max_indents and _n_indents(text) > grammar.max_indents:
        return f"It is left unparsed: it has more than {grammar.max_indents} different indentations."
    if grammar.max_tag_chars and _longest_tag(text) > grammar.max_tag_chars:
        return f"It is left unparsed: a dollar quote's tag has more than {grammar.max_tag_chars} characters."
    return ""


def _n_indents(text: str) -> int:
    """At least as many as there are different indentations, or 0 where they are few, or far too many."""
    text = "\n" + text
    # The scanner adds the indentation of a line that has nothing but a backslash to that of the next.
    n_continued = len(_CONTINUED_BLANK.findall(text)) if "\\" in text else 0
    if not n_continued and not _DEEP.search(text):
        return 0
    indents = set(_INDENT.findall(text))
    longest = max(map(len, indents), default=0)
    is_countable = longest * (1 + n_continued) <= _MAX_INDENT_CHARS
    return len(indents) + n_continued if is_countable else 1 << 16


def _longest_tag(text: str) -> int:
    """Characters of the longest one, both dollars in it."""
    return max((len(tag) + 1 for tag in _TAG.findall(text)), default=0) if "$" in text else 0
