"""Presets: code of our own that a new dictionary of masks begins with."""

from __future__ import annotations

import re

import pytest
from treefill import _kernels
from treefill.syntax.grammars import load
from treefill.syntax.languages import Grammar, grammars_folder, languages
from treefill.syntax.matcher import tables
from treefill.syntax.presets import SEPARATOR, pieces_of, preset_of, words_of

MAX_BYTES = 14_000
WITH_PRESETS = [
    grammar for language in languages().values() for grammar in language.grammars if preset_of(grammar)
]


def test_the_commonest_languages_have_one() -> None:
    wanted = {"python", "c", "cpp", "json", "postgres", "javascript", "typescript"}
    assert {grammar.name for grammar in WITH_PRESETS} >= wanted


def test_no_file_is_without_its_grammar() -> None:
    files = [
        file.name
        for folder in grammars_folder().iterdir()
        if (folder / "presets").is_dir()
        for file in (folder / "presets").iterdir()
    ]
    assert sorted(files) == sorted({f"{grammar.name}.txt" for grammar in WITH_PRESETS})


@pytest.mark.parametrize("grammar", WITH_PRESETS, ids=lambda grammar: grammar.name)
def test_the_grammar_takes_all_of_it(grammar: Grammar) -> None:
    parts = preset_of(grammar)
    assert len(SEPARATOR.encode().join(parts)) <= MAX_BYTES
    for part in parts:
        assert part.isascii()
        acceptor = _kernels.Acceptor(tables(load(grammar)))
        assert acceptor.accept(part), part[max(acceptor.refused_at - 80, 0) : acceptor.refused_at + 20]
        assert acceptor.accepts_whole(b"")


@pytest.mark.parametrize("grammar", WITH_PRESETS, ids=lambda grammar: grammar.name)
def test_it_names_nobody(grammar: Grammar) -> None:
    text = SEPARATOR.encode().join(preset_of(grammar))
    assert not re.search(rb"/(home|root|Users|work)/", text)
    assert set(re.findall(rb"[\w.]+@([\w.]+\w)", text)) <= {b"example.org", b"example.com"}


@pytest.mark.parametrize(
    ("text", "known", "pieces"),
    [
        (b"return x", {b"return", b" x"}, [b"return", b" x"]),
        (b"returned", {b"return", b"ed", b"e"}, [b"return", b"ed"]),
        (
            b"x == 12\n\n    y",
            {b" ==", b"\n\n", b"   ", b" y", b"12"},
            [b"x", b" ==", b" ", b"12", b"\n\n", b"   ", b" y"],
        ),
        (b"f();\n", {b"();\n", b"();"}, [b"f", b"();\n"]),
        ("\u00e9".encode(), set(), [b"\xc3", b"\xa9"]),
        (b"", {b"a"}, []),
    ],
)
def test_a_text_is_cut_into_the_longest_tokens(text: bytes, known: set[bytes], pieces: list[bytes]) -> None:
    assert list(pieces_of(text, known)) == pieces


def test_pieces_are_the_text() -> None:
    known = set().union(*words_of([b"", b"in", b"int", b" =", b"\n", b"return", b"  "]))
    for grammar in WITH_PRESETS:
        for part in preset_of(grammar):
            assert b"".join(pieces_of(part, known)) == part
