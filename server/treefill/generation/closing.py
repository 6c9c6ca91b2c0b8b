"""The end of a document that its writer did not come to: a few bytes that make it whole, or its longest whole part.

No model is asked. What a language closes with is tried in a fixed order: the end of an open string or comment, a value
or body that is still due, and then whatever bracket, element or word may come, until the document is whole. The same
text is always closed alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from string import ascii_lowercase, ascii_uppercase

from treefill.engine.api import Guard
from treefill.syntax.languages import Language

MAX_PIECES_BACK = 24
"""So many of the last pieces may go."""
MAX_CLOSERS = 64
MAX_LINES_BACK = 60
"""So many of the last lines may go where no grammar says what may come next."""
_STRING_ENDS = ('"', "'", '"""', "'''", "`", "*/", "-->", "]]>")
_DUE = (" pass", ": pass", "\n    pass", "null", "0", '""', ": null", ": 0", '": null', ": []", ": {}", "x", "=0",
        " 0", ">", "/>", ";")  # fmt: skip
_CLOSERS = (")", "]", "}", ";", "\n")
_VALUES = ('""', '"', ":", ",", "null", "0", "true", "[", "{", *ascii_lowercase, *ascii_uppercase)
"""What a schema may still want of a JSON document that no bracket may close yet, in this order."""
_LATEX = re.compile(rb"\\begin\{([^{}\n]*)\}|\\end\{([^{}\n]*)\}|\\\[|\\\]")
_OPENED = re.compile(rb"<([A-Za-z_:][\w:.-]*)")


@dataclass(frozen=True, slots=True)
class Closed:
    """How a document was brought to an end."""

    n_cut_bytes: int
    """Taken off its end first."""
    added: bytes


def close(guard: Guard, pieces: list[bytes], language: Language) -> Closed | None:
    """Bring what was accepted, piece by piece, to an end; None where none is found, and then it is as it was but for
    the pieces that were taken back.

    What is tried is what the guard allows, so it must know; `shorten` is for those that do not.
    """
    n_cut_bytes, pieces = 0, list(pieces)  # the guard's own list becomes shorter
    for n_back in range(min(MAX_PIECES_BACK, len(pieces) - 1) + 1):
        if n_back:
            guard.rollback(1)
            n_cut_bytes += len(pieces[-n_back])
        text = b"".join(pieces[: len(pieces) - n_back])
        added = _ending(guard, text, language)
        if added is not None:
            return Closed(n_cut_bytes, added)
    return None


def shorten(guard: Guard, document: bytes, language: Language) -> Closed | None:
    """The same by lines taken off the end, where the guard has nothing to say but whether a document is whole.

    Nothing was accepted by it yet; what it makes whole is.
    """
    lines = document.splitlines(keepends=True)
    for n_cut in range(min(MAX_LINES_BACK, len(lines) - 1) + 1):
        kept = b"".join(lines[: len(lines) - n_cut])
        for added in dict.fromkeys((b"", _latex_ends(kept) if language.id == "latex" else b"")):
            guard.accept(kept + added)
            if guard.can_stop():
                return Closed(len(document) - len(kept), added)
            guard.rollback(1)
    return None


def _latex_ends(text: bytes) -> bytes:
    r"""What ends the environments and formulas that are open.

    >>> _latex_ends(rb"\begin{a} \[ x")
    b'\n\\]\n\\end{a}\n'
    """
    ends: list[bytes] = []
    for found in _LATEX.finditer(text):
        if found[0] in (rb"\]", rb"\end{%s}" % (found[2] or b"")):
            del ends[-1:]
        else:
            ends.append(rb"\]" if found[1] is None else rb"\end{%s}" % found[1])
    return b"".join(b"\n" + end for end in reversed(ends)) + b"\n"


def _ending(guard: Guard, text: bytes, language: Language) -> bytes | None:
    """What makes it whole, which is accepted then; where nothing does, nothing is."""
    if guard.can_stop():
        return b""
    closers = [*_closers(text, language)]
    for first, due in product(("", *_STRING_ENDS), ("", *_DUE)):
        begun = [piece.encode() for piece in (first, due) if piece]
        if all(_takes(guard, begun)):
            added = _close_all(guard, closers)
            if added is not None:
                return b"".join([*begun, added])
            guard.rollback(len(begun))
    return None


def _takes(guard: Guard, pieces: list[bytes]) -> Iterator[bool]:
    """Whether each was accepted, in turn; where one is not, those before it are taken back."""
    for number, piece in enumerate(pieces):
        is_taken = guard.accept(piece)
        if not is_taken and number:
            guard.rollback(number)
        yield is_taken


def _close_all(guard: Guard, closers: list[bytes]) -> bytes | None:
    """Whatever closes something, one after the other, until the document is whole."""
    added: list[bytes] = []
    while not guard.can_stop():
        must = guard.forced()
        closer = next((each for each in (must, *closers) if each and guard.accept(each)), None)
        if closer is None or len(added) == MAX_CLOSERS:
            guard.rollback(len(added) + (closer is not None))
            return None
        added.append(closer)
    return b"".join(added)


def _closers(text: bytes, language: Language) -> Iterator[bytes]:
    """The elements first that were opened last, then brackets and the words that end blocks."""
    if language.skeleton.elements:
        for name in dict.fromkeys(reversed(_OPENED.findall(text))):
            yield b"</" + name + b">"
        yield from (b">", b"/>")
        return
    if language.id == "json":
        yield from (each.encode() for each in ("]", "}", *_VALUES))
        return
    for closer in _CLOSERS:
        yield closer.encode()
    for word in language.skeleton.block_ends:
        yield b"\n" + word.encode()
