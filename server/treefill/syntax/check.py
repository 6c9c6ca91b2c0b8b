"""Is a whole text what its grammar accepts, and if not, where does it stop and what could stand there?

The acceptor reads the text as it reads a completion: with what the language forbids beyond its grammar, or without.
Nothing is said of trees, nor of the text after the first place that is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from treefill import _kernels
from treefill.errors import GrammarError
from treefill.syntax.dialect import dialect_of
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import Grammar, Language
from treefill.syntax.matcher import tables
from treefill.syntax.parse import encoded

MAX_EXPECTED = 8
"""So many of the tokens that may come are told, the most useful first."""
_PIECE_BYTES = 1 << 16
"""A text is read in pieces of this size: between two of them Ctrl-C is heard."""


class RefusedBy(StrEnum):
    """Who does not take a text."""

    GRAMMAR = "grammar"
    POLICY = "policy"
    """The language forbids what its grammar takes."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Where a text stops to be the beginning of anything that is accepted."""

    offset: int
    """Where the token begins that may not come, in code points."""
    found: str
    """That token, or the end of the file."""
    expected: tuple[str, ...]
    """What could stand there, at most `MAX_EXPECTED`; literal tokens in backquotes."""
    n_expected: int
    """How many tokens could."""
    by: RefusedBy


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the acceptor says of a text: accepted, refused, or not decided."""

    grammar: str
    refusal: Refusal | None = None
    gave_up: str = ""
    """Why it was not decided; empty where it was."""

    @property
    def is_accepted(self) -> bool | None:
        """None where that was not decided."""
        return None if self.gave_up else self.refusal is None


def grammar_for(language: Language, text: str, wanted: str | None = None) -> Grammar:
    """The grammar to check `text` with: the one that is wanted, else what the text tells. Raises `GrammarError`."""
    if not language.grammars:
        raise GrammarError(f"There is no grammar for {language.id}: nothing of it can be checked.")
    if not text.rstrip().endswith(";"):
        text += ";"  # then the last statement counts as a whole one, too
    return dialect_of(language, text, len(text) + 1, wanted)


def check(text: str, grammar: Grammar, with_policies: bool = True) -> Verdict:
    """Whether the whole text is accepted. Raises `GrammarError` where the grammar can't be loaded or asked."""
    if grammar.parse_only:
        raise GrammarError(f"The grammar {grammar.name} cannot be asked. {grammar.parse_only}")
    loaded = load(grammar)
    data = encoded(text)
    stop = _first_stop(data, tables(loaded) if with_policies else grammar_alone(loaded))
    if stop is None or isinstance(stop, str):
        return Verdict(grammar.name, gave_up=stop or "")
    by = RefusedBy.GRAMMAR
    if with_policies and _gets_further(_first_stop(data, grammar_alone(loaded)), stop):
        by = RefusedBy.POLICY
    names = _expected(data[: stop.at], stop.acceptor, _literals(loaded), _has_layout(loaded))
    told = most_useful(names)
    at = stop.dead_at if told == (_STRING_END,) else stop.at
    offset = len(data[:at].decode(errors="replace"))
    found = _token_at(data[at:].decode(errors="replace"), _literals(loaded))
    return Verdict(grammar.name, Refusal(offset, found, told[:MAX_EXPECTED], len(told), by))


@cache
def grammar_alone(loaded: LoadedGrammar) -> _kernels.Grammar:
    """The grammar's tables without what the language forbids beyond them: the parser's own verdict."""
    kept = tables(loaded).keep()  # its lexers are the same
    return _kernels.Grammar(loaded.capsule, _kernels.Policy(), loaded.grammar.scanner_model, kept)


def readable(name: str) -> str:
    """A token's name in the grammar, as people call it; text that stands for itself in backquotes.

    >>> [readable(name) for name in (")", "_newline", "kw_from", "string_start", "type_identifier")]
    ['`)`', 'a new line', '`FROM`', 'string', 'identifier']
    """
    if name in _PHRASES:
        return _PHRASES[name]
    if keyword := _KEYWORD.fullmatch(name):
        return f"`{keyword[1].upper()}`"
    kind = next((kind for kind, pattern in _KINDS.items() if pattern.search(name)), None)
    return kind or (name.strip("_").replace("_", " ") if _DESCRIPTION.fullmatch(name) else f"`{name}`")


def most_useful(names: Iterable[str]) -> tuple[str, ...]:
    """What may come, readable: what ends something first, operators and rare things last."""
    names = list(names)
    if any(_INSIDE_STRING.search(name) for name in names):
        return (_STRING_END,)
    told = dict.fromkeys(readable(name) for name in names)
    operators = [each for each in told if _OPERATOR.fullmatch(each)]
    words = [each for each in told if _WORD.fullmatch(each)]
    if len(operators) > 3:
        told = {each: None for each in told if each not in operators} | {"an operator": None}
    if len(words) > 40:  # SQL's words are names, too
        told = {each: None for each in told if each not in words} | {"a keyword": None}
    return tuple(sorted(told, key=_rank))


@dataclass(frozen=True, slots=True)
class _Stop:
    at: int
    """The byte where the refused token begins; the text's end where that came too early."""
    dead_at: int
    """The first byte with which nothing can become of the text."""
    acceptor: _kernels.Acceptor
    """Has read the text up to there, the blanks before that place as a piece of their own."""


def _first_stop(data: bytes, grammar: _kernels.Grammar) -> _Stop | str | None:
    """Where the text is refused; or why that is not decided; or None where it is accepted."""
    acceptor = _kernels.Acceptor(grammar)
    for start in range(0, len(data), _PIECE_BYTES):
        piece = data[start : start + _PIECE_BYTES]
        is_accepted = acceptor.accept(piece)
        if acceptor.gave_up:
            return acceptor.gave_up
        if not is_accepted:
            acceptor.rollback(1)
            return _stop_in(data, start, piece, acceptor, grammar)
    is_whole = acceptor.accepts_whole(b"")
    if acceptor.gave_up:
        return acceptor.gave_up
    return None if is_whole else _Stop(len(data), len(data), _read(data, grammar))


def _stop_in(
    data: bytes, start: int, piece: bytes, acceptor: _kernels.Acceptor, grammar: _kernels.Grammar
) -> _Stop:
    """The stop within a piece that the acceptor, which is before it, does not take."""
    viable, dead = 0, len(piece)
    while dead - viable > 1:
        middle = (viable + dead) // 2
        if acceptor.allows(piece[:middle]):
            viable = middle
        else:
            dead = middle
    fresh = _kernels.Acceptor(grammar)
    fresh.accept(data[: start + viable])
    refused_before = fresh.refused_at
    fresh.accept(piece[viable:dead])
    at = fresh.refused_at
    if at == refused_before:
        # A policy refuses a token without a word on where it began: the last character tells, or the word before it.
        is_word = data[start + viable : start + dead].isalnum() or not acceptor.allows(piece[:viable] + b" ")
        at = _word_start(data, start + viable) if is_word else start + viable
    blanks = data[at : len(data) - len(data[at:].lstrip())]
    if b"\n" in blanks and _read(data[:at], grammar).allows(b"\n"):
        at += len(blanks)  # what is wrong with a line's indentation is told of its first token
    return _Stop(at, max(at, start + viable), _read(data[:at], grammar))


def _read(before: bytes, grammar: _kernels.Grammar) -> _kernels.Acceptor:
    """An acceptor that has read a text in two pieces: its blanks at the end, and what is before them."""
    acceptor = _kernels.Acceptor(grammar)
    acceptor.accept(before.rstrip())
    acceptor.accept(before[len(before.rstrip()) :])
    return acceptor


def _gets_further(other: _Stop | str | None, stop: _Stop) -> bool:
    return not isinstance(other, _Stop) or other.at > stop.at


def _word_start(data: bytes, at: int) -> int:
    return at - len(_LAST_WORD.search(data[max(0, at - 200) : at])[0])  # type: ignore[index]


def _expected(
    before: bytes, acceptor: _kernels.Acceptor, literals: frozenset[str], has_layout: bool
) -> list[str]:
    """The names of the tokens that may come after `before`, which the acceptor has read (`_read`)."""
    if has_layout and b"\n" in before[len(before.rstrip()) :]:
        return _expected_on_new_line(acceptor, literals)
    if before and not before[-1:].isspace() and acceptor.allows(b" "):
        acceptor.accept(b" ")  # ends the token before
    return [
        name for name in acceptor.expected() if name not in _NOT_TOLD and _may_come(name, acceptor, literals)
    ]


def _expected_on_new_line(acceptor: _kernels.Acceptor, literals: frozenset[str]) -> list[str]:
    """The same where layout is grammar: what a line may begin with, else what is wrong with its indentation."""
    names: dict[str, None] = {}
    for letter in map(bytes, zip(range(ord("a"), ord("z") + 1), strict=False)):
        # Its first character tells what its indentation means.
        if acceptor.accept(letter):
            names |= dict.fromkeys(acceptor.expected())
        acceptor.rollback(1)
    known = {name for name in names if name in literals or readable(name) in _EXAMPLES}
    expected = [name for name in names if name in known and _may_come(name, acceptor, literals)]
    if expected:
        return expected
    acceptor.rollback(1)
    return ["_indent" if "_indent" in acceptor.expected() else "_dedent"]


def _may_come(name: str, acceptor: _kernels.Acceptor, literals: frozenset[str]) -> bool:
    """Whether a token of that name may come; the tables alone do not know what the language forbids."""
    keyword = _KEYWORD.fullmatch(name)
    if name == "end":
        return acceptor.accepts_whole(b"")
    if keyword or name in literals:
        text = (keyword[1] if keyword else name).encode()
        return acceptor.allows(text + b" " if text[-1:].isalnum() else text)
    examples = _EXAMPLES.get(readable(name), ())
    return not examples or any(acceptor.allows(example) for example in examples)


def _token_at(text: str, literals: frozenset[str]) -> str:
    """What a text begins with, as people call it."""
    if not text:
        return "the end of the file"
    if text[0] in "\r\n":
        return "a new line"
    word = re.match(r"\d[\w.]*|\w+", text)
    if word:
        return f"`{word[0][:40]}`"
    longest = max((each for each in literals if text.startswith(each)), key=len, default=text[0])
    return f"`{longest}`" if longest.isprintable() else f"U+{ord(longest[0]):04X}"


@cache
def _literals(loaded: LoadedGrammar) -> frozenset[str]:
    """The tokens of the grammar that are called what they are written."""
    language = loaded.language
    ids = range(1, language.node_kind_count)
    return frozenset(
        language.node_kind_for_id(number) or ""
        for number in ids
        if language.node_kind_is_visible(number) and not language.node_kind_is_named(number)
    ) - {""}


@cache
def _has_layout(loaded: LoadedGrammar) -> bool:
    language = loaded.language
    return "_indent" in (language.node_kind_for_id(number) for number in range(language.node_kind_count))


def _rank(told: str) -> int:
    groups = (_ENDS, _LAYOUT_PHRASES, set(_KINDS), _OPENERS)
    group = next((number for number, group in enumerate(groups) if told in group), None)
    if group is not None:
        return group
    if told in ("an operator", "a keyword") or _OPERATOR.fullmatch(told):
        return len(groups) + 1
    return len(groups) if told.startswith("`") else len(groups) + 2


_PHRASES = {
    "end": "the end of the file",
    "_newline": "a new line",
    "_indent": "an indented block",
    "_dedent": "the indentation of an enclosing block",
    "_automatic_semicolon": "`;`",
    "_function_signature_automatic_semicolon": "`;`",
}
_STRING_END = "the end of the string"
_KEYWORD = re.compile(r"(?:kw|keyword)_(\w+)")
_KINDS = {
    "identifier": re.compile(r"identifier|^jsx_name"),
    "number": re.compile(r"^_?(?:.*_)?(?:number|integer|float|decimal)(?:_literal)?$|_const$"),
    "string": re.compile(r"quote|string|^(?:[a-zA-Z8]{0,3}[\"'`])$"),
    "type": re.compile(r"primitive_type|sized_type"),
    "regular expression": re.compile(r"^regex"),
    "directive": re.compile(r"^preproc_|^#"),
    "comment": re.compile(r"comment"),
}
"""Kind of token → what the names of such tokens look like."""
_EXAMPLES = {"identifier": (b"x",), "number": (b"0", b"0 "), "string": (b'"', b"'", b"`", b"$")}
_DESCRIPTION = re.compile(r"_\w+|\w+_\w+")
_INSIDE_STRING = re.compile(r"^_?(?:raw_)?string_content$|string_fragment$|^_?template_chars$")
_NOT_TOLD = {
    "_indent",
    "_dedent",
    "comment",
    "marginalia",
    "line_continuation",
    "escape_sequence",
    "html_comment",
    "ERROR",
}
_LAYOUT_PHRASES = {_PHRASES[name] for name in ("end", "_newline", "_indent", "_dedent")}
_ENDS = {"`)`", "`]`", "`}`", "`,`", "`;`", "`:`"}
_OPENERS = {"`=`", "`(`", "`[`", "`{`", "`.`"}
_OPERATOR = re.compile(
    r"`(?:(?!=`|=>`|->`)[-+*/%&|^<>!=~@?]+|and|or|not|in|is|bitand|bitor|xor|compl|not_eq|instanceof)`"
)
_WORD = re.compile(r"`[A-Z_]+`")
_LAST_WORD = re.compile(rb"[\w\x80-\xff]*$")
