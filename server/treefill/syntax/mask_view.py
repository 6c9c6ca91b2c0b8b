"""What a mask says at one place of a document, to be looked at: how many tokens, some of them, and what it took."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from treefill.syntax.languages import Language
from treefill.syntax.matcher import OutOfReach, matcher_at
from treefill.syntax.vocabulary import MaskVocabulary, to_bools

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sample:
    """A token, to be shown."""

    id: int
    text: str
    """As code is written, white space and what cannot be printed as escapes."""


@dataclass(frozen=True, slots=True)
class MaskView:
    """The mask at a cursor."""

    grammar: str | None
    """Which one decided; None where none did."""
    n_tokens: int
    """Tokens of the model that are ever written."""
    n_allowed: int
    allowed: tuple[Sample, ...]
    """Some that may come next: the shortest first, and of equal length those with the lower ids."""
    refused: tuple[Sample, ...]
    """Some that may not."""
    setup_ms: float
    """To load the grammar and read what the cursor hangs on."""
    vocabulary_ms: float
    """To have the grammar read the vocabulary: once a process."""
    first_ms: float
    """For the first mask there."""
    again_ms: float
    """For the same once more."""
    out_of_reach: str = ""
    """Why the grammar does not decide at this place; empty where it does."""
    gave_up: str = ""
    """Why it no longer decided; empty while it does."""


def mask_view(
    text: str,
    offset: int,
    language: Language,
    vocabulary: MaskVocabulary,
    n_samples: int,
    dialect: str | None = None,
) -> MaskView:
    """The mask at `offset`, in code points. Where nothing is decided, every token may come.

    Raises `GrammarError` where the grammar cannot be loaded or is not the language's.
    """
    matcher, setup_ms = _timed(lambda: matcher_at(text, offset, language, dialect))
    written = np.array([bool(token) for token in vocabulary.spelled])
    n_tokens = int(written.sum())
    if isinstance(matcher, OutOfReach):
        return MaskView(None, n_tokens, n_tokens, (), (), setup_ms, 0.0, 0.0, 0.0, matcher.reason)
    _, vocabulary_ms = _timed(lambda: matcher.prepare_masks(vocabulary))
    words, first_ms = _timed(lambda: matcher.fill_mask(vocabulary))
    gave_up = matcher.gave_up
    _, again_ms = _timed(lambda: matcher.fill_mask(vocabulary))
    mask = to_bools(words, len(written))
    return MaskView(
        matcher.grammar,
        n_tokens,
        int(mask.sum()),
        _samples(mask, vocabulary, n_samples),
        _samples(written & ~mask, vocabulary, n_samples),
        setup_ms,
        vocabulary_ms,
        first_ms,
        again_ms,
        gave_up=gave_up,
    )


def shown(token: bytes) -> str:
    r"""A token as code is written: a blank stays one, other white space and what cannot be printed are escapes.

    >>> shown(b" a\n\xc3\xa9"), shown(b"\xe2\x80"), shown(b"\\n")
    (' a\\né', '\\xe2\\x80', '\\\\n')
    """
    return "".join(map(_shown, token.decode(errors="surrogateescape")))


def _shown(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte that is no text by itself
        return f"\\x{ord(character) - 0xDC00:02x}"
    is_plain = character.isprintable() and character != "\\"
    return character if is_plain else repr(character)[1:-1]


def _samples(mask: NDArray[np.bool_], vocabulary: MaskVocabulary, n: int) -> tuple[Sample, ...]:
    ids = sorted(np.flatnonzero(mask).tolist(), key=lambda number: (len(vocabulary.spelled[number]), number))
    return tuple(Sample(number, shown(vocabulary.spelled[number])) for number in ids[:n])


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    """What it returns, and the milliseconds that it took."""
    started = perf_counter()
    result = call()
    return result, (perf_counter() - started) * 1000
