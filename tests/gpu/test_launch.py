"""Which launches are chosen for which devices."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from treefill.gpu.apply_mask import APPLY, ARGMAX
from treefill.gpu.attention_masks import WRITE
from treefill.gpu.launch import (
    INTERPRETER,
    Device,
    Kernel,
    choose_launch,
    device_from_properties,
    device_of,
    launch_on,
    resident_blocks,
)


def properties(
    name: str, capability: tuple[int, int], n: int, threads: int, shared_kb: int
) -> SimpleNamespace:
    """What torch tells of a device, as its makers' tables have it."""
    return SimpleNamespace(
        name=name,
        major=capability[0],
        minor=capability[1],
        multi_processor_count=n,
        max_threads_per_multi_processor=threads,
        regs_per_multiprocessor=65536,
        shared_memory_per_multiprocessor=shared_kb * 1024,
        warp_size=32,
    )


A100 = device_from_properties(properties("NVIDIA A100-SXM4-80GB", (8, 0), 108, 2048, 164))
H200 = device_from_properties(properties("NVIDIA H200", (9, 0), 132, 2048, 228))
LAPTOP = device_from_properties(properties("NVIDIA GeForce RTX 3060 Laptop GPU", (8, 6), 30, 1536, 100))
GPUS = [A100, H200, LAPTOP]
DEVICES = [*GPUS, INTERPRETER]
KERNELS = [APPLY, ARGMAX, WRITE]


@pytest.mark.parametrize(
    ("device", "n_rows", "block", "n_warps"),
    [
        (A100, 1, 1024, 32),
        (A100, 64, 8192, 32),
        (H200, 1, 1024, 32),
        (H200, 64, 8192, 32),
        # 1,536 threads hold one block of 1,024 and waste the rest, or three of 512.
        (LAPTOP, 1, 1024, 16),
        (LAPTOP, 64, 4096, 16),
        (INTERPRETER, 64, 262144, 32),
    ],
    ids=str,
)
def test_a_vocabulary_of_151936(device: Device, n_rows: int, block: int, n_warps: int) -> None:
    launch = choose_launch(device, APPLY, n_rows, 151_936, 2)

    assert (launch.block, launch.n_warps) == (block, n_warps)
    assert launch.n_blocks == n_rows * math.ceil(151_936 / block)


@pytest.mark.parametrize("device", GPUS, ids=lambda device: device.name)
@pytest.mark.parametrize("kernel", KERNELS, ids=["apply", "argmax", "write"])
def test_many_rows_fill_every_thread(device: Device, kernel: Kernel) -> None:
    launch = choose_launch(device, kernel, 512, 151_936, 2)

    assert (
        resident_blocks(device, kernel, launch.n_warps, launch.block) * launch.n_warps * 32 == device.threads
    )


@pytest.mark.parametrize("device", GPUS, ids=lambda device: device.name)
@pytest.mark.parametrize("kernel", KERNELS, ids=["apply", "argmax", "write"])
@pytest.mark.parametrize("element_bytes", [2, 4])
def test_one_row_gives_every_multiprocessor_a_block(
    device: Device, kernel: Kernel, element_bytes: int
) -> None:
    assert choose_launch(device, kernel, 1, 151_936, element_bytes).n_blocks >= device.n_multiprocessors


@given(
    device=st.sampled_from(DEVICES),
    kernel=st.sampled_from(KERNELS),
    n_rows=st.integers(1, 5000),
    row_length=st.integers(1, 300_000),
    element_bytes=st.sampled_from([2, 4]),
)
def test_every_launch_fits_its_device_and_covers_its_rows(
    device: Device, kernel: Kernel, n_rows: int, row_length: int, element_bytes: int
) -> None:
    launch = choose_launch(device, kernel, n_rows, row_length, element_bytes)

    assert resident_blocks(device, kernel, launch.n_warps, launch.block) >= 1
    assert launch.n_blocks == n_rows * math.ceil(row_length / launch.block)
    assert launch.block & (launch.block - 1) == 0
    assert launch.block % launch.step == 0
    assert launch.step % (32 * launch.n_warps) == 0
    # No block is twice what a row needs, but where that is less than one warp's reach.
    assert launch.block < 2 * row_length or launch.n_warps == 1


def test_what_limits_residence() -> None:
    plain = Kernel(registers_beside_elements=24, registers_per_element=1)

    assert resident_blocks(H200, plain, n_warps=32, block=1024) == 2  # threads
    assert resident_blocks(H200, plain, n_warps=1, block=32) == 32  # blocks
    assert resident_blocks(LAPTOP, plain, n_warps=1, block=32) == 16
    hungry = Kernel(registers_beside_elements=120, registers_per_element=1)
    assert resident_blocks(H200, hungry, n_warps=8, block=8 * 32 * 8) == 2  # registers: 128 a thread
    spread = Kernel(registers_beside_elements=24, registers_per_element=1, shared_bytes_per_warp=8 << 10)
    assert resident_blocks(H200, spread, n_warps=8, block=256) == 3  # shared memory: 65 kB a block
    assert (
        resident_blocks(H200, hungry, n_warps=1, block=32 * 200) == 0
    )  # more registers than a thread may have


def test_a_torch_that_does_not_tell_registers_is_taken_to_have_the_usual() -> None:
    told = properties("NVIDIA H200", (9, 0), 132, 2048, 228)
    del told.regs_per_multiprocessor

    assert device_from_properties(told) == H200


def test_an_unknown_capability_has_the_fewest_blocks() -> None:
    assert device_from_properties(properties("unknown", (99, 0), 1, 2048, 100)).blocks == 16


def test_tensors_of_the_cpu_run_on_the_interpreter() -> None:
    cpu = torch.device("cpu")

    assert device_of(cpu) is INTERPRETER
    assert launch_on(cpu, APPLY, 3, 1000, 4) == choose_launch(INTERPRETER, APPLY, 3, 1000, 4)
