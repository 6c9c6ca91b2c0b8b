"""A file that a dictionary of masks left for the next process, read by hand: is it whole, and how is it filled?

The kernel writes and uses it (`kernels/syntax/mask_dictionary.cc`). Read here with nothing of the kernel's, so that
what both agree on is the format: a header of 40 bytes, a row of 40 for each record in the order of their hashes, the
masks, and the records, which name the masks that they share. All numbers are little-endian.
"""

from __future__ import annotations

import os
import stat
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import xxhash

from treefill.errors import GrammarError

MAGIC = b"TMD2"
FORMS = ("allowed", "refused", "bits")
MAX_BYTES = 256 << 20
"""Larger ones the kernel does not use."""
N_BUCKETS = 256
"""That hashes are counted in, by their lowest byte."""
_HEADER = struct.Struct("<4sI16sQQ")
_ROW = struct.Struct("<QQQQQ")
_STRETCH = struct.Struct("<QQQ")
_DEEPER = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept at one key."""

    digest: bytes
    """XXH3-128 of the environment and the key, the highest byte first."""
    key: bytes
    n_open: int
    """Tokens that are asked about again."""
    form: str
    """How its mask is written; empty where only a deeper key has one."""
    mask: tuple[int, int]
    """Where its mask is in the file, and its bytes."""
    n_bytes: int
    """Of the record itself."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How hashes fill as many buckets as there are of them."""

    share: float
    """Of the buckets, those that have one or more: 63.2 % by chance, of many."""
    fullest: int
    """Hashes in the bucket that has the most."""


@dataclass(frozen=True, slots=True)
class MaskFile:
    """What there is in a file."""

    name: str
    n_bytes: int
    records: tuple[Record, ...]
    n_damaged: int
    """Records that are not as they were written; the kernel stops at the first that it comes upon."""

    @property
    def language(self) -> str:
        """The grammar's name, as the file has it in its own."""
        return self.name.rpartition("-")[0]

    @property
    def masks(self) -> frozenset[tuple[int, int]]:
        """The distinct ones."""
        return frozenset(record.mask for record in self.records if record.form)

    @property
    def forms(self) -> Counter[str]:
        """How many of the distinct masks are written in each form."""
        return Counter(dict((record.mask, record.form) for record in self.records if record.form).values())

    @property
    def n_deeper(self) -> int:
        """Keys that only say that more of the stack is to be looked at."""
        return sum(not record.form for record in self.records)

    @property
    def n_shared_hashes(self) -> int:
        """Records whose hash another one has: then one of them is never found."""
        return len(self.records) - len({record.digest for record in self.records})

    @property
    def buckets(self) -> list[int]:
        """Hashes in each of `N_BUCKETS` buckets."""
        counts = Counter(record.digest[-1] for record in self.records)
        return [counts[bucket] for bucket in range(N_BUCKETS)]

    @property
    def occupancy(self) -> Occupancy:
        """Of a hash table with as many buckets as there are keys."""
        return occupancy([record.digest for record in self.records])

    @property
    def sizes(self) -> list[int]:
        """Bytes of the distinct masks, ascending."""
        return sorted(n for _offset, n in self.masks)

    @property
    def chi_square(self) -> float:
        """Of the hashes in `N_BUCKETS` buckets; about as many as buckets where they are spread as by chance."""
        return chi_square(Counter(record.digest[-1] for record in self.records), N_BUCKETS)

    @property
    def n_idle_bytes(self) -> int:
        """That neither table, nor records, nor masks take."""
        taken = sum(n for _offset, n in self.masks)
        table = _HEADER.size + _ROW.size * (len(self.records) + self.n_damaged)
        return self.n_bytes - table - taken - sum(record.n_bytes for record in self.records)


def chi_square(counts: Counter[int], n_buckets: int) -> float:
    """How far counts are from all being equal.

    >>> chi_square(Counter({0: 2, 1: 2}), 2)
    0.0
    >>> chi_square(Counter({0: 4}), 2)
    4.0
    """
    expected = sum(counts.values()) / n_buckets
    if not expected:
        return 0.0
    return sum((counts[bucket] - expected) ** 2 / expected for bucket in range(n_buckets))


def occupancy(digests: Sequence[bytes]) -> Occupancy:
    r"""How hashes, 16 bytes each, would fill a hash table of their number.

    >>> occupancy([bytes(16), bytes(15) + b"\2"])
    Occupancy(share=0.5, fullest=2)
    """
    if not digests:
        return Occupancy(0.0, 0)
    counts = Counter(int.from_bytes(digest[8:], "big") % len(digests) for digest in digests)
    return Occupancy(len(counts) / len(digests), max(counts.values()))


def read_mask_file(path: Path) -> MaskFile:
    """Read all of it. Raises `GrammarError`, with the reason, where it is no file that the kernel wrote."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
                raise GrammarError(f"{path} is no file of masks: remove it, it is made anew.")
            data = file.read()
    except OSError as error:
        raise GrammarError(
            f"The masks in {path} cannot be read ({error.strerror}): remove it, it is made anew."
        ) from None
    if len(data) < _HEADER.size:
        raise GrammarError(f"The masks in {path} are cut short: they are made anew.")
    magic, n_records, _environment, n_bytes, checksum = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise GrammarError(f"The masks in {path} are of another version of treefill: they are made anew.")
    rows_end = _HEADER.size + n_records * _ROW.size
    if n_bytes != len(data) or rows_end > len(data):
        raise GrammarError(f"The masks in {path} are cut short: they are made anew.")
    header = data[: _HEADER.size - 8] + bytes(8)
    if xxhash.xxh3_64_intdigest(header + data[_HEADER.size : rows_end]) != checksum:
        raise GrammarError(f"The table of the masks in {path} is damaged: they are made anew.")
    environment = _environment_of(path)
    records = [_record(data, row, environment) for row in _ROW.iter_unpack(data[_HEADER.size : rows_end])]
    whole = tuple(record for record in records if record is not None)
    return MaskFile(path.stem, len(data), whole, len(records) - len(whole))


def _environment_of(path: Path) -> bytes | None:
    try:
        return bytes.fromhex(path.stem.rpartition("-")[2])
    except ValueError:
        return None


def _record(data: bytes, row: Sequence[int], environment: bytes | None) -> Record | None:
    """None where it is not as it was written."""
    low, high, *stretch = row
    record = _stretch(data, stretch)
    if record is None or len(record) < 12 + _STRETCH.size:
        return None
    n_key = int.from_bytes(record[:4], "little")
    key, rest = record[4 : 4 + n_key], record[4 + n_key :]
    n_ranges = int.from_bytes(rest[:4], "little")
    if len(rest) != 8 + 8 * n_ranges + _STRETCH.size:
        return None
    ranges = struct.iter_unpack("<II", rest[4 : 4 + 8 * n_ranges])
    form = int.from_bytes(rest[4 + 8 * n_ranges : 8 + 8 * n_ranges], "little")
    mask = _STRETCH.unpack_from(rest, 8 + 8 * n_ranges)
    digest = high.to_bytes(8, "big") + low.to_bytes(8, "big")
    if environment is not None and xxhash.xxh3_128_digest(environment + key) != digest:
        return None
    if form != _DEEPER and (form >= len(FORMS) or _stretch(data, mask) is None):
        return None
    name = "" if form == _DEEPER else FORMS[form]
    n_open = sum(end - start for start, end in ranges)
    return Record(digest, key, n_open, name, (mask[0], mask[1]), len(record))


def _stretch(data: bytes, stretch: Sequence[int]) -> bytes | None:
    offset, n_bytes, checksum = stretch
    part = data[offset : offset + n_bytes]
    return part if len(part) == n_bytes and xxhash.xxh3_64_intdigest(part) == checksum else None
