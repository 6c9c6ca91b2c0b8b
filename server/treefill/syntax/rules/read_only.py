"""SQL that only reads: SELECT, WITH … SELECT, EXPLAIN of these, SHOW and VALUES.

It is told by words, for all dialects alike, with a tree or without one: how a statement begins, and words that write,
wherever they stand. What dialects read differently, so that one of them may see a statement where another sees a string
or a comment, is refused. A column that is called as a word that writes is refused where it is not quoted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARS = 500_000
_BEGINNINGS = frozenset({"SELECT", "WITH", "EXPLAIN", "SHOW", "VALUES"})
_EXPLAINED = frozenset({"SELECT", "WITH", "VALUES"})
_HOW_TO_EXPLAIN = frozenset({
    "ANALYZE", "ANALYSE", "VERBOSE", "EXTENDED", "PARTITIONS", "QUERY", "PLAN", "FORMAT", "JSON", "TEXT", "XML",
    "YAML", "TREE", "TRADITIONAL",
})  # fmt: skip
_WRITING = frozenset({
    "INSERT", "INTO", "UPDATE", "DELETE", "MERGE", "REPLACE", "CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT",
    "REVOKE", "EXEC", "EXECUTE",
})  # fmt: skip
_FUNCTIONS = frozenset({"INSERT", "REPLACE", "TRUNCATE"})
"""With a bracket behind them, and not at the beginning, these are functions of some dialects."""
_LOCKING = frozenset({"SHARE", "KEY", "NO"})
"""After FOR: what is read is locked, which needs the right to write."""
_ELSEWHERE = "what dialects read differently"

_TOKEN = re.compile(
    r"""(?P<blank>\s+)
    |(?P<line>--[^\n]*)
    |(?P<block>/\*.*?(?:\*/|\Z))
    |(?P<dollars>\$\$.*?(?:\$\$|\Z)|\$(?P<tag>[^\W\d]\w*)\$.*?(?:\$(?P=tag)\$|\Z))
    |(?P<string>'(?:''|[^'])*(?:'|\Z))
    |(?P<quoted>"(?:""|[^"])*(?:"|\Z)|`[^`]*(?:`|\Z))
    |(?P<word>[^\W\d][\w$]*)
    |(?P<other>\d\w*|.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL that is no white space."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """In capitals; nothing where it is none."""
        return self.text.upper() if self.kind == "word" else ""


@dataclass(frozen=True, slots=True)
class Writing:
    """What does not only read."""

    what: str
    """In a few words."""
    at: int = 0
    """Where it begins."""


def tokens(text: str) -> Iterator[Token]:
    """Those of a text that begins in code."""
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind != "blank":
            yield Token("dollars" if kind == "tag" else kind, match[0], match.start(), match.end())


def statements(text: str) -> list[list[Token]]:
    """Each as its tokens; the last one may be empty."""
    found: list[list[Token]] = [[]]
    for token in tokens(text):
        if token.text == ";":
            found.append([])
        else:
            found[-1].append(token)
    return found


def writing(text: str, start: int, end: int, is_growing: bool = False) -> Writing | None:
    """What in the statements between two offsets does not only read; None where nothing does.

    With `is_growing` the text may go on, so that its last word is judged by what it may become.
    """
    if len(text) > MAX_CHARS:
        return Writing("what is too long to be judged")
    for statement in statements(text):
        is_touched = any(token.start < end and token.end > start for token in statement)
        if is_touched and (found := _writing(statement, text, is_growing)):
            return found
    return None


def statement_start(text: str) -> int:
    """Where the last statement of a text begins."""
    return max((token.end for token in tokens(text) if token.text == ";"), default=0)


def _writing(statement: list[Token], text: str, is_growing: bool) -> Writing | None:
    if (at := _read_differently(statement, text)) is not None:
        return Writing(_ELSEWHERE, at)
    code = [token for token in statement if token.kind not in ("line", "block")]
    while code and code[0].text == "(":
        code = code[1:]
    if not code:
        return None
    last_is_open = is_growing and code[-1].kind == "word" and code[-1].end == len(text)
    ended = code[:-1] if last_is_open else code
    if not ended:
        return None if _may_become(code[0].word, _BEGINNINGS) else _beginning(code[0])
    first, *others = ended
    if first.word not in _BEGINNINGS:
        return _beginning(first)
    if first.word == "EXPLAIN" and (found := _explained(others)):
        return found
    for number, token in enumerate(others):
        after = others[number + 1].text if number + 1 < len(others) else ""
        before = others[number - 1] if number else first
        if before.text == ".":
            continue
        is_function = token.word in _FUNCTIONS and after == "("
        is_undecided = token.word in _FUNCTIONS and is_growing and not after
        if token.word in _WRITING and not is_function and not is_undecided:
            return Writing(f"SQL that writes: `{token.text}`", token.start)
        if before.word == "FOR" and token.word in _LOCKING:
            return Writing(f"SQL that locks: `FOR {token.text}`", before.start)
    return None


def _beginning(first: Token) -> Writing:
    return Writing(f"SQL that begins with `{first.text[:20]}`", first.start)


def _may_become(word: str, words: frozenset[str]) -> bool:
    return any(each.startswith(word) for each in words)


def _explained(others: list[Token]) -> Writing | None:
    """What is explained may be carried out (EXPLAIN ANALYZE)."""
    depth = 0
    for token in others:
        depth += (token.text == "(") - (token.text == ")")
        is_how = depth > 0 or token.text in (")", "=") or token.word in _HOW_TO_EXPLAIN
        if token.word in _EXPLAINED:
            return None
        if not is_how:
            return Writing(f"EXPLAIN of `{token.text[:20]}`", token.start)
    return None


def _read_differently(statement: list[Token], text: str) -> int | None:
    """Where something is that not all dialects read alike; None where nothing is."""
    is_in_square = False
    for token in statement:
        inside = token.text
        is_in_square = inside == "[" or (is_in_square and inside != "]")
        if is_in_square and token.kind in ("string", "quoted") and "]" in inside:  # a name in square brackets
            return token.start
        if token.text == "\\":  # a command of a client
            return token.start
        if token.kind in ("string", "quoted") and ("\\'" in inside or '\\"' in inside):
            return token.start
        if token.kind == "block" and (inside.startswith("/*!") or "/*" in inside[2:]):
            return token.start
        if token.kind == "dollars" and _may_be_code(inside):
            return token.start
        if token.kind == "line" and inside[2:3].strip() and _may_be_code(inside[2:]):
            return token.start
        if token.text == "#" and _leaves_its_line(token, statement, text):
            return token.start
    return None


def _may_be_code(text: str) -> bool:
    return any(
        token.text == ";" or token.kind in ("string", "quoted", "block") or token.word in _WRITING
        for token in tokens(text.strip("$"))
    )


def _leaves_its_line(mark: Token, statement: list[Token], text: str) -> bool:
    """Whether the rest of the line, which to MySQL is a comment, begins something that ends elsewhere, or ends a
    statement there.
    """
    line_end = text.find("\n", mark.end)
    line_end = len(text) if line_end < 0 else line_end
    return any(mark.end <= token.start < line_end < token.end for token in statement)
