"""The command line: which commands there are. Each command's own work lives in `commands/`, errors in `__main__`."""

import typer

from treefill import __version__
from treefill.commands.bench import bench_app
from treefill.commands.complete import complete_command, explain_command
from treefill.commands.doctor import doctor_command
from treefill.commands.evaluate import eval_app
from treefill.commands.generate import generate_command
from treefill.commands.languages import languages_command
from treefill.commands.masks import masks_app
from treefill.commands.model import model_app
from treefill.commands.rules import rules_app
from treefill.commands.serve import core_command, serve_command
from treefill.commands.settings import settings_command
from treefill.commands.stats import stats_command
from treefill.commands.syntax import syntax_app

cli = typer.Typer(
    name="treefill",
    help="Code completion from a model on your own machine. Nothing leaves it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.command("serve")(serve_command)
cli.command("core", hidden=True)(core_command)
cli.command("complete")(complete_command)
cli.command("explain")(explain_command)
cli.command("generate")(generate_command)
cli.add_typer(syntax_app, name="syntax")
cli.add_typer(masks_app, name="masks")
cli.add_typer(rules_app, name="rules")
cli.add_typer(model_app, name="model")
cli.add_typer(eval_app, name="eval")
cli.add_typer(bench_app, name="bench")
cli.command("languages")(languages_command)
cli.command("settings")(settings_command)
cli.command("stats")(stats_command)
cli.command("doctor")(doctor_command)


@cli.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        print(f"treefill {__version__}")
        raise typer.Exit
