"""A dictionary's file, read by hand: what the kernel wrote is there, and what is damaged is seen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from treefill.errors import GrammarError
from treefill.syntax.mask_file import N_BUCKETS, MaskFile, chi_square, read_mask_file

from tests.syntax.test_dictionary import TEXTS, after, prefixes_of, trusted


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that a dictionary left."""
    folder = tmp_path_factory.mktemp("masks")
    trusted("json", folder).save()
    [file] = folder.glob("json-*.masks")
    return file


def test_what_the_kernel_wrote_is_there(left_behind: Path) -> None:
    found = read_mask_file(left_behind)

    assert found.language == "json"
    assert (found.n_damaged, found.n_shared_hashes, found.n_idle_bytes) == (0, 0, 0)
    assert 0 < len(found.masks) <= len(found.records)
    assert sum(found.forms.values()) == len(found.masks)


def test_it_has_the_keys_that_the_dictionary_has(tmp_path: Path) -> None:
    dictionary = trusted("json", tmp_path)
    for text in prefixes_of(TEXTS["json"]):
        dictionary.fill(after("json", text))
    dictionary.save()
    [file] = tmp_path.glob("json-*.masks")

    assert {record.digest for record in read_mask_file(file).records} <= set(dictionary.hashes)


def is_seen(damaged: Path) -> bool:
    """Whether some record, or all of the file, is no use."""
    try:
        return read_mask_file(damaged).n_damaged > 0
    except GrammarError:
        return True


@pytest.mark.parametrize("seed", range(20))
def test_what_is_damaged_is_seen(left_behind: Path, tmp_path: Path, seed: int) -> None:
    data = bytearray(left_behind.read_bytes())
    random = Random(seed)
    data[random.randrange(24, len(data))] ^= 1 << random.randrange(8)
    damaged = tmp_path / left_behind.name
    damaged.write_bytes(data)

    assert is_seen(damaged)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_what_is_cut_short_is_told(left_behind: Path, tmp_path: Path, share: float) -> None:
    data = left_behind.read_bytes()
    short = tmp_path / left_behind.name
    short.write_bytes(data[: int(share * len(data))])

    with pytest.raises(GrammarError, match="cut short"):
        read_mask_file(short)


def test_what_is_of_another_version_is_told(left_behind: Path, tmp_path: Path) -> None:
    other = tmp_path / left_behind.name
    other.write_bytes(b"TMD1" + left_behind.read_bytes()[4:])

    with pytest.raises(GrammarError, match="another version"):
        read_mask_file(other)


def test_hashes_in_one_bucket_are_not_spread() -> None:
    assert chi_square(Counter({7: 1000}), N_BUCKETS) > 100 * N_BUCKETS
    assert MaskFile("json-00", 0, (), 0).chi_square == 0
