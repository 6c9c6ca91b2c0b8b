"""`treefill masks doctor`."""

from __future__ import annotations

import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from treefill.commands import masks
from treefill.commands.heap import heap
from treefill.commands.masks import doctor_command
from treefill.commands.masks_page import page
from treefill.commands.options import open_app
from treefill.commands.plots import Bar, bars, columns
from treefill.engine import tokenizer
from treefill.errors import BadInput, GrammarError, TreefillError
from treefill.syntax.dictionary import Background, MaskDictionary
from treefill.syntax.languages import language_by_id
from treefill.syntax.lexers import LEXERS
from treefill.syntax.mask_file import MaskFile, read_mask_file
from treefill.syntax.mask_profile import Cause, MaskProfile, Reader, Spent, Tier
from treefill.syntax.vocabulary import MaskVocabulary

from tests.helpers.scripted_engine import ByteVocabulary
from tests.syntax.test_dictionary import TEXTS, VOCABULARY, grammar_of, trusted


def run(cache_dir: Path, *files: Path, **options: Any) -> int:
    """Its exit status."""
    try:
        doctor_command(list(files), cache_dir=cache_dir, **options)
    except typer.Exit as left:
        return left.exit_code
    return 0


def profiled(language: str) -> MaskProfile:
    """What came of reading a short text twice."""
    reader = Reader(grammar_of(language), language_by_id(language).kinds, VOCABULARY, 1 << 20)
    for _ in range(2):
        reader.read([bytes([byte]) for byte in TEXTS[language].encode()])
    return reader.profile


def kept(folder: Path) -> MaskFile:
    """A file that a dictionary left."""
    trusted("json", folder).save()
    [file] = folder.glob("*.masks")
    return read_mask_file(file)


def test_where_nothing_is_kept_it_says_what_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 0
    told = capsys.readouterr().out
    assert "treefill generate --masks dictionary" in told
    assert "Name FILEs" in told


def test_a_whole_file_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trusted("json", tmp_path / "grammars").save()

    assert run(tmp_path, as_json=True) == 0
    [file] = json.loads(capsys.readouterr().out)["files"]
    assert file["language"] == "json"
    assert (file["damaged"], file["idle_bytes"], file["shared_hashes"]) == (0, 0, 0)
    assert 0 < file["occupancy"] < 1 <= file["fullest_bucket"]
    assert 0 < file["mask_bytes_p50"] <= file["mask_bytes_max"]
    assert run(tmp_path) == 0
    assert "json" in capsys.readouterr().out


def test_a_damaged_one_is_told_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trusted("json", tmp_path / "grammars").save()
    [file] = (tmp_path / "grammars").glob("*.masks")
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)

    assert run(tmp_path, html=tmp_path / "out.html") == 1
    assert "1 record is damaged" in capsys.readouterr().out
    assert "1 record is damaged" in (tmp_path / "out.html").read_text("utf-8")


def test_a_page_takes_no_other_files_place(tmp_path: Path) -> None:
    page_at = tmp_path / "out.html"
    for _ in range(2):
        assert run(tmp_path, html=page_at) == 0
    code = tmp_path / "code.py"
    code.write_text("x = 1\n")
    with pytest.raises(BadInput, match="is there already and is no page of this command: name another file"):
        run(tmp_path, html=code)
    assert code.read_text() == "x = 1\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a file of POSIX")
def test_what_is_no_file_is_told_and_nobody_waits_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = open_app(cache_dir=tmp_path).store.grammars_dir
    folder.mkdir(parents=True)
    os.mkfifo(folder / "json-00.masks")
    assert run(tmp_path) == 1
    assert "is no file of masks: remove it, it is made anew." in " ".join(capsys.readouterr().out.split())
    (folder / "json-00.masks").unlink()
    folder.rmdir()
    folder.touch()
    assert run(tmp_path) == 1
    assert "cannot be read (Not a directory): check its permissions." in " ".join(
        capsys.readouterr().out.split()
    )


class Words(ByteVocabulary):
    """A tokenizer of bytes in a place where a model's is looked for."""

    def __init__(self, *_: object) -> None:
        super().__init__()


@pytest.fixture
def with_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose tokens are bytes."""
    stored = SimpleNamespace(
        config={"vocab_size": ByteVocabulary().n_tokens + 300}, tokenizer_path=None, end_ids=frozenset()
    )
    opened = masks.open_app

    def open_app(**given: Any) -> Any:
        folder = opened(cache_dir=given["cache_dir"]).store.grammars_dir
        store = SimpleNamespace(grammars_dir=folder, open=lambda _name: stored)
        return SimpleNamespace(store=store, settings=SimpleNamespace(model=""))

    monkeypatch.setattr(masks, "open_app", open_app)
    monkeypatch.setattr(tokenizer, "TokenizerVocabulary", Words)
    monkeypatch.setattr(LEXERS, "folder", LEXERS.folder)  # to be as it was


@pytest.mark.usefixtures("with_model")
def test_what_completions_left_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model has more logits than tokens, and both make the same of that."""
    folder = tmp_path / "grammars"
    left = MaskDictionary(grammar_of("json"), MaskVocabulary(Words()), Background(), folder)
    text = TEXTS["json"].encode()
    for end in [*range(len(text))] * 4:
        left.compare(text[:end])
    left.save()
    file = tmp_path / "a.json"
    file.write_bytes(text)

    assert run(tmp_path, file, as_json=True) == 0
    [profile] = json.loads(capsys.readouterr().out)["profiles"]
    assert profile["tiers"]["the file"]["places"] > 0


@pytest.mark.usefixtures("with_model")
def test_files_are_read_with_the_grammars_of_their_languages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"a.json": "json", "b.json": "json", "c.cpp": "cpp"}
    files = [tmp_path / name for name in names]
    for file in files:
        file.write_text(TEXTS[names[file.name]], "utf-8")

    assert run(tmp_path, *files, as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["grammar"], each["files"]) for each in found["profiles"]] == [("json", 2), ("cpp", 1)]
    for each in found["profiles"]:
        assert sum(tier["places"] for tier in each["tiers"].values()) == each["places"]
        assert sum(cause["share"] for cause in each["causes"].values()) == pytest.approx(1, abs=0.001)
        assert sum(bracket["share"] for bracket in each["brackets"].values()) == pytest.approx(1, abs=0.001)
    json_profile = found["profiles"][0]
    assert json_profile["places"] == 2 * len(TEXTS["json"])
    assert json_profile["hit_share"] > 0.5
    assert json_profile["causes"]["strings and comments"]["places"] > 0
    assert not list(tmp_path.glob("grammars/*.masks")), "nothing of it is kept"

    assert run(tmp_path, *files, html=tmp_path / "out.html") == 0
    told = capsys.readouterr().out
    assert all(
        part in told for part in ("found in", "memory", "braces", "strings and comments", "In memory:")
    )
    assert "cpp: " in (tmp_path / "out.html").read_text("utf-8")


def test_what_cannot_be_read_is_told_in_a_sentence(tmp_path: Path) -> None:
    yaml, unknown = tmp_path / "a.md", tmp_path / "a.unknown"
    for file in (yaml, unknown):
        file.write_text("a", "utf-8")
    with pytest.raises(BadInput, match="does not exist"):
        run(tmp_path, tmp_path / "none.py")
    with pytest.raises(BadInput, match="language"):
        run(tmp_path, unknown)
    with pytest.raises(GrammarError, match="no grammar"):
        run(tmp_path, yaml)
    (tmp_path / "a.json").write_text("[]", "utf-8")
    with pytest.raises(TreefillError, match="model"):
        run(tmp_path, tmp_path / "a.json")


def test_where_the_page_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"out.html cannot be written \(No such file or directory\)"):
        run(tmp_path, html=tmp_path / "none" / "out.html")


class Page(HTMLParser):
    """What is in a page; complains where its elements are not closed in their order."""

    VOID = frozenset({"meta", "link", "line", "rect"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all_of(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def test_a_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    found = Page(page([kept(tmp_path)], [profiled("cpp")], [], heap()))
    assert not {tag for tag, _ in found.tags} & {"script", "img", "iframe", "object", "a", "form", "base"}
    for _, attributes in found.tags:
        assert not {"src", "style", "srcset", "action"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href") in (None, "data:,")
    [policy] = [each["content"] for each in found.all_of("meta") if "http-equiv" in each]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_a_page_has_a_name_and_a_table_for_each_plot(tmp_path: Path) -> None:
    found = Page(page([kept(tmp_path)], [profiled("cpp"), profiled("json")], [], None))
    plots = found.all_of("svg")
    assert len(plots) == 2 * 3 + 3 == len(found.all_of("table"))
    names = {each["id"] for _, each in found.tags if "id" in each}
    assert len(names) == len([each for _, each in found.tags if "id" in each])
    for plot in plots:
        assert plot["role"] == "img"
        assert set((plot["aria-labelledby"] or "").split()) <= names
    assert {each["scope"] for each in found.all_of("th")} == {"col", "row"}


def test_what_comes_from_outside_is_escaped() -> None:
    bad = "<script>alert(1)</script>&\"'"
    profile = MaskProfile(bad, brackets={bad: Spent(1)}, counts=profiled("json").counts)
    text = page([MaskFile(f"{bad}-00", 0, (), 0)], [profile], [bad], None)
    assert "<script" not in text
    assert Page(text).text.count(bad) >= 4


def test_a_page_of_nothing_is_one() -> None:
    assert "No masks are kept" in Page(page([], [], [], None)).text


def test_bars_are_shares_of_all() -> None:
    drawn = bars("p", "T", [Bar("a", 3, "3 ms"), Bar("b", 1, "1 ms"), Bar("c", 0, "0 ms")])
    assert re.findall(r'class="bar"[^>]* width="([\d.]+)%"', drawn) == ["75", "25", "0"]
    assert "a: 3 ms; b: 1 ms; c: 0 ms" in drawn
    assert "nan" not in bars("p", "T", [Bar("a", 0, "0")]) + bars("p", "T", [])


def test_columns_are_as_high_as_they_are_of_the_highest() -> None:
    drawn = columns("p", "T", [1, 2, 0], even=1)
    assert re.findall(r'class="bar"[^>]* height="([\d.]+)"', drawn) == ["70", "140", "0"]
    assert 'class="even" x1="0" x2="100%" y1="70"' in drawn
    assert "nan" not in columns("p", "T", [0, 0]) + columns("p", "T", [])


def test_the_allocator_holds_more_than_lies_idle() -> None:
    told = heap()
    if told is None:
        pytest.skip("another C library allocates here")
    before = told.n_bytes - told.n_idle_bytes
    block = bytearray(64 << 20)
    after = heap()
    assert after is not None
    assert after.n_bytes - after.n_idle_bytes - before >= len(block)
    assert 0 <= told.idle_share < 1


def test_a_profile_of_nothing_divides_by_nothing() -> None:
    empty = MaskProfile("json", counts=profiled("json").counts)
    assert (empty.n, empty.ms, empty.hit_share) == (0, 0, 0)
    assert masks.profile_json(empty)["causes"][str(Cause.NAME)]["share"] == 0
    assert "–" in page([], [empty], [], None)
    assert set(masks.profile_json(empty)["tiers"]) == set(map(str, Tier))
