"""Choose the presets of masks, `grammars/*/presets/*.txt`: `python scripts/presets.py python cpp`.

Files of this machine that nobody here wrote tell which places are common; only one in four is read for that, and the
rest is left for `treefill bench dictionary` to measure on. What is chosen comes from this repository alone: statements
and members of its own sources, of the corpora of the grammars, and of `scripts/preset_texts/`. Piece by piece that one
is taken whose places, as far as nothing taken before has them, are asked for most often for each of its bytes.

It needs a model's tokenizer from the store (`TREEFILL_CACHE_DIR`), some hundred megabytes, and a minute or two a
language. What is written is to be looked at like code.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import tree_sitter
from treefill import _kernels
from treefill.benchmarks.dictionary import is_for_choosing
from treefill.commands.options import open_app
from treefill.engine.tokenizer import TokenizerVocabulary
from treefill.evaluation.faults import is_sound
from treefill.evaluation.grammar_exam import clean_files
from treefill.evaluation.real_files import gather
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import Language, language_by_id
from treefill.syntax.matcher import tables
from treefill.syntax.presets import SEPARATOR, pieces_of, words_of
from treefill.syntax.vocabulary import MaskVocabulary

ROOT = Path(__file__).resolve().parents[1]
TEXTS = ROOT / "scripts" / "preset_texts"
"""Code that was written for this, a file a language, in parts like a preset."""
LANGUAGES = ("python", "c", "cpp", "json", "sql", "javascript", "typescript")
_CPP = ("", "isa", "logits", "model", "syntax", "syntax/scanners", "tests", "tests/syntax")
SOURCES = {
    "python": ("server/**/*.py", "scripts/*.py", "bench/*.py", "tests/syntax/*.py", "tests/core/*.py"),
    "c": ("bench/mask_texts/*.c",),
    "cpp": (*(f"kernels/{folder}/*" for folder in _CPP), "bench/mask_texts/*.cpp"),
    "json": ("extension/package.json", "bench/mask_texts/*.json"),
    "sql": ("examples/*.sql", "bench/mask_texts/*.sql"),
    "javascript": ("bench/mask_texts/*.js", "extension/*.mjs", "tests/e2e/**/*.js"),
    "typescript": ("extension/src/**/*.ts", "extension/test/**/*.ts"),
}
"""Language → where code of our own is, beside `TEXTS`."""
BEFORE = {
    "python": b"import os\n",
    "c": b"int a;\n",
    "cpp": b"int a;\n",
    "sql": b"SELECT 1;\n",
    "javascript": b"let a = 1;\n",
    "typescript": b"let a = 1;\n",
}
"""What a piece is tried behind; a language that is not here has one value a text."""
ENDINGS = {"cpp": (".cc", ".cpp", ".h")}
N_BOUNDARIES = 40_000
"""Of other people's files, that tell what is common."""
N_FILES = 50
"""At least so many, of which that many places each are counted, from some place on,"""
SHARE_FIRST = 0.1
"""but in this share of them from the first one on: many files begin alike."""
MAX_BYTES = 14_000
"""Of a preset: of one that is longer, masks would take too long to make, and too much memory."""
N_STARTS = 3
"""Statements of a file that its beginning has at most."""
MAX_UNIT_BYTES = 500
"""A longer piece is taken apart into its members, each within what is around it."""
MIN_COUNT = 2
"""What occurred less often is no custom."""
N_SHOWN = 70
"""Bytes before a place that is shown."""
DICTIONARY_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of code that can be read by itself."""

    text: bytes
    keys: frozenset[bytes]
    """Of the masks in it, as far as they occur in other people's files."""
    is_start: bool = False
    """Is it the beginning of a text?"""


class Common:
    """What masks are asked for in other people's files, and how often."""

    def __init__(self, loaded: LoadedGrammar, masks: MaskVocabulary) -> None:
        self.grammar = tables(loaded)
        self._spelled = masks.for_grammar(self.grammar)
        self._kernel = _kernels.MaskDictionary(b"presets", DICTIONARY_BYTES, masks.n_words)
        self._words = np.empty(masks.n_words, np.uint32)
        self._known: set[bytes] = set().union(*words_of(masks.spelled))
        self.counts: Counter[bytes] = Counter()
        self.places: Counter[tuple[bytes, ...]] = Counter()
        self.examples: dict[tuple[bytes, ...], bytes] = {}

    def count(self, pieces: Sequence[bytes], begin: int, n: int) -> None:
        """`n` places of one more file."""
        acceptor = _kernels.Acceptor(self.grammar)
        acceptor.accept(b"".join(pieces[:begin]))
        for piece in pieces[begin : begin + n]:
            acceptor.fill_mask(self._spelled, self._words, self._kernel)
            keys = tuple(acceptor.mask_keys)
            self.counts.update(keys)
            self.places[keys] += 1
            self.examples.setdefault(keys, acceptor.text[-N_SHOWN:])
            if not acceptor.accept(piece):
                break

    def keys_in(self, text: bytes, before: bytes = b"") -> frozenset[bytes] | None:
        """Those of a piece of code that occur elsewhere; None where the grammar does not take it behind `before`."""
        acceptor = _kernels.Acceptor(self.grammar)
        acceptor.accept(before)
        found: set[bytes] = set()
        for piece in pieces_of(text, self._known):
            acceptor.fill_mask(self._spelled, self._words, self._kernel, is_walked=False)
            found.update(acceptor.mask_keys)
            if not acceptor.accept(piece):
                return None
        return frozenset(found) if acceptor.accepts_whole(b"") else None

    def missing(self, keys: set[bytes], n: int) -> Iterator[tuple[int, bytes]]:
        """How often the commonest places were counted that those do not have, and what stands before one such place."""
        there = ((count, place) for place, count in self.places.most_common() if not keys.issuperset(place))
        for _, (count, place) in zip(range(n), there, strict=False):
            yield count, self.examples[place]

    def share_of(self, keys: set[bytes]) -> float:
        """Of the places that were counted: where both halves of the mask are among those."""
        n_there = sum(n for place, n in self.places.items() if keys.issuperset(place))
        return n_there / max(self.places.total(), 1)


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("languages", nargs="*", default=LANGUAGES, metavar="LANGUAGE")
    parser.add_argument("--boundaries", type=int, default=N_BOUNDARIES)
    parser.add_argument("--max-bytes", type=int, default=MAX_BYTES)
    parser.add_argument("--missing", type=int, default=0, help="show so many places that our own code lacks")
    parser.add_argument("--from", dest="folders", type=Path, action="append", default=[], metavar="FOLDER")
    asked = parser.parse_args()
    stored = open_app().store.open(None)
    vocabulary = TokenizerVocabulary(stored.tokenizer_path, stored.end_ids, stored.config["vocab_size"])
    masks = MaskVocabulary(vocabulary, stored.config["vocab_size"])
    for language in asked.languages:
        loaded = load(language_by_id(language).grammars[0])
        common = Common(loaded, masks)
        count_places(common, language, vocabulary, asked.boundaries, asked.folders)
        units = sorted(set(units_of(language, loaded, common)), key=lambda unit: unit.text)
        parts = joined(choose(units, common.counts, asked.max_bytes), language, common)
        file = ROOT / "grammars" / language_by_id(language).folder / "presets" / f"{loaded.name}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(SEPARATOR.join(part.decode() for part in parts), encoding="utf-8")
        of_all = set().union(*(unit.keys for unit in units))
        every = common.share_of(of_all)
        chosen = common.share_of(set().union(*(common.keys_in(part) or () for part in parts)))
        say(
            f"{language}: {file.stat().st_size:,} bytes in {len(parts)} parts have {100 * chosen:.1f} % of "
            f"{common.places.total():,} places; all {len(units):,} pieces have {100 * every:.1f} %"
        )
        for count, before in common.missing(of_all, asked.missing):
            say(f"{count:6} x after {before.decode(errors='replace')!r}")


def count_places(
    common: Common, language: str, vocabulary: TokenizerVocabulary, n: int, folders: list[Path]
) -> None:
    """Read files of this machine until `n` places were counted."""

    @dataclass(slots=True)
    class Marks:
        n_looked_at: int = 0
        n_files: int = 0
        n_respelt: int = 0

    documents = (each for each in gather(language, folders).documents() if is_for_choosing(each.text))
    start_s, random = time.process_time(), Random(0)
    for clean in clean_files(documents, vocabulary, Marks()):
        begin = random.randrange(len(clean.pieces))
        common.count(clean.pieces, begin if random.random() > SHARE_FIRST else 0, n // N_FILES)
        if common.places.total() >= n:
            break
    say(f"{language}: {common.places.total():,} places in {time.process_time() - start_s:.0f} s")


def units_of(language: str, loaded: LoadedGrammar, common: Common) -> Iterator[Unit]:
    """Pieces of our own code that the grammar takes by themselves."""
    parser = tree_sitter.Parser(loaded.language)
    before = BEFORE.get(language, b"")
    for written in dict.fromkeys(texts_of(language, loaded.name)):
        text = written.decode().encode("ascii", "replace")
        root = parser.parse(text).root_node
        starts = dict.fromkeys(text[: node.end_byte] + b"\n" for node in root.children[:N_STARTS])
        for piece in starts if before else ():
            if len(piece) <= 2 * MAX_UNIT_BYTES and (keys := keys_of(piece, b"", language, common)):
                yield Unit(piece, keys, is_start=True)
        for piece in dict.fromkeys(pieces_below(root, text)):
            if keys := keys_of(piece, before, language, common):
                yield Unit(piece, keys)


def keys_of(piece: bytes, before: bytes, language: str, common: Common) -> frozenset[bytes]:
    """What a piece has that is common; nothing where it is no code by itself, or not for a preset."""
    if SEPARATOR.strip().encode() in piece or not is_sound(piece, language):
        return frozenset()
    return common.keys_in(piece, before) or frozenset()


def texts_of(language: str, grammar: str) -> Iterator[bytes]:
    """Our own code: files, and what the corpus accepts."""
    for pattern in SOURCES[language]:
        for path in sorted(ROOT.glob(pattern)):
            if path.suffix in ENDINGS.get(language, (path.suffix,)) and "node_modules" not in path.parts:
                yield path.read_bytes()
    whole = (TEXTS / f"{language}.txt").read_text(encoding="utf-8")
    written = [part.encode() for part in whole.split(SEPARATOR)]
    yield from written
    yield from (more for text in written for more in with_comments(text, language_by_id(language)))
    for path in sorted(ROOT.glob(f"grammars/*/corpus/{grammar}.toml")):
        for case in tomllib.loads(path.read_text(encoding="utf-8")).get("accept", ()):
            yield case["text"].encode()


def with_comments(text: bytes, language: Language) -> Iterator[bytes]:
    """The text with a comment before each of its lines, of each kind that there is."""
    kinds = [(begin, "") for begin in language.line_comment]
    kinds += [(f"{begin}\n *", "\n */") for begin, end in language.block_comment if end == "*/"]
    for begin, end in kinds:
        lines = text.decode().splitlines(keepends=True)
        blanks = (line[: len(line) - len(line.lstrip(" \t"))] for line in lines)
        noted = (f"{blank}{begin} Why it is so.{end}\n" for blank in blanks)
        yield "".join(each for pair in zip(noted, lines, strict=True) for each in pair).encode()


def pieces_below(root: tree_sitter.Node, text: bytes) -> Iterator[bytes]:
    """A file's statements, each with the blank lines before it; long ones member by member."""
    yield text
    end = 0
    for node in root.children:
        gap = text[end : node.start_byte]
        end = node.end_byte
        for piece in parted(node, text):
            yield (gap if gap.isspace() else b"") + piece.rstrip() + b"\n"


def parted(node: tree_sitter.Node, text: bytes) -> Iterator[bytes]:
    """The node's text, and where it is long each of its members alone within what is around them."""
    yield text[node.start_byte : node.end_byte]
    inner = node
    while inner.end_byte - inner.start_byte > MAX_UNIT_BYTES:
        members = inner.named_children
        largest = max(members, key=lambda each: each.end_byte - each.start_byte, default=None)
        if largest is None:
            return
        is_most = 10 * (largest.end_byte - largest.start_byte) > 7 * (inner.end_byte - inner.start_byte)
        if not is_most:
            before, after = (
                text[node.start_byte : members[0].start_byte],
                text[members[-1].end_byte : node.end_byte],
            )
            for one, other in pairwise(members):
                if other.end_byte - one.start_byte <= MAX_UNIT_BYTES:
                    yield before + text[one.start_byte : other.end_byte] + after
            for member in members:
                for piece in parted(member, text):
                    yield before + piece + after
            return
        inner = largest


def choose(units: list[Unit], counts: Counter[bytes], max_bytes: int) -> list[Unit]:
    """The piece that gives most for its bytes, again and again, until there are so many bytes."""
    covered: set[bytes] = set()
    chosen: list[Unit] = []

    def worth(unit: Unit) -> float:
        new = (counts[key] for key in unit.keys - covered)
        return sum(count for count in new if count >= MIN_COUNT) / len(unit.text)

    waiting = [(-worth(unit), number) for number, unit in enumerate(units)]
    heapq.heapify(waiting)
    n_bytes = 0
    while waiting:
        promised, number = heapq.heappop(waiting)
        now = worth(units[number])
        n_more = len(units[number].text) + len(SEPARATOR)
        if now == 0 or n_bytes + n_more > max_bytes:
            continue
        if now < -promised:  # it has become worth less, and others may be worth more
            heapq.heappush(waiting, (-now, number))
            continue
        chosen.append(units[number])
        covered |= units[number].keys
        n_bytes += n_more
    return chosen


def joined(chosen: list[Unit], language: str, common: Common) -> list[bytes]:
    """The pieces as few texts, each of which the grammar takes as a whole."""
    parts: list[bytes] = []
    acceptor = _kernels.Acceptor(common.grammar)
    for unit in sorted(chosen, key=lambda unit: not unit.is_start):
        longer = parts[-1] + unit.text if parts and language in BEFORE and not unit.is_start else b""
        if (
            longer
            and is_sound(longer, language)
            and acceptor.accept(unit.text)
            and acceptor.accepts_whole(b"")
        ):
            parts[-1] = longer
        else:
            parts.append(unit.text)
            acceptor = _kernels.Acceptor(common.grammar)
            acceptor.accept(unit.text)
    return parts


def say(line: str) -> None:
    """Progress, at once also in a log."""
    print(f"presets: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
