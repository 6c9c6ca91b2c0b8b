"""What is said where Triton or a GPU is missing."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "gpu_masks.py"


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_the_kernels_are_tested_here() -> None:
    if find_spec("triton") is None:
        pytest.skip("No GPU kernel is tested, because Triton is missing; on Linux: pip install triton==3.7.1")

    import triton

    assert triton.knobs.runtime.interpret


def test_where_triton_is_missing_the_import_says_how_to_get_it() -> None:
    run = python("-c", "import sys; sys.modules['triton'] = None; import treefill.gpu")

    assert run.returncode == 1
    last = run.stderr.splitlines()[-1]
    assert last.startswith("ImportError: treefill.gpu needs Triton, which is not installed;")
    assert last.endswith("pip install triton==3.7.1")


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is missing: pip install triton==3.7.1")
def test_without_the_interpreter_tensors_of_the_cpu_are_refused() -> None:
    script = (
        "import torch; from treefill.gpu import apply_mask\n"
        "try: apply_mask(torch.zeros(1, 32), torch.zeros(1, 1, dtype=torch.int32), 32)\n"
        "except ValueError as error: print(error)"
    )
    run = python("-c", script, TRITON_INTERPRET="0")

    assert run.stdout == (
        "logits is on cpu, but Triton's kernels run on cuda; move it there, use treefill.gpu.reference, or set "
        "TRITON_INTERPRET=1 before Python starts.\n"
    )


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is missing: pip install triton==3.7.1")
def test_the_measurement_says_that_there_is_no_gpu() -> None:
    run = python(str(BENCH), TRITON_INTERPRET="0", CUDA_VISIBLE_DEVICES="")

    assert run.returncode == 1
    assert run.stderr.splitlines() == ["There is no CUDA device here, so nothing was measured."]
    assert run.stdout == ""
