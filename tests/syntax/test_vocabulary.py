"""The tokens that may come next, all at once: a mask says of each what the matcher says of it alone."""

import numpy as np
import pytest
from treefill import _kernels
from treefill.errors import GrammarError
from treefill.syntax.grammars import load
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import MAX_BLANK_RUN, MAX_LINE_FEEDS, Matcher, tables
from treefill.syntax.vocabulary import MaskVocabulary, to_bools

from tests.syntax.test_matcher import at


class Words:
    """A vocabulary of every byte, and of these tokens."""

    def __init__(self, *tokens: bytes) -> None:
        self._tokens = (*(bytes([byte]) for byte in range(256)), *tokens)
        self.n_tokens = len(self._tokens)

    def token_bytes(self, token_id: int) -> bytes:
        return self._tokens[token_id]


TOKENS = (
    *(
        b"return",
        b" return",
        b"    return",
        b"\n",
        b"\n\n",
        b"\n    ",
        b"\r\n",
        b"\n" * 7,
        b" " * 8,
        b" " * 161,
    ),
    *(
        b" " * 120,
        b"\n \n \n \n ",
        b"\t",
        b"else",
        b"el",
        b":\n",
        b"):",
        b"))",
        b"]",
        b"}",
        b"};",
        b"'a'",
        b'"""',
    ),
    *(
        b"",
        b"\xc3\xa9",
        b"\xc3",
        b"\xa9x",
        b"\xe2\x80",
        b"\xff",
        b"case",
        b"SELECT",
        b" FROM",
        b"$$",
        b"/*",
        b"//",
    ),
)
VOCABULARY = MaskVocabulary(Words(*TOKENS), n_logits=320)
PLACES = {
    "python": ("def f(a):\n    ‸\n", "x = (1, ‸)\n", "if a:\n    b\n‸", 's = """a ‸', "x = 'é‸"),
    "cpp": ("int f(int a) {\n  ‸\n}\n", "int a[] = {1, ‸};\n", 'auto s = R"x(‸'),
    "json": ('{"a": ‸}', "[1‸]", '["‸"]'),
    "javascript": ("function f() {\n  ‸\n}\n", "let s = `a${‸}`;\n", "// ‸\n"),
    "sql": ("SELECT ‸ FROM t;", "SELECT a FROM t ‸;"),
}


def allowed(matcher: Matcher, vocabulary: MaskVocabulary = VOCABULARY) -> list[int]:
    """Ids that the mask allows."""
    bits = to_bools(matcher.fill_mask(vocabulary), vocabulary.n_words * 32)
    return [int(number) for number in np.flatnonzero(bits)]


def allowed_alone(matcher: Matcher, vocabulary: MaskVocabulary = VOCABULARY) -> list[int]:
    """Ids of the tokens that are allowed when they are asked about one by one."""
    return [number for number, token in enumerate(vocabulary.spelled) if token and matcher.allows(token)]


@pytest.mark.parametrize("text", ['x = "', 'x = "a', 'x = f(r"', 'x = r"a\\', 'x = """', 'x = b"'])
def test_strings_that_go_on_over_a_lines_end_without_a_policy(text: str) -> None:
    """By its grammar alone a string of Python may begin with a line feed."""
    tokens = (
        b"\n",
        b"\ns",
        b"\ns ",
        b"\n    s t",
        b"\n\n",
        b"\n\ns ",
        b'\ns"',
        b'\n"\n',
        b"a\nb ",
        b"\\\nb ",
    )
    grammar = language_by_id("python").grammars[0]
    without_policy = _kernels.Grammar(load(grammar).capsule, scanner_model=grammar.scanner_model)
    vocabulary = MaskVocabulary(Words(*tokens))
    acceptor = _kernels.Acceptor(without_policy)
    assert acceptor.accept(text.encode())
    allowed = to_bools(vocabulary.fill_mask(acceptor, without_policy), len(vocabulary.spelled))
    assert {token: acceptor.allows(token) for token in tokens} == dict(
        zip(tokens, allowed[256:], strict=True)
    )


@pytest.mark.parametrize("letter", ["\ua9ec", "\ub285", "é", "𝒳"])
def test_a_rare_letter_may_come_a_byte_at_a_time(letter: str) -> None:
    """Neither the first, the middle nor the last of the characters that begin like it need be a letter."""
    data = letter.encode()
    vocabulary = MaskVocabulary(Words(*(data[:end] for end in range(1, len(data) + 1))))
    matcher = at("int ‸", "cpp")
    allowed = to_bools(matcher.fill_mask(vocabulary), len(vocabulary.spelled))
    assert allowed[256:].all()
    assert all(matcher.accept(data[number : number + 1]) for number in range(len(data)))


@pytest.mark.parametrize("language", ["javascript", "csharp", "typescript"])
def test_characters_that_a_lexer_takes_alike_at_first_are_told_apart(language: str) -> None:
    """A no-break space is no letter, however many letters there are."""
    letters = [chr(0x4E00 + number) for number in range(200)]
    vocabulary = MaskVocabulary(Words(*(each.encode() for each in ("\u00a0", *letters, "a"))))
    for text in ("", "x", "x = ", "x = y", "// ", "'"):
        matcher = at(f"{text}‸", language)
        allowed = to_bools(matcher.fill_mask(vocabulary), len(vocabulary.spelled))
        for number in (256, 257, 400, 457):
            assert allowed[number] == matcher.allows(vocabulary.spelled[number]), (text, number)


@pytest.mark.parametrize(
    ("language", "buffer"), [(language, buffer) for language in PLACES for buffer in PLACES[language]]
)
def test_a_mask_says_of_each_token_what_is_said_of_it_alone(language: str, buffer: str) -> None:
    matcher = at(buffer, language)
    for written in (b"", b"a", b" ", b"\n", b"("):
        if not written or matcher.accept(written):
            assert allowed(matcher) == allowed_alone(matcher), written

    assert not matcher.gave_up


def test_white_space_that_goes_on_and_on_is_taken_off_the_mask() -> None:
    matcher = at("def f(a):\n    ‸\n")
    seven, long = VOCABULARY.spelled.index(b"\n" * 7), VOCABULARY.spelled.index(b" " * 161)

    assert not {seven, long} & set(allowed(matcher))
    for n, piece in ((MAX_LINE_FEEDS, b"\n"), (MAX_BLANK_RUN // 2, b"  ")):
        for _ in range(n):
            assert piece[0] in allowed(matcher)
            assert matcher.accept(piece)
        assert piece[0] not in allowed(matcher)
        assert allowed(matcher) == allowed_alone(matcher)
        matcher.rollback(n)
    assert {10, 32} < set(allowed(matcher))


def test_where_the_grammar_gave_up_all_written_tokens_may_come_but_long_runs() -> None:
    deep = "".join(" " * n + "if x:\n" for n in range(600))
    matcher = at("‸")
    assert matcher.accept(deep.encode() + b" " * 600 + b"y")
    assert matcher.gave_up

    assert allowed(matcher) == allowed_alone(matcher)
    assert len(allowed(matcher)) > 256


def test_a_vocabulary_is_spelled_once_a_grammar() -> None:
    python, json = (tables(load(language_by_id(name).grammars[0])) for name in ("python", "json"))

    assert VOCABULARY.for_grammar(python) is VOCABULARY.for_grammar(python)
    assert VOCABULARY.for_grammar(python) is not VOCABULARY.for_grammar(json)


def test_a_mask_has_a_bit_for_each_logit() -> None:
    words = at("x = ‸\n").fill_mask(VOCABULARY)

    assert VOCABULARY.n_logits == 320 > len(VOCABULARY.spelled)
    assert (words.dtype, words.shape) == (np.uint32, (10,))
    assert VOCABULARY.n_written == len([token for token in VOCABULARY.spelled if token])


@pytest.mark.parametrize(
    ("tokens", "n_logits", "sentence"),
    [
        ((), 255, "The vocabulary has 256 tokens and only 255 logits."),
        ((b"x" * 256,), None, "A token has 256 bytes"),
    ],
)
def test_a_vocabulary_that_has_no_masks_is_one_sentence(
    tokens: tuple[bytes, ...], n_logits: int | None, sentence: str
) -> None:
    with pytest.raises(GrammarError, match=sentence):
        MaskVocabulary(Words(*tokens), n_logits)


GRAMMAR, OTHER = (tables(load(language_by_id(name).grammars[0])) for name in ("json", "c"))
SPELLED = _kernels.GrammarVocabulary(GRAMMAR, _kernels.Vocabulary([b"a", b"["], 2))


@pytest.mark.parametrize(
    ("grammar", "words", "kind", "sentence"),
    [
        (OTHER, np.zeros(1, np.uint32), ValueError, "spelled for another grammar"),
        (GRAMMAR, np.zeros(2, np.uint32), ValueError, "has 2 words, not 1"),
        (GRAMMAR, np.zeros(1, np.int64), TypeError, "dtype=uint32"),
        (GRAMMAR, np.zeros((1, 1), np.uint32), TypeError, "dtype=uint32"),
    ],
)
def test_a_mask_that_would_be_written_in_vain_is_refused(
    grammar: _kernels.Grammar, words: np.ndarray, kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        _kernels.Acceptor(grammar).fill_mask(SPELLED, words)


@pytest.mark.parametrize(
    ("tokens", "n_logits", "kind", "sentence"),
    [
        (["a"], 1, TypeError, "are bytes"),
        ([b"a" * 300], 1, ValueError, "300 bytes; 255 are the most"),
        ([b"a", b"b"], 1, ValueError, "2 tokens and only 1 logits"),
    ],
)
def test_what_is_no_vocabulary_is_told(
    tokens: list[bytes], n_logits: int, kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        _kernels.Vocabulary(tokens, n_logits)


def test_after_a_text_that_is_none_nothing_may_come_and_nothing_is_forced() -> None:
    acceptor = _kernels.Acceptor(GRAMMAR)
    acceptor.accept(b"]")
    words = np.full(1, 0xFFFFFFFF, np.uint32)

    assert acceptor.fill_mask(SPELLED, words) == _kernels.MaskOutcome.DECIDED
    assert (words.tolist(), acceptor.forced(8)) == ([0], b"")


@pytest.mark.parametrize(
    ("language", "text"), [("json", b'["caf\xc3'), ("python", b"# \xe4"), ("cpp", b"int caf\xc3")]
)
def test_after_half_a_character_no_token_is_missing(language: str, text: bytes) -> None:
    grammar = tables(load(language_by_id(language).grammars[0]))
    tokens = [*(bytes([byte]) for byte in range(256)), b"\xa9)", b"\xb8\xad", b'\xa9"']
    spelled = _kernels.GrammarVocabulary(grammar, _kernels.Vocabulary(tokens, len(tokens)))
    acceptor = _kernels.Acceptor(grammar)
    acceptor.accept(text)
    words = np.zeros(9, np.uint32)
    acceptor.fill_mask(spelled, words)

    missing = [token for token, is_in in zip(tokens, to_bools(words, len(tokens)), strict=True) if not is_in]
    assert not any(acceptor.allows(token) for token in missing)
