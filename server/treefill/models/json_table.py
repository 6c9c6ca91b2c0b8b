"""Reading one JSON object out of a file that somebody else wrote."""

import json
from typing import Any

from treefill.errors import BrokenModel


def read_table(where: str, text: bytes, remedy: str) -> dict[str, Any]:
    """The object that `text` holds. Raises `BrokenModel` with `where` and `remedy` for anything else."""
    try:
        table = json.loads(text.decode())
    except (ValueError, RecursionError):
        raise BrokenModel(f"{where} is not JSON; {remedy}.") from None
    if not isinstance(table, dict):
        raise BrokenModel(f"{where} holds no JSON object; {remedy}.")
    return table
