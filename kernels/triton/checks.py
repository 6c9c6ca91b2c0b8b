"""Refusals at the border to raw pointers: what was got, what was expected, and what to do about it."""

import torch
import triton

FLOATS = (torch.float16, torch.bfloat16, torch.float32)


def check_runs_here(tensor: torch.Tensor, name: str) -> None:
    """Raise `ValueError` unless a kernel can work on it: on CUDA, or on the CPU under the interpreter."""
    if tensor.device.type == "cuda" or (tensor.device.type == "cpu" and triton.knobs.runtime.interpret):
        return
    raise ValueError(
        f"{name} is on {tensor.device}, but Triton's kernels run on cuda; move it there, use treefill.gpu.reference, "
        "or set TRITON_INTERPRET=1 before Python starts."
    )


def check_tensor(
    tensor: torch.Tensor,
    name: str,
    *,
    dtypes: tuple[torch.dtype, ...],
    n_dimensions: int,
    device: torch.device | None = None,
) -> None:
    """Raise `TypeError` for another dtype, `ValueError` for other dimensions, strides or another device."""
    if tensor.dtype not in dtypes:
        expected = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        raise TypeError(f"{name}: expected {expected}, got {str(tensor.dtype).removeprefix('torch.')}.")
    if tensor.dim() != n_dimensions:
        raise ValueError(f"{name}: expected {n_dimensions} dimensions, got the shape {list(tensor.shape)}.")
    if not tensor.is_contiguous():
        raise ValueError(
            f"{name}: expected contiguous memory, got the shape {list(tensor.shape)} with strides "
            f"{list(tensor.stride())}; pass what .contiguous() gives."
        )
    if device is not None and tensor.device != device:
        raise ValueError(f"{name}: expected a tensor on {device}, got one on {tensor.device}; move it there.")
