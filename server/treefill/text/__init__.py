"""Documents by the Language Server Protocol's own rules: text, lines, positions, edits, open buffers.

Used by the front and the core alike. Knows no language, no model and no protocol library.
"""

from treefill.text.document import MAX_FILE_BYTES, Document, document_from, read_document
from treefill.text.edits import Edit, edit_for
from treefill.text.lines import (
    TAB_WIDTH,
    count_lines,
    indent_of,
    indent_width,
    line_bounds,
    line_ending_at,
    offset_at,
    position_at,
    to_lf,
    with_line_ending,
    without_surrogates,
)
from treefill.text.positions import Position, PositionEncoding
from treefill.text.rope import Text
from treefill.text.store import Buffer, BufferStore, Change

__all__ = [
    "MAX_FILE_BYTES",
    "TAB_WIDTH",
    "Buffer",
    "BufferStore",
    "Change",
    "Document",
    "Edit",
    "Position",
    "PositionEncoding",
    "Text",
    "count_lines",
    "document_from",
    "edit_for",
    "indent_of",
    "indent_width",
    "line_bounds",
    "line_ending_at",
    "offset_at",
    "position_at",
    "read_document",
    "to_lf",
    "with_line_ending",
    "without_surrogates",
]
