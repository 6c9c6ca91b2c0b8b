"""Which of a language's templates goes on from the cursor: what is typed is its beginning, and the place is right.

Worked example: above the cursor is `#ifndef MATRIX_H_`, and the cursor stands on the empty line below. The two lines
are a beginning of the include guard whose name is `MATRIX_H_`, so `#define MATRIX_H_` and the rest of it are proposed.
Whether that may be suggested is decided by the filters and the grammar, as of what a model writes (`at_once.py`).
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath

from treefill.completion.request import CompletionRequest
from treefill.completion.scan import scan
from treefill.completion.situation import LOOK_BACK_CHARS, Situation, cursor_state
from treefill.errors import GrammarError
from treefill.syntax.languages import Language
from treefill.syntax.templates import Template, Where, templates_of
from treefill.text import indent_of, line_bounds, to_lf

log = logging.getLogger(__name__)

MAX_HEAD_CHARS = 400
"""What is typed of a template is no longer."""
MAX_INSIDE_CHARS = 200
"""The same where it may begin anywhere in its line, and many beginnings are tried."""
MAX_SEARCHED_CHARS = 300_000
"""In a larger file it takes too long to tell what it holds already."""


@dataclass(frozen=True, slots=True)
class Head:
    """What is typed of a template, if it is one."""

    start: int
    """Where it begins in the document."""
    indent: str
    """The indentation of its first line."""
    text: str
    """From there to the cursor, that indentation left out, with line feeds."""


def proposed(
    request: CompletionRequest, situation: Situation, *, has_model: bool
) -> Iterator[tuple[Template, str]]:
    """Templates that go on here, and the text that each would put at the cursor, with line feeds.

    `has_model` tells whether a model could be asked instead.
    """
    text = request.document.text
    templates = _known(situation.language)
    if not templates or not situation.is_right_free or len(text) > MAX_SEARCHED_CHARS:
        return
    heads = list(_heads(text, request.offset, max(template.n_lines for template in templates)))
    for template in templates if heads else ():
        if (template.stopgap and has_model) or not _is_for(template, request.document.path):
            continue
        for head in _inside(heads[0], template) if template.inside else heads[: template.n_lines]:
            rest = _rest(template, head, request, situation)
            if rest and _is_right_place(template, head, request, situation):
                yield template, rest


@cache
def _known(language: Language) -> tuple[Template, ...]:
    try:
        return templates_of(language.folder)
    except GrammarError as error:  # a completion does without
        log.warning("%s", error)
        return ()


def _heads(text: str, offset: int, n_lines: int) -> Iterator[Head]:
    """The cursor's line up to the cursor; the same with the line above; and so on."""
    start, _ = line_bounds(text, offset)
    for _ in range(n_lines):
        if offset - start > MAX_HEAD_CHARS:
            return
        # A byte order mark is no text.
        line = to_lf(text[start:offset]).removeprefix("\ufeff")
        indent = indent_of(line)
        yield Head(start, indent, line[len(indent) :])
        if start == 0:
            return
        n_ending = 2 if text[start - 2 : start] == "\r\n" else 1
        start, _ = line_bounds(text, start - n_ending)


def _inside(line: Head, template: Template) -> Iterator[Head]:
    """Ends of the line that begin with what the template wants typed, the shortest first."""
    first = max(0, len(line.text) - MAX_INSIDE_CHARS)
    places = [match.start() for match in re.compile(r"\b\w").finditer(line.text, first)]
    for at in reversed(places):
        if template.typed.match(line.text, at):
            yield Head(line.start + len(line.indent) + at, line.indent, line.text[at:])


def _rest(template: Template, head: Head, request: CompletionRequest, situation: Situation) -> str:
    """What is still to be typed of the template; nothing where something else is typed."""
    typed = template.typed.match(head.text)
    if typed is None:
        return ""
    first_letter = next(filter(str.isalpha, head.text), "")
    is_lower = template.ignore_case and first_letter.islower()
    for values in _values(template, typed, request, is_lower):
        whole = _indented(template.expanded(values, is_lower), head.indent, situation.indent.step)
        beginning, rest = whole[: len(head.text)], whole[len(head.text) :]
        is_begun = beginning == head.text or (
            template.ignore_case and beginning.casefold() == head.text.casefold()
        )
        # On a new line a blank one is no suggestion: the user is about to write something else.
        if is_begun and rest.strip() and not (situation.is_blank_line and rest.startswith("\n")):
            return rest
    return ""


def _values(
    template: Template, typed: re.Match[str], request: CompletionRequest, is_lower: bool
) -> Iterator[dict[str, str]]:
    """Values for the text's variables, the likeliest first."""
    values = {name: value or "" for name, value in typed.groupdict().items()}
    if "stem" in template.variables:
        stem = PurePath(request.document.path).stem
        if not stem.isidentifier():
            return
        values["stem"] = stem
    if "nulls" in template.variables:
        null = "null" if is_lower else "NULL"
        values["nulls"] = ", ".join([null] * (1 + values["columns"].count(",")))
    if "guard" not in template.variables:
        yield values
        return
    for guard in guard_names(request):
        yield values | {"guard": guard}


def guard_names(request: CompletionRequest) -> Iterator[str]:
    """Names of an include guard for the file: `MATRIX_H_`, and the same with more and more of its folders.

    Without the workspace's folder only the file's own name is sure to be meant.
    """
    path, root = PurePath(request.document.path), request.workspace_root
    parts = path.parts
    if root is not None and path.is_relative_to(root):
        parts = path.relative_to(root).parts
    elif path.name:
        parts = (path.name,)
    for n_parts in range(1, len(parts) + 1):
        name = re.sub(r"[^A-Z0-9]+", "_", "_".join(parts[-n_parts:]).upper()).strip("_") + "_"
        if name[0].isalpha():
            yield name


def _indented(text: str, indent: str, step: str) -> str:
    """The text with the file's own steps for its tabs, below a line that is indented by `indent`."""
    first, *others = text.split("\n")
    lines = [first]
    for line in others:
        bare = line.lstrip("\t")
        lines.append(indent + step * (len(line) - len(bare)) + bare if line else "")
    return "\n".join(lines)


def _is_for(template: Template, path: str) -> bool:
    return not template.files or path.lower().endswith(template.files)


def _is_right_place(template: Template, head: Head, request: CompletionRequest, situation: Situation) -> bool:
    """True where the template may begin at `head`, and the rest of the file holds what it must and nothing else."""
    text, line_end = request.document.text, request.offset + len(situation.right)
    above, below = text[: head.start], text[line_end:]
    if template.where is Where.FIRST_LINE:
        is_there = head.start == 0
    else:
        is_there = _is_in_code(template.where, head, request, situation.language)
    return (
        is_there
        and not (template.at_end and below.strip())
        and (template.present is None or _holds(template.present, above, below))
        and (template.absent is None or not _holds(template.absent, above, below))
    )


def _holds(pattern: re.Pattern[str], above: str, below: str) -> bool:
    return pattern.search(above) is not None or pattern.search(below) is not None


def _is_in_code(where: Where, head: Head, request: CompletionRequest, language: Language) -> bool:
    state = cursor_state(request.document, head.start, language)
    if not state.is_code:
        return False
    if where is Where.ANYWHERE:
        return True
    is_top = not head.indent and not state.brackets
    return is_top and (where is Where.TOP_LEVEL or _is_comment(request.document.text[: head.start], language))


def _is_comment(text: str, language: Language) -> bool:
    """True where the text holds nothing but comments and white space."""
    if len(text) > LOOK_BACK_CHARS:
        return False
    text = to_lf(text).removeprefix("\ufeff")
    comments = (*language.line_comment, *(begin for begin, _ in language.block_comment))
    at = 0
    for start, end in sorted(scan(text, language).spans):
        if start < at:
            continue
        if text[at:start].strip() or not text.startswith(comments, start):
            return False
        at = end + 1
    return not text[at:].strip()
