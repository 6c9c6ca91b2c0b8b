"""Models on this machine: a GGUF file, or safetensors with their configuration and tokenizer."""

import os
import re
from pathlib import Path

from treefill.errors import BadInput, UnsupportedModel

PICKLES = frozenset({".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt"})
"""Suffixes of files that run code when they are loaded."""


def looks_like_path(text: str) -> bool:
    """Whether the user means a file or folder rather than a model's name or a hub's repository."""
    separators = {os.sep, os.altsep} - {None}
    begins_as_path = text.startswith((".", "~")) or any(text.startswith(str(sep)) for sep in separators)
    has_suffix = Path(text).suffix.lower() in PICKLES | {".gguf", ".safetensors"} and ":" not in text[2:]
    return begins_as_path or has_suffix or _exists(Path(text))


def name_of(path: Path) -> str:
    """The name that a model at `path` gets: the folder's, or the file's without its suffix."""
    return path.name if path.is_dir() else path.stem


def find_files(path: Path) -> list[Path]:
    """The files that make up the model at `path`; the first is a GGUF, or the last ones are the weights."""
    if not path.exists():
        raise BadInput(f"{path} does not exist.")
    if path.suffix.lower() in PICKLES:
        raise _pickle(path)
    if path.is_dir():
        return _in_folder(path)
    if path.suffix.lower() == ".gguf":
        return [path]
    if path.suffix.lower() == ".safetensors":
        return _with_companions(path.parent, [path])
    raise UnsupportedModel(f"{path} is neither a .gguf nor a .safetensors file.")


def _in_folder(folder: Path) -> list[Path]:
    files = sorted(entry for entry in folder.iterdir() if entry.is_file())
    weights = [file for file in files if file.suffix.lower() == ".safetensors"]
    ggufs = [file for file in files if file.suffix.lower() == ".gguf"]
    if weights:
        return _with_companions(folder, weights)
    if len(ggufs) == 1:
        return ggufs
    if ggufs:
        raise BadInput(
            f"{folder} has several models; name one of them ({', '.join(f.name for f in ggufs[:8])})."
        )
    pickles = [file for file in files if file.suffix.lower() in PICKLES]
    if pickles:
        raise _pickle(pickles[0])
    raise BadInput(f"{folder} has neither a .gguf nor a .safetensors file.")


def _with_companions(folder: Path, weights: list[Path]) -> list[Path]:
    companions = [folder / "config.json", folder / "tokenizer.json"]
    for file in companions:
        if not file.is_file():
            raise BadInput(f"{file} is missing: a safetensors model needs it beside the weights.")
    is_shard = re.compile(r"-\d+-of-\d+$")
    if len(weights) == 1 and is_shard.search(weights[0].stem):
        weights = sorted(folder.glob("*-of-*.safetensors"))
    return companions + weights


def _pickle(path: Path) -> UnsupportedModel:
    return UnsupportedModel(
        f"{path} is not read, because pickle files can run code; take a .gguf or .safetensors."
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long to be a path
        return False
