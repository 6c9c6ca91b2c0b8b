"""What stands right of the cursor is there once after accepting. All rows of these cases are in `tests/golden`."""

import pytest

from tests.lsp.editor import Editor, applied

pytestmark = pytest.mark.lsp


def check(editor: Editor, buffer: str, model: str, language: str = "python") -> str | None:
    """The document after accepting what the model wrote, or None for nothing."""
    editor.play(texts=[model])
    return editor.complete(buffer, language, uri=f"file:///w/buffer.{language}")


def test_g03_a_tab_indented_file_gets_tabs(editor: Editor) -> None:
    accepted = check(
        editor, "class Cart:\n\tdef total(self):\n\t\t‸\n", "    return sum(self.items)\n        # done"
    )

    assert accepted is not None
    compile(accepted, "cart.py", "exec")
    assert accepted.split("\n")[2] == "\t\treturn sum(self.items)"
    assert not any(line.startswith(" ") for line in accepted.split("\n"))


def test_g03_nothing_lands_in_column_0_of_a_body(editor: Editor) -> None:
    accepted = check(editor, "class Cart:\n\tdef total(self):\n‸\n", "return 1")

    assert accepted in (None, "class Cart:\n\tdef total(self):\n\t\treturn 1\n")


def test_g05_a_closing_bracket_is_not_doubled(editor: Editor) -> None:
    assert check(editor, "total = max(‸)", "3, 5)") == "total = max(3, 5)"


def test_g05_the_replaced_range_covers_the_closing_bracket_or_nothing(editor: Editor) -> None:
    editor.play(texts=['hi")'])
    uri, text = "file:///w/a.py", 'print("")'
    editor.open(uri, text)

    (item,) = editor.ask_at(uri, 7)

    assert applied(text, item) == 'print("hi")'
    assert item["range"]["start"] == {"line": 0, "character": 7}
    assert item["range"]["end"]["character"] in (7, 9)


def test_g05_a_needed_bracket_is_kept(editor: Editor) -> None:
    assert check(editor, "y = (a + b‸", ") * 2") == "y = (a + b) * 2"


def test_g06_an_auto_closed_brace_comes_once_and_does_not_silence_the_model(editor: Editor) -> None:
    accepted = check(editor, "int square(int n) {‸}\n", "\n    return n * n;\n}", "cpp")

    assert accepted == "int square(int n) {\n    return n * n;\n}\n"
    assert "}" not in editor.prompt.after


@pytest.mark.parametrize("below", ["\n    use(i);\n}\n", "\n    use(i);\n}\n" + "// more\n" * 200, ""])
def test_g07_the_rest_of_the_line_is_known_whatever_follows_it(below: str, editor: Editor) -> None:
    accepted = check(editor, f"for (int i = 0; i < ‸; ++i) {{{below}", "n; ++i) {", "cpp")

    assert accepted == f"for (int i = 0; i < n; ++i) {{{below}"


def test_g08_a_block_ends_before_the_line_that_already_follows(editor: Editor) -> None:
    before = "def load(path):\n    with open(path) as f:\n        "

    accepted = check(editor, f"{before}‸\n    return data", "data = f.read()\n    return data\n")

    assert accepted == f"{before}data = f.read()\n    return data"


def test_g08_the_line_below_is_not_suggested_above_itself(editor: Editor) -> None:
    before = "def load(path):\n    with open(path) as f:\n        data = f.read()\n"

    assert check(editor, f"{before}‸\n    return data", "return data") is None


def test_g12_a_bracket_that_came_meanwhile_is_not_doubled_by_a_remembered_answer(editor: Editor) -> None:
    editor.play(texts=["a, b)"])
    uri = "file:///w/c.py"
    assert editor.complete("foo(‸", uri=uri) == "foo(a, b)"

    editor.replace(uri, 4, 4, ")")
    (item,) = editor.ask_at(uri, 4)
    assert applied("foo()", item) == "foo(a, b)"

    editor.replace(uri, 4, 5, "\na, b)")
    n_calls = len(editor.calls)
    accepted = [applied(editor.texts[uri], item) for item in editor.ask_at(uri, 4)]
    assert accepted in ([], ["foo(a, b)\na, b)"], ["foo(a,\na, b)"]), "the bracket below may close it"
    assert len(editor.calls) == n_calls + 1, "the model is asked for the new text"
    assert editor.prompt.after == "\na, b)"


def test_g12_a_bracket_that_went_meanwhile_is_written_again(editor: Editor) -> None:
    editor.play(texts=["a, b)"])
    uri = "file:///w/c.py"
    assert editor.complete("foo(‸)", uri=uri) == "foo(a, b)"

    editor.replace(uri, 4, 5, "")
    (item,) = editor.ask_at(uri, 4)

    assert applied("foo(", item) == "foo(a, b)"
