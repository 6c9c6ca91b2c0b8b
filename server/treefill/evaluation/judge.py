"""Runs a problem's tests on a file, in a process of its own that cannot do much harm or take long.

Limits on time, memory and files, an own folder, no input or output, and an end of the whole process group:
they stop accidents of generated code, not an attacker. A file has passed when the child says so after the
last test, in a word that the tested code does not know; leaving early, printing or exiting with 0 proves
nothing.
"""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from treefill.evaluation.holes import Problem


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run of the tests may use."""

    cpu_s: int = 4
    wall_s: float = 10.0
    """Longer than the processor time, since the machine is decoding meanwhile."""
    memory_bytes: int = 1 << 30
    file_bytes: int = 1 << 20


DEFAULT_LIMITS = Limits()


def passes(problem: Problem, file: str, limits: Limits = DEFAULT_LIMITS) -> bool:
    """True where the problem's tests pass on `file`."""
    program = f"{file}\n{problem.test}\ncheck({problem.entry_point})\n"
    with tempfile.TemporaryDirectory(prefix="treefill-eval-") as folder:
        script = Path(folder, "program.py")
        script.write_text(program, encoding="utf-8", errors="surrogatepass")
        return _run(script, limits)


def _run(script: Path, limits: Limits) -> bool:
    word = secrets.token_bytes(16)
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as answer:
        try:
            process = _start(script, limits, word, write_end)
        finally:
            os.close(write_end)
        try:
            process.wait(limits.wall_s)
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end_group(process)
        os.set_blocking(answer.fileno(), False)  # a grandchild may still hold the other end
        return answer.read() == word


def _start(script: Path, limits: Limits, word: bytes, write_end: int) -> subprocess.Popen[bytes]:
    numbers = (limits.cpu_s, limits.memory_bytes, limits.file_bytes, write_end)
    return subprocess.Popen(
        # -S: nothing but the standard library, which also starts quicker.
        [sys.executable, "-I", "-S", "-c", _CHILD, str(script), word.hex(), *map(str, numbers)],
        cwd=script.parent,
        env={"PATH": os.defpath, "HOME": str(script.parent), "TMPDIR": str(script.parent)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(write_end,),
        start_new_session=True,
    )


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


_CHILD = """
import os, resource, sys

path, word, cpu_s, memory, file_bytes, write_end = sys.argv[1:]
word, write_end = bytes.fromhex(word), int(write_end)
sys.argv = [path]
for kind, bound in (
    (resource.RLIMIT_CPU, int(cpu_s)),
    (resource.RLIMIT_AS, int(memory)),
    (resource.RLIMIT_FSIZE, int(file_bytes)),
    (resource.RLIMIT_CORE, 0),
):
    resource.setrlimit(kind, (bound, bound))
os.nice(5)
parent = os.getpid()
with open(path, encoding="utf-8", errors="surrogatepass") as file:
    code = compile(file.read(), path, "exec")
exec(code, {"__name__": "__main__"})
if os.getpid() == parent:
    os.write(write_end, word)
os._exit(0)
"""
