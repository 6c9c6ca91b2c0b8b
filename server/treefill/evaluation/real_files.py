"""Real files that nobody here wrote, by language: what other software has left on this machine, errors and all.

Where they are looked for is a table of places; a place that is not there is passed over. The places take turns, so
that a large one does not crowd the others out. The order within a place comes from a seed and each file's name below
it, so that one file more or less leaves the others in their order. What cannot be read, is data rather than code, or
was there before, is left out and counted.
"""

import hashlib
import os
import re
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType

import treefill
from treefill.errors import BadInput
from treefill.syntax.hazards import hazard
from treefill.syntax.languages import Language, language_by_id
from treefill.text import Document, read_document

MIN_BYTES = 200
"""A shorter file has hardly a line to complete."""
MAX_BYTES = 150_000
"""A longer one is data or generated more often than written."""
MAX_LINE_CHARS = 1_000
MAX_MEAN_CHARS = 100
"""Files with a longer line, or longer lines on the whole, are data or minified."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, and which files below it are a language's."""

    folder: Path
    names: tuple[str, ...]
    """Patterns of file names."""
    left_out: tuple[str, ...] = ()
    """Patterns of names of folders and files that are passed over."""

    def files(self) -> Iterator[tuple[str, Path]]:
        """Each file's name below the folder, and its path; links to folders are not followed."""
        for parent, folders, names in os.walk(self.folder):
            folders[:] = sorted(name for name in folders if not _fits(name, self.left_out))
            for name in sorted(names):
                if _fits(name, self.names) and not _fits(name, self.left_out):
                    path = Path(parent, name)
                    yield path.relative_to(self.folder).as_posix(), path


@dataclass(slots=True)
class Gathering:
    """Files of one language in their order, each read when it is asked for."""

    language: str
    places: Sequence[Place]
    seed: int = 0
    n_found: int = 0
    """Files that have the right name."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Why files that were looked at are not among those that were given."""

    def documents(self) -> Iterator[Document]:
        """Each file that can be used, once."""
        orders = [self._order(place) for place in self.places]
        paths = dict.fromkeys(path for row in zip_longest(*orders) for path in row if path is not None)
        self.n_found = len(paths)
        self.left_out.clear()
        seen: set[bytes] = set()
        for path in paths:
            document = self._read(path)
            digest = hashlib.sha256(document.text.encode()).digest() if document else b""
            if document is not None and digest in seen:
                self.left_out["twice"] += 1
            elif document is not None:
                seen.add(digest)
                yield document

    def _order(self, place: Place) -> list[Path]:
        """The place's files, shuffled."""
        named = list(place.files())
        return [path for name, path in sorted(named, key=lambda pair: (self._rank(pair[0]), pair[0]))]

    def _rank(self, name: str) -> bytes:
        return hashlib.sha256(f"{self.seed}:{name}".encode(errors="surrogateescape")).digest()

    def _read(self, path: Path) -> Document | None:
        """The file as a document, or None and one more reason."""
        try:
            n_bytes = path.stat().st_size
            if not MIN_BYTES <= n_bytes <= MAX_BYTES:
                self.left_out["too short" if n_bytes < MIN_BYTES else "too long"] += 1
                return None
            document = read_document(path, self.language)
        except (BadInput, OSError):
            self.left_out["not readable as text"] += 1
            return None
        why = why_left_out(document)
        if why is not None:
            self.left_out[why] += 1
            return None
        return document


def gather(language: str, more: Iterable[Path] = (), seed: int = 0) -> Gathering:
    """The language's files on this machine and below the folders `more`."""
    folders = list(more)
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder: name one with files to measure on.")
    names = names_of(language_by_id(language))
    own = tuple(Place(folder, names, NEVER) for folder in folders)
    return Gathering(language, (*(places().get(language) or anywhere(names)), *own), seed)


def names_of(language: Language) -> tuple[str, ...]:
    """Patterns of the names of its files."""
    whole = (each for name in language.filenames for each in (name, name.capitalize()))
    endings = (f"*{each}" for suffix in language.suffixes for each in (suffix, suffix.upper()))
    return (*endings, *whole)


def why_left_out(document: Document) -> str | None:
    """Why a file that can be read is no file of its language that somebody wrote, or None."""
    lines = document.text.splitlines()
    if max(map(len, lines), default=0) > MAX_LINE_CHARS or len(document.text) > MAX_MEAN_CHARS * len(lines):
        return "data or minified"
    if document.language == "c" and _CPP.search(document.text):
        return "another language"
    grammars = language_by_id(document.language).grammars
    return "not to be parsed" if any(hazard(document.text, grammar) for grammar in grammars) else None


def anywhere(names: tuple[str, ...]) -> tuple[Place, ...]:
    """Where files of a language are looked for that has no places of its own in the table."""
    usr, packages = Path("/usr"), Path(sysconfig.get_path("purelib"))
    # In a checkout the package is server/treefill, two levels below the repository's top.
    top = Path(treefill.__file__).parents[2]
    folders = (packages, usr / "share", usr / "lib", usr / "src", top / "build" / "corpora")
    return tuple(Place(folder, names, NEVER) for folder in (*folders, top / "extension" / "node_modules"))


NEVER = (
    ".git",
    "__pycache__",
    "*.min.js",
    "*.d.ts",
    "*.d.mts",
    "*.d.cts",
    "treefill",
    "treefill-*",
    "_editable_*",
)
"""Minified code, declarations without code, and our own files."""

_CPP = re.compile(r"^\s*(?:class|namespace|template|using|public|private)\b|\w::\w", re.MULTILINE)
"""What a header says that has the name of a C header and is C++."""


def places() -> Mapping[str, tuple[Place, ...]]:
    """Where files of each language are looked for, on this machine and in this environment."""
    stdlib, packages = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))
    # In a checkout the package is server/treefill, two levels below the repository's top.
    top = Path(treefill.__file__).parents[2]
    corpora = top / "build" / "corpora"
    usr = Path("/usr")
    node = [
        *(usr / "lib" / "node_modules", usr / "local" / "lib" / "node_modules", usr / "share" / "nodejs"),
        *(top / "extension" / "node_modules", corpora),
    ]
    cpp_sources = ("*.cc", "*.cpp", "*.cxx", "*.hpp", "*.hh", "*.hxx")
    libraries = sorted((usr / "include").glob("llvm-[0-9]*"))
    typescript = ("*.ts", "*.mts", "*.cts")
    return MappingProxyType(
        {
            "python": (
                Place(stdlib, ("*.py",), (*NEVER, "site-packages")),
                Place(packages, ("*.py",), NEVER),
            ),
            "cpp": (
                Place(usr / "include" / "c++", ("*.h", "*.tcc", *cpp_sources, "[a-z]*[!.]"), ("*.txt",)),
                *(Place(folder, ("*.h", "*.inc"), NEVER) for folder in libraries),
                Place(usr / "include", cpp_sources, ("c++",)),
                Place(packages / "torch" / "include", ("*.h", *cpp_sources), NEVER),
                Place(usr / "share", cpp_sources, NEVER),
            ),
            "c": (
                Place(usr / "include", ("*.h",), ("c++", "llvm-*")),
                Place(usr / "share", ("*.c",), NEVER),
                Place(usr / "src", ("*.c", "*.h"), NEVER),
                Place(packages, ("*.c",), NEVER),
            ),
            "json": tuple(Place(folder, ("*.json",), NEVER) for folder in (packages, usr / "share", *node)),
            "javascript": (
                *(Place(folder, ("*.js", "*.mjs", "*.cjs", "*.jsx"), NEVER) for folder in node),
                Place(packages, ("*.js",), NEVER),
                Place(usr / "share", ("*.js",), (*NEVER, "nodejs")),
            ),
            "typescript": tuple(Place(folder, typescript, NEVER) for folder in node),
            "typescriptreact": tuple(Place(folder, ("*.tsx",), NEVER) for folder in node),
            "sql": tuple(
                Place(folder, ("*.sql",), NEVER) for folder in (usr / "share", usr / "lib", corpora)
            ),
        }
    )


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)
