"""`treefill doctor`: is everything here that a completion needs? One line a check, OK or the remedy."""

import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import psutil
import typer
from rich.console import Console
from rich.text import Text

from treefill.app import App
from treefill.commands.options import AsJson, CacheDir, open_app
from treefill.errors import TreefillError
from treefill.models import ModelFiles
from treefill.settings import Settings

SPARE_BYTES = 200_000_000
"""What Python takes, front and core together, beside the mapped weights and the key/value cache."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    is_ok: bool
    found: str
    """What there is."""
    remedy: str = ""
    """What to do where it is not OK."""


def doctor_command(cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Check Python, kernels, model and memory. Exits with 1 where something is missing."""
    checks = list(_checks(open_app(cache_dir=cache_dir)))
    if as_json:
        print(json.dumps({"ok": all(c.is_ok for c in checks), "checks": [asdict(check) for check in checks]}))
    else:
        console = Console(soft_wrap=True)
        for check in checks:
            mark = Text("OK  ", "green") if check.is_ok else Text("MEND", "bold red")
            console.print(
                mark, Text(f"{check.name}: {check.found}" + (f". {check.remedy}" if check.remedy else ""))
            )
    if not all(check.is_ok for check in checks):
        raise typer.Exit(1)


def _checks(app: App) -> Iterator[Check]:
    yield _check_python()
    yield _check_kernels()
    yield _check_torch(app.settings.engine != "int8")
    yield from _check_model_and_memory(app)


def _check_python() -> Check:
    is_ok = sys.version_info >= (3, 11)
    remedy = "" if is_ok else "treefill needs Python 3.11 or newer."
    return Check(
        "python", is_ok, f"{platform.python_version()} on {platform.system()} {platform.machine()}", remedy
    )


def _check_kernels() -> Check:
    remedy = "Build the package again: `pip install --force-reinstall treefill`, or `make` in a checkout."
    try:
        from treefill import _kernels

        available = ", ".join(_kernels.instruction_sets())
        return Check(
            "kernels",
            True,
            f"{_kernels.instruction_set()} in use, {_kernels.threads()} threads ({available} run here)",
        )
    except ImportError as error:
        return Check("kernels", False, f"not importable ({error})", remedy)
    except ValueError as error:
        return Check("kernels", False, str(error), "Unset TREEFILL_ISA or choose one of these.")


def _check_torch(is_needed: bool) -> Check:
    """The native engine runs without it."""
    try:
        return Check(
            "torch",
            True,
            f"{importlib.metadata.version('torch')}, transformers {importlib.metadata.version('transformers')}",
        )
    except importlib.metadata.PackageNotFoundError as error:
        found = f"{error.name} is not installed"
        if not is_needed:
            return Check("torch", True, f"{found}; the int8 engine does without")
        return Check("torch", False, found, "Install treefill with its dependencies again.")


def _check_model_and_memory(app: App) -> Iterator[Check]:
    wanted = app.settings.model or None
    try:
        files = app.store.open_as_stored(wanted)
    except TreefillError as error:
        yield Check("model", False, str(error))
        return
    family = files.config["model_type"]
    n_bytes = sum(path.stat().st_size for path in files.folder.iterdir())
    yield Check("model", True, f"{files.name} ({family}, {n_bytes / 1e6:,.0f} MB) in {files.folder}")
    cache_bytes = 0  # torch's own cache grows as it is used
    if app.settings.engine == "int8":
        try:
            cache, cache_bytes = _check_cache(files, app.settings)
        except TreefillError as error:
            yield Check("cache", False, str(error))
            return
        yield cache
    free, needed = psutil.virtual_memory().available, n_bytes + cache_bytes + SPARE_BYTES
    remedy = (
        "" if free >= needed else "Close other programs or choose a smaller model: `treefill model list`."
    )
    yield Check(
        "memory", free >= needed, f"{free / 1e6:,.0f} MB free, about {needed / 1e6:,.0f} MB needed", remedy
    )


def _check_cache(files: ModelFiles, settings: Settings) -> tuple[Check, int]:
    """How many tokens' keys and values there is room for, and the bytes that they take."""
    from treefill.engine.native import foresee_cache

    plan = foresee_cache(files.config, **settings.cache_options)
    is_whole = plan.n_context == min(settings.n_context, files.config["max_position_embeddings"])
    room = f"{plan.n_blocks * plan.block_tokens:,} tokens in {settings.kv_cache_type}"
    cut = "" if is_whole else f", {settings.n_context:,} where memory is free"
    found = f"{room}, at most {plan.n_bytes / 1e6:,.0f} MB; a context of {plan.n_context:,}{cut}"
    return Check("cache", True, found), plan.n_bytes
