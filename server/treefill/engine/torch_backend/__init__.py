"""Models through torch and transformers; the only package that imports them and bitsandbytes.

Front door: `load_backend`, which builds a `Backend` from a model's files on bitsandbytes' LLM.int8, for CUDA and as
the reference on the CPU.
"""

from treefill.engine.torch_backend.load import load_backend

__all__ = ["load_backend"]
