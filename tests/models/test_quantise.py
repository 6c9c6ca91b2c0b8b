"""The int8 format: what each number means, and that nothing is lost but half a step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from treefill.models import dequantise_linear, quantise_linear


def random_matrix(n: int, k: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(0, 0.05, (n, k)).astype(np.float32)


def plain_twin(w: NDArray[np.float32], n: int, k64: int) -> tuple[list[int], np.float16]:
    """The format's definition for one group, in plain Python."""
    group = [float(v) for v in w[n, k64 * 64 : (k64 + 1) * 64]]
    group += [0.0] * (64 - len(group))
    scale = np.float16(np.float32(max(abs(v) for v in group)) / np.float32(127))
    if scale == 0:
        return [0] * 64, scale
    steps = [round(float(np.float32(v) / np.float32(scale))) for v in group]  # Python rounds halves to even
    return [max(-127, min(127, step)) for step in steps], scale


@pytest.mark.parametrize(("n", "k"), [(16, 64), (1, 1), (17, 65), (31, 100), (48, 896)])
def test_every_group_is_what_the_definition_says(n: int, k: int) -> None:
    w = random_matrix(n, k)

    linear = quantise_linear(w)

    assert linear.q.shape == (-(-n // 16), -(-k // 64), 16, 16, 4)
    for o in range(n):
        for g in range(-(-k // 64)):
            steps, scale = plain_twin(w, o, g)
            block = linear.q[o // 16, g, :, o % 16, :]
            assert [int(block[i // 4, i % 4]) for i in range(64)] == steps
            assert linear.scale[o // 16, g, o % 16] == scale
            assert linear.sum[o // 16, g, o % 16] == sum(steps)


@given(st.integers(1, 40), st.integers(1, 200), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_dequantised_values_are_within_half_a_step(n: int, k: int, seed: int) -> None:
    w = random_matrix(n, k, seed)

    linear = quantise_linear(w)
    back = dequantise_linear(linear)

    assert back.shape == w.shape
    step = np.repeat(linear.scale.transpose(0, 2, 1).reshape(-1, linear.scale.shape[1]), 64, axis=1)
    # A scale rounded to float16 is off by 2**-11 of itself or, where it is subnormal, by 2**-25; 127 steps
    # of it carry that to the largest values.
    bound = step[:n, :k].astype(np.float32) * (0.5 + 127 * 2**-11) + 127 * 2**-25
    assert (np.abs(back - w) <= bound).all()


def test_padding_beyond_the_true_shape_is_zero() -> None:
    linear = quantise_linear(np.ones((17, 65), np.float32))

    assert (linear.q[1, :, :, 1:, :] == 0).all()  # outputs 17 to 31
    assert (linear.scale[1, :, 1:] == 0).all()
    assert (linear.q[0, 1].transpose(1, 0, 2).reshape(16, 64)[:, 1:] == 0).all()  # inputs 65 to 127


def test_rows_of_zeros_have_no_scale_and_no_values() -> None:
    w = random_matrix(32, 64)
    w[3] = 0

    linear = quantise_linear(w)

    assert linear.scale[0, 0, 3] == 0
    assert (dequantise_linear(linear)[3] == 0).all()
    assert np.isfinite(dequantise_linear(linear)).all()


def test_no_value_is_minus_128_even_where_the_scale_is_subnormal() -> None:
    w = np.full((16, 64), -1.2e-6, np.float32)  # a 127th of it is a sixth of float16's smallest step
    w[1] = -5e-6

    linear = quantise_linear(w)

    assert linear.q.min() >= -127
    assert (linear.scale[0, 0, 0], linear.q[0, 0, 0, 0, 0]) == (0, 0)
    assert linear.q[0, 0, 0, 1, 0] == -84  # -5e-6 in steps of 2**-24


def test_the_result_does_not_depend_on_how_rows_are_cut_into_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    w = random_matrix(200, 130)
    whole = quantise_linear(w)
    monkeypatch.setattr("treefill.models.quantise._CHUNK_VALUES", 1)  # sixteen rows at a time

    assert (quantise_linear(w).q == whole.q).all()
