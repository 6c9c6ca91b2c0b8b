"""Which cells a notebook has, in which order: cells above are what a cell goes on from."""

from dataclasses import dataclass
from typing import Any

from treefill.lsp.convert import Changed, Opened, changed_from, opened_from


@dataclass(frozen=True, slots=True)
class NotebookChange:
    """What a notebook's change means for its cells' documents."""

    opened: tuple[Opened, ...] = ()
    closed: tuple[str, ...] = ()
    changed: tuple[Changed, ...] = ()


class Notebooks:
    """The open notebooks. A cell's text is a document like any other and is not kept here."""

    def __init__(self) -> None:
        self._cells: dict[str, list[str]] = {}

    def open(self, params: Any) -> NotebookChange:
        """Take up a notebook."""
        notebook = _get(params, "notebookDocument")
        uri = _get(notebook, "uri")
        if isinstance(uri, str):
            self._cells[uri] = _cell_uris(_get(notebook, "cells"))
        return NotebookChange(opened=_opened(_get(params, "cellTextDocuments")))

    def change(self, params: Any) -> NotebookChange:
        """Follow a change of the cells' order, of which there are, and of their texts."""
        cells = _get(_get(params, "change"), "cells")
        structure = _get(cells, "structure")
        self._splice(_get(_get(params, "notebookDocument"), "uri"), _get(structure, "array"))
        contents = [
            changed_from(_get(content, "document"), _get(content, "changes"))
            for content in _list(_get(cells, "textContent"))
        ]
        return NotebookChange(
            _opened(_get(structure, "didOpen")),
            _closed(_get(structure, "didClose")),
            tuple(content for content in contents if content),
        )

    def close(self, params: Any) -> NotebookChange:
        """Forget a notebook."""
        self._cells.pop(str(_get(_get(params, "notebookDocument"), "uri")), None)
        return NotebookChange(closed=_closed(_get(params, "cellTextDocuments")))

    def has_cell(self, uri: str) -> bool:
        """True where an open notebook has this cell."""
        return any(uri in cells for cells in self._cells.values())

    def cells_near(self, uri: str) -> tuple[str, ...]:
        """The other cells of the notebook that a cell is in, the nearest above first, then those below."""
        for cells in self._cells.values():
            if uri in cells:
                at = cells.index(uri)
                return (*reversed(cells[:at]), *cells[at + 1 :])
        return ()

    def _splice(self, uri: Any, array: Any) -> None:
        cells = self._cells.get(uri) if isinstance(uri, str) else None
        start, n_deleted = _get(array, "start"), _get(array, "deleteCount")
        if cells is not None and isinstance(start, int) and isinstance(n_deleted, int):
            cells[start : start + n_deleted] = _cell_uris(_get(array, "cells"))


def _cell_uris(cells: Any) -> list[str]:
    uris = (_get(cell, "document") for cell in _list(cells))
    return [uri for uri in uris if isinstance(uri, str)]


def _opened(items: Any) -> tuple[Opened, ...]:
    read = (opened_from(item) for item in _list(items))
    return tuple(item for item in read if item)


def _closed(items: Any) -> tuple[str, ...]:
    uris = (_get(item, "uri") for item in _list(items))
    return tuple(uri for uri in uris if isinstance(uri, str))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
