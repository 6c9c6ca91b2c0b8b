"""Opens the files of a model as its makers published it, whichever of the two forms they have."""

from collections.abc import Sequence
from pathlib import Path

from treefill.models.architectures import SourceModel
from treefill.models.gguf_model import GgufModel
from treefill.models.safetensors_model import SafetensorsModel


def open_source(files: Sequence[Path]) -> SourceModel:
    """One GGUF file, or `config.json`, `tokenizer.json` and safetensors files of one folder."""
    if files[0].suffix.lower() == ".gguf":
        return GgufModel(files[0])
    return SafetensorsModel(
        files[0].parent, [file for file in files if file.suffix.lower() == ".safetensors"]
    )
