"""A notebook's cells: each is a document, and those above are what it goes on from."""

from typing import Any

import pytest
from treefill.lsp.convert import Changed, Opened
from treefill.lsp.notebooks import NotebookChange, Notebooks
from treefill.text import Change, Position

NOTEBOOK = {"uri": "file:///n.ipynb", "notebookType": "jupyter-notebook", "version": 1}


def cell(name: str) -> dict[str, Any]:
    return {"kind": 2, "document": name}


def document(name: str, text: str = "") -> dict[str, Any]:
    return {"uri": name, "languageId": "python", "version": 1, "text": text}


def opened(*names: str, uri: str = "file:///n.ipynb") -> Notebooks:
    notebooks = Notebooks()
    notebooks.open({"notebookDocument": {**NOTEBOOK, "uri": uri, "cells": [cell(name) for name in names]}})
    return notebooks


def restructure(
    notebooks: Notebooks, start: Any, n_deleted: Any, *names: str, uri: str = "file:///n.ipynb", **more: Any
) -> NotebookChange:
    array = {"start": start, "deleteCount": n_deleted, "cells": [cell(name) for name in names]}
    change = {"cells": {"structure": {"array": array, **more}}}
    return notebooks.change({"notebookDocument": {**NOTEBOOK, "uri": uri, "version": 2}, "change": change})


def test_g26_each_cell_of_an_opened_notebook_is_a_document() -> None:
    params = {
        "notebookDocument": {**NOTEBOOK, "cells": [cell("#W1"), cell("#W2")]},
        "cellTextDocuments": [document("#W1", "def mul(x, y): ..."), document("#W2", "mul(")],
    }

    change = Notebooks().open(params)

    assert change.opened == (
        Opened("#W1", "python", 1, "def mul(x, y): ..."),
        Opened("#W2", "python", 1, "mul("),
    )
    assert (change.closed, change.changed) == ((), ())


def test_the_nearest_cell_above_comes_first_then_those_below() -> None:
    notebooks = opened("#1", "#2", "#3", "#4")

    assert notebooks.cells_near("#3") == ("#2", "#1", "#4")
    assert notebooks.cells_near("#1") == ("#2", "#3", "#4")
    assert notebooks.cells_near("#9") == ()


def test_cells_that_are_added_and_taken_out_and_moved_are_followed() -> None:
    notebooks = opened("#1", "#2", "#3")

    change = restructure(
        notebooks, 1, 1, "#4", "#5", didOpen=[document("#4"), document("#5")], didClose=[{"uri": "#2"}]
    )
    assert [each.uri for each in change.opened] == ["#4", "#5"]
    assert change.closed == ("#2",)
    assert notebooks.cells_near("#3") == ("#5", "#4", "#1")

    restructure(notebooks, 0, 4, "#3", "#1", "#4", "#5")
    assert notebooks.cells_near("#5") == ("#4", "#1", "#3")


def test_a_client_may_write_its_numbers_as_it_likes() -> None:
    notebooks = opened("#1", "#2")

    restructure(notebooks, 1.0, 0.0, "#3")

    assert notebooks.cells_near("#1") == ("#3", "#2")


def test_an_edit_of_a_cell_that_cannot_be_followed_is_told() -> None:
    contents = [
        {"document": {"uri": "#1", "version": 7}, "changes": [{"range": "odd", "text": "x"}]},
        {"document": {"uri": "#2", "version": 7}, "changes": [{"text": "whole"}]},
        {"document": {"version": 7}, "changes": 5},
    ]

    change = opened("#1", "#2").change(
        {"notebookDocument": NOTEBOOK, "change": {"cells": {"textContent": contents}}}
    )

    assert change == NotebookChange(changed=(Changed("#2", 7, (Change("whole"),)),), lost=("#1",))


def test_edits_of_a_cell_are_edits_of_its_document() -> None:
    content = {
        "document": {"uri": "#1", "version": 7},
        "changes": [
            {
                "range": {"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 2}},
                "text": "x",
            },
            {"text": "whole"},
        ],
    }

    change = opened("#1").change(
        {"notebookDocument": NOTEBOOK, "change": {"cells": {"textContent": [content]}}}
    )

    edits = (Change("x", Position(0, 1), Position(0, 2)), Change("whole"))
    assert change == NotebookChange(changed=(Changed("#1", 7, edits),))


def test_a_closed_notebook_is_forgotten_and_its_cells_closed() -> None:
    notebooks = opened("#1", "#2")

    change = notebooks.close(
        {"notebookDocument": NOTEBOOK, "cellTextDocuments": [{"uri": "#1"}, {"uri": "#2"}]}
    )

    assert change == NotebookChange(closed=("#1", "#2"))
    assert notebooks.cells_near("#1") == ()


def test_two_notebooks_do_not_mix() -> None:
    notebooks = opened("#1", "#2")
    notebooks.open({"notebookDocument": {"uri": "file:///m.ipynb", "cells": [cell("#3"), cell("#4")]}})
    restructure(notebooks, 0, 0, "#5", uri="file:///m.ipynb")

    assert notebooks.cells_near("#2") == ("#1",)
    assert notebooks.cells_near("#4") == ("#3", "#5")


@pytest.mark.parametrize("params", [None, 5, "x", [], {}, {"notebookDocument": 5}, {"change": {"cells": 5}}])
def test_what_is_no_notebook_changes_nothing(params: Any) -> None:
    notebooks = opened("#1", "#2")

    for follow in (notebooks.open, notebooks.change, notebooks.close):
        assert follow(params) == NotebookChange()
    assert notebooks.cells_near("#1") == ("#2",)


@pytest.mark.parametrize(
    ("start", "n_deleted"), [("0", 1), (0, None), (None, None), (-1, 0), (0, -1), (True, 0)]
)
def test_a_structure_that_cannot_be_followed_leaves_the_order(start: Any, n_deleted: Any) -> None:
    notebooks = opened("#1", "#2")

    restructure(notebooks, start, n_deleted, "#3")
    restructure(notebooks, 0, 0, "#3", uri="file:///unknown.ipynb")

    assert notebooks.cells_near("#1") == ("#2",)


def test_cells_without_a_document_are_left_out() -> None:
    notebooks = Notebooks()

    change = notebooks.open(
        {
            "notebookDocument": {**NOTEBOOK, "cells": [cell("#1"), {"kind": 1}, 5, cell("#2")]},
            "cellTextDocuments": [document("#1"), {"uri": "#2"}, None],
        }
    )

    assert [each.uri for each in change.opened] == ["#1"]
    assert notebooks.cells_near("#2") == ("#1",)
