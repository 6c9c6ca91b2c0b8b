"""The native engine: a decoder of the Llama family in C++, over the mapped weight file. It imports no torch."""

from treefill.engine.native.load import load_backend

__all__ = ["load_backend"]
