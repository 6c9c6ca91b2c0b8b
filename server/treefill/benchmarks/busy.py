"""Processes that do nothing but want a core, as a compiler would. Each ends with the `with` block that started it."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

# It ends by itself should we be killed: its standard input is a pipe that we hold.
_PROGRAM = """
import sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), __import__("os")._exit(0)), daemon=True).start()
while True:
    pass
"""
_WARM_UP_S = 0.5


@contextlib.contextmanager
def busy_processes(n: int) -> Iterator[None]:
    """`n` of them, for as long as the block lasts."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(n):
            processes.append(subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE))
        if n:
            time.sleep(_WARM_UP_S)
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
            assert process.stdin
            process.stdin.close()
