"""Whole documents from a request in words: what `treefill generate` does. Nothing here knows an editor."""

from treefill.generation.masks import Masks
from treefill.generation.write import DocumentRequest, Unfinished, Written, write

__all__ = ["DocumentRequest", "Masks", "Unfinished", "Written", "write"]
