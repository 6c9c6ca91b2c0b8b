"""The `treefill` command and `python -m treefill`: runs `cli`, and says errors in one sentence.

Exit status: 0 for an answer (a stated decline is one), 1 where a check that was asked for found something wrong, 2 for
bad input, 70 for a mistake of ours, 130 after Ctrl-C. Imports what takes time inside, so that Ctrl-C is a sentence from
the first moment on.
"""

import errno
import io
import os
import sys
from collections.abc import Callable


def main() -> None:
    """Run one command and exit."""
    try:
        _print_what_a_terminal_cannot_show()
        from treefill.errors import TreefillError

        try:
            _cli()()
        except TreefillError as error:
            _fail(str(error), status=2)
    except OSError as error:
        _fail(_disk_sentence(error), status=2)
    except MemoryError:
        _fail("There is too little memory for this: close something, or use a smaller model.", status=2)
    except KeyboardInterrupt:
        _fail("Stopped.", status=130)
    except Exception as error:
        if os.environ.get("TREEFILL_DEBUG") == "1":
            raise
        sentence = f"Something unforeseen went wrong ({type(error).__name__}: {error})."
        _fail(f"{sentence} With TREEFILL_DEBUG=1 it is shown whole: please report it.", status=70)


def _cli() -> Callable[[], None]:
    """The command line; of two commands that editors start again and again, without what the others import."""
    if sys.argv[1:2] not in (["serve"], ["core"]):
        from treefill.cli import cli

        return cli
    import typer

    from treefill.commands.serve import core_command, serve_command

    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command("serve")(serve_command)
    alone.command("core")(core_command)
    return alone


def _print_what_a_terminal_cannot_show() -> None:
    """A character that the output's encoding lacks is printed as its escape, rather than not at all."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


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


if __name__ == "__main__":
    main()
