"""What a place is about, by the parses that are alive there."""

from __future__ import annotations

import pytest
from treefill import _kernels
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import language_by_id
from treefill.syntax.mask_profile import Cause, Reader, Tier, _Causes
from treefill.syntax.matcher import tables

from tests.syntax.test_dictionary import TEXTS, VOCABULARY, trusted


def loaded(language: str, dialect: int = 0) -> LoadedGrammar:
    return load(language_by_id(language).grammars[dialect])


def about(language: str, text: str, dialect: int = 0) -> tuple[Cause, str]:
    grammar = loaded(language, dialect)
    acceptor = _kernels.Acceptor(tables(grammar))
    assert acceptor.accept(text.encode())
    return _Causes(grammar, tables(grammar), language_by_id(language).kinds).at(acceptor)


@pytest.mark.parametrize(
    ("language", "text", "cause"),
    [
        ("python", "if a:\n", Cause.LAYOUT),
        ("python", "if a:\n    ", Cause.LAYOUT),
        ("python", "x = 1\n", Cause.LAYOUT),
        ("python", "f(a,\n", Cause.NAME),
        ("python", "x = ", Cause.NAME),
        ("python", "retu", Cause.NAME),
        ("python", "from a ", Cause.KEYWORD),
        ("python", "x = 1", Cause.OTHER),
        ("python", 'x = "', Cause.QUOTED),
        ("python", 'x = "def', Cause.QUOTED),
        ("python", "# def", Cause.QUOTED),
        ("python", 'f"{a', Cause.NAME),
        ("cpp", "int f() { // a", Cause.QUOTED),
        ("cpp", "int f() { /* a", Cause.QUOTED),
        ("cpp", "auto s = 'a", Cause.QUOTED),
        ("cpp", "int f() { return ", Cause.NAME),
        ("json", '{"a', Cause.QUOTED),
        ("json", '{"a": 1', Cause.OTHER),
        ("sql", "SEL", Cause.KEYWORD),
        ("sql", "INSERT ", Cause.KEYWORD),
        ("sql", "SELECT 'a", Cause.QUOTED),
        ("sql", "SELECT a FROM b WHERE ", Cause.NAME),
        ("typescript", "`a", Cause.QUOTED),
        ("typescript", "`a${b", Cause.NAME),
    ],
)
def test_what_may_come(language: str, text: str, cause: Cause) -> None:
    assert about(language, text)[0] == cause


def test_keywords_of_another_dialect_are_keywords() -> None:
    assert about("sql", "SEL", dialect=1)[0] == Cause.KEYWORD


@pytest.mark.parametrize(
    ("language", "text", "bracket"),
    [
        ("cpp", "int f() { if (a) { x", "braces"),
        ("cpp", "int f() { for (;;) x", "braces"),
        ("cpp", "int f() { g(a, ", "parentheses"),
        ("cpp", "int f() { g[a", "square brackets"),
        ("cpp", "int f() { return a > b", "braces"),
        ("cpp", "template <class T, ", "templates"),
        ("cpp", "std::map<int, std::vector<int>, ", "templates"),
        ("cpp", "template <class T> struct S", "no bracket"),
        ("typescript", "let a: Array<", "type arguments"),
        ("typescript", "`a${b", "braces"),
        ("java", "class A { List<List<B>> c; ", "braces"),
        ("python", "f(a)[", "square brackets"),
        ("python", "f(a)\n", "no bracket"),
        ("python", "x = {1: (2, 3), ", "braces"),
        ("html", "<a", "tags"),
        ("json", '{"a": [1], ', "braces"),
    ],
)
def test_which_bracket_is_open(language: str, text: str, bracket: str) -> None:
    assert about(language, text)[1] == bracket


def test_looking_changes_nothing() -> None:
    acceptor = _kernels.Acceptor(tables(loaded("cpp")))
    acceptor.accept(b"int f() { return a < b")
    before = VOCABULARY.fill_mask(acceptor, tables(loaded("cpp"))).tolist()
    assert acceptor.situation() == acceptor.situation()
    assert VOCABULARY.fill_mask(acceptor, tables(loaded("cpp"))).tolist() == before
    assert acceptor.accept(b";}")


def test_a_text_that_no_parse_takes_is_about_nothing() -> None:
    acceptor = _kernels.Acceptor(tables(loaded("json")))
    assert not acceptor.accept(b"]")
    assert acceptor.situation() == (False, "", [])


def pieces(text: str) -> list[bytes]:
    return [bytes([byte]) for byte in text.encode()]


@pytest.mark.parametrize("language", TEXTS)
def test_every_place_is_counted_once(language: str) -> None:
    reader = Reader(loaded(language), language_by_id(language).kinds, VOCABULARY, 1 << 20)
    reader.read(pieces(TEXTS[language]))
    reader.read(pieces(TEXTS[language]))
    profile = reader.profile
    assert profile.n == 2 * len(TEXTS[language].encode())
    assert sum(spent.n for spent in profile.causes.values()) == profile.n
    assert sum(spent.n for spent in profile.brackets.values()) == profile.n
    assert sum(spent.n_made for spent in profile.causes.values()) == len(profile.tiers[Tier.MADE])
    assert profile.hit_share >= 0.5, "what the first text had made was known in the second"
    assert (profile.n_texts, profile.n_cut, profile.n_gave_up) == (2, 0, 0)


def test_what_an_earlier_process_left_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("masks")
    trusted("json", folder).save()
    reader = Reader(loaded("json"), language_by_id("json").kinds, VOCABULARY, 1 << 20, folder)
    reader.read(pieces(TEXTS["json"]))
    assert reader.profile.n_in_file > 0
    assert reader.profile.tiers[Tier.FILE]
    assert reader.profile.hit_share > 0.9


def test_where_the_grammar_refuses_the_rest_is_not_read() -> None:
    reader = Reader(loaded("json"), language_by_id("json").kinds, VOCABULARY, 1 << 20)
    reader.read(pieces("[1, }]"))
    reader.read(pieces("[1, 2]"), max_boundaries=3)
    assert (reader.profile.n, reader.profile.n_cut) == (5 + 3, 2)
