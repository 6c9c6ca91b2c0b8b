"""`treefill masks …`: what was kept of the masks that were made before."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from treefill.commands.options import AsJson, CacheDir, open_app
from treefill.errors import GrammarError

if TYPE_CHECKING:
    from treefill.syntax.mask_file import MaskFile

masks_app = typer.Typer(help="Masks that were made before.", no_args_is_help=True)

MAX_CHI_SQUARE = 350.0
"""Of 256 buckets: many hashes that are spread as by chance are beyond it once in 30,000 times."""
MIN_HASHES = 2_000
"""Of fewer it tells nothing."""


@masks_app.command("doctor")
def doctor_command(cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Say whether the masks that are kept for the next process are whole, and how they are kept.

    Exits with 1 where a file is not as it was written.
    """
    from treefill.syntax.mask_file import read_mask_file

    folder = open_app(cache_dir=cache_dir).store.grammars_dir
    found: list[MaskFile] = []
    complaints: list[str] = []
    for path in sorted(folder.glob("*.masks")):
        try:
            found.append(read_mask_file(path))
        except GrammarError as error:
            complaints.append(str(error))
    complaints += [complaint for file in found for complaint in _complaints(file)]
    if as_json:
        print(json.dumps({"files": [file_json(file) for file in found], "complaints": complaints}))
    elif not found and not complaints:
        print(f"No masks are kept in {folder}: `treefill generate --masks dictionary` leaves some there.")
    else:
        Console(width=120).print(_table(found))
        for complaint in complaints:
            print(complaint)
    if complaints:
        raise typer.Exit(1)


def file_json(file: MaskFile) -> dict[str, Any]:
    """A file as programs read it."""
    keys = [len(record.key) for record in file.records]
    return {
        "file": file.name,
        "language": file.language,
        "bytes": file.n_bytes,
        "keys": len(file.records),
        "deeper": file.n_deeper,
        "masks": len(file.masks),
        "forms": dict(sorted(file.forms.items())),
        "key_bytes_p50": median(keys) if keys else 0,
        "key_bytes_max": max(keys, default=0),
        "open_tokens_max": max((record.n_open for record in file.records), default=0),
        "shared_hashes": file.n_shared_hashes,
        "chi_square": round(file.chi_square, 1),
        "idle_bytes": file.n_idle_bytes,
        "damaged": file.n_damaged,
    }


def _complaints(file: MaskFile) -> list[str]:
    found = []
    if file.n_damaged:
        n = "1 record is" if file.n_damaged == 1 else f"{file.n_damaged} records are"
        found.append(f"{file.name}: {n} damaged; none of the file will be used from there on.")
    if file.n_shared_hashes:
        found.append(f"{file.name}: {file.n_shared_hashes} keys share a hash and are not found.")
    if len(file.records) >= MIN_HASHES and file.chi_square > MAX_CHI_SQUARE:
        found.append(f"{file.name}: the hashes are not spread evenly (chi-square {file.chi_square:.0f}).")
    return found


def _table(files: list[MaskFile]) -> Table:
    table = Table()
    for heading in (
        "grammar",
        "MB",
        "keys",
        "of these deeper",
        "masks",
        "as ids / rest / bits",
        "key bytes p50, max",
    ):
        table.add_column(heading, justify="left" if heading == "grammar" else "right")
    table.add_column("open", justify="right")
    table.add_column("chi²/256", justify="right")
    table.add_column("idle bytes", justify="right")
    for file in files:
        row = file_json(file)
        forms = " / ".join(str(row["forms"].get(form, 0)) for form in ("allowed", "refused", "bits"))
        table.add_row(
            row["language"],
            f"{row['bytes'] / 1e6:.1f}",
            f"{row['keys']:,}",
            f"{row['deeper']:,}",
            f"{row['masks']:,}",
            forms,
            f"{row['key_bytes_p50']:.0f}, {row['key_bytes_max']}",
            str(row["open_tokens_max"]),
            f"{row['chi_square']:.0f}",
            str(row["idle_bytes"]),
        )
    return table
