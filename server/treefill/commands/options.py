"""Arguments that several commands share."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from treefill.app import App
from treefill.commands.progress import TerminalProgress
from treefill.errors import BadInput
from treefill.models import Progress
from treefill.settings import load_settings
from treefill.text import Document, offset_at

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
CacheDir = Annotated[
    Path | None, typer.Option("--cache-dir", help="Where models are kept.", show_default=False)
]
EngineOption = Annotated[
    str | None, typer.Option("--engine", help="int8 or bitsandbytes.", show_default=False)
]
ModelOption = Annotated[str | None, typer.Option("--model", help="Which model.", show_default=False)]

_PLACE = re.compile(r"([1-9][0-9]{0,8}):([1-9][0-9]{0,8})")


def open_app(progress: Progress | None = None, **given: Any) -> App:
    """The app for one command: settings from file and environment, overruled by what is `given` and not None."""
    settings = load_settings(given, given_by="command line").settings
    return App(settings, progress=progress or TerminalProgress())


def offset_of(document: Document, place: str) -> int:
    """`LINE:COL`, both from 1 as editors show them, as an offset. Raises `BadInput`."""
    match = _PLACE.fullmatch(place.strip())
    if not match:
        raise BadInput(f"{place!r} is not a place: write LINE:COL, both counted from 1, as in 12:5.")
    return offset_at(document, int(match[1]), int(match[2]))
