"""The kernels of treefill.gpu on this machine's GPU: the answers first, then the times, each beside what else there is.

`python bench/gpu_masks.py` (it needs CUDA, and torch and Triton built for it). Rivals: torch's `masked_fill_` and
`argmax` with a boolean mask that lies ready, and with one that is unpacked each time; xgrammar's Triton kernel where it
is installed. Times are of the device alone, medians of many runs, all in one process.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

WIDTH, N_TOKENS = 151_936, 151_665
"""Of Qwen's models: what the logits have, and the tokenizer's last id plus one."""
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
N_KEYS = 4096


def main() -> None:
    """Check, then measure; a line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--densities", type=float, nargs="+", default=[0.01, 0.5, 0.95, 1.0])
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no CUDA device here, so nothing was measured.")
    properties = torch.cuda.get_device_properties(0)
    tell(device=properties.name, torch=torch.__version__, xgrammar=xgrammar_version())
    for dtype in DTYPES:
        check_token_masks(dtype)
        check_attention_masks(dtype)
    tell(checked="all kernels agree with their plain twins")
    for dtype in DTYPES:
        for n_rows in options.rows:
            for density in options.densities:
                measure_token_masks(dtype, n_rows, density)
        for n_rows in options.rows:
            measure_attention_masks(dtype, n_rows)


def check_token_masks(dtype: torch.dtype) -> None:
    from treefill.gpu import apply_mask, masked_argmax, reference

    for n_rows, width, n_tokens in ((1, 1, 1), (3, 33, 32), (5, 1000, 999), (4, WIDTH, N_TOKENS)):
        for density in (0.0, 0.05, 0.95, 1.0):
            logits, masks = a_case(dtype, n_rows, width, density)
            logits.view(-1)[:: max(1, logits.numel() // 7)] = math.nan
            mask_of_row = torch.randint(-1, n_rows, (n_rows,), device="cuda", dtype=torch.int32)
            for index in (None, mask_of_row):
                expected, found = logits.clone(), logits.clone()
                reference.apply_mask(expected, masks, n_tokens, index)
                apply_mask(found, masks, n_tokens, index)
                best = masked_argmax(logits, masks, n_tokens, index)
                # By their bytes, since NaN equals nothing.
                assert torch.equal(found.view(torch.uint8), expected.view(torch.uint8)), (
                    dtype,
                    n_rows,
                    width,
                )
                assert torch.equal(best, reference.masked_argmax(logits, masks, n_tokens, index))


def check_attention_masks(dtype: torch.dtype) -> None:
    from treefill.gpu import AttentionMasks, Padding, reference

    masks = AttentionMasks(64 << 20)
    for padding in Padding:
        for n_rows, n_queries, n_keys in ((1, 1, 1), (3, 5, 17), (4, 64, 2049)):
            batch = a_batch(n_rows, n_queries, n_keys, padding)
            expected = torch.empty((n_rows, 1, n_queries, n_keys), dtype=dtype, device="cuda")
            reference.write_attention_mask(expected, batch)
            assert torch.equal(masks.get(batch, dtype), expected), batch


def measure_token_masks(dtype: torch.dtype, n_rows: int, density: float) -> None:
    from treefill.gpu import apply_mask, masked_argmax, reference

    logits, masks = a_case(dtype, n_rows, WIDTH, density)
    forbidden = ~reference.allowed_tokens(masks, N_TOKENS, logits.shape)

    def unpacked() -> torch.Tensor:
        bits = masks[:, :, None] >> torch.arange(32, device="cuda", dtype=torch.int32) & 1
        return (bits == 0).view(n_rows, -1)[:, :WIDTH]

    ways: dict[str, Callable[[], Any]] = {
        "apply_mask": lambda: apply_mask(logits, masks, N_TOKENS),
        "torch masked_fill_": lambda: logits.masked_fill_(forbidden, -math.inf),
        "torch unpacking, masked_fill_": lambda: logits.masked_fill_(unpacked(), -math.inf),
        "masked_argmax": lambda: masked_argmax(logits, masks, N_TOKENS),
        "torch masked_fill, argmax": lambda: logits.masked_fill(forbidden, -math.inf).argmax(1),
    }
    theirs = xgrammar_kernel()
    if theirs is not None:
        ours, other = logits.clone(), logits.clone()
        apply_mask(ours, masks, WIDTH)
        theirs(other, masks)
        assert torch.equal(ours, other), "xgrammar's kernel answers otherwise"
        ways["xgrammar's apply"] = lambda: theirs(logits, masks)
    tell(what="token masks", dtype=str(dtype), rows=n_rows, density=density, us=dict(times_us(ways)))


def measure_attention_masks(dtype: torch.dtype, n_rows: int) -> None:
    from treefill.gpu import AttentionMasks, Padding, write_attention_mask

    batch = a_batch(n_rows, 64, N_KEYS, Padding.LEFT)
    out = torch.empty((n_rows, 1, 64, N_KEYS), dtype=dtype, device="cuda")
    lengths, pasts = torch.tensor([batch.lengths, batch.pasts], device="cuda")
    masks = AttentionMasks(n_rows * 64 * N_KEYS * 4 + (1 << 20))

    def by_torch() -> torch.Tensor:
        keys = torch.arange(N_KEYS, device="cuda")
        i = torch.arange(64, device="cuda")[None] - (64 - lengths)[:, None]  # [n, L]
        first = N_KEYS - pasts - lengths
        sees = (keys >= first[:, None, None]) & (keys <= (first + pasts)[:, None, None] + i[:, :, None])
        sees = torch.where((i < 0)[:, :, None], keys == 0, sees)
        return torch.where(sees, 0.0, -math.inf).to(dtype)[:, None]

    write_attention_mask(out, batch)
    assert torch.equal(out, by_torch())
    masks.get(batch, dtype)
    ways: dict[str, Callable[[], Any]] = {
        "write_attention_mask": lambda: write_attention_mask(out, batch),
        "AttentionMasks, kept": lambda: masks.get(batch, dtype),
        "torch": by_torch,
    }
    tell(
        what="attention masks",
        dtype=str(dtype),
        rows=n_rows,
        queries=64,
        keys=N_KEYS,
        us=dict(times_us(ways)),
    )


def a_case(dtype: torch.dtype, n_rows: int, width: int, density: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [n, V], and masks [n, W] in which so large a part of the tokens is allowed."""
    torch.manual_seed(0)
    bits = torch.rand((n_rows, math.ceil(width / 32), 32), device="cuda") < density
    words = (bits.long() << torch.arange(32, device="cuda")).sum(2)
    return torch.randn((n_rows, width), device="cuda").to(dtype), words.to(torch.int32)


def a_batch(n_rows: int, n_queries: int, n_keys: int, padding: Any) -> Any:
    from treefill.gpu import AttentionBatch

    lengths = tuple(max(0, n_queries - 3 * row) for row in range(n_rows))
    pasts = tuple(max(0, n_keys - length - 5 * row) for row, length in enumerate(lengths))
    return AttentionBatch(lengths, pasts, n_queries, n_keys, padding)


def times_us(ways: dict[str, Callable[[], Any]]) -> Iterator[tuple[str, float]]:
    """Medians by CUDA's events, the second-level cache cleared before each run."""
    import triton.testing

    for name, way in ways.items():
        yield name, round(1000 * triton.testing.do_bench(way, quantiles=[0.5]), 2)


def xgrammar_kernel() -> Callable[[torch.Tensor, torch.Tensor], None] | None:
    """Theirs, with the signature of ours; None where it is not installed."""
    try:
        from xgrammar.kernels.apply_token_bitmask_inplace_triton import apply_token_bitmask_inplace_triton
    except ImportError:
        return None
    kernel: Callable[[torch.Tensor, torch.Tensor], None] = apply_token_bitmask_inplace_triton
    return kernel


def xgrammar_version() -> str:
    """What is installed, or that none is."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("xgrammar")
    except PackageNotFoundError:
        return "not installed"


def tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
