"""`treefill languages`: which languages are known, and what stands guard over each."""

import json
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from treefill.commands.options import AsJson
from treefill.syntax.languages import languages
from treefill.syntax.overview import LanguageRow, overview

NOT_MEASURED = "not measured"


def languages_command(as_json: AsJson = False) -> None:
    """Show the languages, their grammars, and how completions in each are checked."""
    rows = list(overview(languages().values()))
    if as_json:
        print(json.dumps({"languages": [_json(row) for row in rows]}))
        return
    console = Console()
    console.print(_table(rows))
    for note in dict.fromkeys(row.note for row in rows if row.note):
        named = ", ".join(row.id for row in rows if row.note == note)
        console.print(Text(f"{named}: ", "bold") + Text(note, ""))
    console.print(
        Text("Reach: the share of random places in real files where the grammar is at work.", "dim")
    )


def _table(rows: list[LanguageRow]) -> Table:
    table = Table("language", "files", "grammar", "checked by")
    table.add_column("reach", justify="right")
    for row in rows:
        grammars = "\n".join(f"{each.name} {each.installed or '–'}" for each in row.grammars)
        table.add_row(row.id, " ".join(row.suffixes), grammars, str(row.guard), reach_told(row))
    return table


def reach_told(row: LanguageRow) -> str:
    """The measured reach in words.

    >>> from treefill.syntax.languages import Reach
    >>> from treefill.syntax.overview import Guard
    >>> reach_told(LanguageRow("go", (), (), Guard.TABLES, "", Reach(0.987, 300, 50)))
    '98.7 %'
    """
    return f"{row.reach.share * 100:.3g} %" if row.reach else NOT_MEASURED


def _json(row: LanguageRow) -> dict[str, Any]:
    return asdict(row) | {"guard": str(row.guard)}
