"""`treefill settings`: every setting, its value, its default and where the value came from."""

import json

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from treefill.commands.options import AsJson
from treefill.settings import Settings, default_file, load_settings


def settings_command(as_json: AsJson = False) -> None:
    """Show every setting. They are made in the settings file, by TREEFILL_* variables, or by the editor."""
    loaded = load_settings()
    values = loaded.settings.model_dump(mode="json")
    if as_json:
        defaults = Settings.model_construct().model_dump(mode="json")
        rows = [
            {
                "name": name,
                "value": values[name],
                "default": defaults[name],
                "origin": loaded.origins[name],
                "description": field.description,
            }
            for name, field in Settings.model_fields.items()
        ]
        print(json.dumps({"file": str(default_file()), "settings": rows}))
        return
    table = Table("setting", Column("value", overflow="fold"), Column("from", overflow="fold"), "meaning")
    for name, field in Settings.model_fields.items():
        style = "" if loaded.origins[name] == "default" else "bold"
        table.add_row(
            name, Text(json.dumps(values[name]), style), loaded.origins[name], Text(field.description or "")
        )
    console = Console()
    console.print(table)
    console.print(
        Text(f"Settings file: {default_file()}" + ("" if default_file().exists() else " (none yet)"))
    )
