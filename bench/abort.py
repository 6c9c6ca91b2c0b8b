"""How soon a cancelled request stops, in the middle of a prompt or of an answer: `make abort`.

The answer is checked first: after every abort the same prompt must write what it writes on a fresh cache. Then requests
are cancelled at random moments, and the time until the engine is free again is taken. Look at the load before you
believe a time.
"""

import argparse
import json
import random
import threading
import time
from dataclasses import asdict, dataclass

import psutil
from treefill.app import App
from treefill.engine.api import CancelFlag, Engine, Finish, GenerateRequest
from treefill.settings import load_settings

PROMPT_TOKENS = 900
CODE = (
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + fibonacci(n - 2)\n\n\n"
)


@dataclass(frozen=True)
class Result:
    """Milliseconds from the flag to the engine's return."""

    stage: str
    n: int
    median_ms: float
    p99_ms: float
    max_ms: float
    load: float


def main() -> None:
    """Check, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="cancelled requests of each kind")
    options = parser.parse_args()
    engine = App(load_settings().settings).open_engine()
    prompt = tuple(engine.vocabulary.encode(CODE * 40)[:PROMPT_TOKENS])
    whole = engine.generate(GenerateRequest(prompt, max_new_tokens=32), CancelFlag())
    rng = random.Random(7)
    for stage, reuse, longest_ms in (("prefill", False, 0.8 * whole.ttft_ms), ("decode", True, 500.0)):
        load = psutil.getloadavg()[0]
        times = [aborted_ms(engine, prompt, reuse, rng.uniform(1, longest_ms)) for _ in range(options.rounds)]
        again = engine.generate(GenerateRequest(prompt, max_new_tokens=32), CancelFlag())
        assert again.token_ids == whole.token_ids, "an abort has changed what is written afterwards"
        print(json.dumps(asdict(summary(stage, sorted(ms for ms in times if ms is not None), load))))
    engine.close()


def aborted_ms(engine: Engine, prompt: tuple[int, ...], reuse: bool, delay_ms: float) -> float | None:
    """Cancel one request after `delay_ms`; None where it was done before that."""
    flag = CancelFlag()
    cancelled_at: list[float] = []

    def cancel() -> None:
        cancelled_at.append(time.perf_counter())
        flag.cancel()

    timer = threading.Timer(delay_ms / 1000, cancel)
    timer.start()
    generation = engine.generate(GenerateRequest(prompt, max_new_tokens=400, reuse=reuse), flag)
    ended_at = time.perf_counter()
    timer.cancel()
    timer.join()
    return 1000 * (ended_at - cancelled_at[0]) if generation.finish is Finish.CANCELLED else None


def summary(stage: str, times: list[float], load: float) -> Result:
    """One line of the report."""
    at_99 = times[min(len(times) - 1, int(0.99 * len(times)))]
    return Result(
        stage,
        len(times),
        round(times[len(times) // 2], 1),
        round(at_99, 1),
        round(times[-1], 1),
        round(load, 1),
    )


if __name__ == "__main__":
    main()
