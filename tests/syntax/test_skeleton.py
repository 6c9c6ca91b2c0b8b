"""What of a file a cursor hangs on: the scopes round it, its statement, and what comes after it. `‸` is the cursor."""

import pytest
from treefill.syntax.languages import language_by_id
from treefill.syntax.skeleton import (
    MAX_BEGINNING_BYTES,
    MAX_STATEMENT_BYTES,
    Skeleton,
    is_outside_code,
    skeleton_at,
)


def skeleton(buffer: str, language: str) -> Skeleton:
    return skeleton_at(buffer.replace("‸", ""), buffer.index("‸"), language_by_id(language))


def best(buffer: str, language: str) -> list[str]:
    """The first reading of each scope and of the statements, and the rest after `|`."""
    found = skeleton(buffer, language)
    parts = [*(readings[0] for readings in found.scopes), found.statements[0]]
    return [*(part.decode() for part in parts), "|" + found.rests[0].decode()]


@pytest.mark.parametrize(
    ("language", "buffer", "parts"),
    [
        (
            "cpp",
            "int f();\n\nclass Shape {\n  double area() const {\n    int a = 1;\n    return w * ‸;\n  }\n};\n",
            ["\n\nclass Shape {", "\n  double area() const {", "\n    int a = 1;\n    return w * ", "|;"],
        ),
        (
            "python",
            "import os\n\nclass A:\n    def f(self):\n        if x:\n            y = ‸\n        return y\n",
            [
                "class A:\n",
                "    def f(self):\n",
                "        if x:\n",
                "            y = ",
                "|\n        return y\n",
            ],
        ),
        ("python", "try:\n    a\n‸\n", ["try:\n", "    a\n", "", "|\n"]),
        ("python", "b = [\n  1,\n  ‸\n]\nc = 2\n", ["b = [\n  1,\n  ", "|\n]\n"]),
        ("c", "#if A\nint x = ‸;\n#else\nint y;\n#endif\n", ["#if A\n", "int x = ", "|;"]),
        (
            "c",
            "int f() {\n  if (a) { b(); }\n  else ‸\n}\n",
            ["int f() {", "\n  if (a) { b(); }\n  else ", "|\n"],
        ),
        (
            "go",
            "package p\n\nfunc f() {\n\tx := g(1,\n\t\t2)\n\ty := ‸\n\tz()\n}\n",
            ["func f() {", "\n\tx := g(1,\n\t\t2)\n\ty := ", "|"],
        ),
        (
            "go",
            "var a = []struct {\n\tn int\n}{\n\t{‸},\n}\n",
            ["var a = []struct {\n\tn int\n}{", "\n\t{", "", "|"],
        ),
        ("php", "<p>{'</p><?php if ($a) { f(‸); } ?><p>", ["if ($a) {", " f(", "|);"]),
        ("php", "<?php f(); ?>\n<b><?= ‸ ?></b>", ["", "|"]),
        (
            "ruby",
            "class A\n  # don't\n  def f(x)\n    g do |y|\n      1\n    end\n    x = ‸\n  end\nend\n",
            ["class A", "  def f(x)", "    g do |y|\n    end", "    x = ", "|"],
        ),
        (
            "shellscript",
            "f() {\n  if a; then\n    b\n  else\n    c ‸\n  fi\n}\n",
            ["f() {", "  if a; then\n:\n  else", "    c ", "|"],
        ),
        ("lua", "x = {\n  a = 1,\n  b = ‸\n}\n", ["x = {", "  a = 1,", "  b = ", "|"]),
        ("html", "<p>a</p><div>\n<br>b <i>c</i> d‸ e\n</div>", ["<div>", " d", "| e"]),
        ("xml", "<a><b c='1'><!-- <d> --><e ‸/></b></a>", ["<a>", "<b c='1'>", "<e ", "|/>"]),
        ("toml", "[a]\nb = [\n  1,\n  ‸\n]\nc = 1\n", ["[a]\nb = [\n  1,", "|\n]"]),
        ("sql", "SELECT 1;\nSELECT (a, ‸) FROM t;\nSELECT 2;", ["SELECT 1;\nSELECT (a, ", "|) FROM t;"]),
        ("json", '{"a": {"b": 1, "c": ‸}}', ["{", '"a": {', '"b": 1, "c": ', "|"]),
        ("javascript", "let a = 1;\nf(() => {\n  g(‸);\n});\n", ["\nf(() => {", "\n  g(", "|);\n"]),
        ("typescript", "class A { m() { return ‸ } }", ["class A {", " m() {", " return ", "| "]),
        (
            "cpp",
            'auto s = "}{"; /* { */ // {\nint f() {\n  ‸\n}\n',
            ["/* { */ // {\nint f() {", "\n  ", "|\n"],
        ),
    ],
)
def test_the_parts_that_are_read(language: str, buffer: str, parts: list[str]) -> None:
    told = best(buffer, language)

    assert [part.strip() for part in told[:-1]] == [part.strip() for part in parts[:-1]]
    assert told[-1].startswith(parts[-1].rstrip("\n"))


def test_macros_are_left_out_in_a_second_reading() -> None:
    found = skeleton("class W {\n  Q_OBJECT\n  int a = ‸;\n};\n", "cpp")

    assert [b"Q_OBJECT" in reading for reading in found.statements[:2]] == [True, False]


def test_a_scope_that_may_not_be_read_has_stand_ins() -> None:
    found = skeleton("FOREACH(int a, b) {\n  ‸\n}\n", "cpp")

    assert found.scopes[0][0] == b"FOREACH(int a, b) {"
    assert b"void f() {" in found.scopes[0][1:]


def test_a_line_deep_in_a_statement_is_no_statement() -> None:
    assert skeleton("f(\n  a b,\n  ‸\n);\n", "c").lines == ()
    assert skeleton("EXPORT\nint a = ‸\n", "c").lines == (b"int a = ",)
    assert skeleton("x = f(\n    1,\n    ‸)\n", "python").lines == ()


def test_where_a_text_has_no_semicolons_a_line_may_begin_a_statement() -> None:
    found = skeleton("import {a} from 'a'\n@b c d\nexport const x = [\n  ‸\n]\n", "javascript")

    assert b"export const x = [\n  " in found.statements


def test_in_python_a_scope_that_may_not_be_read_is_a_block_of_its_depth() -> None:
    found = skeleton("class A:\n    def f(self) -> :\n        ‸\n", "python")

    assert [readings[-1] for readings in found.scopes] == [b"if 1:\n", b"    pass\n"]


def test_what_is_far_away_costs_nothing_and_changes_nothing() -> None:
    near = "class A {\n  int f() {\n    return ‸;\n  }\n};\n"
    far = "int a() { return 1; }\n" * 4_000

    assert (
        skeleton(far + near, "cpp").scopes[-1]
        == skeleton("int a() { return 1; }\n" * 50 + near, "cpp").scopes[-1]
    )


def test_what_is_too_long_is_not_read() -> None:
    assert skeleton("int x = f(" + "1, " * MAX_STATEMENT_BYTES + "‸", "c").statements == ()
    long_head = "int f(" + "int a, " * MAX_BEGINNING_BYTES + "int b) {\n  ‸\n}\n"
    assert all(len(reading) < MAX_BEGINNING_BYTES for reading in skeleton(long_head, "c").scopes[0])
    beside = "class A:\n    " + "x = '" + "a" * MAX_BEGINNING_BYTES + "'\n    y = ‸\n"
    assert all(len(reading) < MAX_BEGINNING_BYTES for reading in skeleton(beside, "python").scopes[-1])


@pytest.mark.parametrize(
    ("buffer", "middle", "body"),
    [
        ("if a:\n    ‸\n", "while b:", b"\n        pass"),
        ("‸\n", "def f(x):", b"\n    pass"),
        ("\tif a:\n\t\t‸\n", "else:", b"\n\t\t\tpass"),
        ("if a:\n    ‸\n", "x = 1", b""),
        ("if a‸ and b\n", ":", b""),
    ],
)
def test_the_body_that_a_block_wants_stands_deeper(buffer: str, middle: str, body: bytes) -> None:
    assert skeleton(buffer, "python").body_for(middle.encode()) == body


def test_a_brace_language_wants_none() -> None:
    assert skeleton("int f(int a) {\n  switch (a) {\n  ‸\n  }\n}\n", "c").body_for(b"case 1:") == b""


@pytest.mark.parametrize(
    "buffer", ["‸", "\ufeff‸", "x‸", "\n\n‸", "🙂 = ‸🙂", "\r\n‸\r\n", '"‸', "{‸", "(((‸)))"]
)
@pytest.mark.parametrize("language", ["python", "c", "cpp", "sql", "json", "javascript", "typescript"])
def test_whatever_stands_there_it_has_a_skeleton(buffer: str, language: str) -> None:
    found = skeleton(buffer, language)

    assert found.statements
    assert found.rests


def test_where_a_file_has_other_text_than_code_the_cursor_may_be_outside() -> None:
    php = language_by_id("php")

    assert skeleton("<p><?= ‸ ?>", "php").prologue == b"<?= "
    assert skeleton("<?php f(‸", "php").prologue == b"<?php "
    assert is_outside_code("<p>", 3, php)
    assert not is_outside_code("<p><?php ", 9, php)
    assert is_outside_code("<?php ?> ", 9, php)
    assert not is_outside_code("x", 1, language_by_id("go"))


@pytest.mark.parametrize(
    ("buffer", "lacks_closer"),
    [
        ("def f\n  a\n  ‸\nend\n", False),
        ("def f\n  a\n‸\n\ndef g\nend\n", True),
        ("class A\n  def f\n    a\n    ‸\nend\n", True),
        ("class A\n  def f\n    a\n    ‸\n  end\nend\n", False),
        ("a\n‸\n", False),
    ],
)
def test_a_block_of_words_may_lack_its_end(buffer: str, lacks_closer: bool) -> None:
    assert bool(skeleton(buffer, "ruby").n_lacking) is lacks_closer


def test_what_is_opened_at_the_cursor_may_be_closed_below() -> None:
    rests = skeleton("def f\n  if ‸\n    a\n  else\n    b\n  end\n  c\nend\n", "ruby").rests

    assert rests[0] == b"\n    a\n  else\n    b\n  end\n"
    assert rests[-1] == b"\n"


def test_a_statement_that_is_too_long_to_be_read_may_want_a_body_all_the_same() -> None:
    text = 10_000 * "lambda: "
    found = skeleton_at(text, len(text), language_by_id("python"))

    assert found.statements == ()
    assert found.body_for(b"0\nif x:").strip() == found.filler
