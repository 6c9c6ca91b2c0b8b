"""Words, strings and comments of a text in any language, by what its folder says of quotes and comments.

It serves while a text grows, where a tree is of no use yet, and where there is none. What it takes for a name may be
part of something else, as in a regular expression between slashes: whoever refuses something by it alone is too strict
there.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache

from treefill.syntax.languages import Language

_DOLLAR_IN_NAMES = frozenset({"javascript", "typescript", "typescriptreact", "java", "dart"})
_JOINTS = frozenset({".", "::", "->", "?.", ":"})
"""What stands between the names of a path."""
_DEFINING = frozenset({
    "def", "function", "func", "fun", "fn", "sub", "proc", "class", "struct", "interface", "trait", "impl", "enum",
    "union", "type", "macro", "record", "module", "new",
})  # fmt: skip
"""After these words a name with a bracket behind it is no call."""
CLOSERS = {"(": ")", "[": "]", "{": "}"}


class Kind(Enum):
    """What a lexeme is."""

    WORD = "word"
    STRING = "string"
    COMMENT = "comment"
    BLANK = "blank"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A piece of a text, from `start` to `end`."""

    kind: Kind
    start: int
    end: int
    text: str
    inside: str = ""
    """Of a string, what is between the quotes."""
    is_closed: bool = True
    """False for a string or comment that the text leaves open."""


def lexemes(text: str, language: Language) -> list[Lexeme]:
    """All of a text that begins in code."""
    found = []
    for match in _pattern(language).finditer(text):
        kind = Kind(match.lastgroup)
        if kind is Kind.STRING:
            found.append(_string(match, language))
        else:
            is_closed = kind is not Kind.COMMENT or _is_ended(match[0], language)
            found.append(Lexeme(kind, match.start(), match.end(), match[0], is_closed=is_closed))
    return found


def lead_start(text: str, language: Language) -> int:
    """Where the last line of `text` begins that begins in code."""
    start = text.rfind("\n") + 1
    for lexeme in reversed(lexemes(text, language)):
        is_over = lexeme.end < start or (lexeme.end == start and lexeme.is_closed)
        if lexeme.start < start and not is_over and lexeme.kind in (Kind.STRING, Kind.COMMENT):
            start = text.rfind("\n", 0, lexeme.start) + 1
    return start


@dataclass(frozen=True, slots=True)
class Call:
    """A path of names with an opening bracket behind it."""

    callee: str
    start: int
    bracket: int
    """Where the bracket stands."""


def calls_in(found: list[Lexeme], language: Language) -> Iterator[Call]:
    """What looks like a call; what looks like a definition is none."""
    code = [lexeme for lexeme in found if lexeme.kind not in (Kind.BLANK, Kind.COMMENT)]
    keywords = {*_DEFINING, *language.declarations}
    for number, bracket in enumerate(code):
        if bracket.text != "(" or not number or code[number - 1].kind is not Kind.WORD:
            continue
        first = number - 1
        while first >= 2 and code[first - 1].text in _JOINTS and code[first - 2].kind is Kind.WORD:
            first -= 2
        if first and code[first - 1].text in keywords:
            continue
        callee = "".join(each.text for each in code[first:number])
        yield Call(callee, code[first].start, bracket.start)


def open_brackets(found: list[Lexeme]) -> str:
    """The brackets that are open at the end, outermost first."""
    opened: list[str] = []
    for lexeme in found:
        if lexeme.text in CLOSERS and lexeme.kind is Kind.OTHER:
            opened.append(lexeme.text)
        elif opened and lexeme.kind is Kind.OTHER and CLOSERS[opened[-1]] == lexeme.text:
            opened.pop()
    return "".join(opened)


def _string(match: re.Match[str], language: Language) -> Lexeme:
    text, quotes = match[0], _quotes(language)
    number = next(number for number in range(len(quotes)) if match.start(f"open{number}") >= 0)
    is_closed = match[f"close{number}"] is not None
    begin = match.end(f"open{number}") - match.start()
    inside = text[begin : -len(quotes[number]) if is_closed else None]
    return Lexeme(Kind.STRING, match.start(), match.end(), text, inside, is_closed)


@cache
def _quotes(language: Language) -> tuple[str, ...]:
    """The longest first."""
    return tuple(sorted({*language.quotes, *language.long_quotes}, key=len, reverse=True))


def _is_ended(comment: str, language: Language) -> bool:
    """A comment of a line ends before the line's end, so that it may always go on."""
    return any(
        comment.startswith(begin) and len(comment) >= len(begin) + len(end) and comment.endswith(end)
        for begin, end in language.block_comment
    )


@cache
def _pattern(language: Language) -> re.Pattern[str]:
    """Of the alternatives the first that fits is taken, and each of them takes all that it can."""
    bodies = "|".join(_body(number, quote, language) for number, quote in enumerate(_quotes(language)))
    blocks = [rf"{re.escape(begin)}[\s\S]*?(?:{re.escape(end)}|\Z)" for begin, end in language.block_comment]
    comments = "|".join([*blocks, *(rf"{re.escape(begin)}[^\n]*" for begin in language.line_comment)])
    word = r"[^\W\d][\w$]*|\$[\w$]+" if language.id in _DOLLAR_IN_NAMES else r"[^\W\d]\w*"
    character = "" if "'" in _quotes(language) else r"'(?:\\.|[^'\\\n])'|"
    parts = [
        f"(?P<comment>{comments})" if comments else "",
        rf"(?P<string>(?:[A-Za-z]{{1,3}}|[@$]{{1,2}})?(?:{bodies}))" if bodies else "",
        rf"(?P<word>{word})",
        r"(?P<blank>\s+)",
        rf"(?P<other>{character}::|->|\?\.|\d[\w.]*|[\s\S])",
    ]
    return re.compile("|".join(filter(None, parts)))


def _body(number: int, quote: str, language: Language) -> str:
    """A string from its quote to the same quote, or as far as it goes."""
    marks = re.escape(quote)
    is_long = quote in language.long_quotes
    if language.escape:
        escape = re.escape(language.escape)
        inner = rf"{escape}(?:[\s\S]|\Z)|(?!{marks}|{escape})" + (r"[\s\S]" if is_long else r"[^\n]")
    else:
        inner = rf"{marks}{marks}|(?!{marks})" + (r"[\s\S]" if is_long else r"[^\n]")
    return rf"(?P<open{number}>{marks})(?:{inner})*(?P<close{number}>{marks})?"
