"""What was found out about a grammar's lexers, kept from one process to the next.

Recovering a lexer from its compiled function takes up to a second (`kernels/syntax/lexer_tables.h`); reading what
was kept takes milliseconds. A file belongs to the very library that it was recovered from, told by the hash of its
bytes; it has a checksum, and what it says is tried on the function before it is believed. A file that cannot be read or
written costs nothing but the time.
"""

import os
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import xxhash

from treefill import _kernels
from treefill.syntax.grammars import LoadedGrammar


@dataclass(slots=True)
class Keeping:
    """Where this process keeps lexers."""

    folder: Path | None = None
    """None keeps them nowhere; whoever builds the process sets it before a grammar is asked for."""


LEXERS = Keeping()
FORMAT = 1
"""Of the files; another one is not looked at."""
N_CHECKSUM = 16


def grammar_with_lexers(
    loaded: LoadedGrammar, policy: _kernels.Policy, folder: Path | None = None
) -> _kernels.Grammar:
    """The grammar's tables with its lexers, from what `folder` keeps or anew, and then kept there."""
    model = loaded.grammar.scanner_model
    file = _file_of(loaded, folder) if folder else None
    kept = _read(file) if file else b""
    if kept:
        try:
            return _kernels.Grammar(loaded.capsule, policy, model, kept)
        except RuntimeError:  # damaged, or of a function that does something else
            pass
    tables = _kernels.Grammar(loaded.capsule, policy, model)
    if file:
        _write(file, tables.keep())
    return tables


def library_digest(loaded: LoadedGrammar) -> str:
    """The hash of the bytes of the library that a grammar is in; nothing where it is not to be found."""
    spec = find_spec(loaded.grammar.module_name)
    origin = Path(spec.origin) if spec and spec.origin else None
    digest = xxhash.xxh3_128()
    try:
        parts = _libraries(origin) if origin else []
        for part in parts:
            digest.update(part.read_bytes())
    except OSError:
        return ""
    return digest.hexdigest() if parts else ""


def _file_of(loaded: LoadedGrammar, folder: Path) -> Path | None:
    """Where that very library's lexers are kept; None where the library is not to be found."""
    digest = library_digest(loaded)
    return folder / f"{loaded.name}-{digest}-{FORMAT}.lexers" if digest else None


def _libraries(origin: Path) -> list[Path]:
    """What was compiled of a module: itself, or what lies beside its `__init__.py`."""
    return sorted(origin.parent.glob("_binding*")) if origin.suffix == ".py" else [origin]


def _read(file: Path) -> bytes:
    """What the file keeps; nothing where it is not there or not whole."""
    try:
        data = file.read_bytes()
    except OSError:
        return b""
    checksum, kept = data[:N_CHECKSUM], data[N_CHECKSUM:]
    return kept if xxhash.xxh3_128_digest(kept) == checksum else b""


def _write(file: Path, kept: bytes) -> None:
    """Put it there whole or not at all; whoever reads meanwhile sees the old file or the new one."""
    new = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=file.name, delete=False) as new:
            new.write(xxhash.xxh3_128_digest(kept) + kept)
        os.replace(new.name, file)
        for older in file.parent.glob(f"{file.name.partition('-')[0]}-*.lexers"):
            if older != file:
                older.unlink(missing_ok=True)
    except OSError:
        if new is not None:
            Path(new.name).unlink(missing_ok=True)
