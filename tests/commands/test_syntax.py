"""`treefill syntax check` says whether whole files are accepted, and in one line what was expected where not.

`treefill syntax mask` says which tokens of a vocabulary may come at one place.
"""

import io
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import treefill.commands.syntax
from treefill.__main__ import main
from treefill.syntax.check import Verdict, readable
from treefill.syntax.vocabulary import MaskVocabulary

from tests.helpers.scripted_engine import ByteVocabulary


@dataclass(frozen=True)
class Run:
    status: int
    stdout: str
    stderr: str

    @property
    def files(self) -> list[dict[str, Any]]:
        files: list[dict[str, Any]] = json.loads(self.stdout)["files"]
        return files


class Check:
    """The command, called in this process, in a folder with files of these names and texts."""

    command = "check"

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.chdir(folder)

    def __call__(self, *arguments: str, stdin: bytes = b"", **files: str | bytes) -> Run:
        for name, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            Path(name.replace("_", ".")).write_bytes(data)
        self._monkeypatch.setattr(sys, "argv", ["treefill", "syntax", self.command, *arguments])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as exit_info:
            main()
        captured = self._capsys.readouterr()
        return Run(int(exit_info.value.code or 0), captured.out, captured.err)


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    return Check(tmp_path, monkeypatch, capsys)


class Mask(Check):
    command = "mask"


@pytest.fixture
def mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mask:
    """With a model whose vocabulary is the 256 bytes and some control tokens."""
    vocabulary = MaskVocabulary(ByteVocabulary(), n_logits=300)
    monkeypatch.setattr("treefill.commands.syntax._vocabulary", lambda model, cache_dir: vocabulary)
    return Mask(tmp_path, monkeypatch, capsys)


def test_an_accepted_file_is_told_by_silence(check: Check) -> None:
    assert check("a.py", a_py="def f():\n    return 1\n") == Run(0, "", "")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (
            "a.py",
            "x = [1, 2)\n",
            "a.py:1:10: expected `,`, `]`, `.`, `(`, `[`, `as`, `if`, an operator, found `)`",
        ),
        ("a.py", "f(1,\n", "a.py:2:1: expected `)`, identifier, number, string"),
        ("a.py", "x = 1 $\n", "a.py:1:7: expected `;`, `,`, a new line"),
        ("a.py", "x = 'a\n", "a.py:1:7: expected the end of the string, found a new line"),
        ("a.py", "名 = = 1\n", "a.py:1:5: expected identifier, number, string"),
        ("a.py", "\ufeffx = = 1\n", "a.py:1:5: expected identifier, number, string"),
        ("a.py", "a = 1\r\nb = = 2\r\n", "a.py:2:5: expected identifier, number, string"),
        ("a.json", '{"a" 1}', "a.json:1:6: expected `:`, found `1`\n"),
        ("a.json", "[1, 2", "a.json:1:6: expected `,`, `]`, found the end of the file\n"),
        ("a.cpp", "int a = ;", "a.cpp:1:9: expected identifier"),
        ("a.js", "class A { x y }", "a.js:1:13: expected `;`, `(`, `=`, found `y`\n"),
        ("a.sql", "SELECT a b c", "a.sql:1:12: expected `;`, `,`, the end of the file"),
    ],
)
def test_a_refused_file_is_one_line(check: Check, name: str, text: str, line: str) -> None:
    run = check(name, **{name.replace(".", "_"): text})

    assert run.status == 1
    assert run.stdout.startswith(line), run.stdout
    assert run.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", "def f(a):\nf(1)\n", "a.py:2:1: expected an indented block, found `f`"),
        ("a.py", "try:\n    a\nb\n", "a.py:3:1: expected `else`, `except`, `finally`, found `b`"),
        (
            "a.py",
            "if a:\n        b = 1\n    c\n",
            "a.py:3:5: expected the indentation of an enclosing block, found `c`",
        ),
        ("a.sql", "SELECT FROM t;\n", "a.sql:1:8: expected identifier"),
        ("a.c", "case 1: f();\n", "a.c:1:1: expected"),
        ("a.json", "[1.]\n", "a.json:1:2: expected `]`, string, number"),
    ],
)
def test_what_only_the_language_refuses_is_said(check: Check, name: str, text: str, expected: str) -> None:
    grammar = () if name != "a.sql" else ("--grammar", "postgres")
    run = check(name, *grammar, **{name.replace(".", "_"): text})

    assert run.status == 1
    assert run.stdout.startswith(expected), run.stdout
    assert "(the grammar takes it, the language does not)" in run.stdout
    assert check(name, *grammar, "--grammar-only") == Run(0, "", "")


def test_several_files_get_a_line_each(check: Check) -> None:
    run = check("a.py", "b.py", "c.py", a_py="x = )\n", b_py="x = 1\n", c_py="x = 2 3\n")

    assert run.status == 1
    assert [line.split(": ")[0] for line in run.stdout.splitlines()] == ["a.py:1:5", "c.py:1:7"]


def test_an_object_for_programs(check: Check) -> None:
    run = check("a.py", "b.py", "--json", a_py="x = 1\n", b_py="é\nclass A:\nx = 1\n")

    assert run.status == 1
    assert json.loads(run.stdout)["accepted"] is False
    assert run.files[0] == {
        "file": "a.py", "language": "python", "grammar": "python", "accepted": True, "line": None, "column": None,
        "offset": None, "expected": [], "found": None, "refused_by": None, "policy": "", "gave_up": "",
    }  # fmt: skip
    assert run.files[1] == {
        "file": "b.py", "language": "python", "grammar": "python", "accepted": False, "line": 3, "column": 1,
        "offset": 11, "expected": ["an indented block"], "found": "`x`", "refused_by": "policy",
        "policy": "the grammar takes it, the language does not", "gave_up": "",
    }  # fmt: skip


def test_standard_input_needs_a_language(check: Check) -> None:
    assert check("-", "--language", "json", stdin=b"[1]").status == 0
    refused = check("-", "--language", "json", stdin=b"[1,]")
    assert refused.stdout.startswith("<stdin>:1:4: expected")

    nameless = check("-", stdin=b"[1]")
    assert nameless.status == 2
    assert "name it with --language" in nameless.stderr


def test_the_text_tells_the_dialect_unless_one_is_named(check: Check) -> None:
    mysql = "SELECT `a` FROM `b`;\n"

    assert check("a.sql", "--json", a_sql=mysql).files[0]["grammar"] == "sql"
    assert check("a.sql", "--grammar", "postgres").status == 1
    assert check("a.sql", "--json", a_sql="SELECT a::int FROM b").files[0]["grammar"] == "postgres"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.py"], "does not exist"),
        (["."], "is a directory"),
        (["picture.py"], "is a binary file"),
        (["latin.py"], "is not UTF-8 text"),
        (["a.unheard"], "the language of a.unheard is not known"),
        (["a.py", "--language", "klingon"], "language 'klingon' is not known"),
        (["a.py", "--grammar", "sql"], "There is no grammar 'sql' for python: use one of python."),
        (["a.md"], "There is no grammar for markdown"),
        (["a.py", "nowhere.py"], "does not exist"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(check: Check, arguments: list[str], sentence: str) -> None:
    run = check(
        *arguments, a_py="x = )", picture_py=b"\x89PNG\0", latin_py=b"caf\xe9", a_unheard="x", a_md="# x"
    )

    assert run.status == 2
    assert sentence in " ".join(run.stderr.split())
    assert run.stdout == ""


def test_a_grammar_that_is_not_installed_is_named(check: Check, without_wheel: Callable[[str], None]) -> None:
    without_wheel("tree_sitter_rust")
    run = check("a.rs", a_rs="fn main() {}\n")

    assert run.status == 2
    assert "The grammar rust is not installed" in run.stderr


def test_a_grammar_that_is_only_parsed_with_says_so(check: Check) -> None:
    run = check("a.yaml", a_yaml="a: 1\n")

    assert run.status == 2
    assert "cannot be asked" in run.stderr


def test_a_text_that_is_too_long_is_one_sentence(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treefill.text.document.MAX_FILE_BYTES", 10)

    for name in ("a.py", "-"):
        run = check(name, "--language", "python", stdin=b"x = 1234567890", a_py="x = 1234567890")
        assert run.status == 2
        assert run.stderr.count("\n") == 1


def test_what_was_not_decided_is_said_and_no_refusal(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    undecided = Verdict("python", gave_up="the grammar takes too long here")
    monkeypatch.setattr("treefill.syntax.check.check", lambda *_, **__: undecided)
    run = check("a.py", "--json", a_py="x = )")

    assert run.status == 0
    assert run.stderr == "a.py: not decided (the grammar takes too long here)\n"
    assert run.files[0]["accepted"] is None
    assert run.files[0]["gave_up"] == "not decided: the grammar takes too long here"


def test_a_deeply_nested_text_ends_in_an_answer(check: Check) -> None:
    run = check("a.py", a_py="".join(f"{' ' * n}if x:\n" for n in range(1200)) + " " * 1200 + "y\n")

    assert run.status in (0, 1)
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("end", "the end of the file"),
        ("_newline", "a new line"),
        ("_indent", "an indented block"),
        ("kw_from", "`FROM`"),
        ("keyword_group", "`GROUP`"),
        ("_identifier", "identifier"),
        ("number_literal", "number"),
        ("_dollar_quoted_string", "string"),
        ('R"', "string"),
        ("_automatic_semicolon", "`;`"),
        ("optional_chain", "optional chain"),
        ("=>", "`=>`"),
    ],
)
def test_names_of_tokens_are_readable(name: str, told: str) -> None:
    assert readable(name) == told


def test_the_docs_name_every_option() -> None:
    text = (Path(__file__).parents[2] / "docs" / "syntax.md").read_text("utf-8")

    for option in ("--language", "--grammar", "--grammar-only", "--json", "--samples", "--model"):
        assert option in text
    assert treefill.commands.syntax.POLICY_NOTE in text


def test_the_tokens_that_may_come_at_a_place(mask: Mask) -> None:
    run = mask("a.json", "1:4", "--samples", "6", a_json="[1 , 2]")
    lines = run.stdout.splitlines()

    assert (run.status, run.stderr) == (0, "")
    assert lines[0] == "a.json:1:4: 9 of 256 tokens may come (3.5%, json)"
    assert lines[1] == r"  may come: `\t` `\n` `\x0b` `\x0c` `\r` ` `"
    assert lines[2] == r"  may not come: `\x00` `\x01` `\x02` `\x03` `\x04` `\x05`"
    assert re.fullmatch(r"  set-up \S+ ms, vocabulary \d+ ms, first mask \S+ ms, again \S+ ms", lines[3])


def test_a_mask_for_programs(mask: Mask) -> None:
    run = mask("a.py", "2:12", "--json", "--samples", "300", a_py="\ufeffé = 1\nx = f(1, é)\n")
    row = json.loads(run.stdout)
    times = {name: row.pop(name) for name in ("setup_ms", "vocabulary_ms", "first_mask_ms", "mask_again_ms")}
    allowed = {each["text"]: each["id"] for each in row.pop("allowed")}
    refused = {each["text"]: each["id"] for each in row.pop("refused")}

    assert all(isinstance(each, float) and each >= 0 for each in times.values())
    assert row == {
        "file": "a.py", "language": "python", "grammar": "python", "line": 2, "column": 12, "offset": 17,
        "n_tokens": 256, "n_allowed": len(allowed), "share": round(len(allowed) / 256, 6),
        "out_of_reach": False, "gave_up": "",
    }  # fmt: skip
    assert len(allowed) + len(refused) == 256
    assert {"\\n": 10, " ": 32, ";": 59}.items() <= allowed.items()
    assert {")": 41, "x": 120, "\\x80": 128}.items() <= refused.items()


def test_columns_count_characters_and_no_byte_order_mark(mask: Mask) -> None:
    plain = mask("a.json", "1:5", a_json='["é"]').stdout.splitlines()[:3]
    marked = mask("a.json", "1:5", a_json='\ufeff["é"]').stdout.splitlines()[:3]

    assert "`]`" in plain[1]
    assert "`é`" not in plain[1]
    assert marked == plain


def test_a_place_out_of_reach_is_not_decided_and_no_refusal(mask: Mask) -> None:
    run = mask("-", "1:9", "--json", "--language", "python", stdin=b"x = = = 3")

    assert run.status == 0
    assert run.stderr.startswith("<stdin>:1:9: not decided, every token may come (The grammar cannot read")
    row = json.loads(run.stdout)
    assert (row["grammar"], row["n_allowed"], row["out_of_reach"]) == (None, 256, True)
    assert row["gave_up"].startswith("not decided: The grammar cannot read")
    assert mask("-", "1:9", "--language", "python", stdin=b"x = = = 3").stdout == ""


def test_a_place_that_is_nested_too_deeply_is_not_decided(mask: Mask) -> None:
    deep = "".join(" " * level + "while t:\n" for level in range(600)) + " " * 600 + '"s"'
    run = mask("a.py", "601:604", "--json", a_py=deep)

    assert run.status == 0
    assert "not decided, every token may come" in run.stderr
    assert "too deeply" in json.loads(run.stdout)["gave_up"]


def test_the_grammar_may_be_named(mask: Mask) -> None:
    for grammar in ("postgres", "sql"):
        row = json.loads(mask("a.sql", "1:8", "--grammar", grammar, "--json", a_sql="SELECT 1;\n").stdout)
        assert row["grammar"] == grammar


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.py", "1:1"], "does not exist"),
        (["a.py", "1"], "'1' is not a place: write LINE:COL"),
        (["a.py", "0:1"], "is not a place"),
        (["a.py", "9:1"], "a.py"),
        (["a.py", "1:9"], "past the end of line 1"),
        (["a.py", "1:1", "--language", "klingon"], "language 'klingon' is not known"),
        (["a.py", "1:1", "--grammar", "sql"], "There is no grammar 'sql' for python: use one of python."),
        (["a.py", "1:1", "--samples", "-1"], "--samples"),
        (["a.md", "1:1"], "There is no grammar for markdown"),
        (["-", "1:1"], "name it with --language"),
        (["a.py"], "Missing argument"),
    ],
)
def test_a_place_that_has_no_mask_is_one_sentence(mask: Mask, arguments: list[str], sentence: str) -> None:
    run = mask(*arguments, a_py="x = )", a_md="# x")

    assert run.status == 2
    assert sentence in " ".join(run.stderr.split())
    assert run.stdout == ""


def test_a_mask_needs_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Mask(tmp_path, monkeypatch, capsys)("a.py", "1:1", "--cache-dir", str(tmp_path), a_py="x = 1\n")

    assert run.status == 2
    assert run.stderr.count("\n") == 1
