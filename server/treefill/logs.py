"""What may be logged: one line an event, to standard error, and never text of a document."""

import asyncio
import logging
import sys
from typing import Any

log = logging.getLogger(__name__)


def log_to_stderr() -> None:
    """Standard output carries the protocol alone."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="treefill: %(message)s")


def log_kinds_alone(loop: asyncio.AbstractEventLoop) -> None:
    """Log what fails on the loop by its kind: asyncio's own words quote errors and arguments, so what users write."""
    loop.set_exception_handler(_log_kind)


def _log_kind(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    log.error("Something on the event loop failed: %s.", type(error).__name__ if error else "no error")
