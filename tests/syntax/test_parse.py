"""Texts become trees in pieces, within a time, and from the tree before."""

import random
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.syntax import parse as parse_module
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import language_by_id
from treefill.syntax.parse import (
    RecentTrees,
    common_end_length,
    common_length,
    encoded,
    parse,
)


def grammar_of(language_id: str) -> LoadedGrammar:
    return load(language_by_id(language_id).grammars[0])


def n_faults(text: str, language_id: str) -> int:
    parsed = parse(encoded(text), grammar_of(language_id))
    assert parsed is not None
    return len(parsed.faults)


@pytest.mark.parametrize(
    ("language_id", "text", "n"),
    [
        ("python", "x = 1\n", 0),
        ("python", "x = (1\n", 1),
        ("python", "", 0),
        ("python", "def f():\n    x = 1 y\n    call()g\n", 2),
        ("python", "a = 1\rdef f():\r    return 1\r", 0),
        ("python", "a = 1\r\ndef f():\r\n    return 1\r\n", 0),
        ("python", "def f():\n    a = b'\n" + 9_000 * "    c = 1\n", 1),  # too long for its notation
        ("json", '{"a": 1}', 0),
        ("json", '{"a": }', 1),
        ("cpp", "int a = 1", 1),
        ("sql", "SELECT 1;", 0),
        ("python", 'x = "🙂"\n', 0),
        ("python", 'x = "\ud83d"\n', 0),
    ],
)
def test_faults_are_counted(language_id: str, text: str, n: int) -> None:
    assert n_faults(text, language_id) == n


def test_faults_say_where_they_are_and_whether_something_is_missing() -> None:
    parsed = parse(b"int a = 1\n", grammar_of("c"))

    assert parsed is not None
    (fault,) = parsed.faults
    assert fault.is_missing
    assert fault.start_byte == fault.end_byte == len("int a = 1")


def test_no_time_is_no_tree() -> None:
    assert parse(b"x = 1\n" * 10_000, grammar_of("python"), deadline_s=time.thread_time()) is None


def test_too_many_faults_are_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_module, "MAX_VISITED", 50)

    assert parse(b"int a = 1\n" * 1000, grammar_of("c"), deadline_s=time.thread_time() + 60) is None


def test_other_threads_get_their_turn_while_a_large_text_is_parsed() -> None:
    data = b"def f(a, b):\n    return [a, b, {'c': a + b}]\n\n\n" * 8_000
    beats: list[float] = []
    is_over = threading.Event()

    def beat() -> None:
        while not is_over.is_set():
            beats.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        parse(data, grammar_of("python"), deadline_s=time.thread_time() + 60)
    finally:
        is_over.set()
        thread.join()

    # Every switch interval (5 ms) of parsing: without it there would be one or two in all of its time.
    assert len(beats) > 10
    assert sys.getswitchinterval() <= 0.005


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_what_two_texts_share(a: bytes, b: bytes) -> None:
    n = common_length(a, b)
    assert a[:n] == b[:n]
    assert a[n : n + 1] != b[n : n + 1] or min(len(a), len(b)) == n
    m = common_end_length(a, b)
    assert m == common_length(a[::-1], b[::-1])


def test_typing_on_from_the_tree_before_gives_the_same_as_starting_anew() -> None:
    text = "import os\n\n\ndef f(path: str) -> list[str]:\n    x = [p for p in os.listdir(path) if p]\n    return x\n"
    trees, grammar = RecentTrees(), grammar_of("python")
    random.seed(1)
    for _ in range(60):
        at = random.randrange(len(text))
        piece = random.choice(["a", "(", ")", "é", "\n", "    ", "= 1"])
        changed = encoded(text[:at] + piece + text[at:])
        trees.parse("a.py", encoded(text), grammar)
        gone_on, anew = trees.parse("a.py", changed, grammar), parse(changed, grammar)
        assert gone_on is not None
        assert anew is not None
        assert not gone_on.is_fresh
        assert bool(gone_on.faults) == bool(anew.faults)


def test_a_text_that_is_known_is_not_parsed_again() -> None:
    trees, grammar = RecentTrees(), grammar_of("python")

    first = trees.parse("a.py", b"x = 1\n", grammar)

    assert trees.parse("a.py", b"x = 1\n", grammar) is first


def test_only_a_few_trees_are_kept() -> None:
    trees, grammar = RecentTrees(n_kept=2), grammar_of("python")
    first = trees.parse("a", b"x\n", grammar)
    trees.parse("b", b"x\n", grammar)
    trees.parse("c", b"x\n", grammar)

    assert trees.parse("a", b"x\n", grammar) is not first
