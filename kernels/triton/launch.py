"""How large a kernel's blocks are and how many warps work on one: a pure function of what the device is.

These kernels do next to no arithmetic, so what counts is that enough reads and writes are under way at once: that every
multiprocessor has a block, and as many threads as fit. Among the launches that keep the most threads at work, the
largest block wins, since what a block does once (finding its row, its mask) is then done seldom.

Example, `apply_mask` on an H200, 132 multiprocessors of 2,048 threads each. One row of 151,936 logits is cut into 149
blocks of 1,024, a thread a logit; twice as large, they would leave 57 multiprocessors without one. Of 64 rows there
is enough for everybody, so a block is 8,192 logits for 1,024 threads, of which two are on a multiprocessor at once.
"""

import functools
import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

_WARPS = (1, 2, 4, 8, 16, 32)
_STEPS = (1, 2, 4, 8)
"""How often a thread reads or writes, all of them under way at once."""
_REGISTERS_ARE_GIVEN_BY = 8
_SHARED_BYTES_OF_THE_SYSTEM = 1024
"""CUDA keeps so much of a block's shared memory for itself, from compute capability 8.0 on."""


@dataclass(frozen=True, slots=True)
class Device:
    """What of a GPU the choice depends on."""

    name: str
    n_multiprocessors: int
    threads: int
    """Most threads that are resident on one multiprocessor."""
    blocks: int
    """Most blocks that are resident on one multiprocessor."""
    registers: int
    """32-bit registers of one multiprocessor."""
    shared_bytes: int
    """Shared memory of one multiprocessor."""
    registers_of_thread: int = 255
    """Most that one thread may have."""
    warp_size: int = 32


INTERPRETER = Device(
    "Triton's interpreter",
    n_multiprocessors=1,
    threads=1 << 16,
    blocks=1,
    registers=1 << 22,
    shared_bytes=1 << 20,
    warp_size=1 << 11,
)
"""Runs one block after the other in numpy, where a small array costs as much as a large one: so warps are very wide."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one thread needs: at least what the compiler takes, which a test holds it to."""

    registers_beside_elements: int
    """Addresses, bounds and counters."""
    registers_per_element: float
    bytes_at_once: int = 0
    """How wide a thread's read or write is; 0: one element."""
    shared_bytes_per_warp: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is started over rows that are cut into blocks."""

    block: int
    """Elements of one block, a power of two."""
    step: int
    """Elements that its threads read or write at once; a block is 1, 2, 4 or 8 of them."""
    n_warps: int
    n_blocks: int
    """Of all rows together: one program each."""


def choose_launch(device: Device, kernel: Kernel, n_rows: int, row_length: int, element_bytes: int) -> Launch:
    """Blocks and warps for `n_rows` rows of `row_length` elements (at least one each) of `element_bytes` bytes."""
    at_once = max(1, kernel.bytes_at_once // element_bytes)
    longest = _power_of_two_from(row_length)

    def rank(choice: tuple[int, int]) -> tuple[int, int, int, int]:
        n_warps, block = choice
        n_blocks = n_rows * math.ceil(row_length / block)
        n_at_once = min(n_blocks, device.n_multiprocessors * resident_blocks(device, kernel, n_warps, block))
        return min(n_at_once, device.n_multiprocessors), n_at_once * n_warps, block, -n_warps

    warp = device.warp_size * at_once
    choices = [(n_warps, n_warps * warp * n_steps) for n_warps, n_steps in product(_WARPS, _STEPS)]
    # No warp without work; a row that is shorter than the first one's reach has just that one.
    n_warps, block = max(
        ((n_warps, block) for n_warps, block in choices if block <= max(warp, longest)), key=rank
    )
    return Launch(block, n_warps * warp, n_warps, n_rows * math.ceil(row_length / block))


def resident_blocks(device: Device, kernel: Kernel, n_warps: int, block: int) -> int:
    """How many blocks of so many warps and elements are on one multiprocessor at once; 0: not even one fits."""
    n_threads = n_warps * device.warp_size
    n_registers = registers_per_thread(kernel, math.ceil(block / n_threads))
    if n_registers > device.registers_of_thread:
        return 0
    return min(
        device.threads // n_threads,
        device.blocks,
        device.registers // (n_registers * n_threads),
        device.shared_bytes // (_SHARED_BYTES_OF_THE_SYSTEM + kernel.shared_bytes_per_warp * n_warps),
    )


def registers_per_thread(kernel: Kernel, n_elements: int) -> int:
    """How many a thread with so many elements is given."""
    needed = kernel.registers_beside_elements + kernel.registers_per_element * n_elements
    return math.ceil(needed / _REGISTERS_ARE_GIVEN_BY) * _REGISTERS_ARE_GIVEN_BY


def device_from_properties(properties: Any) -> Device:
    """What `torch.cuda.get_device_properties` tells, and what its compute capability implies."""
    return Device(
        name=properties.name,
        n_multiprocessors=properties.multi_processor_count,
        threads=properties.max_threads_per_multi_processor,
        blocks=_RESIDENT_BLOCKS.get((properties.major, properties.minor), 16),
        # Not every release of torch tells; every NVIDIA device that Triton knows has as many.
        registers=getattr(properties, "regs_per_multiprocessor", 1 << 16),
        shared_bytes=properties.shared_memory_per_multiprocessor,
        warp_size=properties.warp_size,
    )


_RESIDENT_BLOCKS = {(8, 0): 32, (8, 9): 24, (9, 0): 32, (10, 0): 32, (10, 3): 32, (12, 0): 24, (12, 1): 24}
"""By compute capability, from NVIDIA's programming guide; torch does not tell. Others are taken to have 16."""


@functools.cache
def device_of(device: torch.device) -> Device:
    """The device that kernels on this device's tensors run on; the CPU's is the interpreter."""
    if device.type != "cuda":
        return INTERPRETER
    return device_from_properties(torch.cuda.get_device_properties(device))


@functools.lru_cache(maxsize=256)
def launch_on(
    device: torch.device, kernel: Kernel, n_rows: int, row_length: int, element_bytes: int
) -> Launch:
    """`choose_launch` for a torch device, remembered: a decode loop asks the same at every token."""
    return choose_launch(device_of(device), kernel, n_rows, row_length, element_bytes)


def _power_of_two_from(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()
