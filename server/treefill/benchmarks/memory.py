"""Resident memory of a contender, at its highest, and what each token of context adds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from treefill.benchmarks.contenders import Contender
from treefill.engine.api import TokenId

N_FEW = 256
N_MANY = 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one process; mapped weights count where they were touched."""

    peak_mb: float
    kb_per_token: float
    """What resident memory grew by from a prompt of `N_FEW` tokens to one of `N_MANY`, a token."""


def measure_memory(contender: Contender, ids: Sequence[TokenId]) -> Memory | None:
    """None where the process is not ours, or the system does not tell."""
    pid = contender.pid
    if pid is None or len(ids) < N_MANY or not _status(pid):
        return None
    resident_kb: list[int] = []
    for n_tokens in (N_FEW, N_MANY):
        contender.prefill(ids[:n_tokens])
        resident_kb.append(_status(pid)["VmRSS"])
    grown = (resident_kb[1] - resident_kb[0]) / (N_MANY - N_FEW)
    return Memory(round(_status(pid)["VmHWM"] * 1024 / 1e6, 1), round(grown * 1.024, 1))


def _status(pid: int) -> dict[str, int]:
    """Linux's own account in KiB; empty elsewhere."""
    path = Path(f"/proc/{pid}/status")
    if not path.exists():
        return {}
    fields = (line.split() for line in path.read_text().splitlines() if line.startswith("Vm"))
    return {name.rstrip(":"): int(value) for name, value, *_ in fields}
