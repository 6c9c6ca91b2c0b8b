"""Rules from TOML. What is wrong with a file is told with its line, its column and what was expected there."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from treefill.errors import BadRules, GrammarError
from treefill.syntax.languages import language_named, languages
from treefill.syntax.rules.form import NO_RULES, Rule, Rules
from treefill.syntax.rules.kinds import kinds_in
from treefill.syntax.rules.patterns import Pattern, Patterns, compile_pattern
from treefill.syntax.rules.places import Path as Where
from treefill.syntax.rules.places import line_and_column, places_in

WORKSPACE_FILE = "treefill-rules.toml"
"""At the root of a workspace that the user trusts."""
MAX_FILE_BYTES = 1 << 18
MAX_RULES = 100
MAX_PATTERNS = 200
"""In one file."""
MAX_NAME_CHARS = 80
MAX_BECAUSE_CHARS = 200
N_KEPT_FILES = 8
_KEYS = ("name", "because", "languages", "names", "calls", "strings", "kinds", "docs", "header", "sql")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def rules_in_force(file: Path | None, trusted: Iterable[Path], workspace_root: Path | None) -> Rules:
    """The user's own rules, and those of the workspace where the user trusts it.

    Raises `BadRules` where a file is not what it should be: then nothing can be held to it.
    """
    each = read_rules(file.expanduser()).each if file is not None else ()
    if workspace_root is None:
        return Rules(each) if each else NO_RULES
    own = workspace_root / WORKSPACE_FILE
    if not os.path.lexists(own):
        return Rules(each) if each else NO_RULES
    if not _is_within(workspace_root, trusted):
        note = f"{own} is not read: the setting trusted_workspaces does not name its folder."
        return Rules(each, note)
    return Rules((*each, *read_rules(own).each))


def read_rules(file: Path) -> Rules:
    """The rules of a file, read anew when it has changed. Raises `BadRules`."""
    if not file.is_absolute():
        raise BadRules(f"The rules are to be in {file}: name that file by its whole path.")
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            raise BadRules(f"{file} is no file: name one by the setting rules.")
        return _read_rules(file, found.st_mtime_ns, found.st_size)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadRules(f"The rules in {file} cannot be read ({reason}): see to the file.") from None


@lru_cache(maxsize=N_KEPT_FILES)
def _read_rules(file: Path, _mtime_ns: int, n_bytes: int) -> Rules:
    with file.open("rb") as opened:
        data = opened.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise BadRules(f"{file} has {n_bytes} bytes: rules have at most {MAX_FILE_BYTES}.")
    return rules_from(data, str(file))


def rules_from(data: bytes, file: str) -> Rules:
    """The rules that `data` holds. Raises `BadRules`: `FILE:LINE:COLUMN: expected …, found …`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = line_and_column(data, error.start)
        raise BadRules(f"{file}:{line}:{column}: expected UTF-8.") from None
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise BadRules(f"{file}:1:1: expected tables and lists that are not nested so deeply.") from None
    except tomllib.TOMLDecodeError as error:
        raise BadRules(_syntax_error(str(error), text, file)) from None
    except ValueError:  # Python reads no number of so many digits
        raise BadRules(f"{file}:1:1: expected rules, found a number of thousands of digits.") from None
    try:
        return Rules(_Reader(file).rules(table))
    except _Wrong as wrong:
        line, column = places_in(text).line_and_column(wrong.where, wrong.is_key)
        found = f", found {wrong.found}" if wrong.found else ""
        sentence = f"expected {wrong.expected}{found}"
        raise BadRules(f"{file}:{line}:{column}: {sentence}{'' if sentence.endswith('?') else '.'}") from None


class _Wrong(Exception):
    def __init__(self, where: Where, expected: str, found: str = "", is_key: bool = False) -> None:
        super().__init__()
        self.where, self.expected, self.found, self.is_key = where, expected, found, is_key


class _Reader:
    """Turns the tables of one file into rules; raises `_Wrong` at the first thing that is none."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._n_patterns = 0

    def rules(self, table: dict[str, Any]) -> tuple[Rule, ...]:
        _known(table, ("rule",), ())
        tables = _listed(table.get("rule", []), ("rule",), "tables with the head [[rule]]")
        if len(tables) > MAX_RULES:
            raise _Wrong(("rule", MAX_RULES), f"at most {MAX_RULES} rules", is_key=True)
        rules = tuple(self._rule(each, ("rule", number)) for number, each in enumerate(tables))
        for number, rule in enumerate(rules):
            if rule.name in [other.name for other in rules[:number]]:
                raise _Wrong(("rule", number, "name"), "a name that no other rule has", _found(rule.name))
        return rules

    def _rule(self, table: Any, where: Where) -> Rule:
        if not isinstance(table, dict):
            raise _Wrong(where, "a table with the head [[rule]]", _found(table))
        _known(table, _KEYS, where)
        if "name" not in table:
            raise _Wrong(where, 'a name, as in name = "no eval"', is_key=True)
        rule = Rule(
            name=_line(table["name"], (*where, "name"), MAX_NAME_CHARS),
            because=_line(table.get("because", " "), (*where, "because"), MAX_BECAUSE_CHARS),
            languages=self._languages(table.get("languages", []), (*where, "languages")),
            names=self._patterns(table, "names", where),
            calls=self._patterns(table, "calls", where),
            strings=self._patterns(table, "strings", where),
            kinds=self._kinds(table, where),
            docs=self._list_of_patterns(table, "docs", "begins", where, only_beginning=True),
            header=self._list_of_patterns(table, "header", "lines", where),
            is_read_only=_is_read_only(table, where),
            file=self._file,
        )
        says = (rule.names, rule.calls, rule.strings, rule.kinds, rule.docs, rule.header, rule.is_read_only)
        if not any(says):
            raise _Wrong(where, f"something that it says: {_either(_KEYS[3:])}", is_key=True)
        _fits_languages(rule, where)
        return rule

    def _languages(self, value: Any, where: Where) -> tuple[str, ...]:
        names = _listed(value, where, "a list of languages")
        found = []
        for number, name in enumerate(names):
            language = language_named(name) if isinstance(name, str) else None
            if language is None:
                close = get_close_matches(str(name), languages(), n=1)
                hint = f"; did you mean {close[0]}?" if close else "; `treefill languages` lists them"
                raise _Wrong((*where, number), "a language", f"{_found(name)}{hint}")
            found.append(language.id)
        return tuple(found)

    def _patterns(self, table: dict[str, Any], key: str, where: Where) -> Patterns | None:
        if key not in table:
            return None
        where = (*where, key)
        inner = _table(table[key], where, "allow", "forbid")
        allow = self._compiled(inner.get("allow", []), (*where, "allow"))
        forbid = self._compiled(inner.get("forbid", []), (*where, "forbid"))
        if not allow and not forbid:
            raise _Wrong(where, f"patterns in {key}.allow or {key}.forbid")
        return Patterns(allow, forbid)

    def _kinds(self, table: dict[str, Any], where: Where) -> tuple[str, ...]:
        if "kinds" not in table:
            return ()
        where = (*where, "kinds")
        where, kinds = (*where, "forbid"), _table(table["kinds"], where, "forbid").get("forbid", [])
        names = _listed(kinds, where, "a list of kinds of nodes")
        if not names:
            raise _Wrong(where, 'kinds of nodes, as in kinds.forbid = ["global_statement"]')
        return tuple(_line(name, (*where, number), MAX_NAME_CHARS) for number, name in enumerate(names))

    def _list_of_patterns(
        self, table: dict[str, Any], key: str, inner: str, where: Where, only_beginning: bool = False
    ) -> tuple[Pattern, ...]:
        if key not in table:
            return ()
        where = (*where, key)
        values = _table(table[key], where, inner).get(inner, [])
        found = self._compiled(values, (*where, inner), only_beginning)
        if not found:
            raise _Wrong(where, f"patterns in {key}.{inner}")
        return found

    def _compiled(self, value: Any, where: Where, only_beginning: bool = False) -> tuple[Pattern, ...]:
        patterns = []
        for number, text in enumerate(_listed(value, where, "a list of patterns")):
            if not isinstance(text, str):
                raise _Wrong((*where, number), "a pattern, as text", _found(text))
            self._n_patterns += 1
            if self._n_patterns > MAX_PATTERNS:
                raise _Wrong((*where, number), f"at most {MAX_PATTERNS} patterns in a file")
            try:
                patterns.append(compile_pattern(text, only_beginning))
            except ValueError as error:
                raise _Wrong((*where, number), str(error), _found(text)) from None
        return tuple(patterns)


def _fits_languages(rule: Rule, where: Where) -> None:
    """What only some languages have is a rule of those languages."""
    if rule.is_read_only and set(rule.languages) - {"sql"}:
        raise _Wrong((*where, "languages"), '["sql"], or no languages, beside sql = "read-only"')
    for key, is_there in (("kinds", rule.kinds), ("header", rule.header)):
        if is_there and not rule.languages:
            raise _Wrong(
                (*where, key), f"languages beside {key}, which each language has of its own", is_key=True
            )
    for number, kind in enumerate(rule.kinds):
        known = _kinds_of(rule.languages)
        if known is not None and kind not in known:
            close = get_close_matches(kind, known, n=3)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            expected = f"a kind of node that the grammar of {' or '.join(rule.languages)} has"
            raise _Wrong((*where, "kinds", "forbid", number), expected, _found(kind) + hint)


def _kinds_of(names: Sequence[str]) -> set[str] | None:
    """Of all the languages' grammars; None where one of them is not to be had."""
    kinds: set[str] = set()
    for name in names:
        try:
            kinds |= kinds_in(languages()[name]).all
        except GrammarError:
            return None
    return kinds


def _is_read_only(table: dict[str, Any], where: Where) -> bool:
    if "sql" not in table:
        return False
    if table["sql"] != "read-only":
        raise _Wrong((*where, "sql"), '"read-only"', _found(table["sql"]))
    return True


def _known(table: dict[str, Any], keys: tuple[str, ...], where: Where) -> None:
    for key in table:
        if key not in keys:
            close = get_close_matches(key, keys, n=1)
            expected = close[0] if close else _either(keys)
            raise _Wrong((*where, key), expected, f"`{_short(key)}`", is_key=True)


def _table(value: Any, where: Where, *keys: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(where, f"{where[-1]}.{_either(keys)}", _found(value))
    _known(value, keys, where)
    return value


def _listed(value: Any, where: Where, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise _Wrong(where, what, _found(value))
    return value


def _line(value: Any, where: Where, n_most: int) -> str:
    is_line = isinstance(value, str) and bool(value) and len(value) <= n_most and value.isprintable()
    if not is_line:
        raise _Wrong(where, f"a text of one line, 1 to {n_most} characters", _found(value))
    return str(value).strip()


def _found(value: Any) -> str:
    names: list[tuple[type, Callable[[Any], str]]] = [
        (bool, lambda v: str(v).lower()),
        (str, lambda v: f"`{_short(v)}`"),
        (list, lambda _: "a list"),
        (dict, lambda _: "a table"),
        (int, lambda _: "a number"),
        (float, lambda _: "a number"),
    ]
    return next((tell(value) for kind, tell in names if isinstance(value, kind)), "a time")


def _short(text: str) -> str:
    shown = "".join(char if char.isprintable() else "·" for char in text[:41])
    return shown if len(text) <= 40 else f"{shown[:40]}…"


def _either(keys: Sequence[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{', '.join(keys[:-1])} or {keys[-1]}"


def _syntax_error(message: str, text: str, file: str) -> str:
    """Python's reader tells its place at the end of its message."""
    place = _AT.search(message)
    if place is None or place[1] is None:
        line, column = line_and_column(text.encode(errors="replace"), len(text.encode(errors="replace")))
    else:
        line, column = int(place[1]), int(place[2])
    told = message[: place.start()] if place else message
    return f"{file}:{line}:{column}: {told[:1].lower()}{_short_line(told[1:])}."


def _short_line(text: str) -> str:
    return " ".join(text.split())[:120].rstrip(".")


def _is_within(folder: Path, trusted: Iterable[Path]) -> bool:
    """Whether it is one of them or lies in one, wherever links lead."""
    try:
        real = folder.resolve()
        absolute = (path for each in trusted if (path := each.expanduser()).is_absolute())
        return any(real.is_relative_to(path.resolve()) for path in absolute)
    except (OSError, RuntimeError, ValueError):
        return False
