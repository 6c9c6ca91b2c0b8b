"""`treefill model …`: the model store from the command line."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from treefill.commands.options import AsJson, CacheDir, open_app
from treefill.commands.progress import LineProgress
from treefill.errors import BrokenModel

model_app = typer.Typer(help="Get, check and choose models.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A model's name, hub id or path.", show_default=False)]
OptionalName = Annotated[
    str | None, typer.Argument(help="A model's name; the one in use if left out.", show_default=False)
]
Archive = Annotated[Path, typer.Argument(help="A .tar file.", show_default=False)]


@model_app.command("pull")
def pull(
    name: OptionalName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
    in_lines: Annotated[
        bool, typer.Option("--progress-lines", help="Tell the progress in JSON lines on standard error.")
    ] = False,
) -> None:
    """Download a model and convert it, unless it is here already."""
    app = open_app(LineProgress() if in_lines else None, cache_dir=cache_dir)
    files = app.store.pull(name or app.settings.model or app.store.current())
    _say(as_json, f"{files.name} is ready in {files.folder}", name=files.name, folder=str(files.folder))


@model_app.command("list")
def list_models(cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Show the models that are known and those that are here."""
    models = open_app(cache_dir=cache_dir).store.list()
    if as_json:
        fields = ("name", "licence", "installed", "in_use", "is_default", "download_bytes", "stored_bytes")
        print(json.dumps([{field: getattr(model, field) for field in fields} for model in models]))
        return
    table = Table("", "model", "licence", "download", "on disk")
    for model in models:
        mark = "in use" if model.in_use else ""
        on_disk = _megabytes(model.stored_bytes) if model.installed else "-"
        table.add_row(
            mark, model.name, model.licence or "not known", _megabytes(model.download_bytes), on_disk
        )
    Console().print(table)


@model_app.command("verify")
def verify(name: OptionalName = None, cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Read every file of a model and compare its hash. Exits with 1 where one differs."""
    store = open_app(cache_dir=cache_dir).store
    try:
        checked = store.verify(name or store.current())
    except BrokenModel as error:
        print(f"treefill: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    files = [{"path": str(file.path), "n_bytes": file.n_bytes, "sha256": file.sha256} for file in checked]
    _say(as_json, "\n".join(f"OK {file['path']}" for file in files), files=files)


@model_app.command("use")
def use(name: Name, cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Complete with this model from now on."""
    open_app(cache_dir=cache_dir).store.use(name)
    _say(as_json, f"{name} is in use", name=name)


@model_app.command("remove")
def remove(name: Name, cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Delete a model and what was kept for it."""
    open_app(cache_dir=cache_dir).store.remove(name)
    _say(as_json, f"{name} is removed", name=name)


@model_app.command("path")
def path(name: OptionalName = None, cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Print the folder of a model."""
    folder = open_app(cache_dir=cache_dir).store.path(name)
    _say(as_json, str(folder), folder=str(folder))


@model_app.command("export")
def export(name: Name, archive: Archive, cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Pack a model into one file, for a machine without a network."""
    open_app(cache_dir=cache_dir).store.export(name, archive)
    _say(as_json, f"{archive} holds {name}", name=name, archive=str(archive))


@model_app.command("import")
def import_(archive: Archive, cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Take in a model that was packed on another machine."""
    files = open_app(cache_dir=cache_dir).store.import_(archive)
    _say(as_json, f"{files.name} is ready in {files.folder}", name=files.name, folder=str(files.folder))


def _say(as_json: bool, sentence: str, **fields: object) -> None:
    print(json.dumps(fields) if as_json else sentence)


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.0f} MB"
