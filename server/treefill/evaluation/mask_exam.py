"""How right masks are: exams of all tokens at once, beside each token alone and beside tree-sitter.

At random places in clean files of this machine, with all of the file up to the place read:

    tokens     the mask says of each token of the vocabulary what a fresh acceptor says of it when asked about it alone,
               without a trie and without classes of letters
    walk       from there on through the file's own tokens: each is in the mask before it is read, and at the end the
               mask of the acceptor that walked is that of a fresh one
    allowed    tokens that the mask allows, drawn at random: some way to go on makes a whole that tree-sitter parses
    refused    tokens that it refuses: none of the ways that are tried does

What goes on is put together by a search from the file's own rest, closing brackets and pieces of code
(`continuations.py`). The acceptor leads the search, tree-sitter alone judges what it finds. A token for which nothing
is found is undecided: neither right nor wrong, and counted so. For a refused token the ways are those that were found
for other tokens at the same place, the file's own rest from several places on, and the pieces.

The examinee is seen through a protocol, so that a test can send in a simple one.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from treefill.engine.api import Vocabulary
from treefill.errors import BadInput
from treefill.evaluation.continuations import closers, snippets
from treefill.evaluation.faults import is_sound
from treefill.evaluation.grammar_exam import N_EXAMPLES, Clean, character_start, clean_files
from treefill.text import Document

N_WALKED = 32
"""Tokens that are read after a place."""
MAX_JUDGED_BYTES = 12_000
"""Tokens are judged in files up to this size: each judgement parses all of it."""
MAX_DEPTH = 3
"""Pieces that a search puts together."""
BEAM = 12
"""Texts that it goes on with."""
MAX_RESTS = 24
"""Places from which on the file's own rest is tried."""
MAX_TRIED = 60
"""Ways that are tried to go on from a refused token."""
MAX_WRONG = 6
"""Wholes that the acceptor takes and tree-sitter does not, until a search is given up."""


class MaskAcceptor(Protocol):
    """Reads a file from its beginning."""

    @property
    def gave_up(self) -> str:
        """Why everything is allowed from here on; empty while the grammar decides."""
        ...

    def accept(self, more: bytes) -> bool:
        """Read on; True where the whole is still the beginning of a file."""
        ...

    def allows(self, more: bytes) -> bool:
        """True where `more` may come next. Changes nothing."""
        ...

    def accepts_whole(self, rest: bytes) -> bool:
        """True where what was read is a whole file with `rest` after it."""
        ...

    def fill_mask(self) -> NDArray[np.bool_]:
        """The tokens that may come next, by id: `[n_tokens]`."""
        ...


class MaskExaminee(Protocol):
    """Who makes the masks."""

    def acceptor(self, language: str) -> MaskAcceptor:
        """At the beginning of an empty file."""
        ...


@dataclass(frozen=True, slots=True)
class MaskSizes:
    """How much is asked in each language."""

    n_positions: int = 50
    n_judged: int = 500
    """Allowed tokens that are judged by tree-sitter, and as many refused ones."""
    are_refused_judged: bool = True
    """False where the masks leave out what the language forbids: tree-sitter knows nothing of that."""
    n_files: int = 25
    seconds: float = 240.0
    """After so long no further position is begun."""


DEFAULT_MASK_SIZES = MaskSizes()


@dataclass(frozen=True, slots=True)
class MaskMistake:
    """One token that was misjudged."""

    part: str
    path: str
    byte_offset: int
    token: bytes
    how: bytes = b""
    """A continuation that shows it, where there is one."""


@dataclass(slots=True)
class MaskMarks:
    """One language's results."""

    language: str
    n_looked_at: int = 0
    """Files that were parsed to find clean ones."""
    n_files: int = 0
    """Clean files."""
    n_respelt: int = 0
    """Files left out because the vocabulary spells them otherwise."""
    n_positions: int = 0
    n_out_of_reach: int = 0
    """Of them, where the file's own text up to there was refused or not decided: nothing is compared."""
    n_tokens: int = 0
    """Of the vocabulary, that are ever written."""
    n_compared: int = 0
    """Tokens at all positions."""
    n_allowed: int = 0
    """Of them, those that the mask allows."""
    n_over: int = 0
    """Those that the mask allows and the token alone is refused."""
    n_under: int = 0
    """Those that the mask refuses and the token alone is allowed."""
    n_walked: int = 0
    n_own_refused: int = 0
    """Tokens of the file itself that were not in the mask before them."""
    n_warm_different: int = 0
    """Tokens of which the mask after a walk says something else than a fresh one."""
    n_judged_allowed: int = 0
    n_completed: int = 0
    """Allowed tokens from which on a text was found that tree-sitter parses."""
    n_wrong_wholes: int = 0
    """Texts on the way that the acceptor took for whole and tree-sitter did not."""
    n_judged_refused: int = 0
    n_wrongly_refused: int = 0
    """Refused tokens from which on a text was found that tree-sitter parses."""
    n_tried: int = 0
    """Ways that were tried for refused tokens."""
    cold_ms: list[float] = field(default_factory=list)
    """What the first mask of an acceptor took."""
    warm_ms: list[float] = field(default_factory=list)
    """What each mask after another token took."""
    mistakes: list[MaskMistake] = field(default_factory=list)
    """The first few of each part."""

    @property
    def n_undecided(self) -> int:
        """Allowed tokens for which no text was found: not shown to be right, nor wrong."""
        return self.n_judged_allowed - self.n_completed

    def note(self, part: str, at: "_Place", token: bytes, how: bytes = b"") -> None:
        """Keep a mistake, unless there are enough of its part."""
        if sum(mistake.part == part for mistake in self.mistakes) < N_EXAMPLES:
            self.mistakes.append(MaskMistake(part, at.document.path, len(at.prefix), token, how))


def examine_masks(
    language: str,
    documents: Iterable[Document],
    examinee: MaskExaminee,
    vocabulary: Vocabulary,
    sizes: MaskSizes = DEFAULT_MASK_SIZES,
    seed: int = 0,
    told: Callable[[int], None] = lambda n_done: None,
) -> MaskMarks:
    """All parts in one language; `told` is called with the number of positions that are done."""
    marks = MaskMarks(language)
    tokens = [vocabulary.token_bytes(number) for number in range(vocabulary.n_tokens)]
    written = np.array([bool(token) for token in tokens])
    marks.n_tokens = int(written.sum())
    clean = list(islice(clean_files(documents, vocabulary, marks), sizes.n_files))
    random = Random(seed)
    places = list(_places(clean, sizes.n_positions, random))
    n_small = sum(map(_is_small, places))
    deadline_s = time.monotonic() + sizes.seconds
    for number, place in enumerate(places):
        if time.monotonic() > deadline_s:
            break
        mask = _examine_tokens(place, examinee, tokens, written, marks)
        if mask is not None:
            _examine_walk(place, examinee, vocabulary, marks, deadline_s)
            if _is_small(place):
                judging = _Judging(place, examinee, marks, _rests(place))
                n_allowed = _portion(sizes.n_judged - marks.n_judged_allowed, n_small)
                judging.allowed(_drawn(tokens, mask & written, n_allowed, random))
                n_refused = _portion(sizes.n_judged - marks.n_judged_refused, n_small)
                if sizes.are_refused_judged:
                    judging.refused(_drawn(tokens, ~mask & written, n_refused, random))
        n_small -= _is_small(place)
        told(number + 1)
    return marks


@dataclass(frozen=True, slots=True)
class _Place:
    """A place between two tokens of a clean file."""

    document: Document
    prefix: bytes
    own: tuple[bytes, ...]
    """The file's tokens from there on."""


def _places(clean: Sequence[Clean], n: int, random: Random) -> Iterator[_Place]:
    """Files take turns."""
    for number in range(n if clean else 0):
        each = clean[number % len(clean)]
        first = character_start(each.pieces, random.randrange(len(each.pieces)))
        yield _Place(each.document, b"".join(each.pieces[:first]), tuple(each.pieces[first:]))


def _examine_tokens(
    place: _Place,
    examinee: MaskExaminee,
    tokens: Sequence[bytes],
    written: NDArray[np.bool_],
    marks: MaskMarks,
) -> NDArray[np.bool_] | None:
    """The place's mask `[n_tokens]`, compared with each token alone; None where it is out of reach."""
    marks.n_positions += 1
    acceptor = _read(place, examinee)
    if acceptor is None:
        marks.n_out_of_reach += 1
        return None
    started = time.perf_counter()
    mask = acceptor.fill_mask()
    marks.cold_ms.append((time.perf_counter() - started) * 1000)
    alone = _read(place, examinee)
    assert alone is not None
    allows = alone.allows
    expected = np.fromiter((bool(token) and allows(token) for token in tokens), np.bool_, len(tokens))
    over, under = np.flatnonzero(mask & ~expected), np.flatnonzero(expected & ~mask)
    marks.n_compared += marks.n_tokens
    marks.n_allowed += int((mask & written).sum())
    for part, ids in (("over", over), ("under", under)):
        for number in ids.tolist():
            marks.note(part, place, tokens[number])
    marks.n_over += len(over)
    marks.n_under += len(under)
    return mask


def _examine_walk(
    place: _Place, examinee: MaskExaminee, vocabulary: Vocabulary, marks: MaskMarks, deadline_s: float
) -> None:
    acceptor = _read(place, examinee)
    assert acceptor is not None
    mask = acceptor.fill_mask()
    ids = vocabulary.encode(b"".join(place.own).decode(errors="replace"))[:N_WALKED]
    here = place
    for number in ids:
        if time.monotonic() > deadline_s:
            break
        token = vocabulary.token_bytes(number)
        if not (mask[number] and acceptor.accept(token)):
            marks.n_own_refused += 1
            marks.note("own", here, token)
            return
        here = _Place(place.document, here.prefix + token, ())
        started = time.perf_counter()
        mask = acceptor.fill_mask()
        marks.warm_ms.append((time.perf_counter() - started) * 1000)
        marks.n_walked += 1
    fresh = _read(here, examinee)
    if not ids or fresh is None:
        return
    different = np.flatnonzero(mask != fresh.fill_mask())
    marks.n_warm_different += len(different)
    for number in different[:N_EXAMPLES]:
        marks.note("warm", here, vocabulary.token_bytes(int(number)))


def _drawn(tokens: Sequence[bytes], among: NDArray[np.bool_], n: int, random: Random) -> list[bytes]:
    """Tokens drawn without repetition. A NUL character is in none: a text that has one is left unparsed."""
    ids = np.flatnonzero(among).tolist()
    drawn = random.sample(ids, min(len(ids), n + 4))
    return [tokens[number] for number in drawn if b"\0" not in tokens[number]][:n]


def _rests(place: _Place) -> list[bytes]:
    """The file's own rest from here, from each of its next tokens and lines on, and ends of what is open."""
    own = b"".join(place.own)
    rests = [own]
    for piece in place.own[: MAX_RESTS // 2]:
        rests.append(rests[-1][len(piece) :])
    at = 0
    for _ in range(MAX_RESTS // 2):
        at = own.find(b"\n", at) + 1
        if not at:
            break
        rests += [own[at - 1 :]]
    return list(dict.fromkeys((*rests, *closers(place.prefix))))


@dataclass(slots=True)
class _Judging:
    """What tree-sitter says of tokens at one place."""

    place: _Place
    examinee: MaskExaminee
    marks: MaskMarks
    rests: list[bytes]
    """What may come last, from the file itself."""
    found: dict[bytes, None] = field(default_factory=dict)
    """Ways to go on that made a whole."""

    def allowed(self, tokens: Sequence[bytes]) -> None:
        """Tokens that the mask allows: look for a whole that begins with each."""
        for token in tokens:
            self.marks.n_judged_allowed += 1
            acceptor = _read(self.place, self.examinee)
            assert acceptor is not None
            # One that is refused alone is counted elsewhere, and undecided here.
            way = self._complete(token, acceptor) if acceptor.accept(token) else None
            if way is None:
                self.marks.note("undecided", self.place, token)
            else:
                self.marks.n_completed += 1
                self.found[way] = None

    def refused(self, tokens: Sequence[bytes]) -> None:
        """Tokens that it refuses: no way to go on makes a whole."""
        pieces = snippets(self.place.document.language)
        ways = [*self.found, *self.rests]
        tried = dict.fromkeys((*ways, *(piece + end for end in ways[:2] for piece in pieces)))
        for token in tokens:
            self.marks.n_judged_refused += 1
            for way in islice(tried, MAX_TRIED):
                self.marks.n_tried += 1
                if _is_whole(self.place, token + way):
                    self.marks.n_wrongly_refused += 1
                    self.marks.note("wrongly refused", self.place, token, way)
                    break

    def _complete(self, token: bytes, acceptor: MaskAcceptor) -> bytes | None:
        """What may follow the token, so that tree-sitter finds no fault in the whole; None where nothing was found.

        A beam search over pieces, as far as the acceptor, which has read the token, allows them.
        """
        pieces = snippets(self.place.document.language)
        rests = list(dict.fromkeys((*islice(reversed(self.found), 8), *self.rests)))
        n_wrong = 0
        texts = [b""]
        for depth in range(MAX_DEPTH + 1):
            for way in (text + rest for text in texts for rest in rests):
                if not acceptor.accepts_whole(way):
                    continue
                if _is_whole(self.place, token + way):
                    return way
                n_wrong += 1
                self.marks.n_wrong_wholes += 1
                self.marks.note("wrong wholes", self.place, token, way)
                if n_wrong == MAX_WRONG:
                    return None
            if depth < MAX_DEPTH:
                beam = _spread(texts, acceptor, self.rests)
                longer = dict.fromkeys(text + piece for text in beam for piece in pieces if piece)
                texts = [text for text in longer if acceptor.allows(text)]
        return None


def _spread(texts: Sequence[bytes], acceptor: MaskAcceptor, rests: Sequence[bytes]) -> list[bytes]:
    """A few of the texts: half of them those after which most rests may begin, the others from all along the ranking.

    Inside a string everything may come, so the first alone would all be in one.
    """
    beginnings = [rest[:n] for rest in (*rests[:6], *rests[-4:]) for n in (1, 4, 16) if rest]
    ranked = sorted(texts, key=lambda text: -sum(acceptor.allows(text + each) for each in beginnings))
    n_first = BEAM // 2
    others = ranked[n_first :: max((len(ranked) - n_first) // n_first, 1)]
    return [*ranked[:n_first], *others[:n_first]]


def _portion(n: int, n_places: int) -> int:
    """What one of these places gets of `n`; where earlier ones had less than that, the later ones get more."""
    return -(-n // max(n_places, 1))


def _is_small(place: _Place) -> bool:
    return len(place.document.text.encode()) <= MAX_JUDGED_BYTES


def _is_whole(place: _Place, rest: bytes) -> bool:
    try:
        return is_sound(place.prefix + rest, place.document.language)
    except BadInput:  # a text that must be left unparsed
        return False


def _read(place: _Place, examinee: MaskExaminee) -> MaskAcceptor | None:
    """An acceptor that has read the file up to there; None where it does not decide."""
    acceptor = examinee.acceptor(place.document.language)
    return acceptor if acceptor.accept(place.prefix) and not acceptor.gave_up else None
