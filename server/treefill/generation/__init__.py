"""Whole documents from a request in words: what `treefill generate` does. Nothing here knows an editor."""

from treefill.generation.write import DocumentRequest, Unfinished, Written, write
from treefill.syntax.masks import Masks

__all__ = ["DocumentRequest", "Masks", "Unfinished", "Written", "write"]
