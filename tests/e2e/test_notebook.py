"""G26: a notebook's cell is completed in its own coordinates, and what the other cells say is known."""

import json

import pytest

from tests.e2e.conftest import OpenWorkbench

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def notebook(*cells: str) -> str:
    """An .ipynb file with these cells of Python."""
    return json.dumps(
        {
            "cells": [
                {
                    "cell_type": "code",
                    "execution_count": None,
                    "metadata": {},
                    "outputs": [],
                    "source": [text],
                }
                for text in cells
            ],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def test_g26_a_cell_is_completed(open_editor: OpenWorkbench) -> None:
    editor = open_editor(
        {"area.py": "", "n.ipynb": notebook("def rectangle_area(width, height):\n    return")}
    )

    editor.open_notebook("n.ipynb")
    editor.press("Control+End")
    editor.type(" ")
    editor.wait_until(lambda: editor.ghost_in_cell() == "width * height", "the cell's ghost text")
    editor.press("Tab")

    assert "return width * height" in json.loads(editor.saved("n.ipynb"))["cells"][0]["source"][-1]
