"""What the editor has and what the server believes it has stay the same text, character for character."""

import pytest

from tests.lsp.conftest import StartServer
from tests.lsp.editor import Editor, applied

pytestmark = pytest.mark.lsp

FILE = "file:///w/a.py"


def change(start: tuple[int, int], end: tuple[int, int], text: str) -> dict[str, object]:
    """A content change between two positions."""
    spans = {"start": start, "end": end}
    span = {edge: {"line": line, "character": character} for edge, (line, character) in spans.items()}
    return {"range": span, "text": text}


def at(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


def test_g01_an_emoji_on_the_line_shifts_no_edit_and_no_suggestion(editor: Editor) -> None:
    editor.play(texts=["x"])
    editor.open(FILE, 's = "🙂"  # t\nprint(s)\n')

    editor.change(FILE, [change((0, 7), (0, 7), "!")])
    editor.texts[FILE] = 's = "🙂!"  # t\nprint(s)\n'
    assert editor.mirror(FILE) == editor.texts[FILE]
    (item,) = editor.ask(FILE, at(0, 8))
    assert item["range"] == {"start": at(0, 8), "end": at(0, 8)}
    assert editor.prompt.before.endswith('"🙂!')
    assert editor.prompt.after == "  # t\nprint(s)\n", "all but the quote, which an editor may have closed"

    editor.change(FILE, [change((0, 5), (0, 7), "")])
    assert editor.mirror(FILE).splitlines()[0] == 's = "!"  # t'


def test_g01_half_an_emoji_at_a_time_ends_as_a_whole_one(editor: Editor) -> None:
    editor.play(texts=["x"])
    editor.open(FILE, 's = "!"  # t\nprint(s)\n')

    editor.change(FILE, [change((0, 5), (0, 5), "\ud83d")])
    editor.texts[FILE] = 's = "\ud83d!"  # t\nprint(s)\n'
    editor.ask(FILE, at(0, 7))  # nothing, or an item that keeps the contract
    editor.change(FILE, [change((0, 6), (0, 6), "\ude42")])

    editor.texts[FILE] = 's = "🙂!"  # t\nprint(s)\n'
    assert editor.mirror(FILE) == editor.texts[FILE]
    (item,) = editor.ask(FILE, at(0, 8))
    assert applied(editor.texts[FILE], item) == 's = "🙂!x"  # t\nprint(s)\n'


@pytest.mark.parametrize("odd", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("form", ["at the line's start", "in a string"])
def test_g02_only_real_line_ends_count_as_lines(odd: str, form: str, editor: Editor) -> None:
    first = "a = 1" if form == "at the line's start" else f's = "a{odd}b"'
    second = f"{odd}b = 2" if form == "at the line's start" else "b = 2"
    editor.play(texts=["0"])
    editor.open(FILE, f"{first}\n{second}\nc = 3\n")

    editor.change(FILE, [change((2, 4), (2, 5), "9")])
    editor.texts[FILE] = f"{first}\n{second}\nc = 9\n"

    assert editor.mirror(FILE) == editor.texts[FILE]
    assert editor.ask(FILE, at(2, 5))
    assert editor.prompt.before.endswith("c = 9")


def test_g02_a_lone_carriage_return_ends_a_line(editor: Editor) -> None:
    editor.play(texts=["0"])
    editor.open(FILE, "a = 1\rb = 2\nc = 3\n")

    editor.change(FILE, [change((2, 4), (2, 5), "9")])
    editor.texts[FILE] = "a = 1\rb = 2\nc = 9\n"

    assert editor.mirror(FILE) == editor.texts[FILE]
    assert editor.ask(FILE, at(2, 5))
    assert editor.prompt.before.endswith("c = 9")


def test_g13_crlf_and_lf_files_give_the_same_prompt_and_the_same_suggestion(editor: Editor) -> None:
    editor.play(texts=["int a = 1;\nreturn a;"])
    uris = {"\n": "file:///lf/f.cpp", "\r\n": "file:///crlf/f.cpp"}
    seen = {}
    for ending, uri in uris.items():
        editor.open(uri, f"int f() {{{ending}    {ending}}}{ending}", "cpp")
        (item,) = editor.ask(uri, at(1, 4))
        seen[ending] = (editor.prompt.text, item["insertText"], item["range"])
        accepted = applied(editor.texts[uri], item)
        assert accepted == ending.join(["int f() {", "    int a = 1;", "    return a;", "}", ""])
        editor.close_document(uri)

    assert seen["\r\n"] == seen["\n"]
    assert "\r" not in seen["\r\n"][0]


@pytest.mark.parametrize(
    "text", ["int f() {\r\n    \n}\r\n", "int f() {\n    \r\n}\n", "\r\nint f() {\r    \r\n}\n"]
)
def test_g13_mixed_line_ends_shift_no_position(text: str, editor: Editor) -> None:
    uri = "file:///w/f.cpp"
    line = 1 if text.startswith("int") else 2
    editor.play(texts=["int a = 1;\nreturn a;"])
    editor.open(uri, text, "cpp")

    (item,) = editor.ask(uri, at(line, 4))

    assert item["range"] == {"start": at(line, 4), "end": at(line, 4)}
    assert item["insertText"] == "int a = 1;\n    return a;"
    assert "\r" not in editor.prompt.text


def test_g13_a_completion_list_follows_the_line_end_of_the_cursors_line(start_alone: StartServer) -> None:
    script = {"texts": ["int a = 1;\nreturn a;"]}
    editor = start_alone(script, capabilities={"textDocument": {"completion": {}}})
    editor.wait_ready()
    uri = "file:///w/f.cpp"
    for version, (mine, others) in enumerate([("\r\n", "\n"), ("\n", "\r\n")]):
        editor.open(uri, f"int f() {{{others}    {mine}}}{others}", "cpp", version)
        params = {"textDocument": {"uri": uri}, "position": at(1, 4)}
        (item,) = editor.request("textDocument/completion", params)["result"]["items"]
        assert item["textEdit"]["newText"] == f"int a = 1;{mine}    return a;"
        editor.close_document(uri)


@pytest.mark.parametrize("form", ["whole text", "one range", "line by line"])
def test_g13_switching_line_ends_is_followed_at_once(form: str, editor: Editor) -> None:
    uri = "file:///w/f.cpp"
    editor.open(uri, "int f() {\r\n    \r\n}\r\n", "cpp")

    lf = "int f() {\n    \n}\n"
    forms = {
        "whole text": [{"text": lf}],
        "one range": [change((0, 0), (3, 0), lf)],
        "line by line": [
            change((2, 1), (3, 0), "\n"),
            change((1, 4), (2, 0), "\n"),
            change((0, 9), (1, 0), "\n"),
        ],
    }
    editor.change(uri, forms[form])

    assert editor.mirror(uri) == lf


def test_g14_control_tokens_in_the_users_own_text_stay_text(editor: Editor) -> None:
    editor.play(texts=["END)<|endoftext|>\nfoo"])
    editor.open("file:///w/near.py", 'SEP = "<|file_sep|>"\nNAME = "<|repo_name|>"\nprint(SEP, NAME)\n')
    buffer = 'END = "<|fim_middle|>"  # marker\nEOS = "<|endoftext|>"\nprint(‸)\n'

    accepted = editor.complete(buffer, uri="file:///w/tok.py")

    assert accepted == 'END = "<|fim_middle|>"  # marker\nEOS = "<|endoftext|>"\nprint(END)\n'
    prompt = editor.prompt
    for name in ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"):
        assert prompt.control_tokens.count(name) == 1
    assert "<|endoftext|>" not in prompt.control_tokens
    assert prompt.control_tokens.count("<|repo_name|>") <= 1
    assert prompt.control_tokens.count("<|file_sep|>") == 2, "one before each of the two files"
    assert 'END = "<|fim_middle|>"  # marker\nEOS = "<|endoftext|>"\nprint(' in prompt.before
    assert 'SEP = "<|file_sep|>"\nNAME = "<|repo_name|>"' in prompt.text


def test_g14_a_marker_that_the_model_spells_is_never_inserted(editor: Editor) -> None:
    for marker in ("<|endoftext|>", "<|fim_middle|>", "<|file_sep|>"):
        editor.play(texts=[f"{marker}x"])
        assert editor.complete("print(‸)\n", uri=FILE) is None
        editor.close_document(FILE)


def test_g16_nameless_buffers_are_not_mixed_up(editor: Editor) -> None:
    editor.play(texts=["9"])
    first, second = "untitled:Untitled-1", "untitled:Untitled-2"
    editor.open(first, "aaaa\nbbbb\ncccc\n")
    editor.open(second, "z\n")

    editor.change(first, [change((2, 4), (2, 4), "!")])
    editor.texts[first] = "aaaa\nbbbb\ncccc!\n"

    assert editor.mirror(first) == editor.texts[first]
    assert editor.ask(first, at(2, 5))
    assert editor.prompt.before.endswith("bbbb\ncccc!")
    assert editor.ask(second, at(0, 1))
    assert editor.prompt.before == "z"


def test_g16_a_second_document_of_the_same_name_takes_the_firsts_place(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["9"]})
    editor.wait_ready()
    editor.open("file:///", "one\ntwo\n")
    editor.open("file:///", "x")

    editor.change("file:///", [change((1, 3), (1, 3), "!")])

    assert editor.mirror("file:///") == "x!"
    editor.texts["file:///"] = "x!"
    assert editor.ask("file:///", at(0, 2))
    assert editor.prompt.before == "x!"
    assert editor.stderr.count("A document was opened that was open already") == 1


def test_g16_a_document_that_is_not_open_is_not_read_from_the_disk(start_alone: StartServer) -> None:
    editor = start_alone({"texts": ["9"]})
    editor.wait_ready()
    path = editor.folder / "real.py"
    path.write_text("on_the_disk = ", encoding="utf-8")
    for uri in (path.as_uri(), "file:///w/missing.py", "untitled:Untitled-9"):
        editor.texts[uri], editor.versions[uri] = "", 1
        editor.change(uri, [change((0, 0), (0, 0), "!")])
        assert editor.ask(uri, at(0, 14)) == []
        assert "text" not in editor.explain(uri)

    editor.open(path.as_uri(), "in_the_editor = ")
    editor.close_document(path.as_uri())
    editor.texts[path.as_uri()] = ""
    assert editor.ask(path.as_uri(), at(0, 14)) == []

    assert editor.calls == []
    assert editor.complete("x = ‸") == "x = 9", "the server lives"
