"""A language is data in a folder."""

from pathlib import Path

import pytest
from treefill.errors import BadInput
from treefill.syntax.languages import Layout, language_by_id, language_by_name, language_of, languages


@pytest.mark.parametrize(
    ("path", "language_id"),
    [
        ("a.py", "python"),
        ("A.PY", "python"),
        ("src/x.d.ts", "typescript"),
        ("app.tsx", "typescriptreact"),
        ("q.sql", "sql"),
        ("a.cc", "cpp"),
        ("a.h", "c"),
        ("main.go", "go"),
        (".bashrc", "shellscript"),
        ("run.sh", "shellscript"),
        ("page.html", "html"),
        ("README.md", "markdown"),
    ],
)
def test_a_files_name_tells_its_language(path: str, language_id: str) -> None:
    assert language_of(path).id == language_id


def test_the_user_can_name_the_language() -> None:
    assert language_of("noname", "C++").id == "cpp"
    assert language_of("a.py", "postgres").id == "sql"


def test_an_unknown_language_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"language of a.xyz is not known.*--language.*cpp.*python"):
        language_of("a.xyz")
    with pytest.raises(BadInput, match=r"'klingon' is not known: use one of .*python"):
        language_of("a.py", "klingon")
    assert language_by_name("a.xyz") is None


def test_an_editor_may_send_a_language_that_nobody_described() -> None:
    language = language_by_id("brainfuck")

    assert language.id == "brainfuck"
    assert language.layout is Layout.KEYWORDS


def test_adding_a_language_touches_no_code(tmp_path: Path) -> None:
    folder = tmp_path / "lua"
    folder.mkdir()
    (tmp_path / "not-a-language").mkdir()
    (folder / "language.toml").write_text(
        'suffixes = [".lua"]\nline_comment = ["--"]\nblock_comment = [["--[[", "]]"]]\nlayout = "keywords"\n'
        '[[grammars]]\nname = "lua"\npackage = "tree-sitter-lua"\nversion = "0.4.0"\nabi = 15\n'
    )

    (lua,) = languages(tmp_path).values()

    assert lua.id == "lua"
    assert lua.suffixes == (".lua",)
    assert lua.block_comment == (("--[[", "]]"),)
    (grammar,) = lua.grammars
    assert (grammar.package, grammar.function) == ("tree-sitter-lua", "language")


@pytest.mark.parametrize(
    "table",
    [
        "layout = 'spirals'",
        "colour = 'red'",
        "suffixes = [1]",
        "block_comment = ['/*']",
        "not toml",
        "[[grammars]]",
        "grammars = ['lua']",
    ],
)
def test_a_broken_table_is_named(tmp_path: Path, table: str) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "language.toml").write_text(table)

    with pytest.raises(BadInput, match=r"odd.*does not describe a language"):
        languages(tmp_path)


def test_no_two_languages_claim_the_same_name() -> None:
    for field in ("suffixes", "filenames", "names"):
        claimed = [name for language in languages().values() for name in getattr(language, field)]
        assert len(claimed) == len(set(claimed)), field


def test_every_language_has_what_the_rules_need() -> None:
    for language in languages().values():
        assert language.suffixes
        assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in language.suffixes)
        assert set(language.indent) in ({" "}, {"\t"})
