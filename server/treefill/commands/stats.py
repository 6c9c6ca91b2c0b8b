"""`treefill stats`: what became of the suggestions on this machine, in numbers."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from treefill.commands.options import AsJson
from treefill.core.habit_file import HabitFile
from treefill.settings import load_settings
from treefill.statistics import StatisticsStore, report_on, state_file, state_folder

N_DAYS_SHOWN = 14


def stats_command(
    as_json: AsJson = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete all numbers, and habits that are kept.")
    ] = False,
) -> None:
    """Show how many suggestions were offered, accepted and kept, and how long they took. Only this machine knows."""
    settings = load_settings().settings
    store = StatisticsStore(state_file(settings.state_dir))
    if forget:
        _forget(store, HabitFile(state_folder(settings.state_dir)), as_json)
        return
    report = report_on(store.read().items())
    if as_json:
        print(json.dumps({"file": str(store.path), **report}))
        return
    console = Console()
    if report["since"] is None:
        console.print(Text("Nothing has been counted yet: editors count while you type in them."))
    else:
        _print(console, report)
    if not settings.statistics:
        console.print(Text("Nothing is counted at present: the setting statistics is false."))
    console.print(Text(f"Only numbers, in {store.path}; --forget removes them.", "dim"))


def _forget(store: StatisticsStore, habits: HabitFile, as_json: bool) -> None:
    was_there, had_habits = store.forget(), habits.remove()
    if as_json:
        print(json.dumps({"file": str(store.path), "removed": was_there, "habits_removed": had_habits}))
        return
    print(f"{store.path} is removed" if was_there else f"There was nothing in {store.path}")
    if had_habits:
        print(f"{habits.path} is removed")


def _print(console: Console, report: dict[str, Any]) -> None:
    console.print(_table("day", report["days"][-N_DAYS_SHOWN:]))
    console.print(_table("language", report["languages"], report["total"]))
    if any(each["syntax"][name] for each in report["languages"] for name in _SYNTAX_TOLD):
        console.print(_syntax_table(report["languages"]))
    for name, told in _lines(report):
        console.print(Text(f"{name}: ", "bold") + Text(told, ""))


def _table(name: str, rows: list[dict[str, Any]], total: dict[str, Any] | None = None) -> Table:
    table = Table(name)
    for column in ("offered", "accepted", "in part", "characters saved"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(row[name], *_cells(row))
    if total is not None:
        table.add_section()
        table.add_row("together", *_cells(total), style="bold")
    return table


_SYNTAX_TOLD = ("guarded", "unguarded", "cut", "invalid")


def _syntax_table(rows: list[dict[str, Any]]) -> Table:
    """How the grammars did: whether they stood guard while the model wrote, and what the last look at it found."""
    table = Table("grammar", title="What the grammars had to say", title_justify="left")
    for column in ("answers guarded", "share", "tokens", "first choice refused", "cut", "kept back"):
        table.add_column(column, justify="right")
    for row in rows:
        syntax = row["syntax"]
        if any(syntax[name] for name in _SYNTAX_TOLD):
            numbers = (syntax[name] for name in ("guarded_tokens", "refused_first", "cut", "invalid"))
            told = (f"{n:,}" for n in numbers)
            table.add_row(row["language"], f"{syntax['guarded']:,}", _percent(syntax["guarded_share"]), *told)
    return table


def _cells(row: dict[str, Any]) -> list[str]:
    columns = ("offered", "accepted", "partly_accepted", "characters_accepted")
    return [f"{row[column]:,}" for column in columns]


def _lines(report: dict[str, Any]) -> list[tuple[str, str]]:
    latency, cache = report["latency_ms"], report["cache"]
    n_prompt = cache["reused_tokens"] + cache["evaluated_tokens"]
    reused = _percent(cache["reused_tokens"] / n_prompt if n_prompt else None)
    declined = ", ".join(f"{reason} {n:,}" for reason, n in report["declined"].items())
    return [
        ("Since", report["since"]),
        ("Accepted", f"{_percent(report['acceptance_rate'])} of what was offered"),
        ("Kept", f"{_percent(report['kept_share'])} of accepted characters, a minute later"),
        ("Decoded answers", _times(latency["decoded"])),
        ("Reused answers", _times(latency["reused"])),
        ("Answers without the model", _times(latency["at_once"])),
        ("Of these, accepted", _without_model(report["without_model"])),
        ("Tokens", f"{reused} of {n_prompt:,} prompt tokens reused, {cache['decoded_tokens']:,} decoded"),
        ("Answered with nothing", declined or "never"),
    ]


def _without_model(sources: dict[str, dict[str, int]]) -> str:
    told = {"template": "templates", "habit": "habits"}
    return ", ".join(
        f"{each['accepted']:,} of {each['offered']:,} {told[name]}" for name, each in sources.items()
    )


def _times(times: dict[str, Any]) -> str:
    if not times["n"]:
        return "none"
    p50, p95, p99 = (f"{times[name]:,.3g}" for name in ("p50", "p95", "p99"))
    return f"{times['n']:,}; half within {p50} ms, 95 % within {p95} ms, 99 % within {p99} ms"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"
