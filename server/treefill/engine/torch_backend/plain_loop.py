"""transformers' model and cache in a plain loop, as a program that speaks lines: a peer of `treefill bench`.

The protocol is told in `benchmarks.driver`. The weights are the makers' in float32, as `reference` loads them.
`python -m treefill.engine.torch_backend.plain_loop MODEL [CACHE_DIR]`
"""

import sys
import time
from pathlib import Path
from typing import Any

import torch
from transformers import DynamicCache

from treefill.engine.torch_backend.reference import float_model
from treefill.errors import TreefillError
from treefill.models import ModelStore


class PlainLoop:
    """One model, one sequence."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._cached: list[int] = []
        self._cache = DynamicCache()
        self._last = 0

    def forget(self) -> None:
        """Empty the cache."""
        self._cached = []
        self._cache = DynamicCache()

    def prefill(self, ids: list[int]) -> list[int]:
        """Evaluate what is not cached; the likeliest token after it."""
        n_kept = 0
        while n_kept < min(len(ids) - 1, len(self._cached)) and ids[n_kept] == self._cached[n_kept]:
            n_kept += 1
        if n_kept < len(self._cached):
            self._cache.crop(n_kept - len(self._cached))  # how many to remove, as a negative number
            del self._cached[n_kept:]
        return [self._evaluate(ids[n_kept:])]

    def decode(self, n_tokens: int) -> list[int]:
        """So many tokens after the last one."""
        return [self._evaluate([self._last]) for _ in range(n_tokens)]

    def _evaluate(self, ids: list[int]) -> int:
        with torch.inference_mode():
            out = self._model(
                input_ids=torch.tensor([ids]), cache=self._cache, use_cache=True, logits_to_keep=1
            )
        self._cached += ids
        self._last = int(out.logits[0, -1].argmax())
        return self._last


def answer(loop: PlainLoop, line: str) -> list[int]:
    """Do what a line says."""
    verb, *rest = line.split()
    numbers = [int(word) for word in rest]
    if verb == "threads":
        torch.set_num_threads(numbers[0])
        return []
    if verb == "forget":
        loop.forget()
        return []
    return loop.prefill(numbers) if verb == "prefill" else loop.decode(numbers[0])


def main() -> None:
    """Load, say so, and answer lines until there are no more."""
    name, *folder = sys.argv[1:]
    try:
        store = ModelStore(Path(folder[0]) if folder else None)
        files = store.open(name)
        loop = PlainLoop(float_model(files, store.open_source(name)).model)
    except TreefillError as error:
        print(f"error {error}", flush=True)
        sys.exit(1)
    print(f"ready torch {torch.__version__} in float32", flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        ids = answer(loop, line)
        print("ok", (time.perf_counter() - began) * 1000, *ids, flush=True)


if __name__ == "__main__":
    main()
