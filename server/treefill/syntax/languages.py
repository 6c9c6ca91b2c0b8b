"""What treefill knows of each language: plain data, read from `grammars/*/language.toml`.

Adding a language touches no code. Parsers and their tables are not loaded here; `Language.grammars` only names
them (`grammars.py` loads them).
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

from treefill.errors import BadInput


class Layout(StrEnum):
    """What holds a block of the language together."""

    INDENTATION = "indentation"
    BRACES = "braces"
    KEYWORDS = "keywords"


@dataclass(frozen=True, slots=True)
class Grammar:
    """A compiled grammar and the package on the Python index that carries it."""

    name: str
    """What it calls its language, or where several share a package, what tells it from the others."""
    package: str
    version: str
    """The one that was tried, and that the others here are known to fit."""
    abi: int
    """Version of the grammar's tables, which the parser library must know."""
    module: str = ""
    """What is imported for it; empty: what the package's name says."""
    function: str = "language"
    """What in there hands out the tables."""
    extra: str = ""
    """The extra of treefill that installs its package; empty where treefill itself does."""
    parse_only: str = ""
    """Why it stands no guard while a completion is written and only checks it at last, as one sentence."""
    max_indents: int = 0
    """Its scanner takes no text with more different indentations (`hazards.py`); 0 where it takes any."""
    max_tag_chars: int = 0
    """Its scanner takes no dollar quote with a longer tag, both dollars counted; 0 where it takes any."""
    has_scanner: bool = True
    """False where its tables are all there is."""
    scanner_model: str = ""
    """The model in `kernels/syntax/scanners/` that stands for its external scanner; empty: the scanner is asked."""
    refused_pairs: tuple[tuple[str, str], ...] = ()
    """Tokens that the language does not allow next to each other, though the grammar does."""
    needed_parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Rules, and the parts of which they must have one, though the grammar can do without."""
    needs_enclosing: tuple[tuple[str, str], ...] = ()
    """Tokens that are at home only inside what another one began, though the grammar takes them anywhere."""
    json_numbers: tuple[str, ...] = ()
    """Tokens that are written as JSON's numbers are, though the grammar takes more."""

    @property
    def module_name(self) -> str:
        """What is imported for it."""
        return self.module or self.package.replace("-", "_")

    @property
    def requirement(self) -> str:
        """What pip installs it by."""
        return f"treefill[{self.extra}]" if self.extra else f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class Reach:
    """At how many random places in real files the acceptor was at work (`treefill eval grammar`)."""

    share: float
    n_places: int
    n_files: int
    """Clean files that it read token by token, and refused nothing of."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What of a file a place in it hangs on: how to find it, and what may stand for it (`skeleton.py`)."""

    features: tuple[str, ...] = ()
    """What of the language's writing must be read right: `raw-strings`, `templates`, `regexes`, `dollar-quotes`,
    `directives`, `commands`."""
    separator: str = ";"
    r"""After it a statement or an element begins; `\n` where a line's end outside of brackets ends one."""
    has_blocks: bool = True
    """False where a statement is all that a place hangs on, whatever brackets are open."""
    openers: tuple[str, ...] = ("{", "#")
    """What begins a scope."""
    noise: str = ""
    """A regular expression of words that mean nothing to the grammar and are left out where it stumbles: macros."""
    stand_ins: tuple[str, ...] = ()
    """Beginnings of scopes, for those whose own beginning the grammar does not take."""
    closers: tuple[str, ...] = ("}", "};", "})", "});", "}]", "}];", "},", ")")
    """Ends of scopes, to be tried in this order."""
    fillers: tuple[str, ...] = ()
    """Statements that say nothing, for the place of one that is left out."""
    continuations: tuple[str, ...] = ()
    """Words that go on a statement which seems to have ended."""
    continued: tuple[tuple[str, str], ...] = ()
    """Such words, and a statement that says nothing and may stand before them."""
    sequels: tuple[tuple[str, ...], ...] = ()
    """A word whose block wants another block below it, and the words of that; after the last one nothing is needed."""
    prefixes: tuple[str, ...] = ()
    """Beginnings of lines that the next one goes on."""
    resets: tuple[str, ...] = ()
    """Words that begin a statement even where a bracket was left open."""
    block_ends: tuple[str, ...] = ()
    """Words that end a block. Where there are any, blocks are told by their indentation."""
    islands: tuple[tuple[str, str], ...] = ()
    """What begins and what ends the code, where the rest of a file is none. The former is read with the code."""
    elements: str = ""
    """A regular expression of the tags in a markup: scopes are elements then. Its groups are `close`, `name` and
    `single`; what has no name is no element, a comment for instance."""
    void_elements: tuple[str, ...] = ()
    """Elements that nothing closes."""
    raw_elements: tuple[str, ...] = ()
    """Elements whose text is no markup."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which nodes of the language's trees are what rules speak of (`rules/`); of several grammars, those of all."""

    identifiers: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    """What is called stands before the arguments; in `KIND.FIELD` it is what that field holds. Without any, a call is
    a name with a bracket behind it."""
    strings: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()
    """Beginnings of the comments that tell what the code below them is for."""
    docstrings: tuple[str, ...] = ()
    """Nodes whose first statement tells that, where it is a string."""

    @property
    def fields_of_calls(self) -> dict[str, str]:
        """The calls, and the field of each, or nothing."""
        return {kind: name for kind, _, name in (call.partition(".") for call in self.calls)}


@dataclass(frozen=True, slots=True)
class Language:
    """One language as the completion rules see it."""

    id: str
    """The name that editors use in `languageId`."""
    names: tuple[str, ...] = ()
    """Other names that `--language` takes."""
    suffixes: tuple[str, ...] = ()
    """Endings of file names, dot included, lower case."""
    filenames: tuple[str, ...] = ()
    """Whole file names, for files without a telling ending."""
    line_comment: tuple[str, ...] = ()
    """What begins a comment that ends with its line."""
    block_comment: tuple[tuple[str, str], ...] = ()
    """Begin and end of comments that may span lines."""
    layout: Layout = Layout.KEYWORDS
    block_openers: tuple[str, ...] = ()
    """A line that ends with one of these may be followed by a block; words are compared without case."""
    block_heads: tuple[str, ...] = ()
    """If any: the line must also begin with one of these words, or with a closing bracket."""
    declarations: tuple[str, ...] = ()
    """Words that begin the next piece of a file, where a block that is being written has ended."""
    fences: tuple[str, ...] = ()
    """What begins and ends code of another language that its text holds: three of it or more."""
    statement_end: str = ""
    """What ends a statement that may span lines, where blocks have no other mark."""
    quotes: tuple[str, ...] = ()
    """Quotes of strings that end with their line at the latest."""
    long_quotes: tuple[str, ...] = ()
    """Quotes of strings that may span lines."""
    escape: str = "\\"
    """What takes the meaning off the next character of a string; empty where quotes are doubled instead."""
    indent: str = "    "
    """One step of indentation where the file itself shows none."""
    grammars: tuple[Grammar, ...] = ()
    """What texts are parsed with; of several dialects the one to take where nothing else tells comes first."""
    skeleton: Skeleton = Skeleton()
    kinds: Kinds = Kinds()
    reach: Reach | None = None
    """None where it was not measured."""
    folder: str = ""
    """Its folder in `grammars/`; empty for a language that none knows."""

    @property
    def is_prose(self) -> bool:
        """True where sentences and code fences are the text itself."""
        return not self.line_comment and not self.block_comment and self.layout is Layout.KEYWORDS


def language_of(path: str | Path, override: str | None = None) -> Language:
    """The language of a file by its name, or the one that the user names."""
    known = languages()
    if override is not None:
        wanted = override.strip().lower()
        for language in known.values():
            if wanted == language.id or wanted in language.names:
                return language
        raise BadInput(f"language {override!r} is not known: use one of {_listed(known)}")
    language_or_none = language_by_name(path)
    if language_or_none is None:
        raise BadInput(
            f"the language of {path} is not known: name it with --language, one of {_listed(known)}"
        )
    return language_or_none


def language_by_name(path: str | Path) -> Language | None:
    """The language that a file's name tells, the longest ending first, or None."""
    name = PurePath(path).name.lower()
    for language in languages().values():
        if name in language.filenames:
            return language
    endings = ((suffix, language) for language in languages().values() for suffix in language.suffixes)
    fitting = [(suffix, language) for suffix, language in endings if name.endswith(suffix)]
    return max(fitting, key=lambda pair: len(pair[0]))[1] if fitting else None


def language_by_id(language_id: str) -> Language:
    """The language of an editor's `languageId`; an unknown one gets rules that suit any text."""
    return languages().get(language_id) or Language(language_id)


def language_in_editor(language_id: str, path: str | Path) -> Language:
    """The language that an editor names, by any of its names; else the one that the file's name tells."""
    known = languages()
    named = known.get(language_id) or next(
        (each for each in known.values() if language_id in each.names), None
    )
    return named or language_by_name(path) or Language(language_id)


def language_named(name: str) -> Language | None:
    """The language that people call so where they name one beside its code: by any name of its, or a file's ending."""
    wanted = name.strip().lower()
    known = languages()
    return known.get(wanted) or next(
        (each for each in known.values() if wanted in each.names or f".{wanted}" in each.suffixes), None
    )


def languages(folder: Traversable | None = None) -> Mapping[str, Language]:
    """Every known language by its id; another folder than the package's own is for tests and tools."""
    return _own_languages() if folder is None else _read_languages(folder)


def grammars_folder() -> Traversable:
    """Where the languages' folders lie: inside the installed package, or at the top of a source checkout."""
    installed = files("treefill") / "grammars"
    # In a checkout the package is server/treefill, two levels below the repository's top.
    return installed if installed.is_dir() else Path(str(files("treefill"))).parents[1] / "grammars"


@cache
def _own_languages() -> Mapping[str, Language]:
    return _read_languages(grammars_folder())


def _read_languages(folder: Traversable) -> Mapping[str, Language]:
    tables = sorted(
        ((entry.name, entry / "language.toml") for entry in folder.iterdir() if entry.is_dir()),
        key=lambda pair: pair[0],
    )
    read = (_read_language(name, table) for name, table in tables if table.is_file())
    return MappingProxyType({language.id: language for language in read})


def _read_language(folder_name: str, table: Traversable) -> Language:
    try:
        return _language_from(
            {"id": folder_name, **tomllib.loads(table.read_text("utf-8")), "folder": folder_name}
        )
    except (ValueError, TypeError, OSError) as error:
        raise BadInput(
            f"{table} does not describe a language ({error}): compare it with its neighbours"
        ) from error


def _language_from(values: dict[str, Any]) -> Language:
    """Turn a table into a `Language`; an unknown key raises `TypeError`, as a misspelt argument does."""
    if "layout" in values:
        values["layout"] = Layout(values["layout"])
    if "grammars" in values:
        values["grammars"] = tuple(Grammar(**_frozen(grammar)) for grammar in values["grammars"])
    if "skeleton" in values:
        values["skeleton"] = Skeleton(**_frozen(values["skeleton"]))
    if "kinds" in values:
        values["kinds"] = Kinds(**_frozen(values["kinds"]))
    if "reach" in values:
        values["reach"] = Reach(**_frozen(values["reach"]))
    if "block_comment" in values:
        pairs = [_strings("block_comment", pair) for pair in values["block_comment"]]
        values["block_comment"] = tuple((begin, end) for begin, end in pairs)
    for key, value in values.items():
        if isinstance(value, list):
            values[key] = _strings(key, value)
    return Language(**values)


def _frozen(table: Any) -> dict[str, Any]:
    """The table with tuples for its lists, at any depth."""
    if not isinstance(table, dict):
        raise TypeError(f"{table!r} is not a table")

    def frozen(value: Any) -> Any:
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    return {key: frozen(value) for key, value in table.items()}


def _strings(key: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{key} holds something that is not a list")
    strings = tuple(value for value in values if isinstance(value, str) and value)
    if len(strings) != len(values):
        raise TypeError(f"{key} holds something that is not text")
    return strings


def _listed(known: Mapping[str, Language]) -> str:
    return ", ".join(sorted(known))
