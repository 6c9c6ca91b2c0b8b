"""What a GPU does with masks: token masks over logits, and attention masks for batches of unequal lengths.

Front door: `apply_mask` and `masked_argmax` over packed token masks; `AttentionMasks`, which builds attention masks in
memory of its own and keeps them; `mask_dtype`, the type that they should have. The kernels are written in Triton and
run on CUDA, or on the CPU under Triton's interpreter (`TRITON_INTERPRET=1`, set before Python starts), which is slow
and for tests. `reference` says in plain torch what they mean.

In a checkout the files lie in `kernels/triton`; `server/treefill/gpu` is a link to it.
"""

try:
    import triton as _triton  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "treefill.gpu needs Triton, which is not installed; on Linux, install it: pip install triton==3.7.1"
    ) from _error

from treefill.gpu.apply_mask import apply_mask, masked_argmax
from treefill.gpu.attention_masks import (
    AttentionBatch,
    AttentionMasks,
    Padding,
    mask_dtype,
    write_attention_mask,
)

__all__ = [
    "AttentionBatch",
    "AttentionMasks",
    "Padding",
    "apply_mask",
    "mask_dtype",
    "masked_argmax",
    "write_attention_mask",
]
