"""The grammar at work while a completion is written: what may come next, and where it may end.

A matcher begins at a cursor, on the skeleton of what is before it (`skeleton.py`), and follows the tokens that are
taken. It answers in microseconds, and where it does not know it allows.
"""

from dataclasses import dataclass
from itertools import islice

from treefill import _kernels
from treefill.syntax.dialect import dialect_of
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import Grammar, Language, Layout
from treefill.syntax.lexers import LEXERS, grammar_with_lexers
from treefill.syntax.once import once
from treefill.syntax.skeleton import Skeleton, skeleton_at

MAX_BLANK_RUN = 160
"""Blanks in a row, line feeds not counted, that a completion may write: deep indentation, and no more."""
DIALECT_CHARS = 12_000
"""So much on either side of the cursor tells a text's dialect."""
MAX_ENDS = 3
"""So many ways to end the innermost scope are tried."""
MAX_FORCED = 64
"""So many forced bytes are told at once."""
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
        acceptor: _kernels.Acceptor,
        skeleton: Skeleton,
        rests: tuple[bytes, ...],
        ends: tuple[bytes, ...],
    ) -> None:
        self._acceptor = acceptor
        self._skeleton = skeleton
        self._rests = rests
        self._ends = ends
        self._written: list[bytes] = []

    def allows(self, more: bytes) -> bool:
        """Whether `more` may come next."""
        return self._is_measured(more) and self._acceptor.allows(more)

    def accept(self, more: bytes) -> bool:
        """Take `more`; False where it may not come next, and then nothing was taken."""
        if not self._is_measured(more) or not _accepts(self._acceptor, more):
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
        right = self._skeleton.right
        n_again = [n for n in range(1, min(len(right), len(middle), 8) + 1) if middle.endswith(right[:n])]
        # Written again or left out is the same, also where it closes the scope and so is no part of the rest.
        texts = [middle, *(middle[:-n] for n in reversed(n_again))]
        if body := self._skeleton.body_for(middle):
            texts.append(middle + body)
        return any(self._is_whole(text + rest) for text in texts for rest in self._rests)

    def forced(self, limit: int = MAX_FORCED) -> bytes:
        """The bytes that must come next, as far as there is but one way on; none where the text may also end."""
        forced = self._acceptor.forced(limit)
        return forced if forced and self._is_measured(forced) and not self.can_stop() else b""

    @property
    def gave_up(self) -> str:
        """Why everything is allowed from here on; empty while the grammar decides."""
        return self._acceptor.gave_up

    def _is_whole(self, text: bytes) -> bool:
        n_back = len(self._written)
        if not self._ends:
            return self._acceptor.allows(text, n_back)
        return any(self._acceptor.accepts_whole(text + end, n_back) for end in self._ends)

    def _is_measured(self, more: bytes) -> bool:
        """White space that goes on and on is grammatical nearly everywhere."""
        run = more[: len(more) - len(more.lstrip())]
        for piece in reversed(self._written):
            run = piece[len(piece.rstrip()) :] + run
            if piece.strip():
                break
        n_line_feeds = run.count(b"\n")
        n_blanks = len(run) - n_line_feeds - run.count(b"\r")
        return n_line_feeds <= MAX_LINE_FEEDS and n_blanks <= MAX_BLANK_RUN


def matcher_at(
    text: str, offset: int, language: Language, dialect: str | None = None
) -> Matcher | OutOfReach:
    """A matcher for a cursor at `offset`, in code points, of `text`; or why there is none.

    Raises `GrammarError` where a grammar that the language has cannot be loaded.
    """
    if not language.grammars:
        return OutOfReach(f"There is no grammar for {language.id}.")
    near = max(0, offset - DIALECT_CHARS)
    part = text[near : offset + DIALECT_CHARS]
    loaded = load(dialect_of(language, part, offset - near, dialect))
    if language.layout is Layout.INDENTATION and not language.skeleton.fillers:
        return OutOfReach(f"What a place in {language.id} hangs on is not known.")
    skeleton = skeleton_at(text, offset, language)
    if not skeleton.statements:
        return OutOfReach("The statement that the cursor is in is too long for the grammar.")
    for readings in (skeleton.statements, skeleton.lines):
        acceptor, ends = _read_scopes(loaded, skeleton)
        for statements in readings:
            if _accepts(acceptor, statements):
                return _matcher(acceptor, skeleton, ends)
        # The beginning of the scope may be misread: let it be one that says nothing, or none.
        beginnings = (*skeleton.scopes[-1][1:], b"") if skeleton.scopes and readings else ()
        for beginning in beginnings:
            acceptor = _kernels.Acceptor(tables(loaded))
            if acceptor.accept(beginning) and acceptor.accept(readings[-1]):
                return _matcher(acceptor, skeleton, ())
    return OutOfReach("The grammar cannot read the statement that the cursor is in.")


def prepare(language: Language) -> None:
    """Have the language's grammar ready, of several the first: its lexer takes up to a second to recover.

    Raises `GrammarError` where it cannot be loaded.
    """
    if language.grammars:
        tables(load(language.grammars[0]))


def _read_scopes(loaded: LoadedGrammar, skeleton: Skeleton) -> tuple[_kernels.Acceptor, tuple[bytes, ...]]:
    """An acceptor inside the innermost scope, and what would end all of them, or all but the innermost ones where
    those are still to be closed; nothing where that is not known.

    The innermost may end in several ways: `v{` as a body with `}`, as a list of values with `};`.
    """
    acceptor = _kernels.Acceptor(tables(loaded))
    ends = skeleton.ends
    outer: list[bytes] = []
    for readings in skeleton.scopes:
        if not any(_accepts(acceptor, reading) for reading in readings):
            # The scopes round it make no sense of this one: it begins a text of its own.
            acceptor = _kernels.Acceptor(tables(loaded))
            ends = ()
            outer = []
            if not any(_accepts(acceptor, reading) for reading in readings):
                continue
        if skeleton.closers and ends:
            outer.append(ends[0])
            tried = (closer + ends[0] for closer in skeleton.closers)
            ends = tuple(islice((end for end in tried if acceptor.accepts_whole(end)), MAX_ENDS))
    lacking = outer[::-1][: skeleton.n_lacking]
    return acceptor, (*ends, *lacking) if ends else ends


def _accepts(acceptor: _kernels.Acceptor, more: bytes) -> bool:
    """Whether it takes `more`; where not, it is as it was."""
    is_accepted = acceptor.accept(more)
    if not is_accepted:
        acceptor.rollback(1)
    return is_accepted


def _matcher(acceptor: _kernels.Acceptor, skeleton: Skeleton, ends: tuple[bytes, ...]) -> Matcher:
    """A matcher that also knows the rest of the line, where the grammar cannot read what comes below it."""
    rest = skeleton.rests[0]
    below = rest[len(skeleton.right) + 1 :]
    is_readable = bool(below) and any(acceptor.accepts_whole(below + end, 1) for end in ends)
    # A rest that ends within the line has stopped at a bracket, which may be a template's: `${|}`.
    is_all = is_readable or rest.rstrip(b"\n") == skeleton.right
    rests = skeleton.rests if is_all else (*skeleton.rests, skeleton.right)
    return Matcher(acceptor, skeleton, rests, () if skeleton.is_cut else ends)


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
