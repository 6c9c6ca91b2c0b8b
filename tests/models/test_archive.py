"""Models carried by hand: export and import, and archives that are not what they should be."""

import contextlib
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from treefill.errors import (
    BadInput,
    BrokenModel,
    ModelError,
    NoSpace,
    UnknownModel,
    UnsupportedModel,
    WrongHash,
)
from treefill.models import ModelStore
from treefill.models.archive import header, read_archive_manifest, unpack_archive
from treefill.models.progress import silent

from tests.models.conftest import StoreMaker, tree

Members = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def archive(make_store: StoreMaker, qwen_path: Path, tmp_path: Path) -> Path:
    store = make_store()
    store.pull(str(qwen_path))
    store.export("mine", tmp_path / "mine.tar")
    return tmp_path / "mine.tar"


@pytest.fixture
def other(tmp_path: Path) -> ModelStore:
    """A store on another machine."""
    return ModelStore(tmp_path / "other")


def rewritten(archive: Path, change: Callable[[Members], None]) -> Path:
    with tarfile.open(archive) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    change(members)
    with tarfile.open(archive, "w") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return archive


def test_an_imported_model_is_the_exported_one(
    archive: Path, other: ModelStore, make_store: StoreMaker
) -> None:
    files = other.import_(archive)

    assert files.name == "mine"
    assert {f.sha256 for f in other.verify("mine")} == {f.sha256 for f in make_store().verify("mine")}
    assert sorted(tree(other.cache_dir)) == sorted(tree(make_store().cache_dir))


def test_the_archive_is_a_plain_tar_and_always_the_same(
    archive: Path, make_store: StoreMaker, tmp_path: Path
) -> None:
    with tarfile.open(archive, "r:") as tar:
        names = tar.getnames()
    make_store().export("mine", tmp_path / "again.tar")

    assert names == ["manifest.json", "config.json", "tokenizer.json", "weights.safetensors"]
    assert (tmp_path / "again.tar").read_bytes() == archive.read_bytes()


def test_an_archive_does_not_say_where_its_maker_kept_the_model(
    archive: Path, other: ModelStore, qwen_path: Path
) -> None:
    assert str(qwen_path.parent).encode() not in archive.read_bytes()

    other.import_(archive)

    assert json.loads((other.path("mine") / "manifest.json").read_text())["origin"] == "archive"


def test_a_path_that_an_archive_names_is_not_looked_at(
    archive: Path, other: ModelStore, qwen_path: Path
) -> None:
    rewritten(archive, edit_manifest(origin=str(qwen_path)))
    other.import_(archive)

    with pytest.raises(UnknownModel, match="What mine was made from is not here"):
        other.open_source("mine")
    with pytest.raises(UnknownModel, match="import it again"):
        other.pull("mine")


def test_a_size_beyond_8_gib_can_be_said() -> None:
    block = header("weights.safetensors", 9 << 30)

    assert len(block) == 512
    assert tarfile.TarInfo.frombuf(block, "ascii", "strict").size == 9 << 30


def test_importing_twice_changes_nothing(archive: Path, other: ModelStore) -> None:
    other.import_(archive)
    before = (other.path("mine") / "weights.safetensors").stat().st_mtime_ns

    other.import_(archive)

    assert (other.path("mine") / "weights.safetensors").stat().st_mtime_ns == before


def test_an_existing_file_is_not_overwritten(archive: Path, make_store: StoreMaker) -> None:
    with pytest.raises(BadInput, match=r"mine\.tar exists already"):
        make_store().export("mine", archive)


def test_a_model_that_has_changed_is_not_exported(
    archive: Path, make_store: StoreMaker, tmp_path: Path
) -> None:
    path = make_store().path("mine") / "tokenizer.json"
    path.write_bytes(path.read_bytes().replace(b"def", b"dfe"))

    with pytest.raises(BrokenModel, match=r"tokenizer\.json has changed"):
        make_store().export("mine", tmp_path / "bad.tar")
    assert not list(tmp_path.glob("bad.tar*"))


def test_exporting_to_a_full_disk_is_refused(
    archive: Path, make_store: StoreMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    usage = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)

    with pytest.raises(NoSpace, match="Exporting mine needs"):
        make_store().export("mine", tmp_path / "b.tar")


def add(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> Callable[[Members], None]:
    def change(members: Members) -> None:
        member = tarfile.TarInfo(name)
        member.type = kind
        member.linkname = link
        members.append((member, b""))

    return change


def rename_last(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> Callable[[Members], None]:
    def change(members: Members) -> None:
        members.pop()
        add(name, kind, link)(members)

    return change


def alter(index: int, edit: Callable[[bytes], bytes]) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        member, data = members[index]
        members[index] = (member, edit(data))

    return change


def edit_manifest(**changes: object) -> Callable[[Members], None]:
    return alter(0, lambda data: json.dumps(json.loads(data) | changes).encode())


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (add("../../evil"), r"unexpected member '\.\./\.\./evil'"),
        (add("/etc/evil"), "unexpected member '/etc/evil'"),
        (add("notes.txt"), r"unexpected member 'notes\.txt'"),
        (add("config.json"), r"unexpected member 'config\.json'"),  # a second one
        (add("folder", tarfile.DIRTYPE), "unexpected member 'folder'"),
        (rename_last("weights.safetensors", tarfile.SYMTYPE, "/etc/passwd"), "unexpected member"),
        (rename_last("weights.safetensors", tarfile.LNKTYPE, "config.json"), "unexpected member"),
        (rename_last("weights.safetensors", tarfile.CHRTYPE), "unexpected member"),
        (rename_last("weights.safetensors", tarfile.FIFOTYPE), "unexpected member"),
        (lambda members: members.pop(), r"lacks weights\.safetensors"),
        (lambda members: members.reverse(), r"first member is not manifest\.json"),
        (lambda members: members.clear(), r"first member is not manifest\.json"),
        (alter(3, lambda data: data[:-1] + b"x"), r"weights\.safetensors is cut or altered"),
        (alter(3, lambda data: data[:-1]), "not of the size"),
        (alter(0, lambda data: data[:-9]), r"manifest\.json is not a sound manifest"),
        (edit_manifest(name=7), r"manifest\.json is not a sound manifest"),
        (edit_manifest(name="a\nb"), r"manifest\.json is not a sound manifest"),
        (edit_manifest(files={}), r"manifest\.json is not a sound manifest"),
        (edit_manifest(files={"../x": {"n_bytes": 1, "sha256": "0" * 64}}), "not a sound manifest"),
    ],
)
def test_a_hostile_archive_leaves_nothing(
    archive: Path, other: ModelStore, change: Callable[[Members], None], fault: str
) -> None:
    rewritten(archive, change)

    with pytest.raises(BrokenModel, match=fault) as error:
        other.import_(archive)

    assert str(archive) in str(error.value)
    assert tree(other.cache_dir) == {}
    assert not list(other.cache_dir.parent.glob("evil"))


def test_a_name_that_climbs_out_stays_inside(archive: Path, other: ModelStore) -> None:
    rewritten(archive, edit_manifest(name="../../evil"))

    other.import_(archive)

    assert other.path("../../evil") == other.cache_dir / "models" / "..%2F..%2Fevil"
    assert other.verify("../../evil")


def test_a_converted_file_that_fits_its_hash_but_not_its_config_is_refused(
    archive: Path, other: ModelStore
) -> None:
    rewritten(
        archive, edit_file(1, lambda data: json.dumps(json.loads(data) | {"intermediate_size": 128}).encode())
    )

    with pytest.raises(BrokenModel, match=r"weights\.safetensors has model\.layers\.0\.mlp\.gate_proj"):
        other.import_(archive)
    assert tree(other.cache_dir) == {}


def edit_file(index: int, edit: Callable[[bytes], bytes]) -> Callable[[Members], None]:
    """Change a converted file, and what the manifest says of it."""

    def change(members: Members) -> None:
        member, data = members[index]
        members[index] = (member, edit(data))
        manifest = json.loads(members[0][1])
        changed = members[index][1]
        record = {"n_bytes": len(changed), "sha256": hashlib.sha256(changed).hexdigest()}
        manifest["files"][member.name] = record
        members[0] = (members[0][0], json.dumps(manifest).encode())

    return change


def edit_tokenizer(**changes: object) -> Callable[[Members], None]:
    return edit_file(2, lambda data: json.dumps(json.loads(data) | changes).encode())


def one_more_token(data: bytes) -> bytes:
    document = json.loads(data)
    document["model"]["vocab"]["zzz"] = 270
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("change", "error", "fault"),
    [
        (edit_file(2, one_more_token), BrokenModel, "has 271 tokens in its tokenizer and 270 in its weights"),
        (edit_tokenizer(model={"type": "BPE", "vocab": {}, "merges": []}), BrokenModel, "does not fit"),
        (edit_tokenizer(pre_tokenizer=None), UnsupportedModel, "another kind than byte-level BPE"),
        (edit_tokenizer(normalizer={"type": "NFC"}), UnsupportedModel, "in another form than this version's"),
        (edit_tokenizer(truncation={"max_length": 1}), UnsupportedModel, "in another form"),
        (edit_file(2, lambda data: b"\xff" + data), BrokenModel, "is not JSON"),
    ],
)
def test_a_tokenizer_that_no_conversion_would_make_is_refused(
    archive: Path, other: ModelStore, change: Callable[[Members], None], error: type[ModelError], fault: str
) -> None:
    rewritten(archive, change)

    with pytest.raises(error, match=rf"mine\.tar .*{fault}"):
        other.import_(archive)
    assert tree(other.cache_dir) == {}


def test_another_model_under_a_known_name_is_refused(archive: Path, make_store: StoreMaker) -> None:
    wrong = {"x.gguf": {"n_bytes": 1, "sha256": "0" * 64}}
    rewritten(archive, edit_manifest(name="tiny", source=wrong))

    with pytest.raises(WrongHash, match=r"mine\.tar is not what tiny means"):
        make_store().import_(archive)


def test_another_format_is_refused(archive: Path, other: ModelStore) -> None:
    rewritten(archive, edit_manifest(format_version=0))

    with pytest.raises(UnsupportedModel, match="holds format 0"):
        other.import_(archive)


@pytest.mark.parametrize("content", [b"", b"no tar at all" * 100, bytes(10_000)])
def test_what_is_no_archive_is_refused(other: ModelStore, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.tar").write_bytes(content)

    with pytest.raises(BrokenModel, match=r"x\.tar is not a sound model archive"):
        other.import_(tmp_path / "x.tar")


def test_a_compressed_archive_is_refused(archive: Path, other: ModelStore, tmp_path: Path) -> None:
    import gzip

    (tmp_path / "x.tar").write_bytes(gzip.compress(archive.read_bytes(), 1))

    with pytest.raises(BrokenModel, match="no plain tar file"):
        other.import_(tmp_path / "x.tar")


def test_an_archive_cut_anywhere_leaves_nothing(archive: Path, other: ModelStore) -> None:
    content = archive.read_bytes()
    for n_bytes in [*range(0, 4096, 300), *range(4096, len(content) - 11_000, 60_000)]:
        archive.write_bytes(content[:n_bytes])
        with pytest.raises(ModelError):
            other.import_(archive)
    assert tree(other.cache_dir) == {}


@pytest.mark.parametrize("tail", [b"junk", bytes(9_999) + b"x", bytes(1 << 21)])
def test_what_follows_the_end_is_refused(archive: Path, other: ModelStore, tail: bytes) -> None:
    archive.write_bytes(archive.read_bytes() + tail)

    with pytest.raises(
        BrokenModel, match=r"mine\.tar is not a sound model archive: something follows its end"
    ):
        other.import_(archive)
    assert tree(other.cache_dir) == {}


def test_an_archive_repacked_by_another_program_is_taken(archive: Path, other: ModelStore) -> None:
    rewritten(archive, lambda members: None)

    assert archive.stat().st_size % tarfile.RECORDSIZE == 0
    assert other.import_(archive).name == "mine"


def test_a_missing_archive_is_said_so(other: ModelStore, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no\.tar does not exist"):
        other.import_(tmp_path / "no.tar")


def extended(kind: bytes, data: bytes) -> bytes:
    """A header that says something of the one after it."""
    member = tarfile.TarInfo("././@LongLink")
    member.type = kind
    member.size = len(data)
    return member.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
@pytest.mark.parametrize("n_headers", [1, 3_000])
def test_extended_headers_are_not_followed(
    archive: Path, other: ModelStore, kind: bytes, n_headers: int
) -> None:
    data = b"manifest.json\0" if kind == tarfile.GNUTYPE_LONGNAME else b"22 path=manifest.json\n"
    archive.write_bytes(extended(kind, data) * n_headers + archive.read_bytes())

    with pytest.raises(BrokenModel, match=r"unexpected member '.*LongLink'"):
        other.import_(archive)
    assert tree(other.cache_dir) == {}


@pytest.mark.parametrize("n_bytes", [-1, -(1 << 62), 1 << 62])
def test_a_size_that_no_member_can_have_is_refused(archive: Path, other: ModelStore, n_bytes: int) -> None:
    content = archive.read_bytes()
    archive.write_bytes(header("manifest.json", n_bytes) + content[512:])

    with pytest.raises(BrokenModel, match="does not fit into it"):
        other.import_(archive)
    assert tree(other.cache_dir) == {}


@given(
    edits=st.lists(st.tuples(st.integers(0, 511), st.integers(0, 255)), min_size=1, max_size=4),
    which=st.integers(0, 3),
    mend=st.booleans(),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_header_is_read_or_refused(
    archive: Path, edits: list[tuple[int, int]], which: int, mend: bool
) -> None:
    with tarfile.open(archive) as tar:
        start = tar.getmembers()[which].offset
    content = archive.read_bytes()
    block = bytearray(content[start : start + 512])
    for at, value in edits:
        block[at] = value
    if mend:  # a checksum that fits, so that the fields themselves are read
        block[148:156] = b"%06o\0 " % (sum(block) - sum(block[148:156]) + 8 * 32)
    altered = archive.with_name("altered.tar")
    altered.write_bytes(content[:start] + block + content[start + 512 :])
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(ModelError):
        read_archive_manifest(altered)
        unpack_archive(altered, Path(folder), silent)
