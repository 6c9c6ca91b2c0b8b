"""The JSON Schema that a document is held to while the model writes: which one, by the user's settings, and its guard.

Schemas are files that the user's own settings name, for files of a name, or for the address that a document has under
`$schema`. Nothing is fetched, and no document names a file.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from treefill.completion.request import Check, CompletionRequest
from treefill.errors import SchemaError

if TYPE_CHECKING:
    from treefill.syntax.schema import Schema, SchemaGuard

log = logging.getLogger(__name__)

HELD_LANGUAGES = ("json",)
N_HEAD_CHARS = 4_000
"""So near a document's beginning it says what its schema is."""
_ADDRESS = re.compile(r'"\$schema"\s*+:\s*+"([^"\\\s]++)"')
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


@dataclass(frozen=True, slots=True)
class HeldToSchema:
    """What a schema has to do with one completion."""

    guard: SchemaGuard | None = None
    note: str = ""
    """Which schema it is, or why it does not decide, as one sentence; empty where there is none for the document."""

    @property
    def sentence(self) -> str:
        """The same as far as it is known by now."""
        gave_up = self.guard.gave_up if self.guard else ""
        return f"{self.note} From somewhere on it did not decide: {gave_up}." if gave_up else self.note


NO_SCHEMA = HeldToSchema()


def schema_at_cursor(request: CompletionRequest) -> HeldToSchema:
    """The schema's guard at the request's cursor. A completion does not fail because it has none."""
    document = request.document
    is_held = document.language in HELD_LANGUAGES and request.check is Check.FULL
    named = schema_for(document.path, document.text, request.schemas) if is_held and request.schemas else None
    if named is None:
        return NO_SCHEMA
    if _URL.match(named):
        return HeldToSchema(
            note=f"The schema {named} is an address, and nothing is fetched: name a file in the setting schemas."
        )
    # What reads schemas is loaded for nobody else.
    from treefill.syntax.schema import schema_guard_after

    try:
        schema = _read(Path(named).expanduser())
        guard = schema_guard_after(schema, document.text[: request.offset].removeprefix("\ufeff"))
    except SchemaError as error:
        return HeldToSchema(note=str(error))
    except Exception as error:  # its text may quote the user's
        log.warning("The schema could not be asked (%s).", type(error).__name__)
        return HeldToSchema(note=f"The schema {named} could not be asked ({type(error).__name__}).")
    if isinstance(guard, str):
        return HeldToSchema(note=guard)
    return HeldToSchema(guard, " ".join((f"Held to the schema {schema.name}.", *schema.notes)))


def schema_for(path: str, text: str, schemas: Iterable[tuple[str, str]]) -> str | None:
    """Which of the schemas is a document's: the first whose pattern its name has, else that of its `$schema`.

    >>> schema_for("shop/package.json", "{}", [("package.json", "/s/package.json"), ("*.json", "/s/any.json")])
    '/s/package.json'
    """
    place = "/" + PurePath(path).as_posix().lstrip("/")
    for pattern, file in schemas:
        if fnmatchcase(place, f"*/{pattern.lstrip('/')}"):
            return file
    found = _ADDRESS.search(text, 0, N_HEAD_CHARS)
    address = found[1].removesuffix("#") if found else None
    return next((file for pattern, file in schemas if pattern.removesuffix("#") == address), None)


def _read(path: Path) -> Schema:
    """The schema in a file as it is now. Raises `SchemaError`."""
    try:
        status = path.stat()
    except OSError as error:
        raise SchemaError(
            f"The schema {path} cannot be read ({error.strerror}): name a file in the setting schemas."
        ) from None
    return _read_once(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=8)
def _read_once(path: Path, _mtime_ns: int, _n_bytes: int) -> Schema:
    from treefill.syntax.schema import read_schema

    return read_schema(path)
