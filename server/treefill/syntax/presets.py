"""Code whose places are the commonest in a language: what a new dictionary of masks begins with.

Masks belong to a tokenizer and to an engine's version, so none are shipped. A preset is text, `presets/NAME.txt` in the
language's folder, and serves them all: wherever a token may end in it, a mask is made once (`dictionary.py`). It is
code of this repository, chosen by `scripts/presets.py` for the places that files of others have most often, so it
tells nothing of anybody. It has parts, each of which is read from its own beginning.

Without a tokenizer the text is cut into its tokens only about: into words, blanks and signs as most tokenizers do, and
these into the longest tokens that there are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from treefill import _kernels
from treefill.syntax.languages import Grammar, grammars_folder, languages

SEPARATOR = "\n====\n"
"""Between the parts of a preset; a line that no language has."""
N_WORDS = 10_000
MAX_TOKEN_BYTES = 32
"""Longer tokens are passed over: signs and blanks in rows, which the shorter ones lead through as well."""
_CHUNKS = re.compile(
    rb"[^\r\n0-9A-Za-z]?[A-Za-z]+|[0-9]{1,3}| ?[^\s0-9A-Za-z]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def preset_of(grammar: Grammar) -> tuple[bytes, ...]:
    """The parts of the grammar's preset; none where it has no preset."""
    for language in languages().values():
        if grammar in language.grammars:
            file = grammars_folder() / language.folder / "presets" / f"{grammar.name}.txt"
            if file.is_file():
                return tuple(part.encode() for part in file.read_text(encoding="utf-8").split(SEPARATOR))
    return ()


def words_of(spelled: Sequence[bytes]) -> Iterator[set[bytes]]:
    """A vocabulary's tokens for `pieces_of`, some at a time, so that nobody has to wait for the interpreter long."""
    for first in range(0, len(spelled), N_WORDS):
        yield set(spelled[first : first + N_WORDS])


def places_in(
    grammar: _kernels.Grammar, texts: Sequence[bytes], known: Collection[bytes]
) -> Iterator[_kernels.Acceptor]:
    """An acceptor at each place where a token may end; what a text has that the grammar does not take is left out."""
    for text in texts:
        acceptor = _kernels.Acceptor(grammar)
        for piece in pieces_of(text, known):
            yield acceptor
            if not acceptor.accept(piece):
                break


def pieces_of(text: bytes, known: Collection[bytes]) -> Iterator[bytes]:
    """The text in pieces that are tokens, where there are such; else single bytes.

    >>> list(pieces_of(b"return_value = 10", {b"return", b"_", b"_val", b"ue", b" =", b" ", b"1", b"0"}))
    [b'return', b'_val', b'ue', b' =', b' ', b'1', b'0']
    """
    for chunk in _CHUNKS.finditer(text):
        begin, end = chunk.span()
        while begin < end:
            longest = min(end, begin + MAX_TOKEN_BYTES)
            stop = next((at for at in range(longest, begin, -1) if text[begin:at] in known), begin + 1)
            yield text[begin:stop]
            begin = stop
