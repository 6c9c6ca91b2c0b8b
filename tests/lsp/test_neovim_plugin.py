"""The Neovim plugin as its user meets it: keys in, ghost text on the screen, lines in the buffer, bytes on disk."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import processes_of
from tests.lsp.neovim_user import NeovimUser

pytestmark = [pytest.mark.lsp, pytest.mark.timeout(300)]

SUM = "total = 0\n    for item in items:\n        total += item"
StartNeovim = Callable[..., NeovimUser]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartNeovim]:
    """A Neovim of the test's own, with an init.lua of its own. Nothing of it is left behind."""
    users: list[NeovimUser] = []

    def start_one(init: str = "", **script: Any) -> NeovimUser:
        users.append(NeovimUser(tmp_path, init, script))
        return users[-1]

    yield start_one
    for user in users:
        user.close()
    assert processes_of(tmp_path) == []


@pytest.fixture(scope="module")
def shared_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NeovimUser]:
    user = NeovimUser(tmp_path_factory.mktemp("nvim"))
    yield user
    user.close()
    assert processes_of(user.folder) == []


@pytest.fixture
def user(shared_user: NeovimUser) -> Iterator[NeovimUser]:
    """The file's Neovim, in normal mode; nothing that was typed is left."""
    yield shared_user
    shared_user.type("<Esc>")
    shared_user.offer()
    shared_user.command("silent! tabonly! | silent! only! | %bwipeout!")
    shared_user.lua("_G.sent, _G.told = {}, {}")


def item(text: str, row: int, start: int, end: int) -> dict[str, Any]:
    """An item as the server sends it."""
    span = {"start": {"line": row, "character": start}, "end": {"line": row, "character": end}}
    return {"insertText": text, "range": span}


# What is shown.


def test_ghost_text_stands_behind_what_is_typed_and_the_cursor_before_it(user: NeovimUser) -> None:
    user.play(by_end={"x = ": "1 + 2"})
    user.open("a.py", "# a comment\n")

    user.type("Gox = ")

    assert user.wait_for_ghost("1 + 2") == [[1, 4, "inline", "1 + 2"]]
    assert user.screen(3) == ["# a comment", "x = 1 + 2", "~"]
    assert user.lua("return { vim.fn.screenrow(), vim.fn.screencol() }") == [2, 5]
    assert user.lines == ["# a comment", "x = "]


def test_further_lines_stand_below(user: NeovimUser) -> None:
    user.play(by_end={"\n    ": SUM})
    user.open("a.py", "def add(items):\n\nprint(add([1]))\n")

    user.type("jcc")

    user.wait_for_ghost(SUM)
    assert user.screen(5) == ["def add(items):", *("    " + SUM).split("\n"), "print(add([1]))"]


def test_ghost_text_has_the_colour_of_comments_unless_it_has_its_own(user: NeovimUser) -> None:
    colour = "return vim.api.nvim_get_hl(0, { name = 'TreefillGhost' }).link"
    assert user.lua(colour) == "Comment"
    user.command("colorscheme habamax")
    assert user.lua(colour) == "Comment"

    user.command("highlight! link TreefillGhost NonText")
    user.command("doautocmd ColorScheme")

    assert user.lua(colour) == "NonText"
    user.command("colorscheme default")


def test_text_that_comes_again_right_of_the_cursor_is_shown_once(user: NeovimUser) -> None:
    user.open("a.py", "print()\n")
    user.offer(item("x, y) + 1", 0, 6, 7))

    user.type("f(a")

    assert user.wait_for_ghost("x, y + 1") == [[0, 6, "inline", "x, y"], [0, 7, "inline", " + 1"]]
    assert user.screen(1) == ["print(x, y) + 1"]
    user.type("<Tab>")
    user.wait_for(lambda user: user.lines == ["print(x, y) + 1"])


def test_what_moves_down_behind_several_lines_is_shown_there(user: NeovimUser) -> None:
    user.open("a.py", "f(1) + g\n")
    user.offer(item("x,\n  y, ", 0, 2, 2))

    user.type("f(a")

    user.wait_for(lambda user: user.ghost)
    assert user.screen(3) == ["f(x,", "  y, 1) + g", "~"]
    user.offer_nothing_yet()
    user.type("<Tab>")
    user.wait_for(lambda user: user.lines == ["f(x,", "  y, 1) + g"])
    assert user.cursor == (1, 5)


@pytest.mark.parametrize(
    ("blanks", "text", "shown"),
    [
        ("      ", "    x = 1", "    x = 1"),
        ("  ", "    x = 1", "    x = 1"),
        ("    ", "\tx = 1", "        x = 1"),
    ],
    ids=["fewer", "more", "a tab"],
)
def test_an_items_own_indentation_takes_the_place_of_the_lines(
    user: NeovimUser, blanks: str, text: str, shown: str
) -> None:
    user.open("a.py", "", "setlocal tabstop=8")
    user.offer(item(text, 0, 0, len(blanks)))

    user.type("i" + blanks)

    user.wait_for(lambda user: user.ghost)
    assert user.screen(1) == [shown]
    user.offer_nothing_yet()
    user.lua("require('treefill').accept()")
    assert user.lines == [text]


def test_tabs_are_as_wide_as_in_the_buffer(user: NeovimUser) -> None:
    user.open("a.c", "", "setlocal tabstop=4 noexpandtab")
    user.offer(item("x;\tz;\n\t\ty;", 0, 0, 0))

    user.type("i")

    user.wait_for(lambda user: user.ghost)
    assert user.screen(2) == ["x;  z;", "        y;"]
    user.offer_nothing_yet()
    user.type("<Tab>")
    user.wait_for(lambda user: user.lines == ["x;\tz;", "\t\ty;"])


# Typing on.


def test_it_stays_while_it_is_typed_before_any_answer(user: NeovimUser) -> None:
    user.open("a.py", "")
    user.offer(item("x = f(1)\ny", 0, 0, 0))
    user.type("i")
    user.wait_for_ghost("x = f(1)\ny")
    user.offer_nothing_yet()

    for key, left in [("x", " = f(1)\ny"), (" = f", "(1)\ny"), ("(1)", "\ny"), ("<CR>", "y")]:
        user.type(key)
        user.wait_for_ghost(left)
    user.type("<BS>")
    user.wait_for_ghost("\ny")
    user.type("<CR>y")
    user.wait_for_no_ghost()
    assert user.lines == ["x = f(1)", "y"]


def test_brackets_that_close_by_themselves_are_part_of_it(user: NeovimUser) -> None:
    user.open("a.py", "", "inoremap <buffer> ( ()<Left>")
    user.offer(item("f(x, y)", 0, 0, 0))
    user.type("i")
    user.wait_for_ghost("f(x, y)")
    user.offer_nothing_yet()

    user.type("f(")

    user.wait_for_ghost("x, y")
    assert user.screen(1) == ["f(x, y)"]
    user.type("<Tab>")
    user.wait_for(lambda user: user.lines == ["f(x, y)"])


def test_the_server_is_asked_again_for_the_rest(user: NeovimUser) -> None:
    user.play(by_end={"x = ": "value + 2"})
    user.open("a.py", "")

    user.type("ix = ")
    user.wait_for_ghost("value + 2")
    user.type_slowly("val")

    user.wait_for_ghost("ue + 2")
    user.wait_until_settled()
    assert as_typed(user) == "ue + 2"
    assert len(user.sent("textDocument/didShowCompletion")) == 1


def as_typed(user: NeovimUser) -> str:
    text: str = user.lua("return require('treefill.session').visible_text()")
    return text


@pytest.mark.parametrize("keys", ["7", "<Left>", "<Esc>", "<C-]>", "<C-o>0"])
def test_it_goes_when_something_else_is_done(user: NeovimUser, keys: str) -> None:
    user.open("a.py", "")
    user.offer(item("x = 1 + 2", 0, 0, 4))
    user.type("ix = ")
    user.wait_for_ghost("1 + 2")
    user.offer_nothing_yet()

    user.type(keys)

    user.wait_for_no_ghost()
    assert user.lines == ["x = 7" if keys == "7" else "x = "]


def test_it_goes_with_the_buffer(user: NeovimUser) -> None:
    user.open("b.py", "")
    user.open("a.py", "")
    user.offer(item("x = 1", 0, 0, 0))
    user.type("i")
    user.wait_for_ghost("x = 1")
    user.offer_nothing_yet()

    user.command("edit #")

    user.wait_for_no_ghost()
    user.command("edit #")
    assert user.ghost == []


def test_it_goes_when_the_line_that_it_began_on_is_cut(user: NeovimUser) -> None:
    user.open("a.txt", "")
    user.offer(item("f(\n1)", 0, 4, 4))
    user.type("ix = ")
    user.wait_for_ghost("f(\n1)")
    user.offer_nothing_yet()
    user.type("f(<CR>")
    user.wait_for_ghost("1)")

    user.lua("vim.api.nvim_buf_set_lines(0, 0, 1, true, { '' })")
    user.type("1")

    user.wait_for_no_ghost()
    user.wait_for(lambda user: user.lines[0] == "" and user.lines[1].endswith("1"))
    assert "Error" not in user.lua("return vim.fn.execute('messages')")


def test_a_late_answer_is_not_shown_where_the_text_is_another(user: NeovimUser) -> None:
    user.open("a.py", "")
    user.lua("_G.late = {}")
    user.lua(
        "_G.offered = 'nothing yet'; local client = vim.lsp.get_clients()[1]; local request = client.rpc.request; "
        "client.rpc.request = function(method, params, answer, ...) "
        "if method == 'textDocument/inlineCompletion' then table.insert(_G.late, answer) end "
        "return request(method, params, answer, ...) end"
    )
    user.type("ix = ")
    user.wait_for(lambda user: user.lua("return #_G.late") == 1)
    user.type("7")
    user.wait_for(lambda user: user.lua("return #_G.late") == 2)

    user.lua("_G.late[1](nil, { items = { ... } })", item("x = 1 + 2", 0, 0, 4))

    user.lua("vim.wait(100)")
    assert user.ghost == []
    assert user.sent("$/cancelRequest") != []


# Taking it.


def test_tab_takes_all_of_it_and_tells_the_server(user: NeovimUser) -> None:
    user.play(by_end={"\n    ": SUM})
    path = user.open("a.py", "def add(items):\n\nprint(add([1]))\n")
    user.type("jcc")
    user.wait_for_ghost(SUM)

    user.type("<Tab>")

    user.wait_for(lambda user: len(user.lines) == 5)
    assert user.lines == ["def add(items):", *("    " + SUM).split("\n"), "print(add([1]))"]
    assert user.cursor == (3, len("        total += item"))
    user.type("<Esc>")
    user.command("write")
    assert path.read_bytes() == f"def add(items):\n    {SUM}\nprint(add([1]))\n".encode()
    (told,) = user.wait_for(lambda user: user.sent("workspace/executeCommand"))
    assert told["command"] == "treefill.accepted"


def test_word_by_word(user: NeovimUser) -> None:
    user.open("a.py", "")
    user.offer(item("self.füge(x)\n  y", 0, 0, 0))
    user.type("i")
    user.wait_for_ghost("self.füge(x)\n  y")
    user.offer_nothing_yet()

    left = ["self", "self.", "self.füge", "self.füge(", "self.füge(x", "self.füge(x)", "self.füge(x)\n  y"]
    for text in left:
        user.type("<C-Right>")
        user.wait_for(lambda user, text=text: user.lines == text.split("\n"), text)

    user.wait_for_no_ghost()
    assert [told["acceptedLength"] for told in user.sent("textDocument/didPartiallyAcceptCompletion")] == [
        4, 5, 9, 10, 11, 12,
    ]  # fmt: skip


def test_line_by_line(user: NeovimUser) -> None:
    user.open("a.py", "def f():\n")
    user.offer(item("    x = 1\n    return x", 1, 0, 0))
    user.type("o<C-u>")
    user.wait_for_ghost("    x = 1\n    return x")
    user.offer_nothing_yet()

    user.type("<C-Down>")
    user.wait_for_ghost("\n    return x")
    assert user.lines == ["def f():", "    x = 1"]
    user.type("<C-Down>")
    user.wait_for_no_ghost()
    assert user.lines == ["def f():", "    x = 1", "    return x"]


def test_a_word_that_reaches_into_text_right_of_the_cursor_doubles_nothing(user: NeovimUser) -> None:
    user.open("a.py", "f()\n")
    user.offer(item("x)(y)", 0, 2, 3))
    user.type("f(a")
    user.wait_for(lambda user: user.ghost)
    user.offer_nothing_yet()

    for column in (3, 5, 6):
        user.type("<C-Right>")
        user.wait_for(lambda user, at=(0, column): user.cursor == at, f"column {column}")
        assert user.screen(1) == ["f(x)(y)"]

    assert user.lines == ["f(x)(y)"]


def test_undo_takes_back_what_was_taken_and_nothing_else(user: NeovimUser) -> None:
    user.open("a.py", "")
    user.offer(item("x = 1 + 2\ny = 3", 0, 0, 4))
    user.type("ix = ")
    user.wait_for_ghost("1 + 2\ny = 3")
    user.offer_nothing_yet()
    user.type("<Tab>")
    user.wait_for(lambda user: user.lines == ["x = 1 + 2", "y = 3"])
    user.type("4<Esc>")
    user.wait_for(lambda user: user.lines == ["x = 1 + 2", "y = 34"])

    for lines in [["x = 1 + 2", "y = 3"], ["x = "], [""]]:
        user.type("u")
        user.wait_for(lambda user, lines=lines: user.lines == lines, str(lines))
    user.type("<C-r><C-r>")
    user.wait_for(lambda user: user.lines == ["x = 1 + 2", "y = 3"])


def test_several_are_gone_through(user: NeovimUser) -> None:
    user.play(texts=["alpha + 1", "beta + 2", "gamma + 3"])
    user.open("a.py", "")
    user.type("ix = ")
    user.wait_for_ghost("alpha + 1")

    user.type("<M-]>")
    second = user.wait_for(lambda user: as_typed(user) != "alpha + 1" and as_typed(user))
    user.type("<M-]>")
    third = user.wait_for(lambda user: as_typed(user) not in {"alpha + 1", second} and as_typed(user))
    user.type("<M-[>")
    user.wait_for_ghost(second)
    user.type("<M-]><Tab>")
    user.wait_for(lambda user: user.lines == [f"x = {third}"])
    kinds = [sent["context"]["triggerKind"] for sent in user.sent("textDocument/inlineCompletion")]
    assert kinds.count(1) == 1


# Keys.


def test_tab_without_ghost_text_is_a_tab(user: NeovimUser) -> None:
    user.open("a.txt", "", "setlocal noexpandtab")
    user.offer_nothing_yet()

    user.type("ia<Tab>b<Esc>")

    user.wait_for(lambda user: user.lines == ["a\tb"])


def test_tab_in_the_indentation_indents_before_a_suggestion_that_is_indented_further(
    user: NeovimUser,
) -> None:
    user.open("a.py", "", "setlocal expandtab shiftwidth=4")
    user.offer(item("    x = 1", 0, 0, 0))
    user.type("i")
    user.wait_for_ghost("    x = 1")
    user.offer_nothing_yet()

    user.type("<Tab>")

    user.wait_for_ghost("x = 1")
    assert user.lines == ["    "]
    user.type("<Tab>")
    user.wait_for(lambda user: user.lines == ["    x = 1"])


def test_tab_still_goes_to_a_snippets_next_place(user: NeovimUser) -> None:
    user.open("a.txt", "")
    user.offer_nothing_yet()
    user.type("i")
    user.lua("vim.snippet.expand('f(${1:a}, ${2:b})')")

    for keys, line in [("x", "f(x, b)"), ("<Tab>", "f(x, b)"), ("y", "f(x, y)")]:
        user.lua("vim.wait(50)")
        user.type(keys)
        user.wait_for(lambda user, line=line: user.lines == [line], line)


def test_a_users_own_keys_are_left_alone_and_checkhealth_says_so(start: StartNeovim) -> None:
    user = start(
        "vim.keymap.set('i', '<Tab>', 'mine', { desc = 'my own tab' })\n"
        "vim.keymap.set('i', '<C-l>', '<Plug>(treefill-accept-line)')\n"
    )
    user.open("a.py", "")
    user.offer(item("x = 1", 0, 0, 0))
    user.type("i")
    user.wait_for_ghost("x = 1")

    user.offer_nothing_yet()
    user.type("<Tab>")

    user.wait_for(lambda user: user.lines == ["mine"])
    user.type("<Esc>")
    report = checkhealth(user)
    assert "WARNING accept: <Tab> has another map, which was left alone: my own tab" in report
    assert "OK accept-line: mapped by you to <Plug>(treefill-accept-line)" in report
    assert user.lua("return vim.fn.maparg('<C-Down>', 'i')") == ""


def test_no_default_keys_where_none_are_wanted(start: StartNeovim) -> None:
    user = start("vim.g.treefill_no_default_maps = true\n")

    assert "snippet" in user.lua("return vim.fn.maparg('<Tab>', 'i', false, true).desc")
    assert user.lua("return vim.fn.maparg('<C-Right>', 'i')") == ""
    assert user.lua("return vim.fn.maparg('<Plug>(treefill-accept)', 'i')") != ""


def test_a_map_that_is_an_expression_can_take_it_too(user: NeovimUser) -> None:
    """As completion plugins call functions on keys: where edits are forbidden."""
    user.open("a.py", "")
    user.lua(
        "vim.keymap.set('i', '<C-g>x', function() return require('treefill').accept() and '' or 'none' end, "
        "{ expr = true, buffer = true })"
    )
    user.offer(item("x = 1", 0, 0, 0))
    user.type("i")
    user.wait_for_ghost("x = 1")
    user.offer_nothing_yet()

    user.type("<C-g>x")

    user.wait_for(lambda user: user.lines == ["x = 1"])


# Bytes.


def test_a_dos_file_keeps_its_line_endings(user: NeovimUser) -> None:
    user.play(by_end={"    ": SUM})
    path = user.open("dos.py", "def add(items):\r\n\r\nprint(add([1]))\r\n")
    user.type("jcc")
    user.wait_for_ghost(SUM)

    user.type("<Tab><Esc>")
    user.wait_for(lambda user: len(user.lines) == 5)
    user.command("write")

    assert (
        path.read_bytes() == f"def add(items):\n    {SUM}\nprint(add([1]))\n".replace("\n", "\r\n").encode()
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_letters_of_several_bytes_before_the_cursor(start: StartNeovim, encoding: str) -> None:
    user = start(
        "local make = vim.lsp.protocol.make_client_capabilities\n"
        "vim.lsp.protocol.make_client_capabilities = function() local made = make()\n"
        f"made.general.positionEncodings = {{ '{encoding}' }} return made end\n",
        by_end={"’🙂 = ": "'日本🙂' + é"},
    )
    path = user.open("a.txt", "")
    user.type("ié ’🙂 = ")
    user.wait_for_ghost("'日本🙂' + é")
    assert user.lua("return vim.lsp.get_clients()[1].offset_encoding") == encoding

    user.type("<Tab><Esc>")
    user.wait_for(lambda user: user.lines == ["é ’🙂 = '日本🙂' + é"])
    user.command("write")

    assert path.read_bytes() == "é ’🙂 = '日本🙂' + é\n".encode()


# Where nothing is wanted, and when something is wrong.


def test_file_types_and_buffers_can_be_left_out(start: StartNeovim) -> None:
    user = start(
        "require('treefill').setup({ filetypes = { markdown = false }, debounce_ms = 1 })\n", texts=["x"]
    )
    user.open("b.py", "")
    user.command(f"edit {user.folder / 'a.md'}")
    user.type("iHere <Esc>")
    user.command(f"edit {user.folder / 'c.py'} | let b:treefill = v:false")
    user.type("iy = <Esc>")
    user.command("enew")
    user.type("iz = <Esc>")

    user.wait_for(lambda user: user.lines == ["z = "])
    assert user.sent("textDocument/inlineCompletion") == []
    assert [Path(sent["textDocument"]["uri"]).name for sent in user.sent("textDocument/didOpen")] == [
        "b.py",
        "c.py",
    ]


def test_it_can_be_switched_off_and_on(user: NeovimUser) -> None:
    user.play(by_end={"x = ": "1 + 2"})
    user.open("a.py", "")

    user.command("Treefill disable")
    user.type("ix = <Esc>")
    user.wait_for(lambda user: user.lines == ["x = "])
    assert user.lua("return require('treefill').status()")["message"] == "switched off"

    user.command("Treefill toggle")
    user.wait_until_ready()
    user.type("oy = 2<CR>x = ")
    user.wait_for_ghost("1 + 2")
    assert mirror(user) == "x = \ny = 2\nx = \n", "edits of all times have come to the server"


def mirror(user: NeovimUser) -> str:
    """The server's copy of the buffer."""
    text: str = user.lua(
        "local params = { command = 'treefill.explain', arguments = { vim.uri_from_bufnr(0) } } "
        "return vim.lsp.get_clients()[1]:request_sync('workspace/executeCommand', params, 20000, 0).result.text"
    )
    return text


def test_who_types_while_the_model_is_loaded_gets_ghost_text_when_it_is_there(start: StartNeovim) -> None:
    user = start(by_end={"x = ": "1 + 2"}, load_ms=1000)
    user.command(f"edit {user.folder / 'a.py'}")

    user.type("ix = ")

    user.wait_for_ghost("1 + 2")


def test_a_program_that_is_missing_is_told_once_with_a_remedy(start: StartNeovim) -> None:
    user = start("vim.g.treefill = { cmd = { 'no-such-program', 'serve' } }\n")
    user.command(f"edit {user.folder / 'a.py'}")
    user.type("ix = 1<CR>y = 2<Esc>")
    user.command(f"edit! {user.folder / 'b.py'}")

    user.wait_for(lambda user: user.told)
    assert user.told == ["treefill: `no-such-program` was not found. :checkhealth treefill helps."]
    report = checkhealth(user)
    assert "ERROR `no-such-program` was not found" in report
    assert 'setup({ cmd = { "/path/to/treefill", "serve" } })' in report


def test_a_server_that_dies_is_told_once_and_can_be_started_anew(start: StartNeovim) -> None:
    user = start(by_end={"x = ": "1 + 2", "total = ": "x + y"})
    user.open("a.py", "")
    user.type("ix = ")
    user.wait_for_ghost("1 + 2")

    user.lua("vim.lsp.get_clients()[1].rpc.terminate()")
    user.wait_for(lambda user: user.told)
    user.type("1<CR>y = 2<CR>x = <Esc>ox = ")

    user.wait_for(lambda user: len(user.lines) == 4)
    assert user.told == ["treefill: the server ended (signal 15). :Treefill restart starts another."]
    assert user.lua("return require('treefill').status()")["kind"] == "Error"
    user.type("<Esc>")
    user.command("Treefill restart")
    user.wait_until_ready()
    user.type("ototal = ")
    user.wait_for_ghost("x + y")
    assert mirror(user) == "x = 1\ny = 2\nx = \nx = \ntotal = \n"


def test_an_answer_with_nothing_is_taken_for_one(user: NeovimUser) -> None:
    user.play(texts=[""])
    user.open("a.py", "")
    user.type("ix = ")
    user.wait_for(lambda user: user.sent("textDocument/inlineCompletion"))
    user.wait_until_settled()

    user.lua("vim.wait(500)")

    assert len(user.sent("textDocument/inlineCompletion")) <= 4, "a key at most, a request each"


def test_quitting_and_restarting_are_no_deaths(user: NeovimUser) -> None:
    user.open("a.py", "")

    user.command("Treefill restart")
    user.wait_until_ready()

    user.lua("vim.wait(300)")
    assert user.told == []
    assert user.lua("return #vim.lsp.get_clients()") == 1


# Questions.


def test_explain_tells_how_the_last_answer_came_about(user: NeovimUser) -> None:
    user.play(texts=[""])
    user.open("a.py", "")
    user.type("ix = ")
    user.wait_for(lambda user: user.sent("textDocument/inlineCompletion"))
    user.wait_until_settled()
    user.type("<Esc>")

    user.command("Treefill explain")

    user.wait_for(lambda user: user.lua("return vim.bo.filetype") == "treefill-explain")
    assert user.lines[0].endswith(".")
    assert any(line.startswith("reason: ") for line in user.lines), user.lines
    assert user.lua("return vim.bo.modifiable") is False


def test_the_status_is_there_for_a_status_line(user: NeovimUser) -> None:
    user.open("a.py", "")

    assert user.lua("return require('treefill').status()") == {
        "kind": "Normal",
        "busy": False,
        "message": "ready",
    }
    user.command("Treefill")
    user.command("Treefill nonsense")
    assert user.told[0] == "treefill: ready"
    assert "there is no :Treefill nonsense, but disable, enable, explain" in user.told[1]
    assert user.call("nvim_exec_lua", "return vim.fn.getcompletion('Treefill e', 'cmdline')", []) == [
        "enable",
        "explain",
    ]


def test_checkhealth_finds_everything_in_order(user: NeovimUser) -> None:
    user.open("a.py", "")

    report = checkhealth(user)

    assert "OK Neovim 0.11" in report
    assert f"OK Program: {user.folder}/bin/treefill" in report
    assert "OK Version: treefill 1.2.3" in report
    assert "OK A server is attached to a.py" in report
    assert "OK Status: ready" in report
    assert "OK accept: <Tab>" in report
    assert "WARN" not in report
    assert "ERROR" not in report


def test_neovims_own_ghost_text_is_used_where_it_is_wanted_and_there(start: StartNeovim) -> None:
    """Only what we hand over: a Neovim that has it could not be had."""
    user = start(
        "vim.lsp.inline_completion = { enable = function(...) _G.enabled = { ... } end, "
        "get = function() return vim.g.has_ghost end }\n"
        "require('treefill').setup({ use_builtin = true })\n"
    )
    user.open("a.txt", "")
    assert user.lua("return _G.enabled") == [True, {"client_id": 1}]

    user.command("let g:has_ghost = v:true")
    user.type("ix = <Tab>")
    user.wait_for(lambda user: user.lines == ["x = "])
    user.command("let g:has_ghost = v:false")
    user.type("<Tab>")
    user.wait_for(lambda user: user.lines == ["x = \t"])
    assert user.sent("textDocument/inlineCompletion") == []


def test_a_wrong_option_is_refused_by_name(user: NeovimUser) -> None:
    with pytest.raises(AssertionError, match='there is no option "debounce"'):
        user.lua("require('treefill').setup({ debounce = 3 })")
    with pytest.raises(AssertionError, match="cmd: expected table, got string"):
        user.lua("require('treefill').setup({ cmd = 'treefill serve' })")


def test_the_help_has_its_tags(user: NeovimUser) -> None:
    user.command("helptags ALL")

    user.command("help treefill-options")

    assert user.lua("return vim.fn.expand('%:t')") == "treefill.txt"


def checkhealth(user: NeovimUser) -> str:
    user.command("checkhealth treefill")
    user.wait_for(lambda user: user.lines[1].startswith("===="))
    return "\n".join(user.lines)
