"""The command line: which commands there are, and what becomes of errors.

Each command's own work lives in `commands/`. Exit status: 0 for an answer (a stated decline is one), 1 where a
check that was asked for found something wrong, 2 for bad input, 70 for a mistake of ours, 130 after Ctrl-C.
Errors are one sentence on standard error, never a traceback.
"""

import errno
import logging
import os
import sys

import typer

from treefill import __version__
from treefill.commands.complete import complete_command, explain_command
from treefill.commands.doctor import doctor_command
from treefill.commands.evaluate import eval_app
from treefill.commands.model import model_app
from treefill.commands.settings import settings_command
from treefill.errors import TreefillError

cli = typer.Typer(
    name="treefill",
    help="Code completion from a model on your own machine. Nothing leaves it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.command("complete")(complete_command)
cli.command("explain")(explain_command)
cli.add_typer(model_app, name="model")
cli.add_typer(eval_app, name="eval")
cli.command("settings")(settings_command)
cli.command("doctor")(doctor_command)


@cli.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        print(f"treefill {__version__}")
        raise typer.Exit


def main() -> None:
    """Run one command and exit."""
    logging.basicConfig(level=logging.WARNING, format="treefill: %(message)s")
    try:
        cli()
    except TreefillError as error:
        _fail(str(error), status=2)
    except OSError as error:
        _fail(_disk_sentence(error), status=2)
    except KeyboardInterrupt:
        _fail("Stopped.", status=130)
    except Exception as error:
        if os.environ.get("TREEFILL_DEBUG") == "1":
            raise
        sentence = f"Something unforeseen went wrong ({type(error).__name__}: {error})."
        _fail(f"{sentence} With TREEFILL_DEBUG=1 it is shown whole: please report it.", status=70)


def _disk_sentence(error: OSError) -> str:
    """What the system refused, said as the tool's own errors are."""
    where = error.filename or "a file"
    if error.errno == errno.ENOSPC:
        return f"The disk that holds {where} is full: free some space and try again."
    return f"{where} cannot be used ({error.strerror or error}): check the path and its permissions."


def _fail(sentence: str, status: int) -> None:
    try:
        print(f"treefill: {sentence}", file=sys.stderr)
    except BrokenPipeError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - closed by the exit that follows
    sys.exit(status)
