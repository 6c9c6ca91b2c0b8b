"""How large the key/value cache may be: foreseen from the machine and the settings, never found out by running out.

Weights are mapped from their file, so the system can always drop and read them again; keys and values it cannot.
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from treefill.errors import BadSetting, EngineError

MB = 1_000_000
N_CONTEXTS = 4
"""By default the cache has room for this many prompts of the whole context: some ten files of a usual prompt."""
SHARE = 0.25
"""By default the cache takes at most this share of the memory that is free."""
N_CONTEXT_MIN = 512
"""A prompt of fewer tokens is no help."""


@dataclass(frozen=True, slots=True)
class CachePlan:
    """What there is room for."""

    n_context: int
    """Most tokens of a sequence; fewer than asked for where memory is short."""
    n_blocks: int
    block_tokens: int
    block_bytes: int

    @property
    def n_bytes(self) -> int:
        """What it takes once every block has been used."""
        return self.n_blocks * self.block_bytes


def plan_cache(n_context: int, block_tokens: int, block_bytes: int, limit_mb: int, free: int) -> CachePlan:
    """Blocks for sequences of `n_context` tokens, in `limit_mb` or, where that is 0, in a share of `free` bytes.

    Raises `BadSetting` where the limit is too small for the context, and `EngineError` where the memory is.
    """
    plan = partial(CachePlan, block_tokens=block_tokens, block_bytes=block_bytes)
    n_needed = -(-n_context // block_tokens) + 1  # one more, to copy the beginning of another from
    if limit_mb:
        n_blocks = limit_mb * MB // block_bytes
        if n_blocks < n_needed:
            raise BadSetting(
                f"The setting kv_cache_mb is {limit_mb}: a context of {n_context:,} tokens takes "
                f"{-(-n_needed * block_bytes // MB):,} MB. Raise it, lower n_context, or set kv_cache_type to int8."
            )
        if n_needed * block_bytes > free:
            raise too_little(n_needed * block_bytes, free)
        return plan(n_context, min(n_blocks, int(free // block_bytes)))
    n_blocks = int(free * SHARE) // block_bytes
    if n_blocks >= n_needed:
        return plan(n_context, min(n_blocks, N_CONTEXTS * n_needed))
    n_fits = max(n_blocks - 1, 0) * block_tokens
    if n_fits < N_CONTEXT_MIN:
        raise too_little(int((-(-N_CONTEXT_MIN // block_tokens) + 1) * block_bytes / SHARE), free)
    return plan(min(n_context, n_fits), n_blocks)


def free_memory(container: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that may be taken, by the system's word, and by the process's limit and the container's where there is one.

    A container counts file pages as used, mapped weights among them; the system takes them back when it needs room.
    """
    available = min(int(psutil.virtual_memory().available), _left_of_the_process_limit())
    try:
        limit, used = (int((container / name).read_text()) for name in ("memory.max", "memory.current"))
        counts = dict(line.split() for line in (container / "memory.stat").read_text().splitlines())
        files = int(counts["active_file"]) + int(counts["inactive_file"])
    except (OSError, ValueError, KeyError):  # no container, or one without a limit: "max"
        return available
    return max(0, min(available, limit - used + files))


def _left_of_the_process_limit() -> int:
    """What `ulimit -v` leaves, which counts all that is mapped: the weights, too."""
    if sys.platform != "linux":
        return sys.maxsize
    process = psutil.Process()
    limit, _ = process.rlimit(psutil.RLIMIT_AS)
    return sys.maxsize if limit in (-1, psutil.RLIM_INFINITY) else max(0, limit - process.memory_info().vms)


def too_little(needed: int, free: int) -> EngineError:
    """What to say where `needed` bytes cannot be had."""
    return EngineError(
        f"The model could not be run: its key/value cache takes {-(-needed // MB):,} MB of memory, and "
        f"{free // MB:,} MB are free. Close something, or set kv_cache_type to int8 or n_context to less."
    )
