"""Which languages are known and what stands guard over each; and that the pins and the page say the same."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from treefill.syntax.grammars import load
from treefill.syntax.languages import Grammar, Reach, grammars_folder, language_by_id, languages
from treefill.syntax.matcher import tables
from treefill.syntax.overview import Guard, guard_of, overview

TOP = Path(str(grammars_folder())).parent
PAGE = TOP / "docs" / "syntax.md"
GRAMMARS = [grammar for language in languages().values() for grammar in language.grammars]

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="there are no pages beside the package")


def row(language_id: str, **changes: object):
    (found,) = overview([replace(language_by_id(language_id), **changes)])
    return found


@pytest.mark.parametrize(
    ("language", "guard"),
    [
        ("go", Guard.TABLES),
        ("python", Guard.MODEL),
        ("rust", Guard.SCANNER),
        ("yaml", Guard.PARSE),
        ("markdown", Guard.FENCES),
    ],
)
def test_what_stands_guard(language: str, guard: Guard) -> None:
    assert row(language).guard is guard


def test_a_grammar_that_is_only_parsed_says_why() -> None:
    assert row("yaml").note.startswith("YAML's lexer")


def test_a_wheel_that_is_missing_says_what_installs_it() -> None:
    klingon = Grammar("klingon", "tree-sitter-klingon", "1.0", 15)
    missing = row("go", grammars=(klingon,))
    of_an_extra = row("go", grammars=(replace(klingon, extra="languages"),))

    assert missing.guard is of_an_extra.guard is Guard.NOT_INSTALLED
    assert missing.grammars[0].installed is None
    assert missing.note == "pip install 'tree-sitter-klingon==1.0'"
    assert of_an_extra.note == "pip install 'treefill[languages]'"


def test_a_language_without_a_grammar() -> None:
    assert row("go", grammars=()).guard is Guard.NONE


def test_a_row_a_language_by_name() -> None:
    ids = [each.id for each in overview(languages().values())]

    assert ids == sorted(languages())


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_a_grammar_has_a_scanner_where_its_folder_says_so(grammar: Grammar) -> None:
    if not grammar.parse_only:
        if grammar.extra:
            pytest.importorskip(grammar.package.replace("-", "_"))
        assert any(tables(load(grammar)).external_states) == grammar.has_scanner


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_its_wheel_is_pinned_as_its_folder_says(grammar: Grammar) -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    pinned = project["optional-dependencies"][grammar.extra] if grammar.extra else project["dependencies"]

    assert f"{grammar.package}=={grammar.version}" in pinned
    assert f"{grammar.package}=={grammar.version}\n" in (TOP / "constraints.txt").read_text("utf-8")


def test_the_pages_table_is_the_folders() -> None:
    """`docs/syntax.md` has a row a language; where it differs it is rewritten, and this fails once."""
    page = PAGE.read_text("utf-8")
    begin, end = "<!-- languages: from grammars/ -->\n", "<!-- end of languages -->"
    wanted = re.sub(
        f"(?<={re.escape(begin)}).*?(?={re.escape(end)})", lambda _: page_table(), page, flags=re.S
    )

    PAGE.write_text(wanted, "utf-8")
    assert page == wanted, "docs/syntax.md was rewritten from grammars/: look at the difference"
    assert begin in page


def page_table() -> str:
    lines = ["| language | grammar | checked by | reach |", "|---|---|---|---:|"]
    for language in sorted(languages().values(), key=lambda each: each.id):
        wheels = ", ".join(
            f"{each.package} {each.version}" + (f" (`treefill[{each.extra}]`)" if each.extra else "")
            for each in language.grammars
        )
        guard = Guard.FENCES if language.fences else guard_of(language.grammars[0])
        lines.append(f"| {language.id} | {wheels or 'none'} | {guard} | {reach_of(language.reach)} |")
    return "\n".join(lines) + "\n"


def reach_of(reach: Reach | None) -> str:
    return f"{reach.share * 100:.1f} % of {reach.n_places:,}" if reach else "not measured"
