"""Feed hostile texts to the acceptor, the matcher and the skeleton: `make syntax-fuzz`, `make syntax-sanitized`.

A language is a process of its own, as many at a time as there are cores, so that a text that ends one is known: each
case is written down before it is tried. What fails is made shorter, in child processes, and kept in `build/fuzz`, where
`--replay FILE` takes it from. `checks.py` says what must hold, `texts.py` what is tried.

Under sanitizers (`--module`) another build of the kernels is loaded. What it allocates is counted there to the byte:
the same work done again and again must leave no more behind.
"""

import argparse
import contextlib
import ctypes
import faulthandler
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checks import Case, Checks

LANGUAGES = ("python", "cpp", "c", "json", "javascript", "typescript", "typescriptreact", "sql")
FOLDER = Path(__file__).resolve().parents[2] / "build" / "fuzz"
STUCK_S = 60
"""A case that takes longer ends its process."""
MAX_GROWTH_MB = 400
"""Of a process, from its first minute's beginning to its end; what sanitizers keep of freed memory is not counted."""
MAX_SHRINK_S = 60
N_LEAK_CASES = 60
MAX_LEAK_BYTES = 4_096
"""Python's own objects come and go."""
ASAN_OPTIONS = "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0"


def main() -> int:
    """0 where nothing failed."""
    options = _arguments()
    if options.worker:
        return _work(options)
    if options.replay:
        return _replay(options)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(
            pool.map(lambda language: _supervise(language, options), options.language or LANGUAGES)
        )
    return 0 if all(outcomes) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    listed = ", ".join(LANGUAGES)
    parser.add_argument("--language", action="append", help=f"any with a grammar (default: {listed})")
    parser.add_argument("--seconds", type=float, default=20, help="for each language (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="other texts (default: 0)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="languages at a time (default: one a core)"
    )
    parser.add_argument(
        "--slowness", type=float, default=1, help="a call may take so many times as long (default: 1)"
    )
    parser.add_argument(
        "--module", type=Path, help="folder of the kernels' build to load, one with AddressSanitizer"
    )
    parser.add_argument("--replay", type=Path, help="try a case again that was kept")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _supervise(language: str, options: argparse.Namespace) -> bool:
    """Run one language's process; True where it came to a good end."""
    current = FOLDER / f"{language}.current"
    current.unlink(missing_ok=True)
    done = _run(language, options)
    sys.stdout.write(done.stdout)
    if done.returncode:
        failed = FOLDER / f"{language}-{options.seed}.case"
        if current.exists() and done.returncode != 2:
            current.replace(failed)
            died = (
                signal.Signals(-done.returncode).name if done.returncode < 0 else f"status {done.returncode}"
            )
            print(f"{language}: the process ended ({died})\n{done.stderr[-6_000:]}", flush=True)
            print(_run(language, options, "--replay", str(failed)).stdout[-2_000:])
        else:
            print(done.stderr[-6_000:])
    sys.stdout.flush()
    return done.returncode == 0


def _run(language: str, options: argparse.Namespace, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, __file__.removesuffix("__main__.py"), "--language", language, *more]
    command += [
        "--seconds",
        str(options.seconds),
        "--seed",
        str(options.seed),
        "--slowness",
        str(options.slowness),
    ]
    environment = dict(os.environ)
    if options.module:
        command += ["--module", str(options.module)]
        # The second one's exceptions are watched by the first only where it is there from the beginning.
        preloaded = " ".join(map(_library, ("libasan.so", "libstdc++.so.6")))
        environment |= {
            "LD_PRELOAD": preloaded,
            "ASAN_OPTIONS": ASAN_OPTIONS,
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
    command += [] if more else ["--worker"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", check=False
    )


def _library(name: str) -> str:
    """Where the compiler has it."""
    found = subprocess.run(("g++", f"-print-file-name={name}"), check=True, capture_output=True, text=True)
    return found.stdout.strip()


def _work(options: argparse.Namespace) -> int:
    """One language, in this process: the fixed cases, then others until the time is up."""
    checks = _checks(options)
    current = os.open(FOLDER / f"{options.language[0]}.current", os.O_RDWR | os.O_CREAT)
    began_mb = 0.0
    for case in _cases(checks, options.seconds):
        _write(current, checks.language.id, case)
        if why := _why_wrong(checks, case):
            return _report(checks, case, why, options)
        began_mb = began_mb or _resident_mb()
    faulthandler.cancel_dump_traceback_later()
    grown_mb = _resident_mb() - began_mb
    growth = "not counted" if options.module else f"{grown_mb:.0f} MB more at the end"
    print(f"{options.language[0]}: {_listed(checks)}; memory {growth}", flush=True)
    for seconds, call, slow in checks.slowest:
        beginning = slow.text[:40]
        print(
            f"    {call} {seconds * 1000:.0f} ms ({slow.check}, {len(slow.text):,} bytes, {beginning!r}…)",
            flush=True,
        )
    if options.module:
        return _count_leaks(checks)
    if grown_mb > MAX_GROWTH_MB:
        print(f"{options.language[0]}: memory has grown by {grown_mb:.0f} MB", flush=True)
        return 2
    return 0


def _cases(checks: "Checks", seconds: float) -> "Iterator[Case]":
    yield from checks.fixed_cases()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield checks.random_case()


def _why_wrong(checks: "Checks", case: "Case") -> str:
    """What the case shows to be wrong; empty where nothing is. Where it takes for ever, the process ends."""
    faulthandler.dump_traceback_later(STUCK_S * checks.slowness, exit=True)
    try:
        checks.check(case)
    except MemoryError:
        return "no memory"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _report(checks: "Checks", case: "Case", why: str, options: argparse.Namespace) -> int:
    faulthandler.cancel_dump_traceback_later()
    shorter = _shrunk(checks, case, why)
    path = FOLDER / f"{options.language[0]}-{options.seed}.case"
    with path.open("wb") as file:
        _write(file.fileno(), checks.language.id, shorter)
    print(
        f"{options.language[0]}: {case.check}: {why}\n    {len(case.text):,} bytes, {len(shorter.text):,} in {path}"
    )
    print(f"    {shorter.text[:300]!r}\n    after {_listed(checks)}", flush=True)
    return 2


def _replay(options: argparse.Namespace) -> int:
    """Try a kept case, each time in a child; where it still fails, keep it shorter."""
    head, _, text = options.replay.read_bytes().partition(b"\n")
    told = json.loads(head)
    options.language = options.language or [told["language"]]
    from checks import Case

    checks = _checks(options)
    case = Case(told["check"], told["seed"], text[: told["length"]])
    why = _why_wrong_in_child(checks, case)
    if not why:
        print(f"{options.replay} fails no more.")
        return 0
    shorter = _shrunk(checks, case, why)
    with options.replay.open("wb") as file:
        _write(file.fileno(), checks.language.id, shorter)
    print(f"{case.check}: {why}\n    {len(shorter.text):,} bytes: {shorter.text[:300]!r}")
    return 1


def _shrunk(checks: "Checks", case: "Case", why: str) -> "Case":
    """A shorter case that fails in the same way: pieces are left out, larger ones first."""
    from checks import Case

    kind = _kind(why)
    deadline = time.monotonic() + MAX_SHRINK_S
    text = case.text
    size = max(1, len(text) // 2)
    while size:
        start = 0
        while start < len(text) and time.monotonic() < deadline:
            rest = text[:start] + text[start + size :]
            if _kind(_why_wrong_in_child(checks, Case(case.check, case.seed, rest))) == kind:
                text = rest
            else:
                start += size
        size //= 2
    return Case(case.check, case.seed, text)


def _kind(why: str) -> str:
    """What stays the same when a text gets shorter."""
    return "".join(character for character in why.partition(" at ")[0] if not character.isdigit())


def _why_wrong_in_child(checks: "Checks", case: "Case") -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.write(writer, _why_wrong(checks, case).encode(errors="replace")[:4_000])
            os._exit(0)
        os._exit(3)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        why = answer.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return why or ("" if status == 0 else f"the process ended with status {status:#x}")


def _count_leaks(checks: "Checks") -> int:
    """The same cases three times over: the third leaves what the second left."""
    allocated_bytes = ctypes.CDLL(None).__sanitizer_get_current_allocated_bytes
    allocated_bytes.restype = ctypes.c_size_t
    cases = [case for case in (checks.random_case() for _ in range(N_LEAK_CASES)) if len(case.text) < 10_000]
    counts = []
    for _ in range(4):
        for case in cases:
            if why := _why_wrong(checks, case):
                print(f"{checks.language.id}: {case.check}: {why}", flush=True)
                return 2
        faulthandler.cancel_dump_traceback_later()
        checks.forget()
        gc.collect()
        counts.append(allocated_bytes())
    n_leaked = counts[3] - counts[2]
    print(f"    {len(cases)} cases again leave {n_leaked:,} bytes", flush=True)
    return 2 if n_leaked > MAX_LEAK_BYTES else 0


def _checks(options: argparse.Namespace) -> "Checks":
    if options.module:
        _load_kernels(options.module)
    from checks import Checks

    return Checks(options.language[0], options.seed, options.slowness)


def _load_kernels(folder: Path) -> None:
    """That build takes the place of the installed one."""
    path = next(folder.glob("_kernels.*.so"))
    loader = ExtensionFileLoader("treefill._kernels", str(path))
    spec = spec_from_loader("treefill._kernels", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    sys.modules["treefill._kernels"] = module


def _write(file: int, language: str, case: "Case") -> None:
    head = {"language": language, "check": case.check, "seed": case.seed, "length": len(case.text)}
    os.pwrite(file, json.dumps(head).encode() + b"\n" + case.text, 0)


def _listed(checks: "Checks") -> str:
    return ", ".join(f"{n:,} {what}" for what, n in sorted(checks.n.items(), key=lambda pair: -pair[1]))


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    sys.exit(main())
