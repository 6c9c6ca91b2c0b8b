"""What is kept of a grammar's lexers: read back where it fits, recovered anew where it does not."""

import random
from pathlib import Path

import pytest
import xxhash
from treefill import _kernels
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import language_by_id
from treefill.syntax.lexers import grammar_with_lexers

TEXTS = {"python": b"def f(a):\n    return \xc3\xa9 + 1\n", "json": b'{"a": [1, true]}'}


def loaded(language: str) -> LoadedGrammar:
    return load(language_by_id(language).grammars[0])


def kept_in(folder: Path) -> Path:
    (file,) = folder.glob("*.lexers")
    return file


def make(language: str, folder: Path | None) -> _kernels.Grammar:
    return grammar_with_lexers(loaded(language), _kernels.Policy(), folder)


@pytest.mark.parametrize("language", TEXTS)
def test_what_is_read_back_accepts_the_same(language: str, tmp_path: Path) -> None:
    first, second = make(language, tmp_path), make(language, tmp_path)

    assert first.keep() == second.keep()
    for grammar in (first, second):
        acceptor = _kernels.Acceptor(grammar)
        assert acceptor.accepts_whole(TEXTS[language])
        assert not acceptor.accepts_whole(TEXTS[language] + b")")


def test_a_file_is_read_and_not_written_again(tmp_path: Path) -> None:
    make("json", tmp_path)
    written = kept_in(tmp_path).stat().st_mtime_ns
    make("json", tmp_path)

    assert kept_in(tmp_path).stat().st_mtime_ns == written


@pytest.mark.parametrize("damage", [lambda d: b"", lambda d: d[:-4], lambda d: d[:40] + b"\xff" + d[41:]])
def test_a_damaged_file_is_replaced(damage: object, tmp_path: Path) -> None:
    make("json", tmp_path)
    whole = kept_in(tmp_path).read_bytes()
    kept_in(tmp_path).write_bytes(damage(whole))  # type: ignore[operator]
    grammar = make("json", tmp_path)

    assert kept_in(tmp_path).read_bytes() == whole
    assert _kernels.Acceptor(grammar).accepts_whole(TEXTS["json"])


def test_another_grammars_lexers_are_not_believed(tmp_path: Path) -> None:
    kept = make("python", None).keep()
    with pytest.raises(RuntimeError, match="lexer"):
        _kernels.Grammar(loaded("json").capsule, kept=kept)

    make("json", tmp_path)
    kept_in(tmp_path).write_bytes(xxhash.xxh3_128_digest(kept) + kept)
    assert _kernels.Acceptor(make("json", tmp_path)).accepts_whole(TEXTS["json"])


def test_random_words_end_nothing() -> None:
    kept, capsule = make("json", None).keep(), loaded("json").capsule
    draw = random.Random(1)
    for _ in range(300):
        words = bytearray(kept)
        for _ in range(draw.randint(1, 4)):
            at = 4 * draw.randrange(len(words) // 4)
            words[at : at + 4] = draw.choice([0, 1, 2, 7, 0xFFFF, draw.getrandbits(32)]).to_bytes(4, "little")
        try:
            acceptor = _kernels.Acceptor(
                _kernels.Grammar(capsule, kept=bytes(words[: draw.randrange(len(words))]))
            )
        except RuntimeError:
            continue
        acceptor.accepts_whole(TEXTS["json"])


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert _kernels.Acceptor(make("json", tmp_path / "file")).accepts_whole(TEXTS["json"])


def test_what_is_left_of_an_older_library_goes(tmp_path: Path) -> None:
    older = tmp_path / "json-0123-1.lexers"
    older.write_bytes(b"old")
    make("json", tmp_path)

    assert not older.exists()
    assert len(list(tmp_path.iterdir())) == 1
