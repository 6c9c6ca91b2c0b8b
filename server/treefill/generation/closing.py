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
from treefill.syntax.languages import Language, Layout

MAX_PIECES_BACK = 24
"""So many of the last pieces may go."""
MAX_CLOSERS = 64
MAX_LINES_BACK = 60
"""So many of the last lines may go where no grammar says what may come next."""
_STRING_ENDS = ('"', "'", '"""', "'''", "`", "*/", "-->", "]]>")
_DUE = ("0", '""', ": 0", "x", "=0", " 0", ">", "/>", ";")
_DUE_IN = {
    "json": ("null", '""', ": null", '": null', ": []", ": {}", "0"),
    "python": (" pass", ": pass", *_DUE),
}
_CLOSERS = (b")", b"]", b"}")
_SEPARATORS = (b";", b"\n")
"""Never two of them in a row: they may come without end."""
_VALUES = tuple(
    each.encode()
    for each in ('""', '"', ":", ",", "null", "0", "true", "[", "{", *ascii_lowercase, *ascii_uppercase)
)
"""What a schema may still want of a JSON document that no bracket may close yet, in this order."""
_LATEX = re.compile(rb"\\begin\{([^{}\n]*)\}|\\end\{([^{}\n]*)\}|\\\[|\\\]")
_HEAD = re.compile(rb"^([ \t]*)[^\s#][^\n]*:[ \t]*(?:#[^\n]*)?$", re.MULTILINE)
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
    pieces = list(pieces)  # the guard's own list becomes shorter
    n_most = min(MAX_PIECES_BACK, len(pieces) - 1)
    n_taken_back = 0
    # Rather without the last piece, a comma perhaps, than with something that nobody has said.
    for n_back, may_invent in ((0, False), (1, False), *((n, True) for n in range(n_most + 1))):
        if n_back > n_most:
            continue
        if n_back < n_taken_back:
            for piece in pieces[len(pieces) - n_taken_back : len(pieces) - n_back]:
                guard.accept(piece)
        elif n_back > n_taken_back:
            guard.rollback(n_back - n_taken_back)
        n_taken_back = n_back
        kept = pieces[: len(pieces) - n_back]
        added = _ending(guard, b"".join(kept), language, may_invent)
        if added is not None:
            return Closed(sum(map(len, pieces)) - sum(map(len, kept)), added)
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


def _ending(guard: Guard, text: bytes, language: Language, may_invent: bool) -> bytes | None:
    """What makes it whole, which is accepted then; where nothing does, nothing is. Without invention it only closes."""
    if guard.can_stop():
        return b""
    closers = [*_closers(text, language), *(_VALUES if may_invent and language.id == "json" else ())]
    dues = ("", *_bodies(text, language), *_DUE_IN.get(language.id, _DUE)) if may_invent else ("",)
    for first, due in product(("", *_STRING_ENDS), dues):
        begun = [piece.encode() for piece in (first, due) if piece]
        if all(_takes(guard, begun)):
            added = _close_all(guard, closers)
            if added is not None:
                return b"".join([*begun, added])
            guard.rollback(len(begun))
    return None


def _bodies(text: bytes, language: Language) -> Iterator[str]:
    """The body that the last line with a colon at its end may want, where indentation makes blocks."""
    heads = _HEAD.findall(text) if language.layout is Layout.INDENTATION else []
    yield from (
        f"\n{heads[-1].decode()}{language.indent}{filler}" for filler in language.skeleton.fillers if heads
    )


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
        tried = [guard.forced(), *closers]
        if not added or added[-1] not in _SEPARATORS:
            tried += _SEPARATORS
        closer = next((each for each in tried if each and guard.accept(each)), None)
        if closer is None or len(added) == MAX_CLOSERS:
            guard.rollback(len(added) + (closer is not None))
            return None
        added.append(closer)
    return b"".join(added)


def _closers(text: bytes, language: Language) -> Iterator[bytes]:
    """The elements first that were opened last, or the words that end blocks, then brackets."""
    if language.skeleton.elements:
        for name in dict.fromkeys(reversed(_OPENED.findall(text))):
            yield b"</" + name + b">"
        yield from (b">", b"/>")
        return
    # A shell takes a bracket for a part of any word, so words come first.
    yield from (b"\n" + word.encode() for word in language.skeleton.block_ends if word.isalpha())
    yield from _CLOSERS
