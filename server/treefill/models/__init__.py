"""Models: getting them, keeping them in a store, opening them as int8 weights, configuration and tokenizer.

    store = ModelStore()
    files = store.pull("qwen2.5-coder-0.5b")
    files.weights.linear("lm_head").q  # [N16, K64, 16, 16, 4], mapped from the disk

Nothing here runs a model, and nothing here imports torch.
"""

from treefill.models.files import ModelFiles
from treefill.models.progress import Progress, silent
from treefill.models.quantise import QuantisedLinear, dequantise_linear, quantise_linear
from treefill.models.store import ModelStore, StoredModel, VerifiedFile
from treefill.models.weights_file import Weights

__all__ = [
    "ModelFiles",
    "ModelStore",
    "Progress",
    "QuantisedLinear",
    "StoredModel",
    "VerifiedFile",
    "Weights",
    "dequantise_linear",
    "quantise_linear",
    "silent",
]
