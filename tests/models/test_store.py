"""The store as a user meets it: what is there afterwards, and what is said when something goes wrong."""

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import pytest
from treefill.errors import (
    BadInput,
    BrokenModel,
    NoPermission,
    NoSpace,
    StoreBusy,
    StoreError,
    UnknownModel,
    UnsupportedModel,
    WrongHash,
)
from treefill.models import ModelStore

from tests.models.conftest import RecordingProgress, StoreMaker, tree
from tests.models.tiny import tiny_model, write_gguf, write_safetensors


def test_a_pulled_path_is_opened_by_its_own_name(make_store: StoreMaker, qwen_path: Path) -> None:
    store = make_store()

    pulled = store.pull(str(qwen_path))
    opened = store.open("mine")

    assert pulled.name == opened.name == "mine"
    assert opened.folder == store.path("mine") == store.path(str(qwen_path))
    assert opened.tokenizer_path.is_file()
    assert opened.weights.linear("lm_head").shape == (270, 64)


def test_the_store_holds_the_model_and_nothing_else(make_store: StoreMaker, qwen_path: Path) -> None:
    store = make_store()
    store.pull(str(qwen_path))

    names = ["config.json", "manifest.json", "tokenizer.json", "weights.safetensors"]
    assert sorted(tree(store.cache_dir)) == [f"models/mine/{name}" for name in names]


def test_safetensors_are_pulled_by_folder_and_by_file(make_store: StoreMaker, tmp_path: Path) -> None:
    folder = write_safetensors(tiny_model(), tmp_path / "llm")
    store = make_store()

    assert store.pull(str(folder)).name == "llm"
    assert store.pull(str(folder / "model.safetensors")).name == "model"


def test_opening_never_gets_anything(make_store: StoreMaker) -> None:
    store = make_store()

    with pytest.raises(UnknownModel, match=r"tiny is not in .*cache; run 'treefill model pull tiny'"):
        store.open()
    assert not store.cache_dir.exists()


def test_a_second_pull_returns_what_is_here(
    make_store: StoreMaker, qwen_path: Path, progress: RecordingProgress
) -> None:
    make_store().pull(str(qwen_path))
    before = (make_store().path("mine") / "weights.safetensors").stat().st_mtime_ns
    progress.work.clear()

    make_store().pull(str(qwen_path))

    assert (make_store().path("mine") / "weights.safetensors").stat().st_mtime_ns == before
    assert [label for label, _, _ in progress.work] == ["Checking"]


def test_progress_says_how_much_and_gets_there(
    make_store: StoreMaker, qwen_path: Path, progress: RecordingProgress
) -> None:
    make_store().pull(str(qwen_path))

    assert [label for label, _, _ in progress.work] == ["Checking", "Converting", "Checking"]
    assert all(total == done for _, total, done in progress.work)


def test_a_name_means_one_set_of_hashes(make_store: StoreMaker, qwen_path: Path) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    before = tree(store.cache_dir)
    write_gguf(tiny_model(seed=1), qwen_path)

    with pytest.raises(WrongHash, match=r"mine\.gguf is not what mine means .*treefill model remove mine"):
        store.pull(str(qwen_path))
    assert tree(store.cache_dir) == before

    store.remove("mine")
    assert store.pull(str(qwen_path)).name == "mine"


def test_with_the_last_model_goes_what_is_known_of_grammars(make_store: StoreMaker, qwen_path: Path) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    store.grammars_dir.mkdir()
    (store.grammars_dir / "json-01-1.lexers").write_bytes(b"known")

    store.remove("mine")

    assert not store.grammars_dir.exists()


def test_a_path_does_not_take_a_known_name(make_store: StoreMaker, tmp_path: Path) -> None:
    path = write_gguf(tiny_model(seed=1), tmp_path / "tiny.gguf")

    with pytest.raises(WrongHash, match="is not what tiny means"):
        make_store().pull(str(path))


def test_a_path_with_the_right_hash_is_the_known_model(
    make_store: StoreMaker, tmp_path: Path, qwen_bytes: bytes
) -> None:
    (tmp_path / "tiny.gguf").write_bytes(qwen_bytes)

    make_store().pull(str(tmp_path / "tiny.gguf"))

    (line,) = make_store().list()
    assert (line.name, line.installed, line.licence) == ("tiny", True, "Apache-2.0")


def test_the_list_shows_known_models_and_others(make_store: StoreMaker, qwen_path: Path) -> None:
    store = make_store()
    store.pull(str(qwen_path))

    tiny, mine = store.list()

    assert (tiny.name, tiny.installed, tiny.in_use, tiny.is_default) == ("tiny", False, True, True)
    assert (mine.name, mine.installed, mine.in_use, mine.licence) == ("mine", True, False, None)
    assert tiny.download_bytes == mine.download_bytes == qwen_path.stat().st_size
    assert tiny.stored_bytes == 0
    assert mine.stored_bytes == sum(tree(store.cache_dir).values())


def put_nothing(path: Path) -> None:
    path.touch()


def put_a_loop(path: Path) -> None:
    path.symlink_to(path)


def put_a_pipe_as_manifest(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path / "manifest.json")


def put_a_folder_as_manifest(path: Path) -> None:
    (path / "manifest.json").mkdir(parents=True)


def put_a_manifest_of_another_name(path: Path) -> None:
    path.mkdir()
    mine = json.loads((path.parent / "mine" / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(mine | {"name": ".."}))


@pytest.mark.parametrize(
    "put",
    [
        put_nothing,
        put_a_loop,
        put_a_pipe_as_manifest,
        put_a_folder_as_manifest,
        put_a_manifest_of_another_name,
    ],
)
def test_what_else_lies_among_the_models_is_passed_over(
    make_store: StoreMaker, qwen_path: Path, put: Callable[[Path], None]
) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    put(store.cache_dir / "models" / ".stray")

    assert [line.name for line in store.list()] == ["tiny", "mine"]


def test_a_manifest_that_is_a_pipe_is_not_waited_for(make_store: StoreMaker, qwen_path: Path) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    manifest = store.path("mine") / "manifest.json"
    manifest.unlink()
    os.mkfifo(manifest)

    with pytest.raises(BrokenModel, match=r"manifest\.json is no file; remove it and pull"):
        store.open("mine")
    assert store.pull(str(qwen_path)).name == "mine"


def a_source_without_files(manifest: dict[str, Any]) -> None:
    manifest["source"] = {}


def a_size_of_four_thousand_digits(manifest: dict[str, Any]) -> None:
    manifest["source"]["mine.gguf"]["n_bytes"] = 10**4000


@pytest.mark.parametrize("change", [a_source_without_files, a_size_of_four_thousand_digits])
def test_a_manifest_of_what_cannot_be_is_broken(
    make_store: StoreMaker, qwen_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    path = store.path("mine") / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))

    assert [line.name for line in store.list()] == ["tiny"]
    with pytest.raises(BrokenModel, match="not a sound manifest"):
        store.open("mine")
    assert store.pull(str(qwen_path)).name == "mine"


def test_the_model_in_use_is_the_one_opened(make_store: StoreMaker, qwen_path: Path) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    assert store.current() == "tiny"

    store.use("mine")

    assert make_store().current() == "mine"
    assert make_store().open().name == "mine"
    store.remove("mine")
    assert store.current() == "tiny"


def test_only_a_model_that_is_here_can_be_used_or_removed(make_store: StoreMaker) -> None:
    for action in (make_store().use, make_store().remove, make_store().path, make_store().verify):
        with pytest.raises(UnknownModel, match="treefill model pull tiny"):
            action("tiny")


def test_a_hub_id_and_a_file_of_it_have_folders_of_their_own(tmp_path: Path) -> None:
    from treefill.models.disk import safe_name

    names = ["org/name", "org-name", "org--name", "org%2Fname", "org/name:a.gguf"]
    assert len({safe_name(name) for name in names}) == len(names)
    assert all(Path(safe_name(name)).name == safe_name(name) for name in names)


@pytest.mark.parametrize(
    "name", ["nothing", "a/b/c", "org/na me", "x" * 5000, "\udcff", "a\nb", "org/name:model.bin"]
)
def test_what_is_no_model_is_refused(make_store: StoreMaker, name: str) -> None:
    with pytest.raises((UnknownModel, BadInput, UnsupportedModel)):
        make_store().pull(name)


@pytest.mark.parametrize("name", ["", ".", "..", "/", "x" * 5000, "a\nb", "\udcff"])
def test_what_is_no_name_is_refused(make_store: StoreMaker, name: str) -> None:
    with pytest.raises((UnknownModel, BadInput)):
        make_store().remove(name)


@pytest.mark.parametrize("suffix", ["bin", "pt", "pth", "pkl", "ckpt"])
def test_pickles_are_refused_by_name(make_store: StoreMaker, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"pytorch_model.{suffix}"
    path.write_bytes(b"\x80\x04cposix\nsystem\n.")

    for wanted in (path, tmp_path):
        with pytest.raises(
            UnsupportedModel, match=rf"model\.{suffix} is not read, because pickle files can run"
        ):
            make_store().pull(str(wanted))


def test_a_path_that_is_not_there_is_said_so(make_store: StoreMaker, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no\.gguf does not exist"):
        make_store().pull(str(tmp_path / "no.gguf"))


@pytest.mark.parametrize("path", ["~no-such-user/x.gguf", "./a\0b.gguf"])
def test_what_cannot_be_a_path_is_said_so(make_store: StoreMaker, path: str) -> None:
    for action in (make_store().pull, make_store().open, make_store().remove):
        with pytest.raises(BadInput, match="cannot be a path"):
            action(path)


# Failures leave the store as it was.


def test_a_cut_file_leaves_nothing(make_store: StoreMaker, qwen_path: Path) -> None:
    qwen_path.write_bytes(qwen_path.read_bytes()[:-100])

    with pytest.raises(BrokenModel, match=r"mine\.gguf is not a sound GGUF file"):
        make_store().pull(str(qwen_path))
    assert tree(make_store().cache_dir) == {}


def test_an_interruption_leaves_the_old_model(
    make_store: StoreMaker, qwen_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    (store.path("mine") / "weights.safetensors").write_bytes(b"broken")
    before = tree(store.cache_dir)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("treefill.models.convert._quantised", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.pull(str(qwen_path))

    assert tree(store.cache_dir) == before


def test_a_full_disk_is_noticed_before_the_work(
    make_store: StoreMaker, qwen_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(qwen_path)._replace(free=3_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)

    with pytest.raises(
        NoSpace, match=r"Converting mine needs \d+ MB in .*cache, where 3 MB are free; .*--cache-dir"
    ):
        make_store().pull(str(qwen_path))
    assert tree(make_store().cache_dir) == {}


def test_a_disk_that_fills_up_meanwhile_leaves_nothing(
    make_store: StoreMaker, qwen_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("treefill.models.weights_file.WeightsWriter.write", full)

    with pytest.raises(NoSpace, match="is full"):
        make_store().pull(str(qwen_path))
    assert tree(make_store().cache_dir) == {}


def test_a_cache_folder_that_cannot_be_is_named(tmp_path: Path, qwen_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match=r"file/cache.* could not be read or written: Not a directory"):
        ModelStore(tmp_path / "file" / "cache").pull(str(qwen_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(tmp_path: Path, qwen_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(NoPermission, match=r"locked/cache may not be read or written; .*--cache-dir"):
        ModelStore(tmp_path / "locked" / "cache").pull(str(qwen_path))


def test_a_refusal_by_the_system_is_a_permission_error(
    make_store: StoreMaker, qwen_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(NoPermission, match="cache may not be read or written"):
        make_store().pull(str(qwen_path))


def test_a_lock_that_is_never_free_is_given_up(
    make_store: StoreMaker, qwen_path: Path, progress: RecordingProgress
) -> None:
    store = make_store(lock_wait_s=0.1)
    store.cache_dir.mkdir(parents=True)

    with (
        filelock.FileLock(store.cache_dir / "lock"),
        pytest.raises(StoreBusy, match=r"still working .* after 0\.1 s"),
    ):
        store.pull(str(qwen_path))
    assert any("waiting" in line for line in progress.lines)


def test_two_pulls_at_once_convert_once(
    make_store: StoreMaker, qwen_path: Path, progress: RecordingProgress
) -> None:
    stores = [make_store(progress=RecordingProgress()) for _ in range(4)]
    threads = [threading.Thread(target=store.pull, args=[str(qwen_path)]) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    labels = [label for store in stores for label, _, _ in store._progress.work]  # type: ignore[attr-defined]
    assert labels.count("Converting") == 1
    assert make_store().open("mine").name == "mine"


def test_rubbish_of_a_killed_process_is_swept(make_store: StoreMaker, qwen_path: Path) -> None:
    store = make_store()
    (store.cache_dir / "tmp" / "abc").mkdir(parents=True)
    (store.cache_dir / "tmp" / "abc" / "weights.safetensors").write_bytes(b"half")

    store.pull(str(qwen_path))

    assert not any(name.startswith("tmp") for name in tree(store.cache_dir))


# Damage afterwards.


@pytest.mark.parametrize("name", ["weights.safetensors", "tokenizer.json", "config.json"])
def test_verify_names_the_file_that_changed(make_store: StoreMaker, qwen_path: Path, name: str) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    assert {file.path.name for file in store.verify("mine")} == {
        "weights.safetensors",
        "tokenizer.json",
        "config.json",
    }
    path = store.path("mine") / name
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)

    with pytest.raises(BrokenModel, match=rf"{name} has changed .* 'treefill model remove mine'"):
        store.verify("mine")


@pytest.mark.parametrize("name", ["weights.safetensors", "tokenizer.json", "config.json"])
def test_a_missing_file_is_named_and_pulled_again(make_store: StoreMaker, qwen_path: Path, name: str) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    (store.path("mine") / name).unlink()

    with pytest.raises(
        BrokenModel, match=rf"{name} is missing, cut or altered; run 'treefill model pull mine'"
    ):
        store.open("mine")
    store.pull("mine")
    assert store.open("mine").name == "mine"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "nonsense", '{"name": "mine"}', "[" * 99_999, "\x00" * 2_000_000]
)
def test_a_broken_manifest_is_named_and_pulled_again(
    make_store: StoreMaker, qwen_path: Path, text: str
) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    (store.path("mine") / "manifest.json").write_text(text)

    with pytest.raises(BrokenModel, match=r"manifest\.json is not a sound manifest"):
        store.open("mine")
    assert [line.name for line in store.list()] == ["tiny"]
    store.pull(str(qwen_path))
    assert store.open("mine").name == "mine"


def test_a_broken_current_file_is_named(make_store: StoreMaker) -> None:
    store = make_store()
    store.cache_dir.mkdir()
    (store.cache_dir / "current").write_bytes(b"\xff\xfe")

    with pytest.raises(BrokenModel, match=r"current is not text"):
        store.open()


# Formats change.


def set_format(store: ModelStore, name: str, version: int) -> None:
    path = store.path(name) / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": version}))


def test_an_older_format_is_converted_again(
    make_store: StoreMaker, qwen_path: Path, progress: RecordingProgress
) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    set_format(store, "mine", 0)

    assert store.open("mine").name == "mine"

    assert "Converting mine again, because it is stored in an older format." in progress.lines
    assert json.loads((store.path("mine") / "manifest.json").read_text())["format_version"] == 1


def test_looking_at_an_older_format_converts_nothing(
    make_store: StoreMaker, qwen_path: Path, progress: RecordingProgress
) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    assert store.open_as_stored("mine").name == "mine"
    set_format(store, "mine", 0)
    progress.lines.clear()

    with pytest.raises(UnsupportedModel, match=r"older format 0; run 'treefill model pull mine'"):
        store.open_as_stored("mine")
    assert progress.lines == []
    assert store.pull("mine").name == "mine"


def test_an_older_format_without_its_source_says_what_to_do(make_store: StoreMaker, qwen_path: Path) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    set_format(store, "mine", 0)
    write_gguf(tiny_model(seed=1), qwen_path)  # another model lies at the path now

    with pytest.raises(
        UnsupportedModel, match=r"older format 0 .* 'treefill model pull mine', which downloads 1 MB"
    ):
        store.open("mine")


def test_a_newer_format_is_left_alone(make_store: StoreMaker, qwen_path: Path) -> None:
    store = make_store()
    store.pull(str(qwen_path))
    set_format(store, "mine", 9)

    with pytest.raises(UnsupportedModel, match="stored by a newer treefill"):
        store.open("mine")


def test_unknown_kinds_of_source_are_refused(make_store: StoreMaker) -> None:
    with pytest.raises(BadInput, match="not from carrier-pigeon"):
        make_store(sources=["carrier-pigeon"])
