"""Is a whole document what its language wants? Asked are its grammar's parser and the parser that everybody has.

That is tree-sitter for every language that has a grammar, and for JSON, XML, YAML and Python one of Python's own or
PyYAML.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Mapping
from time import thread_time
from xml.parsers import expat

import yaml

from treefill.syntax.check import grammar_for
from treefill.syntax.grammars import load
from treefill.syntax.hazards import hazard
from treefill.syntax.languages import Language
from treefill.syntax.parse import encoded, parse

TIME_LIMIT_S = 5.0


def complaint_of(text: str, language: Language) -> str:
    """What is wrong with a whole document, in a few words; empty where nothing is.

    Raises `GrammarError` where the language's grammar cannot be loaded.
    """
    if not text.strip():
        return "nothing is in it"
    return _by_grammar(text, language) or _PARSERS.get(language.id, _nothing)(text)


def parsers_of(language: Language) -> tuple[str, ...]:
    """Who is asked, by name."""
    grammars = ("tree-sitter",) if language.grammars else ()
    return (*grammars, *([_NAMES[language.id]] if language.id in _NAMES else []))


def _by_grammar(text: str, language: Language) -> str:
    if not language.grammars:
        return ""
    grammar = grammar_for(language, text)
    refused = hazard(text, grammar)
    if refused:
        return refused
    parsed = parse(encoded(text), load(grammar), deadline_s=thread_time() + TIME_LIMIT_S)
    if parsed is None:
        return "it takes too long to parse, or too much in it is wrong"
    if not parsed.faults:
        return ""
    fault = parsed.faults[0]
    line = parsed.data.count(b"\n", 0, fault.start_byte) + 1
    word = (
        parsed.data[fault.start_byte : fault.end_byte]
        .decode(errors="replace")
        .strip()
        .partition("\n")[0][:20]
    )
    return (
        f"line {line}: something is missing"
        if fault.is_missing
        else f"line {line}: {word!r} has no place there"
    )


def _json(text: str) -> str:
    def no_number(name: str) -> None:
        raise ValueError(f"JSON has no {name}")

    try:
        json.loads(text, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _xml(text: str) -> str:
    try:
        # A document of our own making has no use for entities, which grow without end.
        if "<!ENTITY" in text:
            return "it declares entities"
        expat.ParserCreate(namespace_separator=" ").Parse(text.encode(), True)
    except (expat.ExpatError, ValueError) as error:
        return str(error)
    return ""


def _yaml(text: str) -> str:
    try:
        for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if document is None and not re.search(r"^---", text, re.MULTILINE):
                return "nothing is in it"
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return " ".join(str(error).split())[:160]
    return ""


def _python(text: str) -> str:
    try:
        with warnings.catch_warnings(action="ignore"):  # on what the code does, as "\d" in a string
            ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "it is nested too deeply"
    return ""


def _nothing(_text: str) -> str:
    return ""


_PARSERS: Mapping[str, Callable[[str], str]] = {"json": _json, "xml": _xml, "yaml": _yaml, "python": _python}
_NAMES = {"json": "json", "xml": "expat", "yaml": "PyYAML", "python": "ast"}
