"""A grammar is loaded from its wheel, or one sentence says why it isn't."""

from dataclasses import replace

import pytest
from treefill.errors import GrammarError
from treefill.syntax.grammars import load
from treefill.syntax.languages import Grammar, language_by_id, languages

GRAMMARS = [grammar for language in languages().values() for grammar in language.grammars]


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_every_grammar_is_there_as_it_was_tried(grammar: Grammar) -> None:
    if grammar.extra:
        pytest.importorskip(grammar.package.replace("-", "_"))
    loaded = load(grammar)

    assert loaded.name == grammar.name
    assert loaded.language.abi_version == grammar.abi
    assert loaded.note == ""


def test_a_grammar_is_loaded_once() -> None:
    (grammar,) = language_by_id("json").grammars

    assert load(grammar) is load(replace(grammar))


def test_every_grammar_has_a_name_of_its_own() -> None:
    names = [grammar.name for language in languages().values() for grammar in language.grammars]

    assert len(names) == len(set(names))


def test_a_wheel_that_is_not_installed_is_named_with_the_remedy() -> None:
    with pytest.raises(
        GrammarError, match=r"grammar klingon is not installed.*install tree-sitter-klingon==1.0 "
    ):
        load(Grammar("klingon", "tree-sitter-klingon", "1.0", 15))


def test_a_wheel_of_an_extra_is_named_by_the_extra() -> None:
    with pytest.raises(GrammarError, match=r"install treefill\[languages\] beside"):
        load(Grammar("klingon", "tree-sitter-klingon", "1.0", 15, extra="languages"))


def test_a_wheel_with_something_else_in_it_is_named() -> None:
    with pytest.raises(GrammarError, match=r"grammar json in tree-sitter-json cannot be read.*no_such"):
        load(Grammar("json", "tree-sitter-json", "0.24.8", 14, function="no_such"))


def test_another_version_is_used_with_a_note() -> None:
    (grammar,) = language_by_id("json").grammars

    assert load(replace(grammar, version="9.9")).note == "tree-sitter-json is 0.24.8; 9.9 is what was tried."
