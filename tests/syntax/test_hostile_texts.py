"""The acceptor, the matcher and the skeleton on texts that nobody writes: they answer, in time, and leave no trace.

What is here was found by `make syntax-fuzz`, or is what it would not find soon.
"""

import pytest
from treefill import _kernels
from treefill.syntax.grammars import load
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import Matcher, matcher_at, tables
from treefill.syntax.skeleton import skeleton_at


def acceptor_of(language: str) -> _kernels.Acceptor:
    return _kernels.Acceptor(tables(load(language_by_id(language).grammars[0])))


def matcher_in(text: str, language: str = "python") -> Matcher:
    """A matcher at `█`."""
    before, _, after = text.partition("█")
    matcher = matcher_at(before + after, len(before), language_by_id(language))
    assert isinstance(matcher, Matcher), matcher
    return matcher


def test_white_space_that_is_too_long_takes_nothing_back() -> None:
    matcher = matcher_in("x = █\n")
    assert matcher.accept(b"(")

    assert not matcher.accept(b" " * 1_000)

    assert not matcher.can_stop()
    assert matcher.accept(b"1)")
    assert matcher.can_stop()


def test_half_an_emoji_is_a_question_mark() -> None:
    found = skeleton_at("a = '\ud83d' + b", 13, language_by_id("python"))

    assert found.statements[0] == b"a = '?' + b"
    assert matcher_in("a = '\ud83d' + █ # \udc00\n").accept(b"b")


def test_a_scope_of_nothing_but_continuations_has_a_beginning() -> None:
    found = skeleton_at("{" + "else;" * 40, 201, language_by_id("javascript"))

    assert found.statements


@pytest.mark.parametrize("language", ["python", "c", "cpp", "json", "javascript", "typescript", "sql"])
def test_a_byte_order_mark_at_the_beginning_is_left_out(language: str) -> None:
    text = b"\xef\xbb\xbf" + {"json": b"[1]", "sql": b"select 1;"}.get(language, b"x;")
    acceptor = acceptor_of(language)

    assert all([acceptor.accept(text[at : at + 1]) for at in range(len(text))])
    assert acceptor.accepts_whole(b"")
    assert acceptor_of(language).accepts_whole(text)


def test_a_byte_order_mark_elsewhere_is_a_character_like_others() -> None:
    assert not acceptor_of("json").allows(b"[\xef\xbb\xbf")


@pytest.mark.parametrize(
    ("language", "begin", "middle", "end"),
    [
        ("c", "int f() { ", "if (a) b(); else ", "c(); }"),
        ("javascript", "x = ", "a ? 1 : ", "2;"),
        ("javascript", "x = ", "a => ", "b;"),
        ("python", "x = ", "not ", "a\n"),
        ("python", "x = ", "a if b else ", "c\n"),
        ("json", "", "[", "]" * 3_000),
    ],
)
def test_however_deep_it_is_nested_it_is_read(language: str, begin: str, middle: str, end: str) -> None:
    text = (begin + middle * 3_000 + end).encode()

    assert acceptor_of(language).accepts_whole(text)
    assert not acceptor_of(language).accepts_whole(text + b")")


@pytest.mark.parametrize("depth", [480, 509, 510, 511, 512, 520, 600])
def test_blocks_deeper_than_the_scanners_memory_with_a_string_open(depth: int) -> None:
    blocks = "".join(" " * level + "while t:\n" for level in range(depth)) + " " * depth
    acceptor = acceptor_of("python")

    assert acceptor.accept((blocks + 'x = "').encode())
    assert bool(acceptor.gave_up) == (depth > 510)
    matcher = matcher_in(blocks + 'x = "█')
    assert matcher.allows(b'a"')
    assert matcher.accept(b'a"\n')


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("javascript", "x = " + "/[ " * 30_000),
        ("javascript", "x\n/*c*/" * 30_000),
        ("javascript", "(" + "/* " * 100_000),
        ("cpp", 'R"' * 60_000),
        ("c", "(" * 8_000 + "]" * 8_000),
        ("python", "x\n(" + "\n" * 18_000 + "\n)\n"),
        ("typescript", "(x: any) => " * 20_000),
    ],
)
@pytest.mark.timeout(20)
def test_what_grows_with_the_square_of_the_length_is_cut_short(language: str, text: str) -> None:
    """By the watchdog of the acceptor, or because nobody looks so far. Without, these take minutes."""
    acceptor = acceptor_of(language)

    acceptor.accepts_whole(text.encode())
    acceptor.accept(text.encode())
    for offset in (2, len(text) // 2, len(text)):
        skeleton_at(text, offset, language_by_id(language))
        matcher_at(text, offset, language_by_id(language))


@pytest.mark.parametrize(("begin", "at"), [(0, 4), (2, 1), (4, 4)])
def test_places_outside_of_a_text_are_refused_at_the_border(begin: int, at: int) -> None:
    rules = _kernels.LexicalRules()
    with pytest.raises(ValueError, match="not in order"):
        _kernels.outline(b"abc", begin, at, rules)
    with pytest.raises(ValueError, match="not in order"):
        _kernels.statement_end(b"abc", begin, at, 0, rules)
    with pytest.raises(ValueError, match="not in order"):
        _kernels.layout(b"abc", begin, at, rules, _kernels.LayoutWords())
