"""`treefill rules check`: what a file of rules says, or what is wrong with it and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treefill.commands.options import AsJson

if TYPE_CHECKING:
    from treefill.syntax.rules import Rule
    from treefill.syntax.rules.patterns import Pattern, Patterns

rules_app = typer.Typer(help="Rules that suggestions are held to (docs/rules.md).", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A file of rules, TOML.")]


@rules_app.command("check")
def check_command(file: File, as_json: AsJson = False) -> None:
    """Say what the rules in FILE are. Exits with 2 where they are none, with the line and column of the first fault."""
    from treefill.syntax.rules.read import read_rules

    rules = read_rules(file.absolute()).each
    if as_json:
        print(json.dumps({"file": str(file), "rules": [_row(rule) for rule in rules]}))
        return
    for rule in rules:
        print(rule.name + (f" ({rule.because})" if rule.because else ""))
        for line in _lines(rule):
            print(f"  {line}")
    n_rules = f"{len(rules)} rule" + ("" if len(rules) == 1 else "s")
    print(f"{file}: {n_rules}, nothing wrong with {'it' if len(rules) == 1 else 'them'}")


def _lines(rule: Rule) -> list[str]:
    lines = [f"in {', '.join(rule.languages) or 'every language'}"]
    for what, patterns in (("names", rule.names), ("calls", rule.calls), ("strings", rule.strings)):
        if patterns:
            lines += [f"{what} must be one of {_listed(patterns.allow)}"] if patterns.allow else []
            lines += [f"no {what} that are {_listed(patterns.forbid)}"] if patterns.forbid else []
    lines += [f"no {', '.join(rule.kinds)}"] if rule.kinds else []
    lines += [f"what documents code begins with {_listed(rule.docs)}"] if rule.docs else []
    lines += [
        f"line {number} of a new file is `{line.text}`" for number, line in enumerate(rule.header, start=1)
    ]
    return [*lines, *(["SQL only reads"] if rule.is_read_only else [])]


def _listed(patterns: tuple[Pattern, ...]) -> str:
    return " or ".join(f"`{pattern.text}`" for pattern in patterns)


def _row(rule: Rule) -> dict[str, Any]:
    def texts(patterns: tuple[Pattern, ...]) -> list[str]:
        return [pattern.text for pattern in patterns]

    def both(patterns: Patterns | None) -> dict[str, list[str]] | None:
        return {"allow": texts(patterns.allow), "forbid": texts(patterns.forbid)} if patterns else None

    return {
        "name": rule.name,
        "because": rule.because,
        "languages": list(rule.languages),
        "names": both(rule.names),
        "calls": both(rule.calls),
        "strings": both(rule.strings),
        "kinds": list(rule.kinds),
        "docs": texts(rule.docs),
        "header": texts(rule.header),
        "is_read_only": rule.is_read_only,
    }
