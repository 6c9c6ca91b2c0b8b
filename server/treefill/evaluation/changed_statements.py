"""A part of the acceptor's exam: does it judge a statement from the skeleton as it does from the whole file?

A statement of a clean file is changed behind some place in it, as a slip would. The acceptor reads the file from its
beginning to the end of the changed statement; the matcher begins at that place, on what is made of the text before it
(`syntax/skeleton.py`), and reads the same bytes. Then both are asked whether the rest of the file may follow. Both have
the language's policies, so the skeleton is all that is different.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

from treefill.engine.api import Vocabulary
from treefill.evaluation.examinee import Examinee, Matcher, Notes
from treefill.evaluation.faults import statement_at
from treefill.evaluation.mutants import mutate, shrink
from treefill.text import Document

MAX_STATEMENT_BYTES = 1_000
"""A longer one is a scope rather than a statement."""
N_TRIES = 20
"""Places that are drawn in a file until one is in a statement that is short enough."""
N_SHRINKING = 60
"""Shorter texts that are tried for each mistake that is told of."""


@dataclass(slots=True)
class ChangedStatements:
    """How the two verdicts on changed statements went together."""

    n: int = 0
    """Changed statements."""
    n_at_work: int = 0
    """Those at which the matcher was at work and nobody gave up; the following are of these."""
    n_file_refuses: int = 0
    """Refused by the acceptor that has read the whole file before it."""
    n_skeleton_refuses: int = 0
    n_file_alone_refuses: int = 0
    n_skeleton_alone_refuses: int = 0
    n_file_whole: int = 0
    """Refused by nobody, and the rest of the file may follow."""
    n_may_stop: int = 0
    """Refused by nobody, and the matcher says that a suggestion may end there."""
    n_file_alone_whole: int = 0
    n_may_stop_alone: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """A place in a statement of a file, and what stands there instead of the rest of the statement."""

    document: Document
    """Without the rest of the statement."""
    offset: int
    """In code points."""
    text: str

    @property
    def before(self) -> bytes:
        """The file up to the place."""
        return self.document.text[: self.offset].encode()

    @property
    def after(self) -> bytes:
        """The file after the statement."""
        return self.document.text[self.offset :].encode()


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one of the two says of a change."""

    is_begun: bool
    """May the changed statement stand there?"""
    is_whole: bool = False
    """And the rest of the file after it?"""
    gave_up: str = ""


def examine_changed_statements(
    documents: Sequence[Document],
    n: int,
    examinee: Examinee,
    vocabulary: Vocabulary,
    random: Random,
    notes: Notes,
) -> ChangedStatements:
    """Both verdicts on `n` changed statements of clean files; where they differ, `notes` keeps it."""
    marks = ChangedStatements()
    for change in _changes(documents, n, random):
        marks.n += 1
        matcher = _matcher(change, examinee)
        if matcher is None:
            continue
        file = opinion_of_file(change, examinee)
        skeleton = opinion_of(matcher, change.text, vocabulary)
        if file.gave_up or skeleton.gave_up:
            continue
        _count(file, skeleton, marks)
        for part, differs in DIFFERENCES.items():
            if differs(file, skeleton) and notes.has_room(part):
                _note_difference(part, change, examinee, vocabulary, notes)
    return marks


DIFFERENCES: dict[str, Callable[[Opinion, Opinion], bool]] = {
    "refused by the file alone": lambda file, skeleton: skeleton.is_begun and not file.is_begun,
    "refused from the skeleton alone": lambda file, skeleton: file.is_begun and not skeleton.is_begun,
    "may end in the file alone": lambda file, skeleton: (
        file.is_begun and skeleton.is_begun and file.is_whole and not skeleton.is_whole
    ),
    "may end from the skeleton alone": lambda file, skeleton: (
        file.is_begun and skeleton.is_begun and skeleton.is_whole and not file.is_whole
    ),
}
"""How they may differ, as it is told."""


def opinion_of_file(change: Change, examinee: Examinee) -> Opinion:
    """By the acceptor that reads the file from its beginning."""
    acceptor = examinee.acceptor(change.document.language, with_policies=True)
    is_begun = acceptor.accept(change.before + change.text.encode())
    is_whole = is_begun and acceptor.accepts_whole(change.after)
    return Opinion(is_begun, is_whole, acceptor.gave_up)


def opinion_of(matcher: Matcher, text: str, vocabulary: Vocabulary) -> Opinion:
    """By the matcher at the change's place, a token at a time; afterwards it is where it was."""
    pieces = [vocabulary.token_bytes(token) for token in vocabulary.encode(text)]
    if b"".join(pieces) != text.encode():
        pieces = [character.encode() for character in text]
    n_taken = next((n for n, piece in enumerate(pieces) if not matcher.accept(piece)), len(pieces))
    is_begun = n_taken == len(pieces)
    found = Opinion(is_begun, is_begun and matcher.can_stop(), matcher.gave_up)
    matcher.rollback(n_taken)
    return found


def _changes(documents: Sequence[Document], n: int, random: Random) -> Iterator[Change]:
    """The files take turns; one whose turn brings none is passed over, so there may be fewer."""
    turns = (documents[number % len(documents)] for number in range(2 * n if documents else 0))
    found = (change for document in turns if (change := _change(document, random)) is not None)
    return islice(found, n)


def _change(document: Document, random: Random) -> Change | None:
    """A statement changed behind its beginning, or behind a place in it; None where all that were drawn are long."""
    data = document.text.encode()
    for _ in range(N_TRIES):
        start, end, is_sound = statement_at(data, random.randrange(len(data)), document.language)
        if is_sound and 0 < end - start <= MAX_STATEMENT_BYTES:
            first, last = len(data[:start].decode()), len(data[:end].decode())
            offset = first if random.random() < 0.5 else random.randrange(first, last)
            rest = Document(document.path, document.text[:offset] + document.text[last:], document.language)
            return Change(rest, offset, mutate(document.text[offset:last], random))
    return None


def _matcher(change: Change, examinee: Examinee) -> Matcher | None:
    return examinee.matcher(change.document.text, len(change.before), change.document.language)


def _count(file: Opinion, skeleton: Opinion, marks: ChangedStatements) -> None:
    marks.n_at_work += 1
    marks.n_file_refuses += not file.is_begun
    marks.n_skeleton_refuses += not skeleton.is_begun
    if file.is_begun and skeleton.is_begun:
        marks.n_file_whole += file.is_whole
        marks.n_may_stop += skeleton.is_whole
    of_file, of_skeleton, whole, stop = (differs(file, skeleton) for differs in DIFFERENCES.values())
    marks.n_file_alone_refuses += of_file
    marks.n_skeleton_alone_refuses += of_skeleton
    marks.n_file_alone_whole += whole
    marks.n_may_stop_alone += stop


def _note_difference(
    part: str, change: Change, examinee: Examinee, vocabulary: Vocabulary, notes: Notes
) -> None:
    """Keep the shortest text in the change's place on which they differ in the same way."""

    def is_still_judged_so(text: str) -> bool:
        shorter = Change(change.document, change.offset, text)
        matcher = _matcher(shorter, examinee)
        return matcher is not None and DIFFERENCES[part](
            opinion_of_file(shorter, examinee), opinion_of(matcher, text, vocabulary)
        )

    shortest = shrink(change.text, is_still_judged_so, N_SHRINKING)
    notes.note(part, change.document, len(change.before), shortest.encode())
