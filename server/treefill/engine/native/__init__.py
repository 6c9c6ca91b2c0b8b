"""The native engine: a decoder of the Llama family in C++, over the mapped weight file. It imports no torch."""

from treefill.engine.native.load import foresee_cache, load_backend
from treefill.engine.native.weights import read_weights, step_weights

__all__ = ["foresee_cache", "load_backend", "read_weights", "step_weights"]
