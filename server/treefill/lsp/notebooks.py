"""Which cells a notebook has, in which order: cells above are what a cell goes on from."""

from dataclasses import dataclass
from typing import Any

from treefill.lsp.convert import Changed, Opened, changed_from, get, number_from, opened_from


@dataclass(frozen=True, slots=True)
class NotebookChange:
    """What a notebook's change means for its cells' documents."""

    opened: tuple[Opened, ...] = ()
    closed: tuple[str, ...] = ()
    changed: tuple[Changed, ...] = ()
    lost: tuple[str, ...] = ()
    """Documents whose change can't be followed: they are left alone until their whole text comes."""


class Notebooks:
    """The open notebooks. A cell's text is a document like any other and is not kept here."""

    def __init__(self) -> None:
        self._cells: dict[str, list[str]] = {}

    def open(self, params: Any) -> NotebookChange:
        """Take up a notebook."""
        notebook = get(params, "notebookDocument")
        uri = get(notebook, "uri")
        if isinstance(uri, str):
            self._cells[uri] = _cell_uris(get(notebook, "cells"))
        return NotebookChange(opened=_opened(get(params, "cellTextDocuments")))

    def change(self, params: Any) -> NotebookChange:
        """Follow a change of the cells' order, of which there are, and of their texts."""
        cells = get(get(params, "change"), "cells")
        structure = get(cells, "structure")
        self._splice(get(get(params, "notebookDocument"), "uri"), get(structure, "array"))
        contents = [
            (
                get(get(content, "document"), "uri"),
                changed_from(get(content, "document"), get(content, "changes")),
            )
            for content in _list(get(cells, "textContent"))
        ]
        return NotebookChange(
            _opened(get(structure, "didOpen")),
            _closed(get(structure, "didClose")),
            tuple(changed for _, changed in contents if changed),
            tuple(uri for uri, changed in contents if changed is None and isinstance(uri, str)),
        )

    def close(self, params: Any) -> NotebookChange:
        """Forget a notebook."""
        self._cells.pop(str(get(get(params, "notebookDocument"), "uri")), None)
        return NotebookChange(closed=_closed(get(params, "cellTextDocuments")))

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
        start, n_deleted = number_from(get(array, "start")), number_from(get(array, "deleteCount"))
        if cells is None or start is None or n_deleted is None or start < 0 or n_deleted < 0:
            return
        cells[start : start + n_deleted] = _cell_uris(get(array, "cells"))


def _cell_uris(cells: Any) -> list[str]:
    uris = (get(cell, "document") for cell in _list(cells))
    return [uri for uri in uris if isinstance(uri, str)]


def _opened(items: Any) -> tuple[Opened, ...]:
    read = (opened_from(item) for item in _list(items))
    return tuple(item for item in read if item)


def _closed(items: Any) -> tuple[str, ...]:
    uris = (get(item, "uri") for item in _list(items))
    return tuple(uri for uri in uris if isinstance(uri, str))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
