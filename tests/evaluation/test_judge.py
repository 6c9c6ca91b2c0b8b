"""The tests of a problem decide, whatever the file does: loop, grow, fork, leave early or claim success."""

import os
import time
from pathlib import Path

import pytest
from treefill.evaluation.judge import Limits, passes

from tests.evaluation.problems import ONE_LINE

QUICK = Limits(cpu_s=1, wall_s=3.0)


def verdict(body: str, limits: Limits = QUICK) -> bool:
    """Judge the function `double` with another body."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return passes(ONE_LINE, f"def double(n):\n{lines}", limits)


def test_a_right_file_passes() -> None:
    assert passes(ONE_LINE, ONE_LINE.file)


@pytest.mark.parametrize(
    "body",
    [
        "return 3 * n",
        "return (",
        "raise ValueError",
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "print('passed'); import sys; sys.stdout.flush(); sys.exit()",
        "import os\nfor end in range(3, 30):\n"
        "    try: os.write(end, b'passed')\n    except OSError: pass\nos._exit(0)",
        "return input()",
        "import os; os.kill(os.getpid(), 9)",
    ],
)
def test_a_file_that_does_not_reach_the_end_of_its_tests_fails(body: str) -> None:
    assert not verdict(body)


def test_a_file_that_prints_a_lot_and_is_right_passes() -> None:
    assert verdict("print('x' * 1_000_000)\nreturn 2 * n")


def test_an_infinite_loop_ends_with_its_processor_time() -> None:
    started = time.perf_counter()

    assert not verdict("while True: pass")
    assert time.perf_counter() - started < 8


def test_a_file_that_sleeps_ends_with_the_clock() -> None:
    assert not verdict("import time; time.sleep(60)", Limits(wall_s=0.5))


def test_a_file_cannot_take_all_memory() -> None:
    assert not verdict("return 2 * n + 0 * len(bytearray(900_000_000))", Limits(memory_bytes=300_000_000))


def test_a_file_cannot_fill_the_disk() -> None:
    assert not verdict("open('big', 'wb').write(bytes(50_000_000))\nreturn 2 * n")


def test_what_a_file_leaves_running_is_ended(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    body = (
        "import os, time\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    time.sleep(60)\n"
        f"open({str(mark)!r}, 'w').write(str(child))\n"
        "return 2 * n"
    )

    assert verdict(body)
    assert _has_ended(int(mark.read_text()))


def test_a_fork_that_says_passed_in_the_childs_place_is_not_believed() -> None:
    """The child finishes the tests happily; the parent, whose word counts, fails."""
    assert not verdict("import os, time\nif os.fork() == 0: return 2 * n\ntime.sleep(0.3)\nraise ValueError")


def test_a_file_runs_in_a_folder_of_its_own() -> None:
    before = sorted(os.listdir())

    assert verdict("open('left.txt', 'w').write('x')\nreturn 2 * n")
    assert sorted(os.listdir()) == before


def _has_ended(pid: int) -> bool:
    for _ in range(50):
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            return True
        if status.rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False
