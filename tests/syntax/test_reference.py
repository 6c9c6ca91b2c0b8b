"""The readable twin of the mask walk: three ways to one mask, and the kernels' own."""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from treefill import _kernels
from treefill.syntax.grammars import load
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import tables
from treefill.syntax.reference import (
    BEFORE,
    JSON,
    PLACES,
    Automaton,
    by_automaton,
    by_trie,
    derivative,
    grammar_of,
    may_be_empty,
    naive,
    pattern_of,
    read_before,
    sample_tokens,
    table,
    trie_of,
)

SUMS = r"""
sum    = term rest
rest   = | '+' term rest | '++' rest
term   = NUMBER | NAME | '(' sum ')' | 'let' NAME 'in' sum
NUMBER : [0-9]+(\.[0-9]+)?
NAME   : [a-z]+
~SPACE : [ \n]+
"""

# Two readings of `a . a` until the sign that ends it; `..` is longer than two points, and `.=` is none.
AMBIGUOUS = r"""
text  = left '!' | right '?' | 'a' '..' text
left  = 'a' more
more  = | '.' left
right = 'a' tail
tail  = | '.' right
~GAP  : ( |-[a-z]*-)+
"""

# `p-` may become an arrow, which comes first or never; until it is none, it matters that it was a `p` and a `-`.
WAITING = r"""
text  = ARROW | pair more
more  = | ';' pair more
pair  = 'p' '-' 'x' | 'p' '+' 'y' | 'q' '-' 'y'
ARROW : [pq][-+]>
~GAP  : [ ]+
"""

# JSON as tree-sitter's grammar takes it: in a string, too, comments may stand behind the end of a line.
STRING = next(line for line in JSON.splitlines() if line.startswith("STRING"))
GAP, BLOCK = r"\n([ \t\r\n]|//[^\n]*\n)*", r"/\*[^*]*\*+([^/*][^*]*\*+)*/"
TREE_SITTERS_JSON = JSON.replace(STRING, rf'STRING : "([^"\\\n]|\\["\\/bfnrtu]|{GAP}{BLOCK})*({GAP})?"')

GRAMMARS = {"sums": SUMS, "ambiguous": AMBIGUOUS, "waiting": WAITING, "json": TREE_SITTERS_JSON}
AUTOMATA = {name: Automaton(grammar_of(notation)) for name, notation in GRAMMARS.items()}
WORDS = {
    "sums": "let in le l i letx 1 12 1. .5 + ++ ( ) a ab",
    "ambiguous": "a . .. ... ! ? -x- - -x",
    "waiting": "p q - + x y ; > p-x p+ q->",
    "json": '{ } [ ] , : "a" "a\\n" " \\ tru true null n -1 0 1.5 1e5 1e . // /* */ x',
}
SPACES = ["", " ", "  ", "\n"]


def sentence(name: str, rng: random.Random, longest: int) -> str:
    """A text that the grammar accepts the beginning of: words that may come, one after the other."""
    grammar, text = AUTOMATA[name].grammar, ""
    for _ in range(rng.randint(0, longest)):
        choices = [text + space + word for space in SPACES for word in WORDS[name].split()]
        rng.shuffle(choices)
        text = next((each for each in choices if read_before(grammar, each)), text)
    return text[: rng.randint(0, len(text))]


def vocabulary(name: str, rng: random.Random, n_tokens: int) -> list[str]:
    """Pieces of what the grammar's words can be strung to, so some span several and some end inside of one."""
    pieces = [*WORDS[name].split(), *SPACES]
    tokens = []
    for _ in range(n_tokens):
        strung = "".join(rng.choices(pieces, k=rng.randint(1, 4)))
        at = rng.randint(0, len(strung))
        tokens.append(strung[at : at + rng.randint(0, 6)])
    return tokens


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(sorted(GRAMMARS)), st.integers(0, 2**32))
def test_three_ways_lead_to_one_mask(name: str, seed: int) -> None:
    known, rng = AUTOMATA[name], random.Random(seed)
    prefix, tokens = sentence(name, rng, 8), vocabulary(name, rng, 40)

    one_by_one = naive(known.grammar, prefix, tokens)

    assert by_trie(known.grammar, prefix, tokens).allowed == one_by_one.allowed
    assert by_automaton(known, prefix, tokens).allowed == one_by_one.allowed
    again = by_automaton(known, prefix, tokens)
    assert again.allowed == one_by_one.allowed
    assert (again.counts.n_letters, again.counts.n_steps) == (0, 0)


@settings(deadline=None)
@given(st.sampled_from(sorted(GRAMMARS)), st.integers(0, 2**32))
def test_a_refused_text_stays_refused(name: str, seed: int) -> None:
    grammar, rng = AUTOMATA[name].grammar, random.Random(seed)
    text = sentence(name, rng, 4) + "".join(vocabulary(name, rng, 3))
    alive = [read_before(grammar, text[:n]) is not None for n in range(len(text) + 1)]

    assert alive == sorted(alive, reverse=True)


@pytest.mark.parametrize(
    ("name", "text", "allowed", "refused"),
    [
        ("sums", "le", ["t", "t x in 1", "+1", "x"], [" x", "t+", "t 1", ")"]),
        ("sums", "1", [".5", "2", " + a", "++ +a"], [" 2", ".+", "a", "++a"]),
        ("sums", "(let a ", ["in", "i", " in 1)"], ["+", "inx", ")"]),
        ("ambiguous", "a.", ["a!", "a?", ".", ".a", " a", "-x-a"], ["a..", "!", " ."]),
        ("waiting", "", ["p", "q", "p->", "p-x;p", "p+y", "q-y"], ["p-y", "p+x", "q+y", "p-x;q->"]),
        ("waiting", "p-x;", ["p-", "q-y"], ["p->", "->"]),
        ("json", "[1", ["]", ".5", "2", ", ", "e5", "e"], ["1.5.", '"', "}", ".,"]),
        ("json", '{"a', ['"', '":', "b", "\\n", '": [{'], ['",', '"}', "\\x", '": ]']),
    ],
)
def test_what_may_come(name: str, text: str, allowed: list[str], refused: list[str]) -> None:
    mask = by_automaton(AUTOMATA[name], text, allowed + refused).allowed

    assert [token for token, is_allowed in zip(allowed + refused, mask, strict=True) if is_allowed] == allowed


def test_each_way_touches_less_than_the_one_before() -> None:
    words = WORDS["json"].split()
    prefix, tokens = '{"a": [1, ', [*words, *(a + b for a in words for b in words)]
    grammar = grammar_of(JSON)
    one_by_one, shared = naive(grammar, prefix, tokens).counts, by_trie(grammar, prefix, tokens).counts
    numbered = by_automaton(Automaton(grammar), prefix, tokens).counts

    assert one_by_one.n_letters > shared.n_letters > numbered.n_letters
    assert one_by_one.n_steps > shared.n_steps > numbered.n_steps


def test_the_page_has_the_table_that_is_printed() -> None:
    page = Path(__file__).parents[2] / "docs" / "token-mask.md"

    assert "\n".join(table(grammar_of(JSON), PLACES, sample_tokens(BEFORE))) in page.read_text(
        encoding="utf-8"
    )


def test_how_a_string_is_spelled_is_forgotten() -> None:
    known = Automaton(grammar_of(JSON))
    by_automaton(known, '["', ["a", "abc", "é", "c d", "\\n", '"'])

    assert len(known) == 3  # in the string, behind a backslash, at its end


@pytest.mark.parametrize("pattern", ["a*b|(a|bc)+", "[^ab]?c", "(a?b?)*c[a-b]", r"\(\[\]|a\n", "a|", "[a-]+"])
@given(st.text("abc()[]-\n", max_size=6))
def test_patterns_read_what_pythons_do(pattern: str, text: str) -> None:
    left = pattern_of(pattern)
    for letter in text:
        left = derivative(left, letter)

    assert may_be_empty(left) == bool(re.fullmatch(pattern, text))


def test_a_beginning_ends_before_what_is_not_below_it() -> None:
    tokens = ["b", "", "abc", "ab", "ab", "abd", "ac"]
    nodes = trie_of(tokens)

    assert sorted(token for node in nodes for token in node.tokens) == [0, 2, 3, 4, 5, 6]
    assert [node.end for node in nodes] == [5, 4, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("notation", "said"),
    [
        ("a = b", "what these are: b"),
        ("a b c", "neither a rule"),
        ("a : b)", "not opened"),
        ("a = b 'x' \n b = | a", "a begins with itself"),
    ],
)
def test_a_notation_that_is_none(notation: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        grammar_of(notation)


# Beside the kernels: JSON by tree-sitter's own tables.


@pytest.fixture(scope="module")
def json_tables() -> _kernels.Grammar:
    return tables(load(language_by_id("json").grammars[0]))


def json_places(n: int) -> list[str]:
    rng = random.Random(7)
    return sorted({sentence("json", rng, 14) for _ in range(2 * n)}, key=lambda text: (len(text) % 7, text))[
        :n
    ]


def kernels_mask(grammar: _kernels.Grammar, prefix: str, tokens: list[str]) -> tuple[bool, ...]:
    made = _kernels.Vocabulary([token.encode() for token in tokens], len(tokens))
    vocabulary = _kernels.GrammarVocabulary(grammar, made)
    acceptor, words = _kernels.Acceptor(grammar), np.zeros(made.n_words, np.uint32)
    assert acceptor.accept(prefix.encode())
    assert acceptor.fill_mask(vocabulary, words) == _kernels.MaskOutcome.DECIDED
    return tuple(np.unpackbits(words.view(np.uint8), bitorder="little")[: len(tokens)].astype(bool).tolist())


def test_the_kernels_say_the_same_of_json(json_tables: _kernels.Grammar) -> None:
    tokens = sorted(set(vocabulary("json", random.Random(3), 1500)) - {""})
    places = json_places(120)
    differing = {}
    for place in places:
        ours = by_automaton(AUTOMATA["json"], place, tokens).allowed
        theirs = kernels_mask(json_tables, place, tokens)
        if ours != theirs:
            differing[place] = [t for t, one, other in zip(tokens, ours, theirs, strict=True) if one != other]

    assert len(places) == 120
    assert len(tokens) > 300
    assert not differing
