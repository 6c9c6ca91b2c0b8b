"""The grammar at a cursor, in a language after the other: a buffer or two each. `‸` is the cursor.

`+` it may come and the document is whole with it, `~` it may come and more must follow, `-` it may not come.
"""

import pytest
from treefill.syntax.languages import language_by_id, languages
from treefill.syntax.matcher import Matcher, OutOfReach, matcher_at

TABLES = {
    "go": {
        "package p\n\nfunc f(x int) int {\n\ty := 1\n\treturn ‸\n}\n": "+ x + y|~ x +|- )|~ g(x,|~ func() {",
        "package p\n\nfunc f() {\n\tif a {\n\t\tb()\n\t} ‸\n}\n": "+ else { c() }|~ else|- ]",
        "package p\n\nvar t = []struct {\n\tname string\n}{\n\t{‸},\n}\n": '+ "a"|~ "a|- ;',
    },
    "rust": {
        "impl A {\n    fn f(&self) -> i32 {\n        ‸\n    }\n}\n": (
            "+ self.x|~ match x {|+ match x { _ => 1 }|- )|- ]"
        ),
        "fn f() {\n    let x = vec![‸];\n}\n": "+ 1, 2|+ 1; 3|- )",
        "use std::{‸};\n": "+ fmt, io::Read|- (",
    },
    "java": {
        "class A {\n    int f() {\n        return ‸;\n    }\n}\n": "+ 1|~ g(1|- )|+ x -> x",
        "class A {\n    ‸\n}\n": "+ private int x;|~ private int x|- return 1;|+ void f() {}",
    },
    "csharp": {
        "namespace A {\n    class B {\n        int F() {\n            return ‸;\n        }\n    }\n}\n": (
            "+ 1|~ g(1|- )"
        ),
        "class A {\n    public int X { ‸ }\n}\n": "+ get; set;|~ get|- (",
    },
    "php": {
        "<p>don't</p>\n<?php\nfunction f($x) {\n    return ‸;\n}\n?>\n<p>": "+ $x|~ g($x|- )|+ ['a' => 1]",
        "<?php\nif ($a):\n    b();\n‸\nendif;\n": "+ else:|~ else|- )",
        "<h1><?= ‸ ?></h1>": "+ $x|~ $x +|- ]",
    },
    "kotlin": {
        "class A {\n    fun f(): Int {\n        val x = ‸\n        return x\n    }\n}\n": (
            "+ 1|~ g(1|- )|+ list.map { it }"
        ),
    },
    "scala": {
        "object A {\n  def f(x: Int) = x match {\n    ‸\n  }\n}\n": "+ case 1 => 2|~ case 1|- )",
    },
    "dart": {
        "class A {\n  int f() {\n    return ‸;\n  }\n}\n": "+ 1|~ g(1|- )|+ a?.b ?? 1",
    },
    "zig": {
        "pub fn f() !void {\n    const x = ‸;\n}\n": "+ try g()|~ try|- )",
    },
    "css": {
        "a {\n  color: ‸;\n}\n": "+ red|+ rgb(1, 2, 3)|~ rgb(1|- }}",
        "@media print {\n  a { b: c }\n  ‸\n}\n": "+ d { e: f }|~ d {|- )",
    },
    "toml": {
        "[a]\nb = 1\nc = ‸\nd = 2\n": '+ "x"|~ "x|+ [1, 2]|~ [1,|- x',
    },
    "terraform": {
        'resource "a" "b" {\n  c = ‸\n}\n': '+ "x-${var.d}"|~ "x|+ [1]|- )',
    },
    "ruby": {
        "class A\n  def f(x)\n    if x\n      ‸\n    end\n  end\nend\n": "+ g(x)|~ g(x|- )|~ g do",
        "def f\n  a\n‸\n\ndef g\nend\n": "+ end|- ]",
        "items.each do |x|\n  puts ‸\nend\n": '+ x|+ "a #{x}"|~ "a #{x|- )',
    },
    "shellscript": {
        'f() {\n  if [ -f "$1" ]; then\n    ‸\n  fi\n}\n': '+ echo "$1"|~ echo "$1|~ for x in a; do|- )',
        "case $x in\n  a)\n    b\n    ‸\nesac\n": "+ ;;|- )",
        "echo ${#x} $#\nwhile read -r a; do\n  ‸\ndone\n": '+ b "$a"|~ x=$(b',
    },
    "lua": {
        "local M = {}\nfunction M.f(x)\n  if x then\n    ‸\n  end\nend\n": (
            "+ return x|~ return g(|- )|~ for i = 1, 2 do"
        ),
        "local t = {\n  a = 1,\n  b = ‸\n}\n": "+ 2,|~ {|- )",
    },
    "elixir": {
        "defmodule A do\n  def f(x) do\n    ‸\n  end\nend\n": "+ x + 1|~ g(x|- )|~ if x do",
    },
    "html": {
        "<html><body>\n<div class='a'>\n  ‸\n</div>\n</body></html>\n": (
            "+ text|+ <b>c</b>|~ <b|- <>|+ <img src=x>"
        ),
        "<a ‸>b</a>": '+ href="x"|~ href="x|- =',
    },
    "xml": {
        "<a>\n  <b c='1'>\n    ‸\n  </b>\n</a>\n": "+ text|+ <d/>|+ <d>e</d>|~ <d|- <d e>|- </a>",
    },
    "makefile": {
        "CC = gcc\nall: ‸\n\t$(CC) a.c\n": "+ a.o b.o|~ $(X|- $(X}",
    },
    "dockerfile": {
        "FROM debian\n‸\n": "+ RUN a b|+ COPY a b|- RAN x",
    },
    "r": {
        "f <- function(x) {\n  y <- ‸\n  y\n}\n": '+ x + 1|~ g(x|- )|~ "a',
    },
    "cmake": {
        "project(A)\nset(B ‸)\n": '+ c "d"|~ "d|- )))',
    },
}


def at(buffer: str, language_id: str) -> Matcher:
    language = language_by_id(language_id)
    for grammar in language.grammars:
        if grammar.extra:  # it may be left out
            pytest.importorskip(grammar.package.replace("-", "_"))
    found = matcher_at(buffer.replace("‸", ""), buffer.index("‸"), language)
    assert isinstance(found, Matcher), found
    return found


@pytest.mark.parametrize(
    ("language", "buffer", "expected", "said"),
    [
        pytest.param(language, buffer, row[0], row[2:], id=f"{language}: {buffer[-24:]!r} {row[2:]!r}")
        for language, table in TABLES.items()
        for buffer, told in table.items()
        for row in told.split("|")
    ],
)
def test_what_may_come_and_where_it_may_end(language: str, buffer: str, expected: str, said: str) -> None:
    guard = at(buffer, language)

    assert not guard.gave_up
    is_allowed = guard.allows(said.encode())
    assert ("-" if not is_allowed else "+" if guard.may_end(said.encode()) else "~") == expected


@pytest.mark.parametrize("language", sorted(TABLES))
def test_piece_by_piece_is_the_same_as_at_once(language: str) -> None:
    for buffer, told in TABLES[language].items():
        for row in told.split("|"):
            expected, said = row[0], row[2:]
            guard = at(buffer, language)
            taken = [guard.accept(bytes([byte])) for byte in said.encode()]

            assert all(taken) is (expected != "-"), said
            if all(taken):
                assert guard.can_stop() is (expected == "+"), said


def test_every_language_is_asked() -> None:
    """Those of `test_matcher.py` and these are all that are guarded."""
    elsewhere = {"c", "cpp", "javascript", "json", "python", "sql", "typescript", "typescriptreact"}
    guarded = {each.id for each in languages().values() if each.grammars and not each.grammars[0].parse_only}

    assert guarded == elsewhere | set(TABLES)


@pytest.mark.parametrize(
    ("language", "buffer", "reason"),
    [
        ("yaml", "a: ‸", "only checked once it is written"),
        ("swift", "let x = ‸", "takes half a minute"),
        ("latex", "\\emph{‸}", "takes a minute"),
        ("objective-c", "int x = ‸;", "What a place in Objective-C hangs on"),
        ("php", "<p>‸</p>", "The cursor is outside of the code."),
        ("php", "<?php f(); ?> ‸", "The cursor is outside of the code."),
        ("markdown", "text ‸", "Prose is free"),
    ],
)
def test_where_nobody_stands_guard_it_says_why(language: str, buffer: str, reason: str) -> None:
    known = language_by_id(language)
    if any(grammar.extra for grammar in known.grammars):
        pytest.importorskip("tree_sitter_language_pack")
    found = matcher_at(buffer.replace("‸", ""), buffer.index("‸"), known)

    assert isinstance(found, OutOfReach)
    assert reason in found.reason


def test_a_long_run_of_blank_lines_is_not_read_by_a_compiled_scanner() -> None:
    """It would go over all of it at every one of them."""
    found = matcher_at("x" + "\n" * 60_000 + "y ", 60_003, language_by_id("terraform"))

    assert isinstance(found, Matcher)
    assert found.allows(b"= 1")
