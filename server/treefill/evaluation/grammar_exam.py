"""The acceptor's exam: real files and what tree-sitter says of them, without a model.

boundaries   clean files, a model's token at a time: none may be refused, and each file may end where it ends
skeletons    the same from a random place in a clean file: 64 tokens, from what is made of the text before them
mutants      clean files with small changes: accepted exactly where tree-sitter's parse has no fault
statements   clean files with such changes in one statement: judged from a place in it as by who has read the file
reach        random positions in real files, faults and all: how often the acceptor is at work there, how often it
             refuses the file's own text up to the end of the statement, and what it costs
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from random import Random
from typing import Protocol

import numpy as np

from treefill.engine.api import Vocabulary
from treefill.evaluation.changed_statements import ChangedStatements, examine_changed_statements
from treefill.evaluation.examinee import Examinee, Matcher, Mistake
from treefill.evaluation.faults import count_faults, statement_at
from treefill.evaluation.mutants import mutate, shrink
from treefill.evaluation.positions import Position, choose_positions
from treefill.text import Document

N_TOKENS = 64
"""As many as a completion has at most."""
MAX_MUTANT_BYTES = 20_000
"""Larger files are not changed: the parse of each mutant begins at its first byte."""
N_EXAMPLES = 5
"""Mistakes that are told of in each language and part."""


@dataclass(slots=True)
class GrammarMarks:
    """One language's results."""

    language: str
    n_looked_at: int = 0
    """Files that were parsed to find clean ones."""
    n_files: int = 0
    """Clean files."""
    n_respelt: int = 0
    """Files left out because the vocabulary spells them otherwise."""
    n_boundaries: int = 0
    """Tokens fed from the beginning of clean files."""
    n_boundaries_refused: int = 0
    """Files in which one of them was refused, or their end; the rest of such a file is not fed."""
    n_skeletons: int = 0
    n_skeletons_at_work: int = 0
    n_skeleton_tokens: int = 0
    n_skeletons_refused: int = 0
    """Places at which one of the next tokens was refused."""
    n_gave_up: int = 0
    """Clean files, and changed ones, in which the examinee no longer decided."""
    n_mutants: int = 0
    n_mutants_clean: int = 0
    """Those that tree-sitter finds no fault with."""
    n_wrongly_accepted: int = 0
    n_wrongly_refused: int = 0
    changed: ChangedStatements = field(default_factory=ChangedStatements)
    n_positions: int = 0
    """In real files, faults and all."""
    n_at_work: int = 0
    n_statements: int = 0
    """Positions at work whose statement has no fault."""
    n_statements_refused: int = 0
    n_ends: int = 0
    """Positions at which what was taken out of a sound line was taken as it was."""
    n_ends_refused: int = 0
    """Those at which a suggestion might not have ended there."""
    setup_ms: list[float] = field(default_factory=list)
    """What it took to be ready at each of these positions."""
    check_us: list[float] = field(default_factory=list)
    """What each token took, asked about and accepted."""
    mistakes: list[Mistake] = field(default_factory=list)
    """The first few of each part."""

    def note(self, part: str, document: Document, byte_offset: int, data: bytes) -> None:
        """Keep a mistake, unless there are enough of its part."""
        if self.has_room(part):
            text = data.decode(errors="replace")
            self.mistakes.append(Mistake(part, document.path, byte_offset, text))

    def has_room(self, part: str) -> bool:
        """True where fewer of its mistakes are kept than are told of."""
        return sum(mistake.part == part for mistake in self.mistakes) < N_EXAMPLES

    @property
    def reach(self) -> float | None:
        """Share of the positions in real files where the examinee is at work."""
        return self.n_at_work / self.n_positions if self.n_positions else None

    @property
    def own_refused(self) -> float | None:
        """Share of the statements there that it wrongly refuses."""
        return self.n_statements_refused / self.n_statements if self.n_statements else None


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is asked in each language."""

    n_files: int
    n_positions: int
    n_mutants: int
    n_statements: int


DEFAULT_SIZES = Sizes(n_files=50, n_positions=300, n_mutants=300, n_statements=300)


def examine(
    language: str,
    documents: Iterable[Document],
    examinee: Examinee,
    vocabulary: Vocabulary,
    sizes: Sizes = DEFAULT_SIZES,
    seed: int = 0,
    told: Callable[[str], None] = lambda part: None,
) -> GrammarMarks:
    """All parts in one language; `told` is called as each begins."""
    marks = GrammarMarks(language)
    kept = _Kept(documents)
    clean = list(islice(clean_files(kept, vocabulary, marks), sizes.n_files))
    told("boundaries")
    for each in clean:
        _examine_boundaries(each, examinee, marks)
    told("skeletons")
    _examine_skeletons(clean, sizes.n_positions, examinee, marks, Random(seed))
    told("mutants")
    _examine_mutants(clean, sizes.n_mutants, examinee, marks, Random(seed))
    told("statements")
    marks.changed = examine_changed_statements(
        _small(clean), sizes.n_statements, examinee, vocabulary, Random(seed), marks
    )
    told("reach")
    for position in choose_positions(kept, sizes.n_positions, seed):
        _examine_reach(position, examinee, vocabulary, marks)
    return marks


@dataclass(frozen=True, slots=True)
class Clean:
    """A file without fault, as tokens."""

    document: Document
    pieces: Sequence[bytes]


class _Kept:
    """Documents that are read once and can be gone through again."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._rest = iter(documents)
        self._known: list[Document] = []

    def __iter__(self) -> Iterator[Document]:
        n = 0
        while True:
            if n == len(self._known):
                document = next(self._rest, None)
                if document is None:
                    return
                self._known.append(document)
            yield self._known[n]
            n += 1


class FileCounts(Protocol):
    """What is counted of files on the way to clean ones."""

    n_looked_at: int
    n_files: int
    n_respelt: int


def clean_files(documents: Iterable[Document], vocabulary: Vocabulary, marks: FileCounts) -> Iterator[Clean]:
    """The files without fault, as tokens that spell them."""
    for document in documents:
        marks.n_looked_at += 1
        if count_faults(document.text, document.language):
            continue
        pieces = _pieces(document.text, vocabulary)
        if b"".join(pieces) != document.text.encode():
            marks.n_respelt += 1
            continue
        marks.n_files += 1
        yield Clean(document, pieces)


def _pieces(text: str, vocabulary: Vocabulary) -> list[bytes]:
    return [vocabulary.token_bytes(token) for token in vocabulary.encode(text)]


def _examine_boundaries(clean: Clean, examinee: Examinee, marks: GrammarMarks) -> None:
    acceptor = examinee.acceptor(clean.document.language)
    byte_offset = 0
    for piece in clean.pieces:
        marks.n_boundaries += 1
        if not acceptor.accept(piece):
            marks.n_boundaries_refused += 1
            marks.note("boundaries", clean.document, byte_offset, piece)
            return
        byte_offset += len(piece)
    marks.n_gave_up += bool(acceptor.gave_up)
    if not acceptor.accepts_whole(b""):
        marks.n_boundaries_refused += 1
        marks.note("boundaries", clean.document, byte_offset, b"")


def _examine_skeletons(
    clean: Sequence[Clean], n: int, examinee: Examinee, marks: GrammarMarks, random: Random
) -> None:
    for number in range(n if clean else 0):
        document, pieces = clean[number % len(clean)].document, clean[number % len(clean)].pieces
        first = character_start(pieces, random.randrange(len(pieces)))
        byte_offset = sum(map(len, pieces[:first]))
        matcher = examinee.matcher(document.text, byte_offset, document.language)
        marks.n_skeletons += 1
        if matcher is None:
            continue
        marks.n_skeletons_at_work += 1
        wanted = pieces[first : first + N_TOKENS]
        n_taken = _take(matcher, wanted, marks)
        marks.n_skeleton_tokens += n_taken
        if n_taken < len(wanted):
            marks.n_skeletons_refused += 1
            at = byte_offset + sum(map(len, wanted[:n_taken]))
            marks.note("skeletons", document, at, wanted[n_taken])


def _examine_mutants(
    clean: Sequence[Clean], n: int, examinee: Examinee, marks: GrammarMarks, random: Random
) -> None:
    small = _small(clean)
    for number in range(n if small else 0):
        document = small[number % len(small)]
        mutant = mutate(document.text, random)
        acceptor = examinee.acceptor(document.language)
        is_clean = not count_faults(mutant, document.language)
        is_accepted = acceptor.accepts_whole(mutant.encode())
        marks.n_mutants += 1
        marks.n_mutants_clean += is_clean
        marks.n_gave_up += bool(acceptor.gave_up)
        marks.n_wrongly_accepted += is_accepted and not is_clean
        marks.n_wrongly_refused += is_clean and not is_accepted
        part = "mutants accepted" if is_accepted else "mutants refused"
        if is_accepted != is_clean and marks.has_room(part):
            shortest = shrink(mutant, partial(_is_misjudged, examinee, document.language, is_clean))
            at = _first_difference(document.text, mutant)
            marks.note(part, document, len(mutant[:at].encode()), shortest.encode())


def _small(clean: Sequence[Clean]) -> list[Document]:
    return [each.document for each in clean if len(each.document.text.encode()) <= MAX_MUTANT_BYTES]


def _is_misjudged(examinee: Examinee, language: str, is_clean: bool, text: str) -> bool:
    """True where tree-sitter says so of the text, and the examinee the opposite."""
    if is_clean != (not count_faults(text, language)):
        return False
    return examinee.acceptor(language).accepts_whole(text.encode()) != is_clean


def _examine_reach(
    position: Position, examinee: Examinee, vocabulary: Vocabulary, marks: GrammarMarks
) -> None:
    document = position.document
    byte_offset = len(document.text[: position.offset].encode())
    started = time.perf_counter()
    matcher = examinee.matcher(document.text, byte_offset, document.language)
    marks.setup_ms.append((time.perf_counter() - started) * 1000)
    marks.n_positions += 1
    if matcher is None:
        return
    marks.n_at_work += 1
    original = position.original.encode()
    _, end, is_sound = statement_at(original, byte_offset, document.language)
    if not is_sound:
        return
    own = _pieces(original[byte_offset:end].decode(errors="ignore"), vocabulary)[:N_TOKENS]
    n_taken = _take(matcher, own, marks)
    marks.n_statements += 1
    if n_taken < len(own):
        marks.n_statements_refused += 1
        marks.note("reach", document, byte_offset + sum(map(len, own[:n_taken])), own[n_taken])
    elif position.cut and matcher.accept(position.cut.encode()):
        marks.n_ends += 1
        if not matcher.can_stop():
            marks.n_ends_refused += 1
            marks.note("ends", document, byte_offset, position.cut.encode())


def character_start(pieces: Sequence[bytes], number: int) -> int:
    """That token, or the next before it that doesn't begin inside a character."""
    while number and pieces[number] and pieces[number][0] & 0xC0 == 0x80:
        number -= 1
    return number


def _take(matcher: Matcher, pieces: Sequence[bytes], marks: GrammarMarks) -> int:
    """How many of these tokens are taken before one is refused; afterwards the matcher is where it was."""
    n_taken = 0
    for piece in pieces:
        started = time.perf_counter()
        is_allowed = matcher.allows(piece)
        if is_allowed:
            matcher.accept(piece)
        marks.check_us.append((time.perf_counter() - started) * 1e6)
        if not is_allowed:
            break
        n_taken += 1
    matcher.rollback(n_taken)
    return n_taken


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def percentile(values: Sequence[float], percent: float) -> float | None:
    """That percentile, or None of nothing."""
    return float(np.percentile(np.asarray(values), percent)) if values else None
