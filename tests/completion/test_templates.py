"""Code with a cursor in, ghost text out that no model was asked for; or the model's own, where nothing is certain."""

import time
from pathlib import Path
from typing import Any

import pytest
from treefill.completion import (
    Anchor,
    CompletionRequest,
    Declined,
    Memory,
    Mode,
    Suggestion,
    begin_at_once,
    complete,
    complete_many,
    complete_next,
)
from treefill.engine.api import CancelFlag
from treefill.errors import GrammarError
from treefill.syntax.languages import languages
from treefill.syntax.templates import Where, is_nested, read_templates, templates_of
from treefill.text import Document

from tests.helpers.contract import assert_sound
from tests.helpers.scripted_engine import ScriptedEngine

MAIN = "def main():\n    pass\n\n\n"
GUARD = "MATRIX_H_\n#define MATRIX_H_\n\n\n\n#endif  // MATRIX_H_"
ENTRY = """[[templates]]
name = "a"
typed = 'x'
text = "x"
"""
TABLE = "(\n    id INTEGER PRIMARY KEY\n);"
PAGE = """DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <title></title>
</head>
<body>
</body>
</html>"""


def request_at(
    marked: str, path: str = "a.py", language: str = "python", **options: Any
) -> CompletionRequest:
    offset = marked.index("‸")
    document = Document(f"/w/{path}", marked.replace("‸", ""), language)
    return CompletionRequest(document, offset, **options)


def offered(marked: str, path: str = "a.py", language: str = "python", **options: Any) -> str | None:
    """What is suggested without asking the model; None where it is asked."""
    request = request_at(marked, path, language, **options)
    engine = ScriptedEngine("")
    answer = complete(request, engine, CancelFlag())
    if not isinstance(answer, Suggestion):
        return None
    assert (answer.source, answer.generation, engine.requests) == ("template", None, [])
    assert answer.explanation.template
    assert_sound(request.document, request.offset, answer)
    return answer.text


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        (MAIN + "if __‸\n", 'name__ == "__main__":\n    main()'),
        (MAIN + 'if __name__ == "‸"\n', '__main__":\n    main()'),
        (MAIN + "if __name__ == '‸'\n", "__main__':\n    main()"),
        (MAIN + 'if __name__ == "__main__":‸\n', "\n    main()"),
        (MAIN + 'if __name__ == "__main__":\n    ‸\n', "main()"),
        ("async def main():\n    pass\n\n\nif __n‸", 'ame__ == "__main__":\n    asyncio.run(main())'),
        ("def main():\n\tpass\n\n\nif __‸\n", 'name__ == "__main__":\n\tmain()'),
        ("x = 1\nif __‸\n", 'name__ == "__main__":'),
        ("\ufeff#!‸\nimport os\n", "/usr/bin/env python3"),
    ],
)
def test_python(marked: str, text: str) -> None:
    assert offered(marked) == text


@pytest.mark.parametrize(
    "marked",
    [
        MAIN + "if _‸\n",
        MAIN + "if __debug‸\n",
        MAIN + "if __‸\n\nif __name__ == '__main__':\n    main()\n",
        MAIN + "def f():\n    if __‸\n",
        MAIN + "x = [\nif __‸\n",
        MAIN + '"""\nif __‸\n"""\n',
        MAIN + "if __‸name__ else 1\n",
        "import os\n#!‸\n",
    ],
    ids=[
        "too little typed", "another word", "there is one already", "in a function", "in brackets", "in a string",
        "text follows", "not in the first line",
    ],
)  # fmt: skip
def test_python_where_nothing_is_certain(marked: str) -> None:
    assert offered(marked) is None


@pytest.mark.parametrize("language", ["c", "cpp"])
@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("#ifndef ‸", GUARD),
        ("/* A license.\n * Two lines. */\n// And more.\n\n#ifndef ‸\n", GUARD),
        ("#ifndef MATRIX‸\n", GUARD.removeprefix("MATRIX")),
        ("#ifndef MATRIX_H\n‸\n", "#define MATRIX_H\n\n\n\n#endif  // MATRIX_H"),
        ("#ifndef LIB_FOO_H\n#def‸\n", "ine LIB_FOO_H\n\n\n\n#endif  // LIB_FOO_H"),
        ("#pragma o‸\n", "nce"),
    ],
)
def test_include_guards(marked: str, text: str, language: str) -> None:
    assert offered(marked, "src/matrix.h", language) == text


@pytest.mark.parametrize(
    "marked",
    [
        "#ifndef ‸\n\nint x;\n",
        "#pragma once\n\n#ifndef ‸\n",
        "#ifndef MATRIX_H_\n#define MATRIX_H_\n\n#ifndef ‸\n",
        "#ifndef MATRIX_H_\n#define MATRIX_H_\n‸\n",
        "#include <a.h>\n#ifndef ‸\n",
        "#ifndef OTHER‸\n",
        "#ifndef A_H\n#pragma o‸\n#endif\n",
    ],
    ids=[
        "code follows", "pragma once", "a guard is there", "the contents are about to come", "not the first code",
        "another name", "pragma in a guard",
    ],
)  # fmt: skip
def test_include_guards_where_nothing_is_certain(marked: str) -> None:
    assert offered(marked, "src/matrix.h", "c") is None


def test_an_include_guard_is_for_headers_and_has_the_names_of_folders_in_it_that_are_typed() -> None:
    assert offered("#ifndef ‸\n", "src/matrix.c", "c") is None
    assert offered("#ifndef SRC_M‸\n", "src/matrix.h", "c", workspace_root=Path("/w")) == (
        "ATRIX_H_\n#define SRC_MATRIX_H_\n\n\n\n#endif  // SRC_MATRIX_H_"
    )
    assert offered("#ifndef W_SRC‸\n", "src/matrix.h", "c", workspace_root=Path("/w")) is None
    assert offered("#ifndef ‸\n", "3d-view.hpp", "cpp") is None, "no name begins with a digit"
    assert "#define VIEW_3D_HPP_\n" in (offered("#ifndef ‸\n", "view-3d.hpp", "cpp") or "")


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("CREATE TABLE ‸", f"table_name {TABLE}"),
        ("create table if not exists ‸", f"table_name {TABLE.lower()}"),
        ("CREATE TABLE orders (‸)\n", TABLE[1:]),
        ("CREATE TABLE shop.Orders ‸\n", TABLE),
        ("INSERT INTO ‸\n", "table_name (column_name) VALUES (value);"),
        ("INSERT INTO Users (name, age) ‸\n", "VALUES (NULL, NULL);"),
        ("insert into users (name) v‸\n", "alues (null);"),
        ("SELECT a, CASE WHEN a > 1 THEN 'x' ELSE 'y' ‸\nFROM t;\n", "END"),
        ("select case a when 1 then b else c e‸\nfrom t;\n", "nd"),
    ],
)
def test_sql(marked: str, text: str) -> None:
    assert offered(marked, "a.sql", "sql") == text


@pytest.mark.parametrize(
    "marked",
    [
        "CREATE TABLE a (id int);\nCREATE TABLE ‸\n",
        "CREATE TABLE t‸\n",
        "CREATE TABLE orders (\n    ‸\n",
        "INSERT INTO a (b) VALUES (1);\nINSERT INTO c (d) ‸\n",
        "INSERT INTO a (b) VALUES (‸);\n",
        "SELECT CASE ‸\nFROM t;\n",
        "-- CREATE TABLE ‸\n",
        "SELECT 'INSERT INTO ‸'\n",
    ],
    ids=[
        "the model has another to learn from", "a name is begun", "columns come next", "another statement is there",
        "values come next", "conditions are the user's own", "in a comment", "in a string",
    ],
)  # fmt: skip
def test_sql_where_a_model_knows_better(marked: str) -> None:
    assert offered(marked, "a.sql", "sql") is None


@pytest.mark.parametrize(
    ("marked", "path", "language", "text"),
    [
        ("public class ‸", "Foo.java", "java", "Foo {\n}"),
        ("public class Fo‸\n", "Foo.java", "java", "o {\n}"),
        ("public class B‸\n", "Foo.java", "java", None),
        ("public class ‸\n", "not-a-name.java", "java", None),
        (
            "public class Foo {\n    public static void m‸\n}\n", "Foo.java", "java",
            "ain(String[] args) {\n    }",
        ),
        ("fn f() {}\n\n#[cfg(t‸)]\n", "lib.rs", "rust", "est)]\nmod tests {\n    use super::*;\n}"),
        ("mod tests {}\n\n#[cfg(t‸)]\n", "lib.rs", "rust", None),
        ("#!‸", "a.sh", "shellscript", "/usr/bin/env bash"),
        ("# froz‸\n", "a.rb", "ruby", "en_string_literal: true"),
        ("'use s‸'\n", "a.js", "javascript", "trict';"),
        ("<!‸", "a.html", "html", PAGE),
        ("<!d‸\n<html></html>\n", "a.html", "html", "octype html>"),
        ("<?x‸\n<a/>\n", "a.xml", "xml", 'ml version="1.0" encoding="UTF-8"?>'),
        ("if __‸\n", "a.txt", "plaintext", None),
    ],
)  # fmt: skip
def test_other_languages(marked: str, path: str, language: str, text: str | None) -> None:
    assert offered(marked, path, language) == text


def test_a_files_own_line_endings_are_kept() -> None:
    marked = MAIN.replace("\n", "\r\n") + 'if __name__ == "__main__":\r\n‸\r\n'

    assert offered(marked.replace('"__main__":\r\n‸', "‸")) == '"__main__":\r\n    main()'
    assert offered(marked) == "    main()"


@pytest.mark.parametrize("is_on", [True, False])
def test_it_can_be_switched_off(is_on: bool) -> None:
    assert (offered(MAIN + "if __‸\n", templates=is_on) is not None) is is_on


def test_no_more_lines_than_are_wanted() -> None:
    assert offered(MAIN + "if __‸\n", max_lines=2) == 'name__ == "__main__":\n    main()'
    assert offered(MAIN + "if __‸\n", max_lines=1) is None
    assert offered(MAIN + "if __‸\n", mode=Mode.LINE) == 'name__ == "__main__":'
    assert offered("#ifndef ‸\n", "matrix.h", "c", mode=Mode.LINE) == "MATRIX_H_"
    assert offered("#ifndef MATRIX_H_‸\n", "matrix.h", "c", mode=Mode.LINE) is None


def test_what_the_grammar_would_refuse_is_left_to_the_model() -> None:
    # The bracket above is never closed: what follows it is no statement.
    assert offered("x = (1,\n\n\nif __‸\n", "a.py") is None
    assert offered("INSERT INTO t (a, ) ‸\n", "a.sql", "sql") is None


def test_a_secrets_file_is_left_alone() -> None:
    answer = complete(request_at("#!‸", ".env"), ScriptedEngine(""), CancelFlag())

    assert isinstance(answer, Declined)
    assert answer.reason == "secret-file"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("case when else a " * 300, "sql"),
        ("case case when " * 100 + "else 'x ", "sql"),
        ("INSERT INTO t (" + "a, " * 1_000 + " ", "sql"),
        ("if __name__ " * 200, "python"),
        ("if __\n" * 20_000, "python"),
        ("#ifndef " * 3_000, "c"),
        ("/* */ \n" * 6_000 + "#ifndef ", "c"),
        ("create" + " " * 290_000 + "\ncreate table ", "sql"),
        ("\r" * 5_000 + "if __", "python"),
    ],
)
def test_any_text_is_looked_through_in_time(
    text: str, language: str, caplog: pytest.LogCaptureFixture
) -> None:
    request = CompletionRequest(Document("/w/a.h", text, language), len(text))

    began = time.perf_counter()
    begin_at_once(request)

    assert time.perf_counter() - began < 2
    assert caplog.messages == []


def test_a_notebooks_cell_has_the_templates_of_its_language() -> None:
    text = "%%sql\nCREATE TABLE "
    request = CompletionRequest(Document("/w/a.ipynb", text, "python", is_cell=True), len(text))

    answer = complete(request, ScriptedEngine(""), CancelFlag())

    assert isinstance(answer, Suggestion)
    assert answer.text == f"table_name {TABLE}"


def test_who_asks_by_hand_sees_the_models_answers_below_it() -> None:
    request = request_at(MAIN + "if __‸\n", n_candidates=3)

    answers = complete_many(request, ScriptedEngine('name__ == "x":', "name__:"), CancelFlag())

    assert [answer.source for answer in answers if isinstance(answer, Suggestion)] == [
        "template", "decoded", "decoded",
    ]  # fmt: skip
    assert answers[0].generation is not None


def test_what_the_model_says_too_is_offered_once() -> None:
    request = request_at(MAIN + 'if __name__ == "__main__":\n    ‸\n', n_candidates=2)

    answers = complete_many(request, ScriptedEngine("main()"), CancelFlag())

    assert [answer.source for answer in answers if isinstance(answer, Suggestion)] == ["template"]


def anchors(marks: list[str], templates: bool) -> tuple[Anchor | None, list[tuple[int, ...]]]:
    """What is left of asking at each place, and the prompts of all but the first."""
    engine, memory = ScriptedEngine("1"), Memory()
    for marked in marks:
        request = request_at(marked, templates=templates)
        _, memory = complete_next(request, engine, CancelFlag(), memory)
    return memory.anchor, [request.prompt_ids for request in engine.requests[0 if templates else 1 :]]


def test_switching_them_off_changes_nothing_else() -> None:
    marks = [MAIN + "if __‸\n", MAIN + 'if __name__ == "__main__":\n    main()\nx = ‸\n', MAIN + "y = ‸"]

    on, off = (anchors(marks, templates) for templates in (True, False))

    assert on == off
    assert len(on[1]) == 2


def test_without_a_model_names_that_stand_for_the_users_own_are_better_than_nothing() -> None:
    marked = "SELECT CASE ‸\nFROM t;\n"
    found = begin_at_once(request_at(marked, "a.sql", "sql"))

    suggestion = found.settle() if found else None

    assert suggestion is not None
    assert suggestion.text == "WHEN condition THEN result ELSE NULL END"
    assert begin_at_once(request_at(marked, "a.sql", "sql"), has_model=True) is None


def test_every_language_has_templates_that_can_be_read() -> None:
    found = {language.id: templates_of(language.folder) for language in languages().values()}

    assert {"python", "c", "cpp", "sql"} <= {id for id, templates in found.items() if templates}
    assert found["cpp"] == found["c"]


@pytest.mark.parametrize(
    ("source", "line", "sentence"),
    [
        ("[[templates]\n", None, "is not TOML"),
        ('like = ["c"]\n\nlikes = 1\n', 3, "likes is not known; expected [[templates]] or like."),
        ('like = "c"\n', 1, "like must be a list"),
        (ENTRY.replace("typed", "#"), 1, "typed is missing"),
        (ENTRY + '\n[[templates]]\nnmae = "b"\n', 7, "nmae is not known; expected one of name"),
        (ENTRY.replace("'x'", "'x('"), 3, "typed is no pattern"),
        (ENTRY.replace("'x'", "'(x+)+'"), 3, "typed repeats what repeats"),
        (ENTRY.replace('"x"', '"{y}"'), 4, "text names {y}; expected one of guard, stem, nulls."),
        (ENTRY.replace('"x"', '"{nulls}"'), 4, "expected a group (?P<columns>…)"),
        (ENTRY.replace('"x"', '" x"'), 4, "text must begin with what is typed"),
        (ENTRY + 'where = "here"\n', 5, "expected one of anywhere, top level"),
        (ENTRY + "at_end = 1\n", 5, "at_end is 1; expected true or false."),
        (ENTRY + "files = [1]\n", 5, "expected a list of texts"),
        ("templates = 1\n", 1, "expected tables that begin with [[templates]]"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told_with_its_line(
    source: str, line: int | None, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "lang").mkdir()
    file = tmp_path / "lang" / "templates.toml"
    file.write_text(source, encoding="utf-8")

    with pytest.raises(GrammarError) as raised:
        read_templates(tmp_path, "lang")

    assert str(raised.value).startswith(f"{file}, line {line}: " if line else f"{file} ")
    assert sentence in str(raised.value)


def test_a_folder_without_the_file_has_none(tmp_path: Path) -> None:
    (tmp_path / "lang").mkdir()

    assert read_templates(tmp_path, "lang") == ()
    assert templates_of("") == ()


@pytest.mark.parametrize(
    ("pattern", "is_so"),
    [
        (r"a+b*c{2,}", False), (r"(?:a|b)+", False), (r"(a+)?", False), (r"([)+]x)+", False), (r"(\+)*", False),
        (r"(a+)+", True), (r"(?:x(?:a*b))*", True), (r"((a)*)+", True), (r"(a{1,}){2,}", True), (r"([^]+]+)*", True),
    ],
)  # fmt: skip
def test_patterns_whose_time_may_explode_are_told(pattern: str, is_so: bool) -> None:
    assert is_nested(pattern) is is_so


def test_where_a_template_may_begin_is_one_of_four() -> None:
    assert [str(where) for where in Where] == ["anywhere", "top level", "first code", "first line"]
