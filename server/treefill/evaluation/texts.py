"""Source text to compare models on: the files that are named, or some that every installation has.

Which files those are is fixed; their contents follow the versions that are installed.
"""

import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path

import treefill
from treefill.engine.api import TokenId, Vocabulary
from treefill.errors import BadInput
from treefill.syntax.languages import language_of
from treefill.text import Document, read_document

WINDOW = 512
"""Tokens that a model sees at once; each window begins without memory."""
MIN_WINDOW = 64
"""A shorter rest of a file is left out."""
LEFT_OUT = 0.25
"""Share at the beginning of an installed file that is skipped: licences, which every model knows by heart."""


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of one file, as tokens."""

    language: str
    path: str
    ids: tuple[TokenId, ...]

    @property
    def n_predicted(self) -> int:
        """Tokens that a model can be asked for: all but the first."""
        return len(self.ids) - 1


def choose_windows(vocabulary: Vocabulary, paths: Sequence[Path], n_tokens: int) -> list[Window]:
    """Windows with `n_tokens` to predict, the languages in turn; fewer where there is not that much text."""
    documents = [read_document(path, language_of(path).id) for path in paths] or list(installed_documents())
    skipped = 0.0 if paths else LEFT_OUT
    by_language: dict[str, list[Window]] = defaultdict(list)
    for document in documents:
        by_language[document.language] += windows_of(document, vocabulary, skipped)
    chosen: list[Window] = []
    for window in _in_turn(by_language.values()):
        if sum(earlier.n_predicted for earlier in chosen) >= n_tokens:
            break
        chosen.append(window)
    if not chosen:
        raise BadInput(f"The files hold less than {MIN_WINDOW} tokens each: name longer ones.")
    return sorted(chosen, key=lambda window: list(by_language).index(window.language))


def windows_of(document: Document, vocabulary: Vocabulary, skipped: float) -> Iterator[Window]:
    """A document cut into windows, the share `skipped` at its beginning left out."""
    ids = vocabulary.encode(document.text)
    for start in range(int(len(ids) * skipped), len(ids), WINDOW):
        piece = tuple(ids[start : start + WINDOW])
        if len(piece) >= MIN_WINDOW:
            yield Window(document.language, document.path, piece)


def installed_documents() -> Iterator[Document]:
    """The files that every installation has, as far as they are here."""
    for language, candidates in _candidates():
        for path in candidates:
            if path.is_file():
                yield read_document(path, language)


def _candidates() -> Iterator[tuple[str, list[Path]]]:
    stdlib = Path(sysconfig.get_path("stdlib"))
    yield "python", [stdlib / name for name in ("heapq.py", "textwrap.py", "fractions.py", "queue.py")]
    system = sorted(Path("/usr/include/c++").glob("*/bits/stl_vector.h"))[-1:]
    yield "cpp", system or _in_package("torch", "include/c10/util/intrusive_ptr.h")
    yield (
        "c",
        _in_package("numpy", "_core/include/numpy/ndarraytypes.h", "_core/include/numpy/ndarrayobject.h"),
    )
    yield "javascript", _in_package("torch", "utils/model_dump/code.js")
    yield "css", _in_package("tokenizers", "tools/visualizer-styles.css")
    # In a checkout the package is server/treefill, two levels below the repository's top.
    yield "sql", [Path(treefill.__file__).parents[2] / "examples" / "shop.sql"]


def _in_package(name: str, *paths: str) -> list[Path]:
    spec = find_spec(name)  # says where a package is without importing it
    folder = Path(spec.origin).parent if spec and spec.origin else None
    return [folder / path for path in paths] if folder else []


def _in_turn(lists: Iterable[list[Window]]) -> Iterator[Window]:
    for row in zip_longest(*lists):
        yield from (window for window in row if window is not None)
