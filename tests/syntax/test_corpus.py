"""The corpora of `grammars/*/corpus`: what each grammar accepts, what it refuses, and what may yet become something.

A new case is a few lines there and none here; docs/syntax.md has the format.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import tree_sitter
from treefill import _kernels
from treefill.errors import BadInput
from treefill.syntax.check import RefusedBy, check, grammar_alone
from treefill.syntax.grammars import load
from treefill.syntax.languages import Grammar, grammars_folder, languages
from treefill.syntax.matcher import tables
from treefill.text import Document, position_at

N_ACCEPTED, N_REFUSED = 8, 8
"""At least so many cases of each kind a grammar."""


@dataclass(frozen=True, slots=True)
class Case:
    """One table of a corpus; its fields are the table's keys."""

    kind: str
    grammar: Grammar
    name: str
    text: str
    at: str = ""
    policy: bool = False
    dead: str = ""

    def __str__(self) -> str:
        return f"{self.grammar.name}: {self.name}"


def corpus_files() -> list[Path]:
    return sorted(Path(str(grammars_folder())).glob("*/corpus/*.toml"))


@cache
def cases() -> tuple[Case, ...]:
    return tuple(case for file in corpus_files() for case in read_corpus(file))


def read_corpus(file: Path) -> Iterator[Case]:
    grammars = {grammar.name: grammar for language in languages().values() for grammar in language.grammars}
    for kind, tables_of_kind in tomllib.loads(file.read_text("utf-8")).items():
        if kind not in ("accept", "reject", "prefix"):
            raise BadInput(f"{file} has tables called {kind!r}: use accept, reject or prefix")
        for table in tables_of_kind:
            yield Case(kind, grammars[file.stem], **table)


def of_kind(*kinds: str) -> list[object]:
    return [pytest.param(case, id=str(case)) for case in cases() if case.kind in kinds]


def needs(grammar: Grammar) -> None:
    """A grammar of an extra may be left out; all others are there."""
    if grammar.extra:
        pytest.importorskip(grammar.package.replace("-", "_"))


def has_error(text: str, grammar: Grammar) -> bool:
    """What tree-sitter says."""
    return tree_sitter.Parser(load(grammar).language).parse(text.encode()).root_node.has_error


def acceptor(grammar: Grammar, with_policies: bool = True) -> _kernels.Acceptor:
    loaded = load(grammar)
    return _kernels.Acceptor(tables(loaded) if with_policies else grammar_alone(loaded))


@pytest.mark.parametrize("case", of_kind("accept"))
def test_it_is_accepted_and_so_is_every_beginning(case: Case) -> None:
    needs(case.grammar)
    assert not has_error(case.text, case.grammar)
    if case.grammar.parse_only:
        return
    grows = acceptor(case.grammar)

    for end, character in enumerate(case.text, 1):
        assert grows.accept(character.encode()), case.text[:end]
    assert grows.accepts_whole(b"")
    assert grows.gave_up == ""
    assert check(case.text, case.grammar).is_accepted


@pytest.mark.parametrize("case", of_kind("reject"))
def test_it_is_refused(case: Case) -> None:
    needs(case.grammar)
    if case.grammar.parse_only:
        assert has_error(case.text, case.grammar)
        return
    refusal = check(case.text, case.grammar).refusal

    assert refusal is not None
    assert check(case.text, case.grammar, with_policies=False).is_accepted == case.policy
    assert refusal.by == RefusedBy.POLICY or not case.policy
    line, column = position_at(Document("case", case.text), refusal.offset)
    assert f"{line}:{column}" == (case.at or f"{line}:{column}")
    assert refusal.expected


@pytest.mark.parametrize("case", of_kind("prefix"))
def test_it_may_become_something(case: Case) -> None:
    needs(case.grammar)
    grows = acceptor(case.grammar)

    assert all(grows.accept(character.encode()) for character in case.text)
    assert not acceptor(case.grammar).accept(case.dead.encode()), "this may become nothing"


@pytest.mark.parametrize("case", of_kind("accept", "reject", "prefix"))
def test_the_grammar_alone_says_what_the_parser_says(case: Case) -> None:
    needs(case.grammar)
    if case.grammar.parse_only:
        return
    for text in {case.text, case.dead}:
        alone = acceptor(case.grammar, with_policies=False)
        is_accepted = alone.accept(text.encode()) and alone.accepts_whole(b"")
        assert is_accepted == (not has_error(text, case.grammar)), text


@pytest.mark.parametrize("file", corpus_files(), ids=lambda file: file.stem)
def test_a_corpus_says_what_is_refused_as_well(file: Path) -> None:
    kinds = [case.kind for case in read_corpus(file)]

    assert kinds.count("accept") >= N_ACCEPTED
    assert kinds.count("reject") >= N_REFUSED
    names = [case.name for case in read_corpus(file)]
    assert len(names) == len(set(names)), "a name twice"


def test_every_grammar_has_a_corpus() -> None:
    named = {grammar.name for language in languages().values() for grammar in language.grammars}

    assert named == {file.stem for file in corpus_files()}
