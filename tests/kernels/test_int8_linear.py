"""The int8 product against a plain twin, and every instruction set against every other, to the bit."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from treefill import _kernels

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Matrix:
    q: NDArray[np.int8]  # [N, K], padded to multiples of 16 and 64
    scale: NDArray[np.float16]  # [N, K/64]
    bias: Floats | None
    n_inputs: int
    n_outputs: int

    def native(self) -> _kernels.Int8Linear:
        n_blocks, n_groups = self.q.shape[0] // 16, self.q.shape[1] // 64
        blocks = self.q.reshape(n_blocks, 16, n_groups, 16, 4).transpose(0, 2, 3, 1, 4)
        scale = self.scale.reshape(n_blocks, 16, n_groups).transpose(0, 2, 1)
        return _kernels.Int8Linear(
            np.ascontiguousarray(blocks),
            np.ascontiguousarray(scale).view(np.uint16),
            np.ascontiguousarray(blocks.sum(axis=(2, 4), dtype=np.int16)),
            self.bias,
            self.n_inputs,
            self.n_outputs,
        )


def a_matrix(n_outputs: int, n_inputs: int, *, bias: bool = True, seed: int = 0) -> Matrix:
    random = np.random.default_rng(seed)
    rows, columns = -(-n_outputs // 16) * 16, -(-n_inputs // 64) * 64
    q = random.integers(-127, 128, (rows, columns), dtype=np.int8)
    scale = random.uniform(0, 0.01, (rows, columns // 64)).astype(np.float16)
    scale[random.random(scale.shape) < 0.05] = np.float16(3e-7)  # a subnormal float16
    b = random.normal(size=n_outputs).astype(np.float32) if bias else None
    return Matrix(q, scale, b, n_inputs, n_outputs)


def forward(matrix: Matrix, x: Floats) -> Floats:
    y = np.full((len(x), matrix.n_outputs), np.nan, np.float32)
    matrix.native().forward(x.ctypes.data, len(x), y.ctypes.data)
    return y


def twin(matrix: Matrix, x: Floats) -> Floats:
    """What the kernel means, one group after the other."""
    padded = np.zeros((len(x), matrix.q.shape[1]), np.float32)
    padded[:, : matrix.n_inputs] = x
    acc = np.zeros((len(x), len(matrix.q)), np.float32)
    for group in range(matrix.q.shape[1] // 64):
        part = padded[:, group * 64 : group * 64 + 64]
        absmax = np.abs(part).max(axis=1, keepdims=True)
        inverse = np.divide(np.float32(127), absmax, out=np.zeros_like(absmax), where=absmax > 0)
        x_q = np.rint(part * inverse).astype(np.int32)
        dot = x_q @ matrix.q[:, group * 64 : group * 64 + 64].astype(np.int32).T
        both = matrix.scale[:, group].astype(np.float32) * (absmax / np.float32(127))
        acc = (dot.astype(np.float64) * both + acc).astype(
            np.float32
        )  # float64 stands in for a fused multiply-add
    y = acc[:, : matrix.n_outputs]
    return y if matrix.bias is None else y + matrix.bias


@pytest.fixture(params=_kernels.instruction_sets())
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    _kernels.use_instruction_set(request.param)
    yield request.param
    _kernels.use_instruction_set("")


@pytest.fixture
def default_threads() -> Iterator[None]:
    yield
    _kernels.set_threads(0)


@pytest.mark.parametrize("n_rows", [0, 1, 2, 3, 4, 5, 8, 17, 33])
@pytest.mark.parametrize(("n_outputs", "n_inputs"), [(16, 64), (1, 1), (17, 65), (77, 200), (128, 896)])
def test_agrees_with_the_twin(instruction_set: str, n_rows: int, n_outputs: int, n_inputs: int) -> None:
    matrix = a_matrix(n_outputs, n_inputs)
    x = np.random.default_rng(1).normal(size=(n_rows, n_inputs)).astype(np.float32)

    np.testing.assert_allclose(forward(matrix, x), twin(matrix, x), rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("default_threads")
@settings(max_examples=40, deadline=None)
@given(
    n_outputs=st.integers(1, 200),
    n_inputs=st.integers(1, 300),
    n_rows=st.integers(1, 20),
    bias=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_instruction_set_row_count_and_thread_count_gives_the_same_bits(
    n_outputs: int, n_inputs: int, n_rows: int, bias: bool, seed: int
) -> None:
    matrix = a_matrix(n_outputs, n_inputs, bias=bias, seed=seed)
    x = np.random.default_rng(seed).normal(size=(n_rows, n_inputs)).astype(np.float32)
    x[:, :: max(1, n_inputs // 3)] *= 50  # outliers, as real activations have them

    results = []
    for name in _kernels.instruction_sets():
        _kernels.use_instruction_set(name)
        for n_threads in (1, 3):
            _kernels.set_threads(n_threads)
            results.append(forward(matrix, x).tobytes())
            results.append(b"".join(forward(matrix, row[None]).tobytes() for row in x))
    _kernels.use_instruction_set("")

    assert len(set(results)) == 1


def test_extreme_weights_and_activations_do_not_saturate(instruction_set: str) -> None:
    """Every product is ±127 · 127 and all of a sign: what a 16-bit sum of two products must hold."""
    for sign in (1, -1):
        matrix = Matrix(np.full((16, 64), 127 * sign, np.int8), np.ones((16, 1), np.float16), None, 64, 16)

        assert forward(matrix, np.full((1, 64), 5.0, np.float32)).ravel() == pytest.approx(
            64 * 127 * 5 * sign
        )


def test_zero_not_a_number_and_infinite_activations_spoil_no_other_row() -> None:
    matrix = a_matrix(20, 128, bias=False)
    x = np.zeros((4, 128), np.float32)
    x[1, 3] = np.nan
    x[2, 3] = np.inf
    x[3] = np.linspace(-1, 1, 128)
    alone = forward(matrix, x[3:])

    results = []
    for name in _kernels.instruction_sets():
        _kernels.use_instruction_set(name)
        results.append(forward(matrix, x))
    _kernels.use_instruction_set("")

    for result in results:
        assert not result[0].any()
        assert result[3].tobytes() == alone.tobytes()
        np.testing.assert_array_equal(result[1:3], results[0][1:3])


def test_many_threads_may_call_at_once() -> None:
    matrix = a_matrix(300, 896)
    x = np.random.default_rng(2).normal(size=(3, 896)).astype(np.float32)
    expected = forward(matrix, x).tobytes()
    answers: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: answers.extend(forward(matrix, x).tobytes() for _ in range(20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(answers) == {expected}
    assert len(answers) == 80


def test_shapes_that_do_not_belong_together_are_refused() -> None:
    native = a_matrix(32, 128)
    good = [
        native.q.reshape(2, 16, 2, 16, 4).transpose(0, 2, 3, 1, 4).copy(),
        np.zeros((2, 2, 16), np.uint16),
        np.zeros((2, 2, 16), np.int16),
        None,
        128,
        32,
    ]
    _kernels.Int8Linear(*good)
    for index, value in [
        (1, np.zeros((2, 1, 16), np.uint16)),
        (2, np.zeros((1, 2, 16), np.int16)),
        (3, np.zeros(31, np.float32)),
        (4, 129),
        (5, 33),
        (4, 0),
    ]:
        bad = list(good)
        bad[index] = value
        with pytest.raises(ValueError, match=r"expected|at least"):
            _kernels.Int8Linear(*bad)


def test_arrays_of_another_type_or_order_are_refused_not_converted() -> None:
    """A silent copy would cost the memory that mapping saves, and float16 scales cast to integers are all zero."""
    q = np.zeros((2, 2, 16, 16, 4), np.int8)
    scale, sums = np.zeros((2, 2, 16), np.uint16), np.zeros((2, 2, 16), np.int16)
    _kernels.Int8Linear(q, scale, sums, None, 128, 32)
    for bad in (
        (q.astype(np.float32), scale, sums),
        (np.asfortranarray(q), scale, sums),
        (q, scale.view(np.float16), sums),
        (q, scale, sums.astype(np.int32)),
    ):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            _kernels.Int8Linear(*bad, None, 128, 32)  # type: ignore[arg-type]


def test_an_unknown_instruction_set_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"'sse9' is not available here; this machine runs: .*scalar"):
        _kernels.use_instruction_set("sse9")


def test_the_environment_forces_an_instruction_set() -> None:
    script = "from treefill import _kernels; print(_kernels.instruction_set())"
    run = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"TREEFILL_ISA": "scalar"},
        capture_output=True,
        text=True,
    )

    assert run.stdout.strip() == "scalar"


def test_a_forked_child_multiplies_and_ends_as_its_parent_does() -> None:
    """The child has none of the parent's threads; waiting for them would take for ever."""
    script = (
        "import os, sys, numpy as np\n"
        "from treefill import _kernels as k\n"
        "linear = k.Int8Linear(np.ones((64, 2, 16, 16, 4), np.int8), np.full((64, 2, 16), 0x3C00, np.uint16),\n"
        "                      np.full((64, 2, 16), 64, np.int16), None, 128, 1024)\n"
        "x, y = np.ones((300, 128), np.float32), np.zeros((300, 1024), np.float32)\n"
        "k.set_threads(3); linear.forward(x.ctypes.data, 300, y.ctypes.data)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    linear.forward(x.ctypes.data, 300, y.ctypes.data); k.set_threads(2)\n"
        "    sys.exit(0 if abs(y[0, 0] - 128) < 1e-3 else 3)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    run = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)

    assert run.returncode == 0
