"""Compile every kernel for GPUs that are not here, as a program: a line of JSON for each (`test_compiled.py`).

The interpreter takes more of Python than the compiler does, so that what runs under it may not compile.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import triton
from treefill.gpu import apply_mask as _  # noqa: F401
from treefill.gpu import launch as launches
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests.gpu.test_launch import A100, H200

masks, attention = sys.modules["treefill.gpu.apply_mask"], sys.modules["treefill.gpu.attention_masks"]
SIZES = ("n_columns", "n_tokens", "n_masks", "n_words")


def main() -> None:
    for device, capability, dtype, is_small in (
        (A100, 80, "fp16", False),
        (A100, 80, "bf16", True),
        (H200, 90, "bf16", False),
        (H200, 90, "fp32", False),
        (H200, 90, "fp32", True),
    ):
        element_bytes = 4 if dtype == "fp32" else 2
        n_rows, width = (1, 1) if is_small else (64, 151_936)
        compile_token_masks(device, capability, dtype, element_bytes, n_rows, width)
        compile_attention_mask(device, capability, dtype, element_bytes, n_rows, width)


def compile_token_masks(
    device: launches.Device, capability: int, dtype: str, element_bytes: int, n_rows: int, width: int
) -> None:
    # Rows of one logit, which the compiler is told as constants; and the widest blocks, with an index.
    index = {"mask_of_row": None} if width == 1 else {}
    sizes: dict[str, Any] = dict.fromkeys(SIZES, 1) if width == 1 else {}
    for name, kernel in (("_apply_kernel", masks.APPLY), ("_best_of_block_kernel", masks.ARGMAX)):
        launch = launches.choose_launch(device, kernel, n_rows, width, element_bytes)
        constants = {"BLOCK_WORDS": launch.block // 32, "STEP_WORDS": launch.step // 32, **index, **sizes}
        pointers = {
            "logits": f"*{dtype}",
            "masks": "*i32",
            "mask_of_row": "*i32",
            "scores": "*fp32",
            "ids": "*i32",
        }
        tell(getattr(masks, name), capability, kernel, launch, pointers, constants, "logits n_columns")
    if dtype == "fp32":
        launch = launches.Launch(256, 256, 4, 1)
        row = launches.Kernel(registers_beside_elements=20, registers_per_element=2, shared_bytes_per_warp=8)
        constants = {"BLOCK": 256, **({"n_blocks": 1} if width == 1 else {})}
        pointers = {"scores": "*fp32", "ids": "*i32", "best_ids": "*i32"}
        tell(masks._best_of_row_kernel, capability, row, launch, pointers, constants, "scores")


def compile_attention_mask(
    device: launches.Device, capability: int, dtype: str, element_bytes: int, n_rows: int, width: int
) -> None:
    launch = launches.choose_launch(device, attention.WRITE, n_rows, width, element_bytes)
    sizes = dict.fromkeys(("n_rows", "n_queries", "n_keys"), 1) if width == 1 else {}
    constants = {"BLOCK": launch.block, "IS_LEFT": capability == 80, **sizes}
    pointers = {"out": f"*{dtype}", "rows": "*i32", "hidden": "fp32"}
    tell(attention._write_kernel, capability, attention.WRITE, launch, pointers, constants, "out row_stride")


def tell(
    kernel: Any,
    capability: int,
    needs: launches.Kernel,
    launch: launches.Launch,
    types: dict[str, str],
    constants: dict[str, Any],
    multiples_of_16: str,
) -> None:
    """What the compiled kernel takes, beside what `launch` was chosen for."""
    signature = {
        name: "constexpr" if name in constants else types.get(name, "i32") for name in kernel.arg_names
    }
    aligned = [name for name in multiples_of_16.split() if name not in constants]
    source = ASTSource(
        kernel,
        signature,
        constexprs=constants,
        attrs={(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in aligned},
    )
    compiled = triton.compile(source, GPUTarget("cuda", capability, 32), {"num_warps": launch.n_warps})
    usage = dict(re.findall(r"(REG|STACK):(\d+)", usage_of(compiled.asm["cubin"])))
    told = {
        "kernel": kernel.__name__,
        "capability": capability,
        "types": sorted(set(types.values())),
        "n_warps": launch.n_warps,
        "registers": int(usage["REG"]),
        "registers_foreseen": launches.registers_per_thread(needs, -(-launch.block // (32 * launch.n_warps))),
        "stack_bytes": int(usage["STACK"]),
        "shared_bytes": compiled.metadata.shared,
        "shared_bytes_foreseen": needs.shared_bytes_per_warp * launch.n_warps,
        "widest_store_bits": max(
            int(bits) * int(n or 1)
            for n, bits in re.findall(r"st\.global(?:\.v(\d))?\.b(\d+)", compiled.asm["ptx"])
        ),
    }
    print(json.dumps(told), flush=True)


def usage_of(cubin: bytes) -> str:
    """What the machine code says of itself, by the tool that Triton comes with."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        run = subprocess.run([str(tool), "-res-usage", file.name], capture_output=True, text=True, check=True)
    return run.stdout


if __name__ == "__main__":
    main()
