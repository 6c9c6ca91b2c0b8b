"""The modules that stand in for a transformers model's own: int8 linear layers and a half-precision embedding."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from treefill import _kernels


class Int8Linear(nn.Module):
    """A linear layer on the int8 kernel, over weights where they lie in the mapped file."""

    def __init__(self, native: _kernels.Int8Linear) -> None:
        super().__init__()
        self._native = native
        self.in_features = native.n_inputs
        self.out_features = native.n_outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., K] float32 on the CPU → [..., N]."""
        if x.dtype != torch.float32 or x.shape[-1] != self.in_features or x.device.type != "cpu":
            raise ValueError(
                f"got {x.dtype} {list(x.shape)} on {x.device}, expected float32 [..., {self.in_features}] on the CPU"
            )
        x = x.contiguous()
        y = torch.empty(*x.shape[:-1], self.out_features)
        self._native.forward(x.data_ptr(), x.numel() // self.in_features, y.data_ptr())
        return y


class HalfEmbedding(nn.Module):
    """Token embeddings kept as float16 in the mapped file; a looked-up row becomes float32."""

    def __init__(self, table: NDArray[np.float16]) -> None:
        super().__init__()
        self._table = table  # [V, H]

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """[...] int64 → [..., H] float32, on the device of `ids`."""
        rows = self._table[ids.cpu().numpy()].astype(np.float32)
        return torch.from_numpy(rows).to(ids.device)
