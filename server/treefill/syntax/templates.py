"""Completions that need no model, as a language's folder has them: plain data, read from `grammars/*/templates.toml`.

A template is the whole text of a piece from the beginning of its first line. It is offered where what stands before the
cursor is a beginning of it, and at least what its pattern asks for. How that is found out is `completion`'s.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any

from treefill.errors import GrammarError
from treefill.syntax.languages import grammars_folder

FILE_NAME = "templates.toml"
VARIABLES = ("guard", "stem", "nulls")
"""What a text may name in braces beside the groups of its own pattern: an include guard's name, from the file's path;
the file's name without its ending; and as many NULLs as there are names in the group `columns`."""
_VARIABLE = re.compile(r"\{([a-z_]+)\}")
_QUANTIFIER = re.compile(r"[*+]|\{\d*,\d*\}")


class Where(StrEnum):
    """Where in a file a template may begin."""

    ANYWHERE = "anywhere"
    """In code, that is."""
    TOP_LEVEL = "top level"
    """In no bracket, and without indentation."""
    FIRST_CODE = "first code"
    """The same, with nothing above but comments."""
    FIRST_LINE = "first line"


@dataclass(frozen=True, slots=True)
class Template:
    """One piece that people write again and again, the same each time."""

    name: str
    """What it is called where an answer is explained."""
    typed: re.Pattern[str]
    """What must be typed of it at least, from the beginning of its first line, its indentation left out."""
    text: str
    """All of it, lines ended by line feeds. A tab at a line's beginning is one step of the file's own indentation;
    `{guard}`, `{stem}`, `{nulls}` and `{a}`, for a group `(?P<a>…)` of `typed`, stand for what those are."""
    where: Where = Where.ANYWHERE
    files: tuple[str, ...] = ()
    """Endings of the names of the files that it is for; none: all."""
    present: re.Pattern[str] | None = None
    """What the rest of the file must hold."""
    absent: re.Pattern[str] | None = None
    """What the rest of the file must not hold."""
    inside: bool = False
    """True where it may begin within a line, at a word, and not only where a line does."""
    at_end: bool = False
    """True where nothing may stand below the cursor's line."""
    ignore_case: bool = False
    """True where what is typed may be in either case. Typed in small letters, the rest comes in small letters."""
    stopgap: bool = False
    """True where a model that can be asked knows better: names in it stand for the user's own."""

    def expanded(self, values: Mapping[str, str], is_lower: bool = False) -> str:
        """The text with values for its variables."""
        text = self.text.lower() if is_lower else self.text
        return _VARIABLE.sub(lambda found: values[found[1]], text)

    @property
    def variables(self) -> frozenset[str]:
        """The variables in its text."""
        return frozenset(_VARIABLE.findall(self.text))

    @property
    def n_lines(self) -> int:
        """Lines of its text."""
        return self.text.count("\n") + 1


@cache
def templates_of(folder_name: str) -> tuple[Template, ...]:
    """The templates in a language's folder, in the order in which they are tried; none where the name is empty.

    Raises `GrammarError`, with file and line and what was expected, where they are broken.
    """
    return read_templates(grammars_folder(), folder_name) if folder_name else ()


def read_templates(folder: Traversable, folder_name: str) -> tuple[Template, ...]:
    """The same from another folder of languages."""
    own, others = _read_file(folder, folder_name)
    borrowed = (template for other in others for template in _read_file(folder, other)[0])
    return (*own, *borrowed)


def _read_file(folder: Traversable, folder_name: str) -> tuple[tuple[Template, ...], tuple[str, ...]]:
    """Its own templates, and the folders whose own it shares (`like`)."""
    file = folder / folder_name / FILE_NAME
    try:
        source = file.read_text("utf-8")
    except FileNotFoundError:
        return (), ()
    except (OSError, ValueError) as error:
        raise GrammarError(f"{file} cannot be read ({error}).") from None
    try:
        table = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise GrammarError(f"{file} is not TOML: {error}.") from None
    try:
        others = _checked(table, source)
    except _Wrong as wrong:
        raise GrammarError(f"{file}, line {wrong.line}: {wrong}") from None
    return tuple(_template(entry) for entry in table.get("templates", ())), others


class _Wrong(Exception):
    """What is wrong with a file's contents, what was expected, and in which line."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line


_TYPES: dict[str, type] = {
    "name": str, "typed": str, "text": str, "where": str, "present": str, "absent": str,
    "files": list, "inside": bool, "at_end": bool, "ignore_case": bool, "stopgap": bool,
}  # fmt: skip
_SAID = {str: "a text", list: "a list of texts", bool: "true or false"}
_NEEDED = ("name", "typed", "text")
_PATTERNS = ("typed", "present", "absent")


def _checked(table: dict[str, Any], source: str) -> tuple[str, ...]:
    """The folders of `like`. Raises `_Wrong` at the first thing that is not as it should be."""
    for key in table:
        if key not in ("templates", "like"):
            raise _Wrong(_line_of(source, 0, key), f"{key} is not known; expected [[templates]] or like.")
    entries, like = table.get("templates", []), table.get("like", [])
    if not _are_texts(like):
        raise _Wrong(_line_of(source, 0, "like"), "like must be a list of languages' folders.")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _Wrong(_line_of(source, 0, "templates"), "expected tables that begin with [[templates]].")
    for number, entry in enumerate(entries, start=1):
        for key, sentence in _complaints(entry):
            raise _Wrong(_line_of(source, number, key), sentence)
    return tuple(like)


def _complaints(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys of one template, and what is wrong with each."""
    known = ", ".join(_TYPES)
    for key, value in entry.items():
        if key not in _TYPES:
            yield key, f"{key} is not known; expected one of {known}."
        elif not isinstance(value, _TYPES[key]) or (isinstance(value, list) and not _are_texts(value)):
            yield key, f"{key} is {value!r}; expected {_SAID[_TYPES[key]]}."
    for key in _NEEDED:
        if not entry.get(key):
            yield "", f"{key} is missing; a template needs {', '.join(_NEEDED)}."
    if entry.get("where", Where.ANYWHERE) not in tuple(Where):
        yield "where", f"where is {entry['where']!r}; expected one of {', '.join(Where)}."
    for key in _PATTERNS:
        if key in entry:
            yield from ((key, f"{key} {sentence}") for sentence in _wrong_in_pattern(entry[key]))
    if not entry["text"].strip() or not entry["text"][0].strip():
        yield "text", "text must begin with what is typed, not with white space."
    names = (*VARIABLES, *re.compile(entry["typed"]).groupindex)
    for name in _VARIABLE.findall(entry["text"]):
        if name not in names:
            yield "text", f"text names {{{name}}}; expected one of {', '.join(names)}."
        if name == "nulls" and "columns" not in names:
            yield "text", "text names {nulls}; expected a group (?P<columns>…) in typed."


def _wrong_in_pattern(pattern: str) -> Iterator[str]:
    try:
        re.compile(pattern)
    except re.error as error:
        yield f"is no pattern ({error}); expected a regular expression."
        return
    if is_nested(pattern):
        yield "repeats what repeats something itself; expected a pattern whose time grows with the text alone."


def is_nested(pattern: str) -> bool:
    """True where a group that holds a repetition is repeated itself: such a pattern may take exponential time."""
    repeats = [False]
    """Of each open group, whether it holds a repetition."""
    at, is_closed, held = 0, False, False
    while at < len(pattern):
        character, was_closed = pattern[at], is_closed
        is_closed = False
        quantifier = _QUANTIFIER.match(pattern, at)
        if character == "\\":
            at += 1
        elif character == "[":
            at = _class_end(pattern, at)
        elif character == "(":
            repeats.append(False)
        elif character == ")" and len(repeats) > 1:
            held, is_closed = repeats.pop(), True
            repeats[-1] |= held
        elif quantifier:
            if was_closed and held:
                return True
            repeats[-1] = True
            at = quantifier.end() - 1
        at += 1
    return False


def _class_end(pattern: str, start: int) -> int:
    """Where the class of characters that begins at `start` ends: a bracket right at its beginning is one of them."""
    at = start + 1
    at += pattern.startswith("^", at)
    at += pattern.startswith("]", at)
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at


def _template(entry: dict[str, Any]) -> Template:
    case = re.IGNORECASE if entry.get("ignore_case") else re.NOFLAG
    values = {key: entry[key] for key in entry if key in {field.name for field in fields(Template)}}
    values["typed"] = re.compile(entry["typed"], case)
    for key in ("present", "absent"):
        if key in entry:
            values[key] = re.compile(entry[key], case | re.MULTILINE)
    return Template(
        **values
        | {"where": Where(entry.get("where", Where.ANYWHERE)), "files": tuple(entry.get("files", ()))}
    )


def _are_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) and value for value in values)


def _line_of(source: str, number: int, key: str) -> int:
    """The line, from 1, of a key in the `number`-th template, or of its beginning; 0 is the file's own part."""
    n_seen, beginning = 0, 1
    for line, text in enumerate(source.split("\n"), start=1):
        if text.strip().startswith("[[templates]]"):
            n_seen += 1
            beginning = line if n_seen == number else beginning
        elif n_seen == number and key and re.match(rf"\s*{re.escape(key)}\s*=", text):
            return line
    return beginning
