"""`treefill serve`, which editors start, and `treefill core`, which it starts in turn.

Neither waits for the imports of the other commands.
"""

import asyncio
import contextlib
import gc
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from treefill.logs import log_to_stderr

if TYPE_CHECKING:
    from treefill.core.link import Connection


def serve_command(
    no_core: Annotated[
        bool, typer.Option("--no-core", help="Run the model in this process, not in a shared one.")
    ] = False,
    _stdio: Annotated[
        bool, typer.Option("--stdio", help="What editors pass; there is no other way.")
    ] = False,
) -> None:
    """Serve an editor over standard input and output. Editors start this; there is nothing to see in a terminal."""
    log_to_stderr()
    output = take_stdout()  # before anything is imported that may print
    with _no_collection():
        from treefill.lsp import serve_stdio

    serve_stdio(lambda given: _connection(given, no_core), output)


def core_command(
    address: Annotated[Path, typer.Option(help="Where to listen.")],
) -> None:
    """Run the model for this user's editors until the last has left. `treefill serve` starts it.

    The settings come as JSON on standard input.
    """
    log_to_stderr()
    with _no_collection():
        from treefill.app import core_identity, make_service
        from treefill.core.server import run_core
        from treefill.settings import Settings

    values = Settings.model_validate(json.load(sys.stdin))
    work = run_core(address, core_identity(values), lambda: make_service(values), values.core_linger_s)
    asyncio.run(work)
    logging.shutdown()
    os._exit(0)  # a thread that is stuck in a model must not keep the process


def take_stdout() -> BinaryIO:
    """Standard output for the protocol alone: whatever else prints, in Python or C, goes to standard error."""
    sys.stdout.flush()
    protocol = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return protocol


def _connection(given: "dict[str, Any]", no_core: bool) -> "Connection":
    from treefill.app import connection_for

    return connection_for(given, no_core)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Import without collecting garbage, of which there is none: a fifth of the start's time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
