"""How often the dictionary of masks knows the next one, and what that costs, on files that it has not seen.

Clean files are read token by token, and at every boundary the mask is asked for. The first half of them is for mining:
what is missing is made and kept. In the second half two dictionaries are asked: one that knows nothing (*cold*), and
one that was opened from the file that the mined one left, as in the next process (*warm*). Both go on learning. A hit
is a mask without a walk through the vocabulary, of which at most 500 tokens were asked about again. At some boundaries
the mask is made anew, without a dictionary, and compared bit by bit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from treefill import _kernels
from treefill.engine.api import Vocabulary
from treefill.evaluation.grammar_exam import Clean, clean_files
from treefill.syntax.dictionary import MAX_FILE_BYTES
from treefill.syntax.grammars import load
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import tables
from treefill.syntax.vocabulary import MaskVocabulary
from treefill.text import Document

MAX_BYTES = 64 << 20


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
    cold: Arm = field(default_factory=Arm)
    warm: Arm = field(default_factory=Arm)


class _Dictionary:
    """One that is asked at the boundaries of files."""

    def __init__(self, language: str, vocabulary: MaskVocabulary, max_bytes: int) -> None:
        self.grammar = tables(load(language_by_id(language).grammars[0]))
        self._spelled = vocabulary.for_grammar(self.grammar)
        self.kernel = _kernels.MaskDictionary(language.encode(), max_bytes, vocabulary.n_words)
        self.words = np.empty(vocabulary.n_words, np.uint32)
        self.anew = np.empty(vocabulary.n_words, np.uint32)

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
    files = clean_files(documents, vocabulary, figures)
    mined = _Dictionary(language, masks, sizes.max_bytes)
    for (acceptor,) in _boundaries(files, mined.grammar, 1, sizes.n_boundaries, sizes.n_file_boundaries):
        mined.learn(acceptor)
        figures.n_mined += 1
        tell(figures.n_mined)
    cold = _Dictionary(language, masks, sizes.max_bytes)
    warm = _Dictionary(language, masks, sizes.max_bytes)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "mined.masks")
        file.write_bytes(mined.kernel.dump(MAX_FILE_BYTES))
        figures.file_bytes = file.stat().st_size
        warm.kernel.open_file(str(file))
    random = Random(seed)
    share = sizes.n_compared / sizes.n_boundaries
    arms = ((cold, figures.cold), (warm, figures.warm))
    for acceptors in _boundaries(files, warm.grammar, len(arms), sizes.n_boundaries, sizes.n_file_boundaries):
        is_compared = random.random() < share
        figures.n_compared += is_compared
        for acceptor, (dictionary, arm) in zip(acceptors, arms, strict=True):
            dictionary.ask(acceptor, arm)
            arm.n_wrong += is_compared and not dictionary.is_right(acceptor)
        tell(figures.n_mined + figures.warm.n_asked)
    figures.cold.counts, figures.warm.counts = dict(cold.kernel.counts), dict(warm.kernel.counts)
    return figures


def _boundaries(
    files: Iterator[Clean], grammar: _kernels.Grammar, n_acceptors: int, n: int, n_each: int
) -> Iterator[list[_kernels.Acceptor]]:
    """Acceptors at each of `n` boundaries of files, fewer where the files do not last."""
    while n > 0 and (clean := next(files, None)) is not None:
        acceptors = [_kernels.Acceptor(grammar) for _ in range(n_acceptors)]
        for piece in clean.pieces[:n_each]:
            yield acceptors
            n -= 1
            if n == 0 or not all([acceptor.accept(piece) for acceptor in acceptors]):
                break


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
        **{name: _arm_json(arm) for name, arm in (("cold", figures.cold), ("warm", figures.warm))},
    }


def _arm_json(arm: Arm) -> dict[str, object]:
    return {
        "asked": arm.n_asked,
        "hits": arm.n_hits,
        "hit_share": round(arm.hit_share, 4),
        "wrong": arm.n_wrong,
        "hit_us": _percentiles(arm.hit_us),
        "miss_us": _percentiles(arm.miss_us),
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
        "| | asked | hits | nearest | memory | file | hit µs p50 / p99 | made µs p50 / p99 | wrong | kept |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, arm in (("cold", figures.cold), ("warm", figures.warm)):
        counts, hit, miss = arm.counts, _percentiles(arm.hit_us), _percentiles(arm.miss_us)
        rows.append(
            f"| {name} | {arm.n_asked:,} | **{100 * arm.hit_share:.1f} %** "
            f"| {counts['n_nearest']:,} | {counts['n_found']:,} | {counts['n_read']:,} "
            f"| {hit.get('p50', '–')} / {hit.get('p99', '–')} | {miss.get('p50', '–')} / {miss.get('p99', '–')} "
            f"| {arm.n_wrong} of {figures.n_compared:,} "
            f"| {counts['n_entries']:,} keys, {counts['n_masks']:,} masks, {counts['n_bytes'] / 1e6:.1f} MB |"
        )
    rows += [
        "",
        "Nearest, memory and file count the halves of masks, at each depth of the stack that was asked for.",
    ]
    return "\n".join(rows)
