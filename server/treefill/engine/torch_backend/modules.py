"""The module that stands in for a transformers model's own embedding: in half precision, where it lies."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn


class HalfEmbedding(nn.Module):
    """Token embeddings kept as float16 in the mapped file; a looked-up row becomes float32."""

    def __init__(self, table: NDArray[np.float16]) -> None:
        super().__init__()
        self._table = table  # [V, H]

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """[...] int64 → [..., H] float32, on the device of `ids`."""
        rows = self._table[ids.cpu().numpy()].astype(np.float32)
        return torch.from_numpy(rows).to(ids.device)
