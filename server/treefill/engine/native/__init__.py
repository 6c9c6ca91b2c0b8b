"""The native engine: a decoder of the Llama family in C++, over the mapped weight file. It imports no torch."""

from treefill.engine.native.load import foresee_cache, load_backend

__all__ = ["foresee_cache", "load_backend"]
