"""Models through torch and transformers; the only package that imports them and bitsandbytes.

Front door: `load_backend`, which builds a `Backend` from a model's files on the int8 kernel (CPU) or on
bitsandbytes' LLM.int8 (`engine="bitsandbytes"`).
"""

from treefill.engine.torch_backend.load import load_backend

__all__ = ["load_backend"]
