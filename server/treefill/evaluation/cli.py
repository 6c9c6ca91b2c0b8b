"""`treefill eval`: the measurements as commands. Arguments are checked here; what is measured is told elsewhere."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from treefill.commands.options import AsJson, CacheDir, open_app
from treefill.completion.prompt import policy_named
from treefill.engine.api import CancelFlag, Engine
from treefill.errors import BadInput
from treefill.evaluation.holes import VARIANTS, Hole, Variant, read_human_eval, schedule
from treefill.evaluation.infill import ARMS, Run, fill_holes, header_of
from treefill.evaluation.report import infill_json, infill_markdown, infill_report
from treefill.evaluation.results import ResultsFile, read_results

eval_app = typer.Typer(help="Measure how good completions are on this machine.", no_args_is_help=True)

ModelOption = Annotated[str | None, typer.Option("--model", help="Which model.", show_default=False)]
EngineOption = Annotated[str | None, typer.Option("--engine", help="int8 or bitsandbytes.", show_default=False)]
ArmsOption = Annotated[str, typer.Option(help="Where the prompt is split: policies, separated by commas.")]
Results = Annotated[Path, typer.Option(help="Rows go here; a run that was cut short goes on where it stopped.")]
Variants = Annotated[str, typer.Option(help="Kinds of holes, separated by commas.")]
Passes = Annotated[int, typer.Option(min=1, max=len(VARIANTS), help="How many kinds of holes each line gets.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Stop after this many holes.", show_default=False)]
Baseline = Annotated[str | None, typer.Option(help="The arm that the others are compared with.", show_default=False)]
ReportOnly = Annotated[bool, typer.Option("--report-only", help="Fill nothing; report what there is.")]


@eval_app.command("infill")
def infill_command(
    results: Results = Path("infill.jsonl"),
    arms: ArmsOption = ",".join(ARMS),
    variants: Variants = ",".join(VARIANTS),
    passes: Passes = len(VARIANTS),
    limit: Limit = None,
    baseline: Baseline = None,
    report_only: ReportOnly = False,
    engine: EngineOption = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Fill holes in the HumanEval problems; the problems' own tests judge."""
    chosen_arms = chosen(arms)
    for arm in (*chosen_arms, *([baseline] if baseline else [])):
        policy_named(arm)
    chosen_variants = [_variant(name) for name in chosen(variants)]
    is_stopped = False
    if not report_only:
        holes = list(schedule(read_human_eval(), chosen_variants, passes))[:limit]
        opened = open_app(engine=engine, model=model, cache_dir=cache_dir).open_engine()
        try:
            is_stopped = _fill(holes, chosen_arms, opened, results)
        finally:
            opened.close()
    header, rows = read_results(results)
    wanted = [row for row in rows if row.variant in chosen_variants]
    report = infill_report(header, wanted, chosen_arms, baseline)
    print(json.dumps(infill_json(report)) if as_json else infill_markdown(report))
    if is_stopped:
        raise typer.Exit(130)


def _fill(holes: Sequence[Hole], arms: Sequence[str], engine: Engine, path: Path) -> bool:
    """Run until all holes are filled; True where the user stopped it before."""
    file = ResultsFile(path, header_of(engine))
    cancel, run = CancelFlag(), Run()
    rows = fill_holes(holes, arms, engine, tuple(file.rows), cancel, run=run)
    try:
        with _progress() as progress:
            bar = progress.add_task("Filling holes", total=len(holes) * len(arms), rate="")
            for n_new, row in enumerate(rows, 1):
                file.append(row)
                seconds = (progress.tasks[0].elapsed or 0.0) / n_new
                progress.update(bar, completed=n_new + run.n_skipped, rate=f"{seconds:.2f} s each")
    except KeyboardInterrupt:
        cancel.cancel()
        return True
    finally:
        rows.close()
        file.close()
        for task in run.unsound:
            _stderr().print(f"{task} is left out: its own solution fails its tests on this machine.")
    return False


def chosen(names: str) -> list[str]:
    """The names of a comma-separated list, each once."""
    found = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not found:
        raise BadInput(f"{names!r} names nothing: write one or more names, separated by commas.")
    return found


def _variant(name: str) -> Variant:
    if name not in VARIANTS:
        raise BadInput(f"variant {name!r} is not known: use some of {', '.join(VARIANTS)}.")
    return Variant(name)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=_stderr(),
    )


def _stderr() -> Console:
    return Console(stderr=True)
