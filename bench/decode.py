"""Tokens a second of the model in use, and the memory traffic that this means: `make bench`.

The answer is checked first: a warm cache must write what a cold one writes. Then a prefill and decode steps take
turns in one run, the best of several rounds. Times are this machine's; look at the load before you believe them.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import psutil
from treefill import _kernels
from treefill.app import App
from treefill.engine.api import CancelFlag, Engine, GenerateRequest
from treefill.models import ModelFiles
from treefill.settings import load_settings

PREFILL_TOKENS = 512
DECODE_TOKENS = 24
CODE = (
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + fibonacci(n - 2)\n\n\n"
)


@dataclass(frozen=True)
class Result:
    """What was measured, and on what."""

    model: str
    instruction_set: str
    threads: int
    machine: str
    load: float
    """Other work when it began: the system's one-minute load average."""
    weight_mb: float
    """Bytes of weights that one decode step reads."""
    decode_ms: float
    """One token."""
    decode_tokens_per_s: float
    prefill_tokens_per_s: float
    weight_gb_per_s: float
    """How fast the weights are read while decoding."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    app = App(load_settings().settings)
    load = psutil.getloadavg()[0]
    engine = app.open_engine()
    result = measure(app.store.open(engine.model), engine, options.rounds, load)
    engine.close()
    if options.json:
        print(json.dumps(asdict(result)))
        return
    threads = f"{result.instruction_set}, {result.threads} threads, load {result.load:.1f}"
    print(f"{result.model} on {result.machine}, {threads}")
    print(
        f"decode  {result.decode_tokens_per_s:6.1f} tokens/s ({result.decode_ms:.1f} ms a token, "
        f"{result.weight_mb:.0f} MB of weights each: {result.weight_gb_per_s:.1f} GB/s)"
    )
    print(f"prefill {result.prefill_tokens_per_s:6.1f} tokens/s ({PREFILL_TOKENS} tokens)")


def measure(files: ModelFiles, engine: Engine, rounds: int, load: float) -> Result:
    """Check, then time, best of `rounds`."""
    ids = tuple(engine.vocabulary.encode(CODE * 40))[:PREFILL_TOKENS]
    check_reuse(engine, ids[:100])
    read = (values for name, values in files.weights.items() if name.endswith((".weight.q", ".weight.scale")))
    weight_mb = sum(values.nbytes for values in read) / 1e6
    decode_ms = prefill_ms = float("inf")
    for _ in range(rounds):
        prefill_ms = min(prefill_ms, timed_ms(lambda: run(engine, ids, 1, reuse=False)))
        few = timed_ms(lambda: run(engine, ids[:64], 1, reuse=True))
        many = timed_ms(lambda: run(engine, ids[:64], 1 + DECODE_TOKENS, reuse=True))
        decode_ms = min(decode_ms, (many - few) / DECODE_TOKENS)
    return Result(
        model=files.name,
        instruction_set=_kernels.instruction_set(),
        threads=_kernels.threads(),
        machine=f"{platform.machine()} with {psutil.cpu_count()} cores",
        load=load,
        weight_mb=weight_mb,
        decode_ms=decode_ms,
        decode_tokens_per_s=1000 / decode_ms,
        prefill_tokens_per_s=PREFILL_TOKENS / prefill_ms * 1000,
        weight_gb_per_s=weight_mb / decode_ms,
    )


def check_reuse(engine: Engine, ids: tuple[int, ...]) -> None:
    """A wrong answer is not worth timing."""
    cold = run(engine, ids, 8, reuse=False)
    if run(engine, ids, 8, reuse=True) != cold:
        raise SystemExit("bench: a reused cache writes other tokens than a cold one; nothing was timed.")


def run(engine: Engine, ids: tuple[int, ...], n_new: int, *, reuse: bool) -> tuple[int, ...]:
    written = engine.generate(GenerateRequest(ids, max_new_tokens=n_new, reuse=reuse), CancelFlag()).token_ids
    if len(written) != n_new:
        raise SystemExit(
            f"bench: the model ended after {len(written)} of {n_new} tokens; nothing can be timed."
        )
    return written


def timed_ms(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
