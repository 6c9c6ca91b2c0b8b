"""Patterns: what they match, what may become a match, and what is none."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.syntax.rules.patterns import MAX_TEXT_CHARS, Patterns, compile_pattern

LETTERS = st.sampled_from("abc")
ATOMS = st.one_of(LETTERS, st.sampled_from(["[ab]", "[^a]", r"\w", ".", r"\."]))


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    quantified = st.tuples(inner, st.sampled_from(["", "?", "*", "+", "{2}", "{1,2}", "{2,}"]))
    return st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        quantified.map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    )


PATTERNS = st.recursive(ATOMS, nested, max_leaves=8)


@given(PATTERNS, st.text("abc.d", max_size=6))
def test_every_beginning_of_a_match_may_become_one(text: str, candidate: str) -> None:
    pattern = compile_pattern(text)
    if pattern.fits(candidate):
        for n_chars in range(len(candidate) + 1):
            assert pattern.may_begin(candidate[:n_chars])


@given(PATTERNS, st.text("abc.", max_size=2))
def test_what_may_become_a_match_becomes_one(text: str, beginning: str) -> None:
    pattern = compile_pattern(text)
    frontier = [beginning]
    if not pattern.may_begin(beginning):
        return
    for _ in range(20):  # the beginnings that it allows lead to a match, letter by letter
        if any(pattern.fits(each) for each in frontier):
            return
        some = frontier[:: len(frontier) // 200 + 1]  # of each kind
        frontier = [each + letter for each in some for letter in "abc.d" if pattern.may_begin(each + letter)]
    pytest.fail(f"{text!r} says that it may begin with {beginning!r}")


@pytest.mark.parametrize(
    ("text", "may", "may_not"),
    [
        ("[a-z_][a-z0-9_]*", ["", "foo", "foo_2"], ["2", "fooBar", "F"]),
        ("get_(id|name)", ["g", "get_", "get_i", "get_name"], ["set", "get_it", "get_names"]),
        ("get_(?i:id)", ["get_I", "get_id"], ["set"]),
        (
            r"# Copyright \d{4} Acme",
            ["# C", "# Copyright 20", "# Copyright 2026 A"],
            ["#C", "# Copyright 20 A"],
        ),
        (r"\p{Lu}\w*", ["Ä", "Äb"], ["ä"]),
        (".*", ["", "a\nb"], []),
    ],
)
def test_what_may_begin_so(text: str, may: list[str], may_not: list[str]) -> None:
    pattern = compile_pattern(text)

    assert [each for each in may if not pattern.may_begin(each)] == []
    assert [each for each in may_not if pattern.may_begin(each)] == []


def test_what_must_follow() -> None:
    copyright_line = compile_pattern(r"# Copyright \d{4} Acme")

    assert copyright_line.forced("") == "# Copyright "
    assert copyright_line.forced("# Copyright 202") == ""
    assert copyright_line.forced("# Copyright 2026") == " Acme"
    assert copyright_line.is_over("# Copyright 2026 Acme")
    assert not copyright_line.is_over("# Copyright 2026")
    assert compile_pattern("# MIT").forced("# ") == "MIT"
    assert not compile_pattern("# MIT.*").is_over("# MIT")
    for choice in ("a|b", "[aЖ]b", "[^a]b", r"\p{Greek}a", "(?i:a)", "a?"):
        assert compile_pattern(choice).forced("") == "", choice


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(a", r"missing \)"),
        ("a)(b", r"unexpected \)"),
        ("a(?=b)", r"invalid perl operator: \(\?="),
        (r"(a)\1", r"invalid escape sequence: \\1"),
        ("((a{1,900}){1,9}){1,9}", "."),
        ("a" * 1_001, "at most 1000 characters"),
        ("\ud800", "half a character"),
    ],
)
def test_what_is_no_pattern(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        compile_pattern(text)


def test_no_pattern_takes_long() -> None:
    pattern = compile_pattern("((a*)*)*b|(a|aa)+c")
    began_s = time.perf_counter()
    assert not pattern.fits("a" * MAX_TEXT_CHARS)
    assert time.perf_counter() - began_s < 2  # a matcher that goes back and forth would not be done today


def test_allowed_forbidden_and_too_long() -> None:
    patterns = Patterns((compile_pattern("[a-z]+"),), (compile_pattern("eval"), compile_pattern("secret_.*")))

    assert not patterns.refuses("evaluate")
    assert patterns.refuses("eval")
    assert patterns.refuses("Eval")
    assert patterns.refuses("a" * (MAX_TEXT_CHARS + 1))
    assert patterns.may_begin("eval")
    only_forbidden = Patterns(forbid=patterns.forbid)
    assert not only_forbidden.may_begin("secret_"), "whatever comes, it is forbidden"
    assert only_forbidden.may_begin("secret")
