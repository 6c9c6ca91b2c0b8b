r"""How a grammar becomes a mask of the vocabulary: the readable twin of `kernels/syntax/mask_walk.h`.

A mask says of each token whether the text may go on with it. Here it is made in three ways, each of which touches less
than the one before, and all say the same: `naive`, `by_trie` and `by_automaton`, the kernels' idea. Read it from top to
bottom; docs/token-mask.md has what each of them touches, and what the kernels add.

    $ python -m treefill.syntax.reference

Grammars are written in a notation of this file's own, as `JSON` below. Of the terminals the longest is taken, whatever
the parser could use, and of those that are as long the one written first. No rule may begin with itself. On purpose
there are no external scanners, no keywords that may be names, no bytes (a letter is a character), and nothing of the
kernels: their masks are compared with these.

>>> grammar = grammar_of(JSON)
>>> tokens = [' "', '1, ', "nu", "nix", "]]", "}"]
>>> [token for token, is_allowed in zip(tokens, naive(grammar, "[[", tokens).allowed) if is_allowed]
[' "', '1, ', 'nu', ']]']
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

# JSON with comments, values one after the other. What is in quotes stands for itself; `=` is a rule, of which an
# alternative may be nothing; `:` is a terminal, a regular expression; one with a `~` may stand between any two others.
JSON = r"""
document = | value document
value    = object | array | STRING | NUMBER | 'true' | 'false' | 'null'
object   = '{' '}' | '{' pair pairs '}'
pairs    = | ',' pair pairs
pair     = STRING ':' value
array    = '[' ']' | '[' value values ']'
values   = | ',' value values
STRING   : "([^"\\\n]|\\["\\/bfnrtu])*"
NUMBER   : -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE]-?[0-9]+)?
~SPACE   : [ \t\r\n]+
~COMMENT : //[^\n]*|/\*[^*]*\*+([^/*][^*]*\*+)*/
"""

# One parse: the terminals and rules that must still come, the next one first, which is a terminal. Where none must, the
# text may end.
Stack = tuple[str, ...]
At = TypeVar("At")


@dataclass
class Counts:
    """What was touched. It grows while a mask is made; nothing else here changes but what an `Automaton` knows."""

    n_texts: int = 0  # tokens, or beginnings of tokens, that were looked at
    n_letters: int = 0  # that the lexer read
    n_steps: int = 0  # stacks that the parser asked for a terminal


@dataclass(frozen=True)
class Mask:
    """Which tokens may come next, and what it took to find out."""

    allowed: tuple[bool, ...]  # [n_tokens]; a token without letters may not
    counts: Counts


# The three ways


def naive(grammar: Grammar, prefix: str, tokens: Sequence[str]) -> Mask:
    """Each token alone, from scratch: the prefix is read again for every one."""
    counts = Counts(n_texts=len(tokens))
    readings = [read(grammar, grammar.beginning, prefix + token, counts) for token in tokens]
    return Mask(
        tuple(bool(token and reading) for token, reading in zip(tokens, readings, strict=True)), counts
    )


def by_trie(grammar: Grammar, prefix: str, tokens: Sequence[str]) -> Mask:
    """Tokens share their beginnings: each is read once, and where one is refused, so is all that begins with it.

    What is kept of a beginning is its reading. The lexeme in it is a text, which is lexed anew with every letter.
    """
    counts = Counts()

    def step(reading: Reading, letter: str) -> Reading | None:
        return read(grammar, reading.stacks, reading.lexeme + letter, counts)

    return _walk(tokens, read_before(grammar, prefix), step, counts)


def by_automaton(known: Automaton, prefix: str, tokens: Sequence[str]) -> Mask:
    """What was read on the way is a number, and where a letter leads from it is looked up.

    Lexer and parser are asked only where nobody was before: at a place like an earlier one, never.
    """
    counts = Counts()
    before = read_before(known.grammar, prefix)
    root = known.number_of(before) if before else None
    return _walk(tokens, root, lambda number, letter: known.next(number, letter, counts), counts)


def _walk(
    tokens: Sequence[str], root: At | None, step: Callable[[At, str], At | None], counts: Counts
) -> Mask:
    """The tokens that `step` leads through from what is known after the prefix, letter by letter."""
    nodes, allowed = trie_of(tokens), [False] * len(tokens)
    path = [root]  # what is known after each of the letters down to the node
    place = 0 if root is not None else len(nodes)
    while place < len(nodes):
        node = nodes[place]
        counts.n_texts += 1
        above = path[node.depth]
        reached = None if above is None else step(above, node.letter)
        if reached is None:
            place = node.end
            continue
        for token in node.tokens:
            allowed[token] = True
        path[node.depth + 1 :] = [reached]
        place += 1
    return Mask(tuple(allowed), counts)


@dataclass(frozen=True)
class Node:
    """A beginning of tokens. Nodes lie in the order of a walk, those below one right behind it."""

    letter: str  # the last one
    depth: int  # of the letters before
    end: int  # place of the next node that is not below this one
    tokens: tuple[int, ...]  # that end here


def trie_of(tokens: Sequence[str]) -> list[Node]:
    """All beginnings of the tokens, each once.

    >>> [(node.letter, node.depth, node.end, node.tokens) for node in trie_of(["ab", "b", "ac"])]
    [('a', 0, 3, ()), ('b', 1, 2, (0,)), ('c', 1, 3, (2,)), ('b', 0, 4, (1,))]
    """
    beginnings = sorted({token[:length] for token in tokens for length in range(1, len(token) + 1)})
    ends: dict[str, list[int]] = {}
    for number, token in enumerate(tokens):
        ends.setdefault(token, []).append(number)

    def node(text: str) -> Node:
        end = bisect.bisect_right(beginnings, text, key=lambda other: other[: len(text)])
        return Node(text[-1], len(text) - 1, end, tuple(ends.get(text, ())))

    return [node(text) for text in beginnings]


# A text, as lexer and parser see it


@dataclass(frozen=True)
class Reading:
    """A text that may go on: the parses of what was taken, and the open lexeme, which the next letter may change."""

    stacks: frozenset[Stack]
    lexeme: str


def read_before(grammar: Grammar, prefix: str) -> Reading | None:
    """Reads what is there already. It is not counted: a text that grows is read once, while it does."""
    return read(grammar, grammar.beginning, prefix, Counts())


def read(grammar: Grammar, stacks: frozenset[Stack], text: str, counts: Counts) -> Reading | None:
    """Lets the parses read a text; None where nothing that could follow makes it right.

    >>> grammar = grammar_of(JSON)
    >>> reading = read(grammar, grammar.beginning, "[1, tr", Counts())
    >>> reading.lexeme, ("'true'", "values", "']'", "document") in reading.stacks
    ('tr', True)
    >>> read(grammar, grammar.beginning, "[1, tx", Counts())
    """
    while text and stacks:
        lexed = lex(grammar, text, counts)
        if lexed.is_open:
            return Reading(stacks, text) if may_become(grammar, stacks, lexed, counts) else None
        if lexed.terminal is None:
            return None
        stacks, text = take(grammar, stacks, lexed.terminal, counts), lexed.left
    return Reading(stacks, "") if stacks else None


@dataclass(frozen=True)
class Lexed:
    """What the lexer makes of a text: all that the next letter's meaning hangs on."""

    state: int  # of the lexer
    terminal: str | None  # the longest one so far
    left: str  # what was read behind it; "" where there is none
    is_open: bool  # it may grow with the next letter


def lex(grammar: Grammar, text: str, counts: Counts) -> Lexed:
    """Reads one lexeme from the beginning of a text.

    >>> lex(grammar_of(JSON), "1.5e", Counts())
    Lexed(state=..., terminal='NUMBER', left='e', is_open=True)
    >>> lex(grammar_of(JSON), "1.5em", Counts())
    Lexed(state=..., terminal='NUMBER', left='em', is_open=False)
    """
    state, terminal, end = 0, None, 0
    for place, letter in enumerate(text):
        counts.n_letters += 1
        following = grammar.lexer[state].after(letter)
        if following is None:
            return Lexed(state, terminal, text[end:] if terminal else "", is_open=False)
        state = following
        if grammar.lexer[state].accepts:
            terminal, end = grammar.lexer[state].accepts, place + 1
    return Lexed(state, terminal, text[end:] if terminal else "", is_open=True)


def take(grammar: Grammar, stacks: frozenset[Stack], terminal: str, counts: Counts) -> frozenset[Stack]:
    """The parses after a terminal; none where no parse can take it."""
    if terminal in grammar.extras:
        return stacks
    counts.n_steps += len(stacks)
    return frozenset(
        after for stack in stacks if stack[:1] == (terminal,) for after in expand(grammar, stack[1:])
    )


def expand(grammar: Grammar, stack: Stack) -> Iterator[Stack]:
    """Puts the alternatives of the rule that is next in its place, until a terminal is.

    >>> sorted(expand(grammar_of(JSON), ("values", "STRING")))
    [("','", 'value', 'values', 'STRING'), ('STRING',)]
    """
    if not stack or stack[0] not in grammar.rules:
        yield stack
        return
    for parts in grammar.rules[stack[0]]:
        yield from expand(grammar, parts + stack[1:])


def may_become(grammar: Grammar, stacks: frozenset[Stack], lexed: Lexed, counts: Counts) -> bool:
    """Can the open lexeme become a terminal that some parse takes?

    Or it ends where it could have ended before, and the rest is the beginning of what follows: `1.` where the grammar
    has numbers and points. The kernels, too, ask no more than that: whether what follows can help making the lexeme
    longer is left open.
    """
    reachable = grammar.lexer[lexed.state].reachable
    counts.n_steps += len(stacks)
    if reachable & grammar.extras or any(stack[0] in reachable for stack in stacks if stack):
        return True
    if lexed.terminal is None or not lexed.left:
        return False
    return read(grammar, take(grammar, stacks, lexed.terminal, counts), lexed.left, counts) is not None


class Automaton:
    """Texts as numbers, equal where nothing that follows tells the texts apart.

    Of an open lexeme only the lexer's state counts, the longest terminal so far, and what was read behind that. Of one
    that has ended only its terminal does: how it was spelled is forgotten.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._numbers: dict[tuple[frozenset[Stack], Lexed], int] = {}
        self._readings: list[Reading] = []  # by number: of any text that has it
        self._next: list[dict[str, int | None]] = []  # by number and letter

    def __len__(self) -> int:
        """How many numbers there are."""
        return len(self._readings)

    def next(self, number: int, letter: str, counts: Counts) -> int | None:
        """The number of a text with one letter more; None where that is refused."""
        known = self._next[number]
        if letter not in known:
            reading = self._readings[number]
            longer = read(self.grammar, reading.stacks, reading.lexeme + letter, counts)
            known[letter] = self.number_of(longer) if longer else None
        return known[letter]

    def number_of(self, reading: Reading) -> int:
        r"""The number of a text that was read.

        >>> known = Automaton(grammar_of(JSON))
        >>> texts = ['["a', '["\\" bc', '["a"', "[true", "[tru"]
        >>> [known.number_of(reading) for text in texts if (reading := read_before(known.grammar, text))]
        [0, 0, 1, 2, 3]
        """
        key = (reading.stacks, lex(self.grammar, reading.lexeme, Counts()))
        if key not in self._numbers:
            self._numbers[key] = len(self)
            self._readings.append(reading)
            self._next.append({})
        return self._numbers[key]


# A grammar, and the lexer that its terminals make together


@dataclass(frozen=True)
class LexState:
    """A state of the lexer."""

    accepts: str | None  # the terminal that may end here
    reachable: frozenset[str]  # what may end here or after more letters
    next: Mapping[str, int | None]  # by letter, of those that some terminal names
    otherwise: int | None  # by any other letter

    def after(self, letter: str) -> int | None:
        """The state after one letter more; None where no terminal goes on with it."""
        return self.next.get(letter, self.otherwise)


@dataclass(frozen=True)
class Grammar:
    """Rules, the terminals that may stand anywhere, and the lexer's states, of which the first is where it begins."""

    rules: Mapping[str, tuple[Stack, ...]]  # alternatives by rule
    extras: frozenset[str]
    lexer: Sequence[LexState]
    beginning: frozenset[Stack]  # the parses of an empty text


def grammar_of(notation: str) -> Grammar:
    r"""The grammar that is written like that; the rule written first is the whole text. ValueError where it is none.

    >>> grammar = grammar_of("list = 'a' more \n more = 'b' list \n ~SPACE : [ ]+")
    >>> read_before(grammar, "a b")
    Reading(stacks=frozenset({("'b'", 'list')}), lexeme='b')
    """
    rules: dict[str, tuple[Stack, ...]] = {}
    patterns: dict[str, Pattern] = {}
    extras = set()
    for line in filter(None, map(str.strip, notation.splitlines())):
        name, sign, text = (*line.split(maxsplit=2), "", "")[:3]
        if sign == "=":
            rules[name] = tuple(tuple(parts.split()) for parts in f" {text} ".split(" | "))
            patterns |= {part: spelled(part[1:-1]) for part in text.split() if part.startswith("'")}
        elif sign == ":":
            patterns[name.lstrip("~")] = pattern_of(text)
            extras |= {name[1:]} if name.startswith("~") else set()
        else:
            raise ValueError(f"A line of the grammar is neither a rule (=) nor a terminal (:): {line}")
    _check(rules, patterns)
    lexer = lexer_of(patterns)
    start = (next(iter(rules)),)
    beginning = expand(Grammar(rules, frozenset(), lexer, frozenset()), start)
    return Grammar(rules, frozenset(extras), lexer, frozenset(beginning))


def _check(rules: Mapping[str, tuple[Stack, ...]], patterns: Mapping[str, Pattern]) -> None:
    parts = {part for alternatives in rules.values() for each in alternatives for part in each}
    if unknown := parts - rules.keys() - patterns.keys():
        raise ValueError(f"The grammar does not say what these are: {', '.join(sorted(unknown))}")
    may_be_left_out: set[str] = set()
    for _ in rules:  # as often as there may be one more
        may_be_left_out |= {
            rule for rule, each in rules.items() if any(may_be_left_out.issuperset(a) for a in each)
        }
    numbers = {rule: number for number, rule in enumerate(rules)}
    begins_with: list[dict[str, int]] = [{} for _ in rules]
    for rule, alternatives in rules.items():
        for each in alternatives:
            n_left_out = next((n for n, part in enumerate(each) if part not in may_be_left_out), len(each))
            first = [part for part in each[: n_left_out + 1] if part in rules]
            begins_with[numbers[rule]] |= {part: numbers[part] for part in first}
    for rule, number in numbers.items():
        if any(number in _all_from(to, begins_with) for to in begins_with[number].values()):
            raise ValueError(f"The rule {rule} begins with itself; let it end with itself instead.")


def lexer_of(patterns: Mapping[str, Pattern]) -> list[LexState]:
    """The automaton of all terminals at once.

    A state is what remains of each terminal's pattern once a text was read, so its number is all that has to be kept of
    the text. Letters that no pattern names lead to the same state; `""` stands for them.
    """
    named = {letter for pattern in patterns.values() for letter in letters_of(pattern)} | {""}
    states: list[dict[str, Pattern]] = [dict(patterns)]
    leads: list[dict[str, int]] = []
    for state in states:  # which grows
        leads.append({})
        for letter in sorted(named):
            after = {name: derivative(pattern, letter) for name, pattern in state.items()}
            after = {name: pattern for name, pattern in after.items() if pattern != NOTHING}
            if after and after not in states:
                states.append(after)
            if after:
                leads[-1][letter] = states.index(after)
    accepts = [next((name for name, left in state.items() if may_be_empty(left)), None) for state in states]
    reached = [_all_from(number, leads) for number in range(len(states))]
    return [
        LexState(
            accepts[number],
            frozenset(name for each in reached[number] if (name := accepts[each])),
            {letter: leads[number].get(letter) for letter in named},
            leads[number].get(""),
        )
        for number in range(len(states))
    ]


def _all_from(number: int, leads: Sequence[Mapping[str, int]]) -> set[int]:
    reached, to_visit = {number}, [number]
    while to_visit:
        new = set(leads[to_visit.pop()].values()) - reached
        reached |= new
        to_visit += new
    return reached


# Regular expressions, read letter by letter


@dataclass(frozen=True)
class Letters:
    """One letter: of these, or any but these."""

    letters: frozenset[str]
    is_any_but: bool = False


@dataclass(frozen=True)
class InTurn:
    """One after the other."""

    first: Pattern
    then: Pattern


@dataclass(frozen=True)
class Either:
    """Any of them."""

    options: frozenset[Pattern]


@dataclass(frozen=True)
class Many:
    """Any number of times, also none."""

    of: Pattern


Pattern = Letters | InTurn | Either | Many
NOTHING = Either(frozenset())  # no text
EMPTY = Many(NOTHING)  # the text without letters


def derivative(pattern: Pattern, letter: str) -> Pattern:
    """What remains to be read once the letter was (Brzozowski 1964).

    >>> derivative(spelled("true"), "t") == spelled("rue"), derivative(spelled("true"), "f") == NOTHING
    (True, True)
    """
    match pattern:
        case Letters(letters, is_any_but):
            return EMPTY if (letter in letters) != is_any_but else NOTHING
        case InTurn(first, then):
            after = in_turn(derivative(first, letter), then)
            return either(after, derivative(then, letter)) if may_be_empty(first) else after
        case Either(options):
            return either(*(derivative(option, letter) for option in options))
        case Many(of):
            return in_turn(derivative(of, letter), pattern)


def may_be_empty(pattern: Pattern) -> bool:
    """Is the text without letters one of its texts?"""
    match pattern:
        case Letters():
            return False
        case InTurn(first, then):
            return may_be_empty(first) and may_be_empty(then)
        case Either(options):
            return any(map(may_be_empty, options))
        case Many():
            return True


def letters_of(pattern: Pattern) -> frozenset[str]:
    """The letters that it names."""
    match pattern:
        case Letters(letters):
            return letters
        case InTurn(first, then):
            return letters_of(first) | letters_of(then)
        case Either(options):
            return frozenset().union(*map(letters_of, options))
        case Many(of):
            return letters_of(of)


def in_turn(first: Pattern, then: Pattern) -> Pattern:
    """One after the other, written so that equal patterns are more often equal: there must be an end of states."""
    if NOTHING in (first, then):
        return NOTHING
    if EMPTY in (first, then):
        return then if first == EMPTY else first
    return (
        InTurn(first.first, in_turn(first.then, then)) if isinstance(first, InTurn) else InTurn(first, then)
    )


def either(*options: Pattern) -> Pattern:
    """Any of them, each once."""
    flat = frozenset(
        part for each in options for part in (each.options if isinstance(each, Either) else [each])
    )
    return next(iter(flat)) if len(flat) == 1 else Either(flat)


def spelled(text: str) -> Pattern:
    """The pattern of one text."""
    pattern: Pattern = EMPTY
    for letter in reversed(text):
        pattern = in_turn(Letters(frozenset(letter)), pattern)
    return pattern


ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def pattern_of(text: str) -> Pattern:
    r"""Reads a regular expression: letters, `\` before others, `[a-z]`, `[^a]`, `( )`, `|`, `*`, `+` and `?`.

    >>> pattern_of("ab?") == either(spelled("a"), spelled("ab"))
    False
    >>> derivative(pattern_of("ab?"), "a") == either(EMPTY, spelled("b"))
    True
    """
    pattern, left = _alternatives(text)
    if left:
        raise ValueError(f"A bracket is closed that was not opened, before this: {left}")
    return pattern


def _alternatives(text: str) -> tuple[Pattern, str]:
    pattern, left = _sequence(text)
    while left.startswith("|"):
        option, left = _sequence(left[1:])
        pattern = either(pattern, option)
    return pattern, left


def _sequence(text: str) -> tuple[Pattern, str]:
    parts: list[Pattern] = []
    while text and text[0] not in "|)":
        part, text = _one(text)
        sign = text[:1] if text[:1] in set("*+?") else ""
        repeated = {"": part, "*": Many(part), "+": in_turn(part, Many(part)), "?": either(EMPTY, part)}
        parts.append(repeated[sign])
        text = text[len(sign) :]
    pattern: Pattern = EMPTY
    for part in reversed(parts):
        pattern = in_turn(part, pattern)
    return pattern, text


def _one(text: str) -> tuple[Pattern, str]:
    if text[0] == "(":
        pattern, left = _alternatives(text[1:])
        return pattern, left[1:]
    if text[0] != "[":
        letter, left = _letter(text)
        return Letters(frozenset(letter)), left
    is_any_but = text[1] == "^"
    letters: set[str] = set()
    text = text[1 + is_any_but :]
    while text[0] != "]":
        first, text = _letter(text)
        last, text = _letter(text[1:]) if text[0] == "-" and text[1] != "]" else (first, text)
        letters |= set(map(chr, range(ord(first), ord(last) + 1)))
    return Letters(frozenset(letters), is_any_but), text[1:]


def _letter(text: str) -> tuple[str, str]:
    if text[0] != "\\":
        return text[0], text[1:]
    return ESCAPES.get(text[1], text[1]), text[2:]


# What each of them touches


BEFORE = '[{"name": "treefill", "size": [12, -0.5e3], "is open": true, "none": null}, '
PLACES = ("", '{"name', '{"name": ', "[1", '{"a": tr', "[[], [1, 2]")


def sample_tokens(text: str) -> list[str]:
    """A vocabulary to look at: all that the text has of 1, 2, 4 and 7 letters."""
    return sorted({text[at : at + length] for length in (1, 2, 4, 7) for at in range(len(text))})


def table(grammar: Grammar, places: Iterable[str], tokens: Sequence[str]) -> Iterator[str]:
    """Lines of a Markdown table: what was touched, by place and way; the automaton a second time."""
    yield "| after | allowed | `naive` | `by_trie` | `by_automaton` | the same again |"
    yield "|---|--:|--:|--:|--:|--:|"
    known = Automaton(grammar)
    for place in places:
        masks = [naive(grammar, BEFORE + place, tokens), by_trie(grammar, BEFORE + place, tokens)]
        masks += [by_automaton(known, BEFORE + place, tokens) for _ in range(2)]
        if len({mask.allowed for mask in masks}) > 1:
            raise AssertionError(f"The masks after {place} differ.")
        n_allowed = str(sum(masks[0].allowed))
        touched = [
            f"{c.n_texts:,} / {c.n_letters:,} / {c.n_steps:,}" for c in (mask.counts for mask in masks)
        ]
        yield "| " + " | ".join([f"`{place}`" if place else "nothing", n_allowed, *touched]) + " |"


def main() -> None:
    """Prints what each of the ways touches at some places of a JSON document."""
    tokens = sample_tokens(BEFORE)
    print(f"{len(tokens)} tokens, which have {len(trie_of(tokens))} beginnings. Texts / letters / stacks:\n")
    print("\n".join(table(grammar_of(JSON), PLACES, tokens)))


if __name__ == "__main__":
    main()
