"""`--against KIND=WHERE`: which peers are measured beside ours, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from treefill.errors import BadInput

if TYPE_CHECKING:
    from treefill.benchmarks.contenders import Contender
    from treefill.benchmarks.llama_server import LlamaServer
    from treefill.models import ModelFiles

SERVER = "llama-server"
FOLDER = "llama.cpp"
TRANSFORMERS = "transformers"
KINDS = f"{SERVER}=URL, {FOLDER}=FOLDER or {TRANSFORMERS}"


@dataclass(frozen=True, slots=True)
class Peer:
    """One `--against`, read but not opened."""

    kind: str
    where: str


def read_peers(given: Sequence[str], allowed: Sequence[str]) -> list[Peer]:
    """What the options say. Raises `BadInput` for what no measurement of this kind can use."""
    return [_read_peer(text, allowed) for text in given]


def _read_peer(text: str, allowed: Sequence[str]) -> Peer:
    kind, _, where = text.partition("=")
    if kind not in (SERVER, FOLDER, TRANSFORMERS) or bool(where) == (kind == TRANSFORMERS):
        raise BadInput(f"--against {text!r} names no peer: write {KINDS}.")
    if kind not in allowed:
        raise BadInput(f"--against {kind} cannot be measured here: use {' or '.join(allowed)}.")
    return Peer(kind, where)


def open_peer(peer: Peer, files: ModelFiles, n_context: int, transformers: Sequence[str]) -> Contender:
    """Start or meet a peer; `transformers` is the command of that one's driver. Raises `PeerError`."""
    from treefill.benchmarks.driver import (
        Driver,
        open_driver,
    )  # with the kernels, which the command line starts without

    if peer.kind == SERVER:
        return open_server(peer, files)
    if peer.kind == FOLDER:
        return open_driver(Path(peer.where), files.name, n_context)
    return Driver(TRANSFORMERS, transformers)


def open_server(peer: Peer, files: ModelFiles) -> LlamaServer:
    """A running server that has the same model. Raises `PeerError`."""
    from treefill.benchmarks.llama_server import LlamaServer

    server = LlamaServer(peer.where)
    server.check_model(files.name, files.config)
    return server
