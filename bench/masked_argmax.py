"""Microseconds that a greedy choice under a token mask takes: `python bench/masked_argmax.py`.

A row of logits as wide as the default model's vocabulary, and masks that allow some tokens of it, each by itself. Ours
reads the mask's words. The others write what is forbidden as minus infinity and look for the highest: xgrammar's
kernel for processors (`pip install xgrammar`, left out where it is missing) from the same words, torch's
`masked_fill_` and numpy's `where` from a flag a token, which is there already; and numpy's `take` reads what is
allowed by its ids, which are there as well.

The answers are checked first. Then all take turns of some calls on one thread, every other round in the opposite order,
each call over logits that were written just before, as a model writes them. Times are this machine's; look at the load
before you believe them.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from treefill import _kernels
from treefill.benchmarks.speed import processor_name

try:
    import xgrammar
except ImportError:
    xgrammar = None

V = 151_936
DENSITIES = [0.01, 0.5, 0.95, 1.0]
CALLS_A_TURN = 5
"""The first finds the caches as somebody else has left them."""

Choose = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of one way to choose, in microseconds but where a field says otherwise."""

    chooser: str
    """Which way."""
    density: float
    """The share of tokens that the mask allows."""
    p50_us: float
    """Half of the calls took no longer."""
    p90_us: float
    """Nine of ten took no longer."""
    load: float
    """Processes that wanted a core just before."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="turns that each takes")
    parser.add_argument("--json", action="store_true", help="print one JSON object a result")
    options = parser.parse_args()
    torch.set_num_threads(1)
    _kernels.set_threads(1)
    results = [result for density in DENSITIES for result in measure(density, options.rounds)]
    if options.json:
        print("\n".join(json.dumps(asdict(result)) for result in results))
        return
    loads = f"load {results[0].load:.1f} to {results[-1].load:.1f}"
    print(f"{processor_name()}, {_kernels.instruction_set()}, {loads}; p50 / p90 in microseconds")
    print(f"{'':22}" + "".join(f"{density:>18.0%}" for density in DENSITIES))
    for name in dict.fromkeys(result.chooser for result in results):
        times = [f"{r.p50_us:.1f} / {r.p90_us:.1f}" for r in results if r.chooser == name]
        print(f"{name:22}" + "".join(f"{time:>18}" for time in times))
    if xgrammar is None:
        print("xgrammar is not installed, and was left out.")


def measure(density: float, rounds: int) -> list[Result]:
    """Check, then time, in turns."""
    load = psutil.getloadavg()[0]
    random = np.random.default_rng(7)
    logits = (3 * random.normal(size=V)).astype(np.float32)
    allowed = random.random(V) < density
    written = np.empty_like(logits)
    choosers = choosers_over(written, allowed)
    times_us: dict[str, list[float]] = {name: [] for name in choosers}
    expected = int(np.where(allowed, logits, -np.inf).argmax())
    for name, choose in choosers.items():
        np.copyto(written, logits)
        check(name, choose(), expected)
    for number in range(rounds):
        for name in list(choosers) if number % 2 else reversed(choosers):
            for _ in range(CALLS_A_TURN):
                np.copyto(written, logits)
                times_us[name].append(timed_us(choosers[name]))
    return [
        Result(name, density, *(round(float(t), 1) for t in np.quantile(times, [0.5, 0.9])), round(load, 1))
        for name, times in times_us.items()
    ]


def choosers_over(logits: NDArray[np.float32], allowed: NDArray[np.bool_]) -> dict[str, Choose]:
    """Each with the mask in the form that it takes."""
    masks = np.packbits(allowed, bitorder="little").view(np.uint32)
    ids = np.flatnonzero(allowed)
    forbidden, tensor, words = (
        torch.from_numpy(~allowed),
        torch.from_numpy(logits),
        torch.from_numpy(masks.view(np.int32)),
    )

    def by_xgrammar() -> int:
        xgrammar.apply_token_bitmask_inplace(tensor, words)
        return int(tensor.argmax())

    choosers: dict[str, Choose] = {
        "masked_argmax": lambda: int(_kernels.masked_argmax(logits, masks)[0]),
        "xgrammar, torch argmax": by_xgrammar,
        "torch masked_fill_": lambda: int(tensor.masked_fill_(forbidden, -torch.inf).argmax()),
        "numpy where": lambda: int(np.where(allowed, logits, np.float32(-np.inf)).argmax()),
        "numpy take": lambda: int(ids[logits[ids].argmax()]),
    }
    if xgrammar is None:
        del choosers["xgrammar, torch argmax"]
    return choosers


def check(name: str, chosen: int, expected: int) -> None:
    """A wrong answer is not worth timing."""
    if chosen != expected:
        raise SystemExit(f"bench: {name} chose token {chosen} instead of {expected}; nothing was timed.")


def timed_us(choose: Choose) -> float:
    began = time.perf_counter_ns()
    choose()
    return (time.perf_counter_ns() - began) / 1000


if __name__ == "__main__":
    main()
