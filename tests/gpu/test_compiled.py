"""The kernels as the compiler makes them for GPUs that are not here: that it takes them, and what they need.

What the interpreter runs may not compile, and a launch is chosen by how many registers a thread is thought to take.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_kernel_compiles_and_takes_no_more_than_its_launch_was_chosen_for(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.gpu.compile_kernels"],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )

    assert run.returncode == 0, run.stderr
    told = [json.loads(line) for line in run.stdout.splitlines()]
    assert {each["kernel"] for each in told} == {
        "_apply_kernel",
        "_best_of_block_kernel",
        "_best_of_row_kernel",
        "_write_kernel",
    }
    for each in told:
        assert each["registers"] <= each["registers_foreseen"], each
        assert each["shared_bytes"] <= each["shared_bytes_foreseen"], each
        assert each["stack_bytes"] == 0, each  # nothing had to be put aside
    # A whole row is written 16 bytes at a time; where a mask decides, an element at a time.
    widths = {each["widest_store_bits"] for each in told if each["kernel"] == "_write_kernel"}
    assert widths == {128}
