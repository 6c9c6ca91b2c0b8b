"""How long the grammar's last word takes, and how seldom it is wrong about code that is right.

Real files of FOLDER: a piece is taken out, and its own text put back as if a model had written it. The answer is
checked first: what was there before belongs there, so what is cut or dropped of it is a mistake, but for a file that
its grammar does not read. Then times: of a document seen for the first time, and of the next keystroke in it. Look at
the load before you believe them.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from treefill.completion import CompletionRequest
from treefill.completion.last_word import last_word
from treefill.completion.postprocess import Item
from treefill.completion.situation import look_around
from treefill.syntax import baseline
from treefill.syntax.languages import language_by_id, language_by_name
from treefill.syntax.parse import RecentTrees
from treefill.text import Document

FILE_CHARS = range(500, 30_000)


@dataclass(frozen=True)
class Result:
    """Of one language."""

    language: str
    n: int
    n_wrong: int
    """Cut or dropped, though it was right."""
    first_p50_ms: float
    first_p95_ms: float
    next_p50_ms: float
    next_p95_ms: float
    load: float


def main() -> None:
    """Check, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="files to take pieces out of")
    parser.add_argument("--pieces", type=int, default=300, help="so many a language")
    options = parser.parse_args()
    by_language: dict[str, list[Path]] = {}
    for path in sorted(options.folder.rglob("*.*")):
        language = language_by_name(path)
        if language is not None and language.grammars and path.is_file():
            by_language.setdefault(language.id, []).append(path)
    for language_id, paths in by_language.items():
        holes = list(holes_of(paths, language_id, options.pieces))
        if holes:
            print(json.dumps(asdict(measured(language_id, holes))))


def holes_of(paths: list[Path], language_id: str, n_most: int) -> Iterator[tuple[Document, int, str]]:
    """Documents with a piece taken out, where it was, and the piece."""
    rng = random.Random(7)
    for _ in range(n_most):
        path = rng.choice(paths)
        try:
            text = path.read_text("utf-8")
        except (OSError, ValueError):
            continue
        if len(text) not in FILE_CHARS:
            continue
        start = rng.randrange(len(text))
        end = start
        for _ in range(rng.choice([1, 1, 3, 6])):
            end = (text.find("\n", end + 1) + len(text) + 1) % (len(text) + 1)
        piece = text[start:end].rstrip()
        if piece.strip():
            yield Document(str(path), text[:start] + text[start + len(piece) :], language_id), start, piece


def measured(language_id: str, holes: list[tuple[Document, int, str]]) -> Result:
    """Put every piece back, twice."""
    n_wrong, first_ms, next_ms = 0, [], []
    for document, offset, piece in holes:
        request = CompletionRequest(document, offset)
        situation = look_around(document, offset, language_by_id(language_id))
        baseline.TREES = RecentTrees()
        for times in (first_ms, next_ms):
            begun = time.perf_counter()
            item, _ = last_word(Item(piece), request, situation)
            times.append((time.perf_counter() - begun) * 1000)
        n_wrong += not isinstance(item, Item) or item.text != piece
    load = psutil.getloadavg()[0]
    times = (*_quantiles(first_ms), *_quantiles(next_ms))
    return Result(language_id, len(holes), n_wrong, *(round(ms, 2) for ms in times), round(load, 1))


def _quantiles(times_ms: list[float]) -> tuple[float, float]:
    ordered = sorted(times_ms)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 95 // 100]


if __name__ == "__main__":
    main()
