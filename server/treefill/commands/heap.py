"""How much memory this process's allocator holds, and how much of it lies idle between what is used."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heap:
    """Of the whole process; in bytes."""

    n_bytes: int
    """What the allocator has from the system."""
    n_idle_bytes: int
    """What of it is free: between blocks in use, or not given back yet."""

    @property
    def idle_share(self) -> float:
        """How fragmented it is at most."""
        return self.n_idle_bytes / self.n_bytes if self.n_bytes else 0.0


class _Mallinfo(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def heap() -> Heap | None:
    """As glibc tells it, from 2.33 on; None where another library allocates."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    mallinfo.restype = _Mallinfo
    told = mallinfo()
    return Heap(told.arena + told.hblkhd, told.fordblks)
