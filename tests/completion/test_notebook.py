"""Cells of notebooks: magics are no code, and some make the rest of a cell another language."""

import pytest
from treefill.completion import CompletionRequest, Declined, complete
from treefill.completion.notebook import code_of, language_at
from treefill.engine.api import CancelFlag
from treefill.text import Document

from tests.helpers.contract import assert_sound
from tests.helpers.scripted_engine import ScriptedEngine


def completed(buffer: str, model: str) -> tuple[str, str]:
    """The cell after accepting, and the prompt's text."""
    offset = buffer.index("‸")
    document = Document("/w/n.ipynb#W1", buffer.replace("‸", ""), "python", is_cell=True)
    engine = ScriptedEngine(model)
    answer = complete(CompletionRequest(document, offset), engine, CancelFlag())
    assert not isinstance(answer, Declined), answer.sentence
    assert_sound(document, offset, answer)
    return answer.applied_to(document), engine.vocabulary.decode(engine.requests[-1].prompt_ids)


def test_an_apostrophe_in_a_shell_line_opens_no_string() -> None:
    after, prompt = completed("!echo it's here (\nprint(‸)\n", '"a")\n')

    assert after == '!echo it\'s here (\nprint("a")\n'
    assert "!echo it's here (" in prompt


def test_a_magic_line_below_closes_nothing() -> None:
    after, _ = completed("x = f(‸\n%timeit g(1))\n", "2)\n")

    assert after == "x = f(2)\n%timeit g(1))\n"


@pytest.mark.parametrize(
    ("cell", "language"),
    [
        ("x = 1\n‸", "python"),
        ("!pip inst‸", "shellscript"),
        ("%matplotlib inl‸", "plaintext"),
        ("%%sql\nSELECT ‸", "sql"),
        ("%%bash\nls ‸", "shellscript"),
        ("%%time\nf(‸)", "python"),
    ],
)
def test_a_place_in_a_cell_is_in_its_own_language(cell: str, language: str) -> None:
    document = Document("n.ipynb#1", cell.replace("‸", ""), "python", is_cell=True)

    assert language_at(document, cell.index("‸")).language == language


def test_outside_notebooks_nothing_is_a_magic() -> None:
    document = Document("a.py", "%%sql\n!x", "python")

    assert language_at(document, 8) is document
    assert code_of(document) == document.text


def test_what_is_masked_keeps_its_length() -> None:
    text = "a = 1\r\n  !ls 'x\r\n%%x (\n"

    assert code_of(Document("n#1", text, "python", is_cell=True)) == "a = 1\r\n  #xxxxx\r\n#xxxx\n"


@pytest.mark.parametrize(
    "cell",
    [
        'x = f"""\n%s items"""\n',
        'x = """\n!important\n?"""\n',
        "x = (10\n% 3)\n",
        "x = (10\n%(y))\n",
        "ok = (a\n  != b)\n",
        "x = a \\\n%b\n",
        "x = a \\\r\n  %b\r\n",
    ],
)
def test_a_line_that_goes_on_from_the_one_above_is_no_magic(cell: str) -> None:
    document = Document("n#1", cell, "python", is_cell=True)

    assert code_of(document) == cell
    assert language_at(document, len(cell) - 1).language == "python"


def test_after_a_string_of_several_lines_there_may_be_magics_again() -> None:
    text = 'x = """\n%s"""\n%timeit f("""\n!ls\n'

    assert code_of(Document("n#1", text, "python", is_cell=True)) == 'x = """\n%s"""\n#xxxxxxxxxxxx\n#xx\n'
