"""CONTRIBUTING.md tells how a language is added in four steps. Here they are taken, with one that no folder knows."""

import tomllib
from pathlib import Path

import pytest
import tree_sitter
from treefill.syntax.check import check
from treefill.syntax.grammars import load
from treefill.syntax.languages import Language, grammars_folder, languages
from treefill.syntax.matcher import Matcher, matcher_at
from treefill.syntax.templates import read_templates

GUIDE = Path(str(grammars_folder())).parent / "CONTRIBUTING.md"

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="there are no pages beside the package")


def block(title: str) -> str:
    """The first block of code below a numbered line of the guide that has these words."""
    section = GUIDE.read_text("utf-8").partition("## Adding a language")[2].partition("\n## ")[0]
    code = section.partition(title)[2].partition("```toml\n")[2].partition("```")[0]
    assert code, f"CONTRIBUTING.md has no example for {title!r}"
    return "\n".join(line.removeprefix("   ") for line in code.splitlines()) + "\n"


@pytest.fixture
def language(tmp_path: Path) -> Language:
    """Steps one to three: the folder, its table, its corpus."""
    folder = tmp_path / "pip-requirements"
    folder.mkdir()
    (folder / "language.toml").write_text(block("Describe it"), "utf-8")
    (found,) = languages(tmp_path).values()
    return found


def test_the_language_is_not_one_of_those_that_are_there() -> None:
    assert "pip-requirements" not in languages()


def test_step_one_pins_a_wheel_that_is_there(language: Language) -> None:
    (grammar,) = language.grammars

    assert load(grammar).note == ""
    assert load(grammar).language.abi_version == grammar.abi


def test_step_two_gives_a_verdict_at_a_cursor(language: Language) -> None:
    buffer = "requests >= 2.0\nrich ‸\n# the end\n"
    found = matcher_at(buffer.replace("‸", ""), buffer.index("‸"), language)

    assert isinstance(found, Matcher)
    assert found.allows(b">= 15")
    assert found.may_end(b">= 15")
    assert found.allows(b">=")
    assert not found.may_end(b">=")
    assert not found.allows(b">= >=")


def test_step_three_is_a_corpus_that_holds(language: Language) -> None:
    (grammar,) = language.grammars
    corpus = tomllib.loads(block("Say what it must get right"))
    parser = tree_sitter.Parser(load(grammar).language)

    assert {"accept", "reject"} <= set(corpus)
    for kind, cases in corpus.items():
        for case in cases:
            is_right = check(case["text"], grammar).is_accepted
            assert is_right == (kind == "accept"), case
            assert is_right != parser.parse(case["text"].encode()).root_node.has_error


def test_no_code_of_ours_knows_it() -> None:
    source = Path(str(grammars_folder())).parent / "server"
    assert not any("pip-requirements" in path.read_text("utf-8") for path in source.rglob("*.py"))


def test_its_template_can_be_read(language: Language, tmp_path: Path) -> None:
    (tmp_path / language.folder / "templates.toml").write_text(block("What people write"), "utf-8")

    (template,) = read_templates(tmp_path, language.folder)

    assert template.text == "--no-index"
    assert template.typed.match("--no-in")
    assert template.absent is not None
