"""The models of the grammars' external scanners say what the scanners say.

Both are fed the same texts: made of pieces that matter to a scanner, and cut out of real files. Runs for
`TREEFILL_FUZZ_SECONDS` a scanner where that is set (with `-o timeout=0`), with other texts for each
`TREEFILL_FUZZ_SEED`.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import tree_sitter_cpp
import tree_sitter_javascript
import tree_sitter_json
import tree_sitter_postgres
import tree_sitter_python
import tree_sitter_sql
import tree_sitter_typescript
from treefill._kernels import Grammar, scan_with_grammar, scan_with_model

ROOT = Path(__file__).parents[2]
N_CASES = 1000  # a scanner, in a unit test
N_CONTINUATIONS = 4
SECONDS = float(
    os.environ.get("TREEFILL_FUZZ_SECONDS", "0")
)  # read here: tests see no settings of the user's
SEED = os.environ.get("TREEFILL_FUZZ_SEED", "")


class Said(NamedTuple):
    is_undecided: bool
    possible: int
    may_decline: bool
    is_refused: bool
    found: bool
    token: int
    end: int
    memory: bytes

    @property
    def outcome(self) -> tuple[int, int, bytes] | None:
        return (self.token, self.end, self.memory) if self.found else None


@dataclass(frozen=True, slots=True)
class Scanner:
    model: str
    language: Callable[[], object]
    pieces: str
    """Texts that matter to it, parted by blanks; its white space is added."""
    files: str
    """Where this repository has real files for it."""
    fresh: bytes = b""


SPACE = [b" ", b" ", b"\n", b"\n", b"\r\n", b"\t", b"    ", b"\n    ", b"\n  ", b"\n\t", b"\f", b"\v", b"\r"]
STRANGE = [character.encode() for character in "\0éĀª𝔘\u2028\u2028\u2029\u00a0\u0085\u1680\u3000\ufeff"]
STRANGE += [b"\xff", b"\xe2", b"\x80", b"\xe2\x80", b"\xf0\x9d"]
SCRIPT = (
    "` ${ $ { } \\ \\n ? ?. ?? ?.5 ?.x : , ) ( [ < > & = => = == / // /* */ * ** /*x*/ //x i in inx instanceof "
    "instanceofx instance - -- + ++ ! != !x . .5 .x ; a x1 <!-- <!- --> -> % ^ | @ # </ <a> 'a' text 5"
)
SCANNERS = {
    "python": Scanner(
        "python",
        tree_sitter_python.language,
        "' ' \" \" ''' \"\"\" ` f' f\" rb' r\" b' br''' F\"\"\" t' u' fr\"\"\" x if: : = { { } } {{ }} \\ \\\\ \\n "
        "\\N \\u \\' \\\" \\x # #c # ( ) [ ] except else 1",
        "server/treefill/**/*.py",
        b"\0\0",
    ),
    "javascript": Scanner("javascript", tree_sitter_javascript.language, SCRIPT, "extension/src/*.ts"),
    "typescript": Scanner(
        "typescript", tree_sitter_typescript.language_typescript, SCRIPT, "extension/src/*.ts"
    ),
    "tsx": Scanner("typescript", tree_sitter_typescript.language_tsx, SCRIPT, "extension/src/*.ts"),
    "cpp": Scanner(
        "cpp",
        tree_sitter_cpp.language,
        'R"( R"x( )" )x" )x )xy" R"xy( )) ( ) " x y xy \\ 0123456789 abc',
        "kernels/**/*.cc",
    ),
    "sql": Scanner(
        "sql",
        tree_sitter_sql.language,
        "$ $ $$ $$ $a$ $a$ $ab$ $a b $a 1 $1 ; SELECT ' a b AS",
        "examples/*.sql",
    ),
    "postgres": Scanner(
        "postgres",
        tree_sitter_postgres.language,
        "$ $ $$ $$ $a$ $a$ $ab$ $a b $a_1$ $1 ; SELECT ' a b aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbb",
        "examples/*.sql",
    ),
}


@pytest.fixture(scope="module", params=SCANNERS)
def fuzz(request: pytest.FixtureRequest) -> "Fuzz":
    return Fuzz(request.param)


def test_a_model_says_what_its_scanner_says(fuzz: "Fuzz") -> None:
    deadline = time.monotonic() + SECONDS
    while fuzz.n["cases"] < N_CASES or time.monotonic() < deadline:
        fuzz.whole_text()
        fuzz.cut_text()
    print(f"\n{fuzz.name}: " + ", ".join(f"{what} {n:,}" for what, n in sorted(fuzz.n.items())))


class Fuzz:
    """Texts, sets of tokens and memories for one scanner, the same in every run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.scanner = SCANNERS[name]
        self.grammar = Grammar(self.scanner.language())
        self.states = self.grammar.external_states
        self.random = random.Random(f"{name} {SEED}")
        self.pieces = [piece.encode() for piece in self.scanner.pieces.split()]
        self.files = [path.read_bytes() for path in sorted(ROOT.glob(self.scanner.files))[:60]]
        assert self.files
        self.memories = [self.scanner.fresh]
        self.n = Counter[str]()

    def whole_text(self) -> None:
        """At the end of the text everything is known."""
        valid, memory, text, position = self.question()
        said = self.ask_model(valid, memory, text, position, is_whole=True)
        assert not said.is_undecided, self.story(valid, memory, text, position)
        outcome = self.outcome(valid, memory, text, position)
        assert said.outcome == outcome, self.story(valid, memory, text, position)
        self.n["cases"] += 1
        self.n["found"] += said.found
        self.keep(said)

    def cut_text(self) -> None:
        """What is decided stays so, and what is not comes out as one of the possible things, whatever follows."""
        valid, memory, text, position = self.question()
        said = self.ask_model(valid, memory, text, position, is_whole=False)
        scanners = Said(*scan_with_grammar(self.grammar, valid, memory, text, position, False))
        if not scanners.is_undecided:
            assert not said.is_undecided, self.story(valid, memory, text, position)
        for _ in range(N_CONTINUATIONS):
            more = self.random.choice([b"", self.text(3), self.text(3), self.text(12)])
            outcome = self.outcome(valid, memory, text + more, position)
            if not said.is_undecided:
                assert said.outcome == outcome, self.story(valid, memory, text, position, more)
            elif outcome is None:
                assert said.may_decline, self.story(valid, memory, text, position, more)
            else:
                assert said.possible >> outcome[0] & 1, self.story(valid, memory, text, position, more)
        self.n["cut, undecided"] += said.is_undecided
        self.n["cut, decided where the scanner saw the end"] += (
            not said.is_undecided and scanners.is_undecided
        )
        self.n["cut, decided"] += not said.is_undecided

    def question(self) -> tuple[list[bool], bytes, bytes, int]:
        if self.random.random() < 0.7:
            valid = self.random.choice(self.states)
        else:
            share = self.random.random()
            valid = [self.random.random() < share for _ in self.states[0]]
        text = self.text(self.random.choice([0, 1, 2, 3, 4, 6, 10, 20]))
        position = self.random.choice([0, 0, self.random.randint(0, len(text))])
        return valid, self.random.choice(self.memories), text, position

    def text(self, n_pieces: int) -> bytes:
        if self.random.random() < 0.15:
            file = self.random.choice(self.files)
            start = self.random.randrange(len(file) + 1)
            return file[start : start + self.random.choice([3, 20, 200])]
        strange = self.random.choice([0.0, 0.02, 0.2])
        pools = self.random.choices([SPACE, self.pieces, STRANGE], [0.3, 0.7, strange], k=n_pieces)
        text = b"".join(self.random.choice(pool) for pool in pools)
        is_cut = self.random.random() < 0.1
        return text[: self.random.randint(0, len(text))] if is_cut else text

    def outcome(
        self, valid: list[bool], memory: bytes, text: bytes, position: int
    ) -> tuple[int, int, bytes] | None:
        return Said(*scan_with_grammar(self.grammar, valid, memory, text, position, True)).outcome

    def ask_model(self, valid: list[bool], memory: bytes, text: bytes, position: int, is_whole: bool) -> Said:
        return Said(*scan_with_model(self.scanner.model, valid, memory, text, position, is_whole))

    def keep(self, said: Said) -> None:
        """Memories that were reached are asked with again."""
        if not said.found or len(said.memory) > 300:
            return
        if len(self.memories) < 200:
            self.memories.append(said.memory)
        elif self.random.random() < 0.1:
            self.memories[self.random.randrange(1, 200)] = said.memory

    def story(self, valid: list[bool], memory: bytes, text: bytes, position: int, more: bytes = b"") -> str:
        """What to say when they differ."""
        whole = self.outcome(valid, memory, text + more, position)
        tokens = [i for i, is_valid in enumerate(valid) if is_valid]
        models = self.ask_model(valid, memory, text, position, False)
        at_end = self.ask_model(valid, memory, text + more, position, True)
        return (
            f"{self.name}: tokens {tokens}, memory {memory!r}, text {text!r} at {position}, then {more!r}: "
            f"scanner {whole}; model {at_end.outcome}, before {models}"
        )


NEWLINE, INDENT, DEDENT, STRING_START, STRING_CONTENT, ESCAPE_INTERPOLATION, STRING_END, COMMENT = range(8)
CLOSE_PAREN, EXCEPT = 8, 11
AFTER_EXPRESSION = {NEWLINE, COMMENT}
INSIDE_EXPRESSION = {STRING_START, COMMENT}
AFTER_COLON = {NEWLINE, INDENT, STRING_START, COMMENT}
AT_STATEMENT = {STRING_START, COMMENT}
IN_BLOCK = {DEDENT, STRING_START, COMMENT}


@pytest.mark.parametrize(
    ("text", "tokens", "columns", "said"),
    [
        ("x = █\n", INSIDE_EXPRESSION, [], "refused"),
        ("x = █\n1", INSIDE_EXPRESSION, [], "refused"),
        ("x = █\n'a'", INSIDE_EXPRESSION, [], "refused"),
        ("x = █ ", INSIDE_EXPRESSION, [], "undecided"),
        ("x = █ \\\n  1", INSIDE_EXPRESSION, [], "declined"),
        ("x = █'a'", INSIDE_EXPRESSION, [], STRING_START),
        ("f(1█\n)", {CLOSE_PAREN, COMMENT}, [], "declined"),
        ("x = 1█\n", AFTER_EXPRESSION, [], "undecided"),
        ("x = 1█\n    ", AFTER_EXPRESSION, [], "undecided"),
        ("x = 1█\n    y", AFTER_EXPRESSION, [], "refused"),
        ("x = 1█\n    # c\n\n  \ny", AFTER_EXPRESSION, [], NEWLINE),
        ("x = 1█\r\ny", AFTER_EXPRESSION, [], NEWLINE),
        ("if x:\n    y█\nz", AFTER_EXPRESSION, [4], NEWLINE),
        ("if x:\n    y█\n  z", AFTER_EXPRESSION, [4], "refused"),
        ("if x:\n  if y:\n    z█\n  a", AFTER_EXPRESSION, [2, 4], NEWLINE),
        ("if x:█\n  y", AFTER_COLON, [], INDENT),
        ("if x:█\ny", AFTER_COLON, [], "refused"),
        ("if x:█\n\n# c\n  # d\n  y", AFTER_COLON, [], INDENT),
        ("if x:█\n  \ty", AFTER_COLON, [], "refused"),
        ("if x:█\n\t  y", AFTER_COLON, [], INDENT),
        ("if x:\n  if y:█\n\tz", AFTER_COLON, [2], "refused"),
        ("if x:\n\tif y:█\n\t\tz", AFTER_COLON, [8], INDENT),
        ("if x:\n\tif y:█\n            z", AFTER_COLON, [8], "refused"),
        ("if x:\n\ty█\n        z", AFTER_EXPRESSION, [8], "refused"),
        ("if x:\n\ty\n        # c█\n\tz", AFTER_EXPRESSION, [8], NEWLINE),
        ("if x:\n        y█\n\tz", AFTER_EXPRESSION, [8], "refused"),
        ("if x:\n    y\n█z", IN_BLOCK, [4], "declined"),
        ("if x:\n    y█\n", IN_BLOCK, [4], "undecided"),
        ("█  x", AT_STATEMENT, [], "refused"),
        ("█  # c", AT_STATEMENT, [], "declined"),
        ("█\n\nx", AT_STATEMENT, [], "declined"),
    ],
)
def test_strict_python_refuses_lines_that_python_does(
    text: str, tokens: set[int], columns: list[int], said: str | int
) -> None:
    """`█` is where the scanner is asked; the text may go on."""
    before, _, after = text.partition("█")
    answer = Said(
        *scan_with_model(
            "python",
            [token in tokens for token in range(12)],
            memory_of(columns),
            (before + after).encode(),
            len(before.encode()),
            is_whole=False,
            is_strict=True,
            is_statement_start=tokens in (AT_STATEMENT, IN_BLOCK) and not before.endswith("= "),
            is_outside_brackets=CLOSE_PAREN not in tokens,
        )
    )

    names = {"refused": answer.is_refused, "undecided": answer.is_undecided, "found": answer.found}
    assert next((name for name, is_it in names.items() if is_it), "declined") == (
        said if isinstance(said, str) else "found"
    )
    assert not answer.found or answer.token == said


def test_a_stray_line_end_is_refused_only_where_no_bracket_is_known_to_be_open() -> None:
    valid = [token in INSIDE_EXPRESSION for token in range(12)]
    answer = Said(*scan_with_model("python", valid, memory_of([]), b"\n1", 0, False, True, False, False))

    assert not answer.is_refused
    assert not answer.is_undecided


def test_a_python_text_does_not_end_where_a_block_must_begin() -> None:
    valid = [token in AFTER_COLON for token in range(12)]

    assert Said(
        *scan_with_model("python", valid, memory_of([]), b"if x:", 5, True, is_strict=True)
    ).is_refused
    assert not Said(*scan_with_model("python", valid, memory_of([]), b"if x:", 5, True)).is_refused


@pytest.mark.parametrize("length", [1, 1020, 1021, 1022, 1023, 1024, 2100])
def test_a_long_sql_tag_is_forgotten_as_the_scanner_forgets_it(length: int) -> None:
    grammar = Grammar(tree_sitter_sql.language())
    text = b"$" + b"a" * (length - 1) + b"$ x"
    valid = [True, False, False]
    model = Said(*scan_with_model("sql", valid, b"", text, 0, True))

    assert model.outcome == Said(*scan_with_grammar(grammar, valid, b"", text, 0, True)).outcome


@pytest.mark.parametrize("n_strings", [0, 1])
@pytest.mark.parametrize("n_blocks", [509, 510, 511, 512, 600])
def test_python_blocks_nested_deeper_than_the_memory_holds(n_blocks: int, n_strings: int) -> None:
    memory = bytes([0, n_strings]) + b"\2" * n_strings
    memory += b"".join(column.to_bytes(2, "little") for column in range(1, n_blocks + 1))
    text = b"\n" + b" " * 700 + b"x"
    valid = [token == INDENT for token in range(12)]
    model = Said(*scan_with_model("python", valid, memory, text, 0, True))

    assert model.token == INDENT
    assert len(model.memory) <= 1025
    if n_blocks < 510:  # beyond, the scanner may write past what tree-sitter gives it; here there is room
        assert len(model.memory) == len(memory) + 2
    scanners = Said(*scan_with_grammar(python_grammar(), valid, memory, text, 0, True))
    assert model.outcome == scanners.outcome


def test_python_columns_are_16_bits_wide_as_the_scanners_are() -> None:
    valid = [token in (NEWLINE, INDENT) for token in range(12)]
    text = b"\n" + b" " * 65540 + b"x"
    model = Said(*scan_with_model("python", valid, b"\0\0", text, 0, True))

    assert model.outcome == Said(*scan_with_grammar(python_grammar(), valid, b"\0\0", text, 0, True)).outcome


def memory_of(columns: list[int]) -> bytes:
    return b"\0\0" + b"".join(column.to_bytes(2, "little") for column in columns)


@cache
def python_grammar() -> Grammar:
    return Grammar(tree_sitter_python.language())


def test_a_grammar_without_that_scanner_says_so() -> None:
    json = Grammar(tree_sitter_json.language())
    with pytest.raises(ValueError, match="has 0 tokens"):
        scan_with_grammar(json, [True], b"", b"x", 0, True)
