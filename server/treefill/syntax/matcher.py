"""The grammar at work while a completion is written: what may come next, and where it may end.

A matcher begins at a cursor, on the skeleton of what is before it (`skeleton.py`), and follows the tokens that are
taken. It answers in microseconds, and where it does not know it allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from time import thread_time
from typing import TYPE_CHECKING

from treefill import _kernels
from treefill.syntax.dialect import dialect_of
from treefill.syntax.fences import Fence, fence_at, without_margin
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import Grammar, Language, Layout
from treefill.syntax.lexers import LEXERS, grammar_with_lexers
from treefill.syntax.once import once
from treefill.syntax.skeleton import Skeleton, is_outside_code, skeleton_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from treefill.syntax.dictionary import MaskDictionary
    from treefill.syntax.vocabulary import MaskVocabulary

MAX_BLANK_RUN = 160
"""Blanks in a row, line feeds not counted, that a completion may write: deep indentation, and no more."""
DIALECT_CHARS = 12_000
"""So much on either side of the cursor tells a text's dialect."""
MAX_WORK_S = 0.02
"""So much processor time is spent at a place before it is out of reach; the first use of a grammar is not counted."""
PIECE_BYTES = 512
"""Between two pieces of a text the clock is looked at."""
MAX_ENDS = 3
"""So many ways to end the innermost scope are tried."""
MAX_FORCED = 64
"""So many forced bytes are told at once."""
MAX_BLANKS_READ = 1_000
"""A statement with a longer run of white space is not read: a compiled scanner may go over all of it at every byte."""
MAX_LINE_FEEDS = 6
"""Line feeds in a row with nothing but blanks between them."""


@dataclass(frozen=True, slots=True)
class OutOfReach:
    """The grammar does not decide here."""

    reason: str
    """Why, as one sentence."""


class Matcher:
    """Follows one completion. One thread at a time."""

    def __init__(
        self,
        loaded: LoadedGrammar,
        acceptor: _kernels.Acceptor,
        skeleton: Skeleton,
        rests: tuple[bytes, ...],
        ends: tuple[bytes, ...],
        fence: Fence | None = None,
    ) -> None:
        self._loaded = loaded
        self._acceptor = acceptor
        self._skeleton = skeleton
        self._rests = rests
        self._ends = ends
        self._written: list[bytes] = []
        self._fence = fence

    def allows(self, more: bytes) -> bool:
        """Whether `more` may come next."""
        code = self._code_of(more)
        return self._is_measured(more) and (code is None or self._acceptor.allows(code))

    def prepare_masks(self, vocabulary: MaskVocabulary) -> None:
        """Have the grammar read the vocabulary: once a process, 0.4 to 5 s."""
        vocabulary.for_grammar(tables(self._loaded))

    def fill_mask(self, vocabulary: MaskVocabulary) -> NDArray[np.uint32]:
        """The tokens that `allows` allows, as a mask `[n_words]`; those that are never written are not among them.

        The first one of a vocabulary takes what `prepare_masks` takes.
        """
        return self._narrowed(vocabulary.fill_mask(self._acceptor, tables(self._loaded)), vocabulary)

    def known_mask(self, vocabulary: MaskVocabulary, dictionary: MaskDictionary) -> NDArray[np.uint32] | None:
        """The same where the dictionary, which is of this grammar, knows it; None where not, or in a fence."""
        if self._fence:
            return None
        words = dictionary.known(self._acceptor, lambda: self._acceptor.text)
        return None if words is None else self._narrowed(words, vocabulary)

    def expect_mask(self, dictionary: MaskDictionary) -> None:
        """Have the dictionary, which is of this grammar, make the mask that `known_mask` will be asked for: right after
        `accept`, so that it is there when the model has computed. Not in a fence.
        """
        if not self._fence:
            dictionary.expect(self._acceptor.text)

    def kept_mask(self, vocabulary: MaskVocabulary, dictionary: MaskDictionary) -> NDArray[np.uint32]:
        """The mask from the dictionary, which is of this grammar; made and kept where it does not know it."""
        return self._narrowed(dictionary.fill(self._acceptor), vocabulary)

    def _narrowed(self, words: NDArray[np.uint32], vocabulary: MaskVocabulary) -> NDArray[np.uint32]:
        """Without what the grammar takes and a completion does not."""
        if self._fence:
            marker, is_over = self._fence.marker.encode(), self._code_of(b"") is None
            words = vocabulary.asked_again(
                words, lambda token: is_over or _is_about_fence(token, marker), self.allows
            )
        n_line_feeds, n_blanks = count_run(self._open_run())
        return vocabulary.without_long_runs(words, MAX_LINE_FEEDS - n_line_feeds, MAX_BLANK_RUN - n_blanks)

    def accept(self, more: bytes) -> bool:
        """Take `more`; False where it may not come next, and then nothing was taken."""
        if not self._is_measured(more):
            return False
        if not self._acceptor.accept(self._code_of(more) or b""):
            self._acceptor.rollback(1)
            return False
        self._written.append(more)
        return True

    def rollback(self, n: int) -> None:
        """Take the last `n` accepted pieces back."""
        n = min(n, len(self._written))
        self._acceptor.rollback(n)
        del self._written[len(self._written) - n :]

    def can_stop(self) -> bool:
        """Whether what was written so far, and what is right of the cursor after it, is whole."""
        return self.may_end(b"".join(self._written))

    def may_end(self, middle: bytes) -> bool:
        """Whether the text is whole with `middle` at the cursor and what is right of it, or as whole as can be told.

        Where `middle` ends with what the text right of the cursor begins with, it may also stand in its place.
        """
        if self._fence:
            written = middle.decode(errors="replace")
            ended = self._fence.up_to_end(written)
            if ended is not None:  # what comes after it is prose, and what is right of the cursor, too
                return self._is_whole(self._fence.without_margin(ended).encode())
            middle = self._fence.without_margin(written).encode()
        right = self._skeleton.right
        n_again = [n for n in range(1, min(len(right), len(middle), 8) + 1) if middle.endswith(right[:n])]
        # Written again or left out is the same, also where it closes the scope and so is no part of the rest.
        texts = [middle, *(middle[:-n] for n in reversed(n_again))]
        if body := self._skeleton.body_for(middle):
            texts.append(middle + body)
        return any(self._is_whole(text + rest) for text in texts for rest in self._rests)

    def forced(self, limit: int = MAX_FORCED) -> bytes:
        """The bytes that must come next, as far as there is but one way on; none where the text may also end."""
        if self._fence and self._code_of(b"") is None:
            return b""  # the fence has ended
        forced = self._acceptor.forced(limit)
        if self._fence and self._fence.margin:
            forced = forced.partition(b"\n")[0]  # what comes next is a margin
        return forced if forced and self._is_measured(forced) and not self.can_stop() else b""

    def in_fence(self, fence: Fence) -> Matcher:
        """The same for a document that has the code in a fence. Nothing was accepted yet."""
        return Matcher(self._loaded, self._acceptor, self._skeleton, self._rests, self._ends, fence)

    @property
    def grammar(self) -> str:
        """The name of the grammar that decides."""
        return self._loaded.name

    @property
    def loaded(self) -> LoadedGrammar:
        """The grammar itself."""
        return self._loaded

    @property
    def gave_up(self) -> str:
        """Why everything is allowed from here on; empty while the grammar decides."""
        return self._acceptor.gave_up

    def _code_of(self, more: bytes) -> bytes | None:
        """The part of it that is code: all of it, but for the margin of a fence; None where the fence has ended."""
        if self._fence is None:
            return more
        before = b"".join(self._written)
        if self._fence.up_to_end((before + more).decode(errors="replace")) is not None:
            return None
        n_before = len(_without_margin(before, self._fence))
        return _without_margin(before + more, self._fence)[n_before:]

    def _is_whole(self, text: bytes) -> bool:
        n_back = len(self._written)
        if not self._ends:
            return self._acceptor.allows(text, n_back)
        return any(self._acceptor.accepts_whole(text + end, n_back) for end in self._ends)

    def _is_measured(self, more: bytes) -> bool:
        """White space that goes on and on is grammatical nearly everywhere."""
        n_line_feeds, n_blanks = count_run(self._open_run() + more[: len(more) - len(more.lstrip())])
        return n_line_feeds <= MAX_LINE_FEEDS and n_blanks <= MAX_BLANK_RUN

    def _open_run(self) -> bytes:
        """The white space that what was written ends with."""
        run = b""
        for piece in reversed(self._written):
            run = piece[len(piece.rstrip()) :] + run
            if piece.strip():
                break
        return run


def matcher_at(
    text: str,
    offset: int,
    language: Language,
    dialect: str | None = None,
    others: Sequence[str] = (),
    dialects: Mapping[str, str] | None = None,
) -> Matcher | OutOfReach:
    """A matcher for a cursor at `offset`, in code points, of `text`; or why there is none.

    `others` are texts in the same language, which tell the dialect where this one does not; `dialects` has the grammar
    that is wanted for each language, for code in fences.
    Raises `GrammarError` where a grammar that the language has cannot be loaded.
    """
    if language.fences:
        fence = fence_at(text, offset, language)
        if fence is None:
            return OutOfReach("Prose is free: the cursor is in no fence of a language that is known.")
        wanted = (dialects or {}).get(fence.language.id)
        inside = matcher_at(fence.code, fence.offset, fence.language, wanted)
        return inside.in_fence(fence) if isinstance(inside, Matcher) else inside
    if not language.grammars:
        return OutOfReach(f"There is no grammar for {language.id}.")
    near = max(0, offset - DIALECT_CHARS)
    part = text[near : offset + DIALECT_CHARS]
    loaded = load(dialect_of(language, part, offset - near, dialect, others))
    if loaded.grammar.parse_only:
        return OutOfReach(loaded.grammar.parse_only)
    if language.layout is Layout.INDENTATION and not language.skeleton.fillers:
        return OutOfReach(f"What a place in {language.id} hangs on is not known.")
    if is_outside_code(text, offset, language):
        return OutOfReach("The cursor is outside of the code.")
    skeleton = skeleton_at(text, offset, language)
    if loaded.grammar.has_scanner and not loaded.grammar.scanner_model:
        skeleton = _without_blanks(skeleton)
    if not skeleton.statements:
        return OutOfReach("The statement that the cursor is in is too long for the grammar.")
    work = _Work(loaded, skeleton.prologue)
    try:
        found = _matcher_on(skeleton, work)
    except _Overworked:
        return OutOfReach("The grammar takes too long to read what the cursor hangs on.")
    return found or OutOfReach("The grammar cannot read the statement that the cursor is in.")


def prepare(language: Language) -> None:
    """Have the language's grammar ready, of several the first: its lexer takes up to a second to recover.

    Raises `GrammarError` where it cannot be loaded.
    """
    if language.grammars and not language.grammars[0].parse_only:
        tables(load(language.grammars[0]))


def _without_blanks(skeleton: Skeleton) -> Skeleton:
    """Without the readings that have too long a run of white space."""
    lines = tuple(each for each in skeleton.lines if not _BLANKS.search(each))
    statements = tuple(each for each in skeleton.statements if not _BLANKS.search(each))
    return replace(skeleton, statements=statements or lines, lines=lines if statements else ())


_BLANKS = re.compile(rb"\s{%d}" % MAX_BLANKS_READ)


class _Overworked(Exception):
    """More work than a place is worth."""


class _Work:
    """What is done to be ready at one place, in processor time of this thread: of a machine that is busy it tells
    nothing, and other threads do not count.
    """

    def __init__(self, loaded: LoadedGrammar, prologue: bytes = b"") -> None:
        self.loaded = loaded
        self._grammar = tables(loaded)
        self._prologue = prologue
        self._deadline_s = thread_time() + MAX_WORK_S

    def begin(self) -> _kernels.Acceptor:
        """One that has read nothing but what every text begins with."""
        acceptor = _kernels.Acceptor(self._grammar)
        acceptor.accept(self._prologue)
        return acceptor

    def accepts(self, acceptor: _kernels.Acceptor, more: bytes) -> bool:
        """Whether it takes `more`, in pieces; where not, it is as it was."""
        for n_taken, start in enumerate(range(0, len(more), PIECE_BYTES)):
            self._look_at_clock()
            if not acceptor.accept(more[start : start + PIECE_BYTES]):
                acceptor.rollback(n_taken + 1)
                return False
        return True

    def is_whole(self, acceptor: _kernels.Acceptor, rest: bytes, n_back: int = 0) -> bool:
        """Whether what it has taken, the last `n_back` pieces left out, is whole with the rest."""
        self._look_at_clock()
        return acceptor.accepts_whole(rest, n_back)

    def _look_at_clock(self) -> None:
        if thread_time() > self._deadline_s:
            raise _Overworked


@dataclass(frozen=True, slots=True)
class _Inside:
    """An acceptor that has read the beginnings of the scopes."""

    acceptor: _kernels.Acceptor
    ends: tuple[bytes, ...]
    """What would end all of them, or all but the innermost ones where those are still to be closed; nothing where that
    is not known."""
    is_guess: bool
    """True where one of the beginnings stands for another, or is a text of its own."""


def _matcher_on(skeleton: Skeleton, work: _Work) -> Matcher | None:
    """One that has read the skeleton, in the best reading that there is for it."""
    inside = _read_scopes(skeleton, work)
    longest, *shorter = skeleton.statements
    if inside.is_guess:
        # The scopes may be misread: let the innermost stand alone, rather than that less of the statement is read.
        return (
            _try_readings([longest], inside, skeleton, work)
            or _try_alone(longest, skeleton, work)
            or _try_readings([*shorter, *skeleton.lines], inside, skeleton, work)
        )
    found = _try_readings(skeleton.statements, inside, skeleton, work)
    found = found or _try_alone(skeleton.statements[-1], skeleton, work)
    found = found or _try_readings(skeleton.lines, inside, skeleton, work)
    return found or next(filter(None, (_try_alone(line, skeleton, work) for line in skeleton.lines)), None)


def _try_readings(
    readings: Iterable[bytes], inside: _Inside, skeleton: Skeleton, work: _Work
) -> Matcher | None:
    taken = next((reading for reading in readings if work.accepts(inside.acceptor, reading)), None)
    return None if taken is None else _matcher(inside, taken, skeleton, work)


def _try_alone(reading: bytes, skeleton: Skeleton, work: _Work) -> Matcher | None:
    """With the innermost scope alone, or one that says nothing, or none. What would end it is not known then."""
    for beginning in (*skeleton.scopes[-1], b"") if skeleton.scopes else ():
        acceptor = work.begin()
        if work.accepts(acceptor, beginning) and work.accepts(acceptor, reading):
            return _matcher(_Inside(acceptor, (), True), reading, skeleton, work)
    return None


def _read_scopes(skeleton: Skeleton, work: _Work) -> _Inside:
    """The beginnings of the scopes in their best readings.

    The innermost may end in several ways: `v{` as a body with `}`, as a list of values with `};`.
    """
    acceptor = work.begin()
    ends = skeleton.ends
    outer: list[bytes] = []
    is_guess = False
    for number, readings in enumerate(skeleton.scopes):
        taken = next((reading for reading in readings if work.accepts(acceptor, reading)), None)
        if taken is None:
            # The scopes round it make no sense of this one: it begins a text of its own.
            acceptor, ends, outer = work.begin(), (), []
            if not any(work.accepts(acceptor, reading) for reading in readings):
                is_guess = True
                continue
        is_guess = is_guess or taken is None or taken in skeleton.stand_ins
        closers = skeleton.own_closers[number] if skeleton.own_closers else skeleton.closers
        if closers and ends:
            outer += [ends[0]] * any(closers)
            tried = (closer + ends[0] for closer in closers)
            ends = tuple(islice((end for end in tried if work.is_whole(acceptor, end)), MAX_ENDS))
    lacking = outer[::-1][: skeleton.n_lacking]
    return _Inside(acceptor, (*ends, *lacking) if ends else ends, is_guess)


def _matcher(inside: _Inside, read: bytes, skeleton: Skeleton, work: _Work) -> Matcher:
    """A matcher that also knows the rest of the line, where the grammar cannot read what comes below it."""
    rest = skeleton.rests[0]
    below = rest[len(skeleton.right) + 1 :]
    n_pieces = -(-len(read) // PIECE_BYTES)
    is_readable = bool(below) and any(
        work.is_whole(inside.acceptor, below + end, n_pieces) for end in inside.ends
    )
    # A rest that ends within the line has stopped at a bracket, which may be a template's: `${|}`.
    is_all = is_readable or rest.rstrip(b"\n") == skeleton.right
    rests = skeleton.rests if is_all else (*skeleton.rests, skeleton.right)
    ends = () if skeleton.is_cut else inside.ends
    return Matcher(work.loaded, inside.acceptor, skeleton, rests, ends)


def count_run(run: bytes) -> tuple[int, int]:
    r"""Line feeds and blanks of a run of white space; a carriage return is neither.

    >>> count_run(b"\r\n\t  ")
    (1, 3)
    """
    n_line_feeds = run.count(b"\n")
    return n_line_feeds, len(run) - n_line_feeds - run.count(b"\r")


def _is_about_fence(token: bytes, marker: bytes) -> bool:
    """True where more than code is in it: a line's margin, or what ends the fence."""
    return b"\n" in token or token[:1] in (b" ", b"\t") or marker in token


def _without_margin(written: bytes, fence: Fence) -> bytes:
    """Bytes that may end in half a character, which is no blank."""
    before = fence.before.encode(errors="replace")
    n_before = len(without_margin(fence.before, fence.margin).encode(errors="replace"))
    text = (before + written).decode(errors="surrogateescape")
    return without_margin(text, fence.margin).encode(errors="surrogateescape")[n_before:]


@once
def tables(loaded: LoadedGrammar) -> _kernels.Grammar:
    """The grammar's tables as the acceptor reads them, with what the language refuses beyond them."""
    return grammar_with_lexers(loaded, policy_of(loaded.grammar), LEXERS.folder)


def policy_of(grammar: Grammar) -> _kernels.Policy:
    """What the language refuses and the grammar takes."""
    policy = _kernels.Policy()
    policy.refused_pairs = list(grammar.refused_pairs)
    policy.needed_parts = [(rule, list(parts)) for rule, parts in grammar.needed_parts]
    policy.needs_enclosing = list(grammar.needs_enclosing)
    policy.json_numbers = list(grammar.json_numbers)
    policy.is_strict = True
    return policy
