"""What the kernels mean, in plain torch: slow, readable, on any device. The kernels agree with it to the bit.

Full-width masks are made here without a thought; that is what the kernels are there to avoid.
"""

import torch
from treefill.gpu.apply_mask import NO_MASK, NOTHING
from treefill.gpu.attention_masks import AttentionBatch, Padding


def allowed_tokens(
    masks: torch.Tensor, n_tokens: int, shape: torch.Size, mask_of_row: torch.Tensor | None = None
) -> torch.Tensor:
    """Which tokens each row allows: bool of the logits' shape [n, V]."""
    allowed = torch.zeros(shape, dtype=torch.bool, device=masks.device)
    columns = torch.arange(n_tokens, device=masks.device)
    for row in range(shape[0]):
        mask = row if mask_of_row is None else int(mask_of_row[row])
        if mask == NO_MASK:
            allowed[row, :n_tokens] = True
        elif 0 <= mask < len(masks):
            words = masks[mask].view(torch.int32)
            allowed[row, :n_tokens] = (words[columns // 32] >> (columns % 32) & 1) == 1
    return allowed


def apply_mask(
    logits: torch.Tensor, masks: torch.Tensor, n_tokens: int, mask_of_row: torch.Tensor | None = None
) -> None:
    """Set the logits of forbidden tokens to -inf, in place."""
    logits.masked_fill_(~allowed_tokens(masks, n_tokens, logits.shape, mask_of_row), float("-inf"))


def masked_argmax(
    logits: torch.Tensor, masks: torch.Tensor, n_tokens: int, mask_of_row: torch.Tensor | None = None
) -> torch.Tensor:
    """The allowed token of the highest logit in each row, int32 [n]: of equals the lowest id, `NOTHING` for none."""
    best = torch.full((len(logits),), NOTHING, dtype=torch.int32, device=logits.device)
    allowed = allowed_tokens(masks, n_tokens, logits.shape, mask_of_row)
    for row, numbers in enumerate(logits.float()):
        candidates = (allowed[row] & (numbers > float("-inf"))).nonzero().ravel()  # NaN is above nothing
        if len(candidates):
            # torch does not say which of equals its argmax is, so the first of the largest is looked for.
            is_best = numbers[candidates] == numbers[candidates].max()
            best[row] = candidates[is_best.nonzero()[0, 0]]
    return best


def write_attention_mask(out: torch.Tensor, batch: AttentionBatch) -> None:
    """Fill `out` [n, 1, L, S] with 0 where a query sees a key and `batch`'s hidden value elsewhere."""
    out.fill_(batch.hidden_value(out.dtype))
    for row, (length, past) in enumerate(zip(batch.lengths, batch.pasts, strict=True)):
        is_left = batch.padding is Padding.LEFT
        first_query = batch.n_queries - length if is_left else 0
        first_key = batch.n_keys - past - length if is_left else 0
        for query in range(batch.n_queries):
            i = query - first_query
            if 0 <= i < length:
                out[row, 0, query, first_key : first_key + past + i + 1] = 0
            else:
                out[row, 0, query, 0] = 0
