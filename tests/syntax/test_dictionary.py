"""Masks that were made before: found again where they are the same, dropped where they are wrong."""

from __future__ import annotations

import itertools
import logging
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import numpy as np
import pytest
import xxhash
from treefill import _kernels
from treefill.syntax import dictionary as module
from treefill.syntax.dictionary import Background, MaskDictionary, Trust
from treefill.syntax.grammars import LoadedGrammar, load
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import Matcher, matcher_at, tables
from treefill.syntax.vocabulary import MaskVocabulary

WORDS = [
    b"x",
    b"def",
    b"if",
    b" in",
    b"for",
    b"return",
    b" (",
    b"()",
    b"):",
    b"\n",
    b"\n    ",
    b"\n  ",
    b"\t",
    b" ",
]
MARKS = [bytes([byte]) for byte in range(256)] + [
    b"==",
    b"'''",
    b"','",
    b"]}",
    b"{}",
    b" {",
    b'":',
    b'"',
    b"\r\n",
]
TEXTS = {
    "python": "def f(a):\n    for b in a:\n        # c\n        if b == 'd':\n            return [b, {1: 'e'}]\nf(x)\n",
    "cpp": "int f(int a) {\n  if (a) {\n    // b\n    return g(a, {1, 2});\n  }\n  return 0;\n}\n",
    "json": '{"a": [1, {"b": "c"}, null], "d": {"e": [true, []]}}\n',
}


class Tokens:
    """A vocabulary of bytes and a few words."""

    def __init__(self, *more: bytes) -> None:
        self.spelled = (*WORDS, *MARKS, *more)
        self.n_tokens = len(self.spelled)

    def token_bytes(self, token_id: int) -> bytes:
        return self.spelled[token_id]


VOCABULARY = MaskVocabulary(Tokens())
DEEPER = b"\xff\xff\xff\xff"
GIVEN = Trust(n_right=module.N_TRIALS, n_places=module.N_PLACES)


def grammar_of(language: str) -> LoadedGrammar:
    return load(language_by_id(language).grammars[0])


def dictionary_of(language: str, folder: Path | None = None) -> MaskDictionary:
    return MaskDictionary(grammar_of(language), VOCABULARY, Background(), folder, random=Random(1))


def trusted(language: str, folder: Path | None = None) -> MaskDictionary:
    """One that has proved right often enough."""
    found = dictionary_of(language, folder)
    prefixes = itertools.cycle(prefixes_of(TEXTS[language]))
    while not found.trust.is_given:
        assert found.compare(next(prefixes))
    return found


def believing(language: str, folder: Path) -> MaskDictionary:
    """One that believes what is in its file, as nothing else tells a wrong mask from a right one."""
    found = dictionary_of(language, folder)
    found._trust = GIVEN
    return found


def prefixes_of(text: str) -> list[bytes]:
    return [text.encode()[:end] for end in range(len(text.encode()))]


def after(language: str, text: bytes) -> _kernels.Acceptor:
    acceptor = _kernels.Acceptor(tables(grammar_of(language)))
    acceptor.accept(text)
    return acceptor


def made_anew(language: str, text: bytes) -> list[int]:
    """The mask without a dictionary."""
    return VOCABULARY.fill_mask(after(language, text), tables(grammar_of(language))).tolist()


@pytest.mark.parametrize("language", TEXTS)
def test_what_is_found_is_what_would_be_made(language: str) -> None:
    found = trusted(language)
    n_known = 0
    for text in prefixes_of(TEXTS[language]):
        words = found.known(after(language, text), lambda text=text: text)
        n_known += words is not None
        assert words is None or words.tolist() == made_anew(language, text)
    assert n_known == len(prefixes_of(TEXTS[language]))


def test_places_that_are_alike_share_a_mask() -> None:
    found = dictionary_of("python")
    found.fill(after("python", b"y = 1\nf(a, "))
    n_before = found.counts["n_entries"]
    found.fill(after("python", b"def g():\n    pass\n\nfor h in i:\n    pass\nother(b, "))
    assert found.counts["n_entries"] == n_before


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("json", b'{"a": [', b'{"a": {'),
        ("python", b"x = [1", b"x = (1"),
        ("python", b"f(", b"'"),
        ("cpp", b"int f() { g(a", b"int f() { g[a"),
    ],
)
def test_places_that_differ_do_not(language: str, one: bytes, other: bytes) -> None:
    found = dictionary_of(language)
    masks = [found.fill(after(language, text)).tolist() for text in (one, other, one, other)]
    assert masks[:2] == masks[2:] == [made_anew(language, one), made_anew(language, other)]
    assert masks[0] != masks[1]


def test_answers_nothing_before_it_has_proved_right() -> None:
    found = dictionary_of("json")
    text = b'{"a": '
    found.fill(after("json", text))
    assert found.known(after("json", text), lambda: text) is None


def test_what_is_missing_is_made_in_the_background() -> None:
    background = Background()
    found = MaskDictionary(grammar_of("json"), VOCABULARY, background, random=Random(1))
    text = b'{"a": '
    assert found.known(after("json", text), lambda: text) is None
    assert background.wait(10)
    assert found.counts["n_entries"] > 0
    assert found.trust.n_right == 0, "what was made a moment before proves nothing"
    assert found.known(after("json", text), lambda: text) is None
    assert background.wait(10)
    assert found.trust.n_right == 1
    background.stop()


def test_a_wrong_mask_is_dropped_and_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = dictionary_of("json")
    text = b"[1, "
    found.fill(after("json", text))
    monkeypatch.setattr(MaskDictionary, "_is_right_alone", lambda *_: False)
    with caplog.at_level(logging.WARNING, module.__name__):
        assert not found.compare(text)
    assert found.counts["n_evicted"] == 2
    assert "wrong and is dropped" in caplog.text
    assert "[1, " not in caplog.text


def test_is_left_alone_after_several_wrong_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    found = trusted("json")
    for text in (b"[", b"[1", b"[1,"):
        found.fill(after("json", text))
    monkeypatch.setattr(MaskDictionary, "_is_right_alone", lambda *_: False)
    for text in (b"[", b"[1", b"[1,"):
        found.compare(text)
    assert found.trust.is_lost
    assert found.known(after("json", b"["), lambda: b"[") is None
    assert found.fill(after("json", b"[")).tolist() == made_anew("json", b"[")


def test_one_right_one_between_keeps_the_trust() -> None:
    trust = Trust()
    for is_right in (False, False, True, False, False):
        trust = trust.noted(is_right)
    assert not trust.is_lost


def test_kernel_and_library_agree_on_a_hash() -> None:
    kernel = _kernels.MaskDictionary(b"environment", 1 << 20, 4)
    for key in (b"", b"k", bytes(range(256)) * 4):
        assert kernel.hash(key) == xxhash.xxh3_128_digest(b"environment" + key)


def test_drops_the_least_recently_used() -> None:
    found = MaskDictionary(grammar_of("python"), VOCABULARY, Background(), max_bytes=20_000)
    for text in prefixes_of(TEXTS["python"]):
        found.fill(after("python", text))
    assert found.counts["n_dropped"] > 0
    assert found.counts["n_bytes"] <= 20_000


def test_the_next_process_has_what_this_one_made(tmp_path: Path) -> None:
    trusted("json", tmp_path).save()
    [file] = tmp_path.glob("json-*.masks")
    assert file.stat().st_mode & 0o077 == 0
    later = believing("json", tmp_path)
    assert later.counts["n_in_file"] > 0
    for text in prefixes_of(TEXTS["json"]):
        assert later.fill(after("json", text)).tolist() == made_anew("json", text)
    assert later.counts["n_read"] > 0


@pytest.mark.parametrize(
    ("language", "text", "secret"),
    [
        ("cpp", b'auto s = R"hunter2(a', b"hunter2"),
        ("json", b'{"phone": 4915112345678, "b": 1}', b"491511"),
        ("python", b"hunter2 = 'hunter2'  # hunter2\nx = hunter2 + 4915112345678\n", b"unter"),
    ],
)
def test_what_a_user_wrote_is_in_no_file(tmp_path: Path, language: str, text: bytes, secret: bytes) -> None:
    found = trusted(language, tmp_path)
    for end in range(len(text)):
        found.fill(after(language, text[:end]))
    found.save()
    [file] = tmp_path.glob(f"{language}-*.masks")
    assert secret not in file.read_bytes()


def test_what_nobody_asked_for_again_stays_in_the_file(tmp_path: Path) -> None:
    trusted("json", tmp_path).save()
    later = believing("json", tmp_path)
    n_before = later.counts["n_in_file"]
    later.fill(after("json", b"[[[["))
    later.save()
    assert dictionary_of("json", tmp_path).counts["n_in_file"] >= n_before


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_short_is_no_file(tmp_path: Path, share: float) -> None:
    trusted("json", tmp_path).save()
    [file] = tmp_path.glob("json-*.masks")
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    later = believing("json", tmp_path)
    assert later.counts["n_in_file"] == 0
    assert later.fill(after("json", b"[1")).tolist() == made_anew("json", b"[1")


def test_what_has_a_very_long_key_is_made_and_not_kept() -> None:
    found = dictionary_of("json")
    number = b"[" + 5_000 * b"1"  # a policy looks at its spelling, so all of it is in the key
    for _ in range(2):
        assert found.fill(after("json", number)).tolist() == made_anew("json", number)
    assert found.counts["n_too_long"] > 0
    assert found.counts["n_entries"] == 0
    found.fill(after("json", b"[" + 3_000 * b"1"))
    assert found.counts["n_entries"] > 0


def test_threads_that_read_a_file_at_once_have_the_masks_that_are_made(tmp_path: Path) -> None:
    trusted("python", tmp_path).save()
    texts = prefixes_of(TEXTS["python"])
    made = [made_anew("python", text) for text in texts]
    for _ in range(3):
        later = believing("python", tmp_path)
        with ThreadPoolExecutor(4) as pool:
            asked = pool.map(lambda text, later=later: later.fill(after("python", text)).tolist(), 4 * texts)
            size = pool.submit(lambda later=later: len(later._kernel.dump(1 << 20)) + len(later.hashes))
            assert list(asked) == 4 * made
        assert size.result() > 0
        assert 0 < later.counts["n_read"] <= later.counts["n_in_file"], "no record was kept twice"


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_gives_no_wrong_mask(tmp_path: Path, seed: int) -> None:
    trusted("json", tmp_path).save()
    [file] = tmp_path.glob("json-*.masks")
    damaged = bytearray(file.read_bytes())
    random = Random(seed)
    for _ in range(random.choice((1, 8, 200))):
        damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    file.write_bytes(damaged)
    later = believing("json", tmp_path)
    for text in prefixes_of(TEXTS["json"]):
        assert later.fill(after("json", text)).tolist() == made_anew("json", text)


def test_a_file_that_is_cut_while_it_is_open_gives_no_wrong_mask(tmp_path: Path) -> None:
    trusted("json", tmp_path).save()
    [file] = tmp_path.glob("json-*.masks")
    later = believing("json", tmp_path)
    with file.open("r+b") as open_file:
        open_file.truncate(200)
    for text in prefixes_of(TEXTS["json"]):
        assert later.fill(after("json", text)).tolist() == made_anew("json", text)
    assert later.counts["n_damaged"] == 1


@pytest.mark.parametrize(
    ("ranges", "form"),
    [
        (b"", DEEPER),
        (struct.pack("<II", 0, 0xFFFF_FFF0), None),
        (struct.pack("<II", 9, 3), None),
        (struct.pack("<IIII", 0, 9, 5, 12), None),
    ],
)
def test_a_file_that_says_nothing_of_use_gives_no_wrong_mask(
    tmp_path: Path, ranges: bytes, form: bytes | None
) -> None:
    """Its checksums are right."""
    trusted("json", tmp_path).save()
    [file] = tmp_path.glob("json-*.masks")
    file.write_bytes(with_records(file.read_bytes(), ranges, form))
    later = believing("json", tmp_path)
    assert later.counts["n_in_file"] > 0
    for text in prefixes_of(TEXTS["json"]):
        assert later.fill(after("json", text)).tolist() == made_anew("json", text)


def with_records(data: bytes, ranges: bytes, form: bytes | None) -> bytes:
    """A file of masks with these open ranges, and this form, in all of its records."""
    header, row = struct.Struct("<4sI16sQQ"), struct.Struct("<QQQQQ")
    magic, n_records, environment, _, _ = header.unpack_from(data)
    first = header.size + n_records * row.size
    bodies, rows = bytearray(data[first:]), bytearray()
    for low, high, offset, n_bytes, _ in row.iter_unpack(data[header.size : first]):
        record = data[offset : offset + n_bytes]
        rest = 4 + int.from_bytes(record[:4], "little")
        behind = rest + 4 + 8 * int.from_bytes(record[rest : rest + 4], "little")
        new = record[:rest] + (len(ranges) // 8).to_bytes(4, "little") + ranges
        new += (form or record[behind : behind + 4]) + record[behind + 4 :]
        rows += row.pack(low, high, first + len(bodies), len(new), xxhash.xxh3_64_intdigest(new))
        bodies += new
    begin = (magic, n_records, environment, first + len(bodies))
    checksum = xxhash.xxh3_64_intdigest(header.pack(*begin, 0) + rows)
    return header.pack(*begin, checksum) + rows + bodies


def test_a_file_that_gives_wrong_masks_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trusted("json", tmp_path).save()
    later = dictionary_of("json", tmp_path)
    monkeypatch.setattr(MaskDictionary, "_is_right_alone", lambda *_: False)
    assert not all(later.compare(text) for text in prefixes_of(TEXTS["json"]))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="files of POSIX")
def test_nobody_waits_for_what_lies_in_a_files_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trusted("json", tmp_path).save()
    [file] = tmp_path.glob("json-*.masks")
    file.unlink()
    os.mkfifo(file)
    later = believing("json", tmp_path)
    assert later.fill(after("json", b"[1")).tolist() == made_anew("json", b"[1")
    file.unlink()
    file.mkdir()
    believing("json", tmp_path).save()
    assert f"{file} cannot be written (Is a directory). Make room there, or remove it." in caplog.text


def test_what_is_old_goes_and_what_cannot_be_removed_keeps_nobody_from_saving(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.masks").mkdir()
    (tmp_path / "b.masks").symlink_to(tmp_path / "nowhere")
    for name in ("c.masks", "d.masks8x2", "e.lexers"):
        (tmp_path / name).touch()
    for name in ("a.masks", "c.masks", "d.masks8x2", "e.lexers"):
        os.utime(tmp_path / name, (0, 0))
    trusted("json", tmp_path).save()
    assert caplog.text == ""
    names = {each.name for each in tmp_path.iterdir() if not each.name.startswith("json-")}
    assert names == {"a.masks", "b.masks", "e.lexers"}
    assert list(tmp_path.glob("json-*.masks"))


def test_a_file_of_another_vocabulary_is_not_used(tmp_path: Path) -> None:
    trusted("json", tmp_path).save()
    [file] = tmp_path.glob("json-*.masks")
    larger = MaskVocabulary(Tokens(b"another"))
    other = MaskDictionary(grammar_of("json"), larger, Background(), tmp_path)
    assert other.counts["n_in_file"] == 0
    with pytest.raises(RuntimeError, match="another grammar"):
        _kernels.MaskDictionary(b"other", 1 << 20, VOCABULARY.n_words).open_file(str(file))


def test_where_nothing_can_be_written_nothing_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    found = trusted("json", blocked / "folder")
    found.save()
    assert "not kept" in caplog.text
    assert found.known(after("json", b"{"), lambda: b"{") is not None


@pytest.mark.skipif(sys.platform == "win32", reason="a limit of POSIX")
def test_where_the_disk_is_full_the_file_stays_as_it_was(tmp_path: Path) -> None:
    trusted("json", tmp_path).save()
    [file] = tmp_path.glob("json-*.masks")
    before = file.read_bytes()
    said = in_another_process(SAVES_BEYOND_A_LIMIT, tmp_path)
    assert "not kept for the next start" in said
    assert [each.name for each in tmp_path.iterdir()] == [file.name], "nothing is left lying about"
    assert file.read_bytes() == before


def test_processes_that_save_at_once_leave_a_whole_file(tmp_path: Path) -> None:
    texts = prefixes_of(TEXTS["json"])
    made = [made_anew("json", text) for text in texts]
    trusted("json", tmp_path).save()
    with ThreadPoolExecutor(2) as pool:
        savers = [pool.submit(in_another_process, SAVES_AGAIN_AND_AGAIN, tmp_path) for _ in range(2)]
        n_opened = 0
        while not all(saver.done() for saver in savers) or n_opened == 0:
            later = believing("json", tmp_path)
            assert later.counts["n_in_file"] > 0
            assert [later.fill(after("json", text)).tolist() for text in texts] == made
            assert later.counts["n_damaged"] == 0
            n_opened += 1
    assert [saver.result() for saver in savers] == ["", ""]
    assert len(list(tmp_path.iterdir())) == 1


SAVES_AGAIN_AND_AGAIN = """
for number in range(30):
    found.fill(after("json", b"[" * (number + 1)))
    found.save()
"""
SAVES_BEYOND_A_LIMIT = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
found.fill(after("json", b"[[[["))
found.save()
"""


def in_another_process(code: str, folder: Path) -> str:
    """What Python says that runs `code` with a dictionary of JSON, `found`, which believes its file."""
    begun = (
        "import pathlib, sys\n"
        "from tests.syntax.test_dictionary import after, believing\n"
        "found = believing('json', pathlib.Path(sys.argv[1]))\n"
    )
    command = [sys.executable, "-c", begun + code, str(folder)]
    top = Path(__file__).parents[2]
    run = subprocess.run(command, cwd=top, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


def test_a_matcher_has_the_same_mask_with_it() -> None:
    text = "def f(a):\n    return a + "
    found = trusted("python")
    matcher = matcher_at(text, len(text), language_by_id("python"))
    assert isinstance(matcher, Matcher)
    plain = matcher.fill_mask(VOCABULARY).tolist()
    assert matcher.kept_mask(found).tolist() == plain
    known = matcher.known_mask(found)
    assert known is not None
    assert known.tolist() == plain


def test_the_newest_work_is_done_first_and_the_oldest_forgotten() -> None:
    done: list[int] = []
    background = Background(max_waiting=2)
    background._thread = background  # type: ignore[assignment]  # nobody works it off yet
    for number in range(4):
        background.want(lambda number=number: done.append(number))
    while background._waiting:
        background._waiting.pop()()
    assert done == [3, 2]


def test_what_has_time_is_done_in_steps_when_nothing_is_wanted() -> None:
    background = Background(quiet_s=0, rest=0)
    done: list[str] = []
    is_begun, may_go_on = threading.Event(), threading.Event()

    def steps(name: str) -> Iterator[None]:
        for number in range(2):
            done.append(f"{name}{number}")
            if (name, number) == ("a", 0):
                is_begun.set()
                may_go_on.wait(10)
            yield

    background.when_quiet(steps("a"))
    background.when_quiet(steps("b"))
    assert is_begun.wait(10)
    background.want(lambda: done.append("wanted"))
    may_go_on.set()
    assert background.wait(10, is_all=True)
    assert done == ["a0", "wanted", "b0", "a1", "b1"]
    background.stop()


def test_what_has_time_waits_until_it_is_quiet() -> None:
    background = Background(quiet_s=30)
    done: list[int] = []
    background.when_quiet(done.append(number) for number in range(2))
    background.want(lambda: None)
    assert background.wait(10)
    assert not background.wait(0.05, is_all=True)
    background.stop()
    assert done == []


def test_what_has_time_rests_between_its_steps() -> None:
    background = Background(quiet_s=0, rest=1e6)
    done: list[float] = []

    def steps() -> Iterator[None]:
        for _ in range(3):
            start_s = time.thread_time()
            while time.thread_time() < start_s + 0.001:
                pass
            done.append(start_s)
            yield

    background.when_quiet(steps())
    assert not background.wait(0.2, is_all=True)
    assert len(done) == 1
    background.stop()


def test_what_has_time_goes_on_after_a_stop_once_something_is_wanted() -> None:
    background = Background(quiet_s=0, rest=1e6)
    done: list[int] = []
    background.when_quiet(done.append(number) for number in range(2))
    assert not background.wait(0.1, is_all=True)
    background.stop()
    n_before = len(done)
    background._next_step_s = 0.0  # it has rested
    background.want(lambda: None)
    assert background.wait(10)
    deadline_s = time.monotonic() + 10
    while len(done) == n_before and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert (n_before, len(done)) == (1, 2)
    background.stop()


def test_what_is_wanted_during_a_stop_is_done_after_it() -> None:
    background = Background()
    done: list[str] = []
    is_begun, may_go_on = threading.Event(), threading.Event()

    def first() -> None:
        is_begun.set()
        may_go_on.wait(10)

    background.want(first)
    assert is_begun.wait(10)
    stopping = threading.Thread(target=background.stop)
    stopping.start()
    while not background._is_stopping:
        time.sleep(0.001)
    background.want(lambda: done.append("wanted"))
    may_go_on.set()
    stopping.join()
    assert background.wait(10)
    background.stop()
    assert done == ["wanted"]


def test_nothing_is_begun_once_the_process_ends() -> None:
    background = Background()
    background._close()
    background.want(lambda: None)
    background.when_quiet(iter(()))
    assert background.wait(0.1, is_all=True)


def test_a_preset_is_read_beside_the_way_and_kept(tmp_path: Path) -> None:
    background = Background(quiet_s=0, rest=0)
    found = MaskDictionary(grammar_of("python"), VOCABULARY, background, tmp_path, random=Random(1))
    background.when_quiet(found.read_preset([4 * TEXTS["python"].encode()]))
    assert background.wait(60, is_all=True)
    background.stop()
    assert found.trust.is_given, "what comes twice in it was compared"
    n_missed = found.counts["n_missed"]
    text = b"def f(a):\n    for b in a:\n        "
    known = found.known(after("python", text), lambda: text)
    assert known is not None
    assert known.tolist() == made_anew("python", text)
    assert found.counts["n_missed"] == n_missed
    assert dictionary_of("python", tmp_path).counts["n_in_file"] > 100


def test_a_preset_that_was_read_before_takes_no_masks_again(tmp_path: Path) -> None:
    texts = 4 * [TEXTS["json"].encode()]
    for _ in dictionary_of("json", tmp_path).read_preset(texts):
        pass
    [file] = tmp_path.glob("json-*.masks")
    written_at = file.stat().st_mtime_ns
    later = dictionary_of("json", tmp_path)
    for _ in later.read_preset(texts):
        pass
    assert later.counts["n_new"] == 0, "only what is in no file was made"
    assert later.trust.is_given
    assert file.stat().st_mtime_ns == written_at


def test_a_preset_ends_where_it_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PRESET_S", 0.0)
    found = dictionary_of("python")
    for _ in found.read_preset([TEXTS["python"].encode(), b"x = 1\n"]):
        pass
    assert 0 < found.counts["n_entries"] <= 10


def test_what_the_grammar_does_not_take_in_a_preset_is_left_out() -> None:
    found = dictionary_of("json")
    for _ in found.read_preset([b"[1, ]]]] 2 {", b'{"a": 1}']):
        pass
    text = b'{"a": 1'
    n_missed = found.counts["n_missed"]
    found.fill(after("json", text))
    assert found.counts["n_missed"] == n_missed


def test_a_preset_whose_masks_are_wrong_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MaskDictionary, "_is_right_alone", lambda *_: False)
    found = dictionary_of("python")
    for _ in found.read_preset(10 * [TEXTS["python"].encode()]):
        pass
    assert found.trust.is_lost
    assert found.trust.n_wrong == module.N_WRONG


def test_a_process_that_keeps_nothing_reads_no_preset(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read: list[Iterator[None]] = []
    monkeypatch.setattr(module.BACKGROUND, "when_quiet", read.append)
    for word, folder in ((b"one", None), (b"another", tmp_path)):
        monkeypatch.setattr(module.LEXERS, "folder", folder)
        found = {module.dictionary_for(grammar_of("json"), MaskVocabulary(Tokens(word))) for _ in range(2)}
        assert len(found) == 1, "one a vocabulary"
    assert len(read) == 1


def test_masks_are_arrays_of_words() -> None:
    assert trusted("json").fill(after("json", b"[")).dtype == np.uint32
