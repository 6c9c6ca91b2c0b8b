"""The front process: speaks the Language Server Protocol, keeps the documents, and asks a core.

`serve_stdio` is the front door. Only this package imports pygls; it loads no model library and no parser, so that it
starts with every editor window and what crashes elsewhere leaves the editor its connection.
"""

from treefill.lsp.server import serve_stdio

__all__ = ["serve_stdio"]
