"""How often the dictionary of masks knows the next one, and what that costs, on files that it has not seen.

Clean files are read token by token, and at every boundary the mask is asked for. The first half of them is for mining:
what is missing is made and kept. In the second half four dictionaries are asked: one that knows nothing (*cold*), one
that has read the language's preset, as in the first process that there ever is (*preset*), one that was opened from the
file that the mined one left, as in the next process (*warm*), and one like that, beside which the masks are made that
a first-order predictor says are asked for next (*foreseen*). All go on learning. A hit is a mask without a walk through
the vocabulary, of which at most 500 tokens were asked about again. At some boundaries the mask is made anew, without a
dictionary, and compared bit by bit.

The predictor is here and not in the server because of what it gives: what followed a place before is mostly known.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import xxhash

from treefill import _kernels
from treefill.engine.api import Vocabulary
from treefill.evaluation.grammar_exam import Clean, clean_files
from treefill.syntax.dictionary import MAX_FILE_BYTES
from treefill.syntax.grammars import load
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import tables
from treefill.syntax.presets import places_in, preset_of, words_of
from treefill.syntax.vocabulary import MaskVocabulary
from treefill.text import Document

MAX_BYTES = 64 << 20
PASS_US = 20_000
"""A forward pass in which a mask may be made, for those that are told as made in time."""
MAX_TRANSITIONS = 4_096
"""That the predictor remembers."""
N_FORESEEN = 2
"""Of the places that followed one, those whose masks are made."""


@dataclass(frozen=True, slots=True)
class DictionarySizes:
    """How much is measured in each language."""

    n_boundaries: int = 20_000
    """To be asked at, and as many to be mined."""
    n_compared: int = 5_000
    """Of them, where the mask is made anew."""
    n_file_boundaries: int = 1_500
    """At most so many of one file."""
    max_bytes: int = MAX_BYTES


@dataclass(slots=True)
class Arm:
    """What came of asking one dictionary."""

    n_asked: int = 0
    n_hits: int = 0
    n_wrong: int = 0
    n_rechecked: list[int] = field(default_factory=list)
    """Tokens that were asked about again, of each hit."""
    hit_us: list[float] = field(default_factory=list)
    """Processor time of this thread."""
    miss_us: list[float] = field(default_factory=list)
    """Of a mask that had to be made."""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def in_time_share(self) -> float:
        """Of the masks that had to be made, those that take less than a forward pass."""
        return sum(us < PASS_US for us in self.miss_us) / max(len(self.miss_us), 1)

    @property
    def hit_share(self) -> float:
        """Of the boundaries."""
        return self.n_hits / self.n_asked if self.n_asked else 0.0


@dataclass(slots=True)
class DictionaryFigures:
    """One language's results."""

    language: str
    n_looked_at: int = 0
    n_files: int = 0
    n_respelt: int = 0
    n_mined: int = 0
    n_compared: int = 0
    file_bytes: int = 0
    arms: dict[str, Arm] = field(
        default_factory=lambda: {name: Arm() for name in ("cold", "preset", "warm", "foreseen")}
    )
    preset: Preset = field(default_factory=lambda: Preset())
    n_foreseen: int = 0
    """Masks that the predictor had made."""
    n_foreseen_used: int = 0
    """Of them the next one that was asked for."""
    foreseen_s: float = 0.0
    """Of the processor, for all of the predictor's work."""

    @property
    def saved_share(self) -> float:
        """Of the misses of the warm one, those that the predictor made hits."""
        warm, foreseen = self.arms["warm"], self.arms["foreseen"]
        return (foreseen.n_hits - warm.n_hits) / max(warm.n_asked - warm.n_hits, 1)


@dataclass(slots=True)
class Preset:
    """What reading a preset took."""

    n_bytes: int = 0
    n_places: int = 0
    n_made: int = 0
    """Masks, or halves of them, that were not there yet."""
    seconds: float = 0.0
    """Of the processor."""


class _Dictionary:
    """One that is asked at the boundaries of files."""

    def __init__(self, language: str, vocabulary: MaskVocabulary, max_bytes: int) -> None:
        self.grammar = tables(load(language_by_id(language).grammars[0]))
        self._spelled = vocabulary.for_grammar(self.grammar)
        self.kernel = _kernels.MaskDictionary(language.encode(), max_bytes, vocabulary.n_words)
        self.words = np.empty(vocabulary.n_words, np.uint32)
        self.anew = np.empty(vocabulary.n_words, np.uint32)

    def place(self, acceptor: _kernels.Acceptor) -> bytes:
        """Where the last mask was looked up."""
        return b"".join(map(self.kernel.hash, acceptor.mask_keys))

    def knows(self, acceptor: _kernels.Acceptor) -> bool:
        outcome = acceptor.fill_mask(self._spelled, self.anew, self.kernel, is_walked=False)
        return outcome != _kernels.MaskOutcome.UNKNOWN

    def read(self, preset: Sequence[bytes], spelled: Sequence[bytes]) -> Preset:
        """Make the masks of a preset."""
        known: set[bytes] = set().union(*words_of(spelled))
        start_s, n_places = time.thread_time(), 0
        for acceptor in places_in(self.grammar, preset, known):
            self.learn(acceptor)
            n_places += 1
        n_made = self.kernel.counts["n_entries"]
        return Preset(sum(map(len, preset)), n_places, n_made, time.thread_time() - start_s)

    def ask(self, acceptor: _kernels.Acceptor, arm: Arm) -> None:
        """Have the mask in `words`, and note how."""
        arm.n_asked += 1
        start = time.thread_time_ns()
        outcome = acceptor.fill_mask(self._spelled, self.words, self.kernel, is_walked=False)
        if outcome == _kernels.MaskOutcome.DECIDED:
            arm.hit_us.append((time.thread_time_ns() - start) / 1000)
            arm.n_rechecked.append(acceptor.mask_counts[5])
            arm.n_hits += 1
            return
        start = time.thread_time_ns()
        self.learn(acceptor)
        arm.miss_us.append((time.thread_time_ns() - start) / 1000)

    def learn(self, acceptor: _kernels.Acceptor) -> None:
        acceptor.fill_mask(self._spelled, self.words, self.kernel)

    def is_right(self, acceptor: _kernels.Acceptor) -> bool:
        acceptor.fill_mask(self._spelled, self.anew)
        return np.array_equal(self.words, self.anew)


class _Predictor:
    """Which texts led on from a place, in a ring, the newest first."""

    def __init__(self, dictionary: _Dictionary) -> None:
        self._dictionary = dictionary
        self._ring: deque[tuple[bytes, bytes]] = deque()
        self._after: dict[bytes, list[bytes]] = {}
        self._awaited: set[bytes] = set()
        self.n_made = 0
        self.n_used = 0
        self.seconds = 0.0

    def at(self, acceptor: _kernels.Acceptor, is_hit: bool) -> bytes:
        """Have made what is likely to come next; the place. Called after the mask was looked up."""
        start_s = time.thread_time()
        place = self._dictionary.place(acceptor)
        self.n_used += is_hit and place in self._awaited
        self._awaited.clear()
        for more in self._after.get(place, ())[:N_FORESEEN]:
            if acceptor.accept(more) and not self._dictionary.knows(acceptor):
                self._dictionary.learn(acceptor)
                self._awaited.add(self._dictionary.place(acceptor))
                self.n_made += 1
            acceptor.rollback(1)
        self.seconds += time.thread_time() - start_s
        return place

    def note(self, place: bytes, more: bytes) -> None:
        """`more` was what came after the place."""
        followers = self._after.setdefault(place, [])
        if more in followers:
            followers.remove(more)
        else:
            self._ring.append((place, more))
        followers.insert(0, more)
        if len(self._ring) > MAX_TRANSITIONS:
            oldest, gone = self._ring.popleft()
            self._after[oldest].remove(gone)


def measure_dictionary(
    language: str,
    documents: Iterable[Document],
    vocabulary: Vocabulary,
    masks: MaskVocabulary,
    sizes: DictionarySizes,
    seed: int = 0,
    tell: Callable[[int], None] = lambda _n: None,
) -> DictionaryFigures:
    """Mine, then ask. `documents` come as they are to be read; `tell` hears how many boundaries are done."""
    figures = DictionaryFigures(language)
    files = clean_files((each for each in documents if not is_for_choosing(each.text)), vocabulary, figures)
    mined = _Dictionary(language, masks, sizes.max_bytes)
    for (acceptor,), _ in _boundaries(files, mined.grammar, 1, sizes.n_boundaries, sizes.n_file_boundaries):
        mined.learn(acceptor)
        figures.n_mined += 1
        tell(figures.n_mined)
    asked = {name: _Dictionary(language, masks, sizes.max_bytes) for name in figures.arms}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "mined.masks")
        file.write_bytes(mined.kernel.dump(MAX_FILE_BYTES))
        figures.file_bytes = file.stat().st_size
        for name in ("warm", "foreseen"):
            asked[name].kernel.open_file(str(file))
    figures.preset = asked["preset"].read(preset_of(language_by_id(language).grammars[0]), masks.spelled)
    predictor = _Predictor(asked["foreseen"])
    random = Random(seed)
    share = sizes.n_compared / sizes.n_boundaries
    places = _boundaries(files, mined.grammar, len(asked), sizes.n_boundaries, sizes.n_file_boundaries)
    for n_asked, (acceptors, piece) in enumerate(places, 1):
        is_compared = random.random() < share
        figures.n_compared += is_compared
        for acceptor, (name, arm) in zip(acceptors, figures.arms.items(), strict=True):
            n_before = arm.n_hits
            asked[name].ask(acceptor, arm)
            arm.n_wrong += is_compared and not asked[name].is_right(acceptor)
            if name == "foreseen":
                predictor.note(predictor.at(acceptor, arm.n_hits > n_before), piece)
        tell(figures.n_mined + n_asked)
    for name, arm in figures.arms.items():
        arm.counts = dict(asked[name].kernel.counts)
    figures.n_foreseen, figures.n_foreseen_used = predictor.n_made, predictor.n_used
    figures.foreseen_s = predictor.seconds
    return figures


def _boundaries(
    files: Iterator[Clean], grammar: _kernels.Grammar, n_acceptors: int, n: int, n_each: int
) -> Iterator[tuple[list[_kernels.Acceptor], bytes]]:
    """Acceptors at each of `n` boundaries of files, fewer where the files do not last, and what comes next there."""
    while n > 0 and (clean := next(files, None)) is not None:
        acceptors = [_kernels.Acceptor(grammar) for _ in range(n_acceptors)]
        for piece in clean.pieces[:n_each]:
            yield acceptors, piece
            n -= 1
            if n == 0 or not all([acceptor.accept(piece) for acceptor in acceptors]):
                break


def is_for_choosing(text: str) -> bool:
    """Is it one of the files that tell what is common (`scripts/presets.py`)? One in four is, and no other use is made
    of it.
    """
    return xxhash.xxh3_64_intdigest(text.encode()) % 4 == 0


def figures_markdown(all_figures: Iterable[DictionaryFigures]) -> str:
    """A table a language, for people."""
    return "\n\n".join(map(_markdown, all_figures))


def figures_json(figures: DictionaryFigures) -> dict[str, object]:
    """The same for programs."""
    return {
        "language": figures.language,
        "files": figures.n_files,
        "mined": figures.n_mined,
        "compared": figures.n_compared,
        "file_bytes": figures.file_bytes,
        "preset": asdict(figures.preset),
        "predictor": {
            "made": figures.n_foreseen,
            "used": figures.n_foreseen_used,
            "misses_saved": round(figures.saved_share, 4),
            "seconds": round(figures.foreseen_s, 3),
        },
        "arms": {name: _arm_json(arm) for name, arm in figures.arms.items()},
    }


def _arm_json(arm: Arm) -> dict[str, object]:
    return {
        "asked": arm.n_asked,
        "hits": arm.n_hits,
        "hit_share": round(arm.hit_share, 4),
        "wrong": arm.n_wrong,
        "hit_us": _percentiles(arm.hit_us),
        "miss_us": _percentiles(arm.miss_us),
        "made_in_time": round(arm.in_time_share, 4),
        "rechecked": _percentiles(arm.n_rechecked),
        "kept": arm.counts,
    }


def _percentiles(values: list[float] | list[int]) -> dict[str, float]:
    if not values:
        return {}
    p50, p99 = np.percentile(values, [50, 99])
    return {"p50": round(float(p50), 1), "p99": round(float(p99), 1), "max": round(float(max(values)), 1)}


def _markdown(figures: DictionaryFigures) -> str:
    rows = [
        f"### {figures.language}: {figures.n_files} files, {figures.n_mined:,} boundaries mined, "
        f"a file of {figures.file_bytes / 1e6:.1f} MB",
        "",
        "| | asked | hits | nearest | memory | file | hit µs p50 / p99 | made µs p50 / p99 | in 20 ms | wrong | kept |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, arm in figures.arms.items():
        counts, hit, miss = arm.counts, _percentiles(arm.hit_us), _percentiles(arm.miss_us)
        rows.append(
            f"| {name} | {arm.n_asked:,} | **{100 * arm.hit_share:.1f} %** "
            f"| {counts['n_nearest']:,} | {counts['n_found']:,} | {counts['n_read']:,} "
            f"| {hit.get('p50', '–')} / {hit.get('p99', '–')} | {miss.get('p50', '–')} / {miss.get('p99', '–')} "
            f"| {100 * arm.in_time_share:.0f} % | {arm.n_wrong} of {figures.n_compared:,} "
            f"| {counts['n_entries']:,} keys, {counts['n_masks']:,} masks, {counts['n_bytes'] / 1e6:.1f} MB |"
        )
    preset, n_misses = figures.preset, figures.arms["warm"].n_asked - figures.arms["warm"].n_hits
    rows += [
        "",
        f"The preset, {preset.n_bytes:,} bytes, took {preset.seconds:.1f} s of the processor: {preset.n_made:,} keys "
        f"at {preset.n_places:,} places. Of {figures.n_foreseen:,} masks that were foreseen "
        f"{figures.n_foreseen_used:,} were asked for next; {100 * figures.saved_share:.1f} % of {n_misses:,} misses "
        f"less, for {figures.foreseen_s:.1f} s.",
        "",
        "Nearest, memory and file count the halves of masks, at each depth of the stack that was asked for.",
    ]
    return "\n".join(rows)
