"""treefill: local, private code completion that answers from a model on your own machine."""

__version__ = "0.1.0"
