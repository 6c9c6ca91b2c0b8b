"""How large the cache is on machines of different sizes: never more than there is, else a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest
from treefill.engine.native.memory import MB, free_memory, plan_cache
from treefill.errors import BadSetting, EngineError

BLOCK_BYTES = 6_291_456  # 256 tokens of the default model in float32


def test_a_usual_machine_keeps_a_few_whole_contexts() -> None:
    plan = plan_cache(4096, 256, BLOCK_BYTES, limit_mb=0, free=16_000 * MB)

    assert (plan.n_context, plan.n_blocks) == (4096, 68)


def test_little_memory_makes_the_context_shorter() -> None:
    plan = plan_cache(4096, 256, BLOCK_BYTES, limit_mb=0, free=200 * MB)

    assert plan.n_blocks * BLOCK_BYTES <= 50 * MB
    assert plan.n_context == (plan.n_blocks - 1) * 256


def test_hardly_any_memory_is_refused_with_the_remedy() -> None:
    with pytest.raises(EngineError, match="76 MB of memory, and 50 MB are free"):
        plan_cache(4096, 256, BLOCK_BYTES, limit_mb=0, free=50 * MB)


def test_the_setting_is_kept_to() -> None:
    assert plan_cache(4096, 256, BLOCK_BYTES, limit_mb=150, free=16_000 * MB).n_blocks == 23


def test_a_setting_too_small_for_the_context_is_refused_with_what_it_takes() -> None:
    with pytest.raises(BadSetting, match="kv_cache_mb is 50: a context of 4,096 tokens takes 107 MB"):
        plan_cache(4096, 256, BLOCK_BYTES, limit_mb=50, free=16_000 * MB)


def test_a_setting_beyond_the_memory_is_no_way_to_run_out_of_it() -> None:
    assert plan_cache(4096, 256, BLOCK_BYTES, limit_mb=9000, free=1000 * MB).n_blocks == 158
    with pytest.raises(EngineError, match="107 MB of memory, and 90 MB are free"):
        plan_cache(4096, 256, BLOCK_BYTES, limit_mb=9000, free=90 * MB)


def container(folder: Path, limit: str, used: int, files: int) -> Path:
    (folder / "memory.max").write_text(limit + "\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(
        f"anon 7\nactive_file {files // 2}\ninactive_file {files - files // 2}\n"
    )
    return folder


def test_a_container_full_of_file_pages_has_memory_left(tmp_path: Path) -> None:
    """The mapped weights themselves count as used there; they are no reason to refuse the model."""
    assert free_memory(container(tmp_path, str(60 * MB), 59 * MB, 40 * MB)) == 41 * MB


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is read where Linux keeps it")
def test_a_limit_of_the_process_is_kept_to() -> None:
    code = (
        "import resource, sys; from treefill.engine.native.memory import MB, free_memory\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3000 * MB, 3000 * MB))\n"
        "taken = bytearray(500 * MB)\n"
        "print(free_memory() // MB)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert 0 < int(run.stdout) < 2500


def test_a_container_full_of_other_memory_has_none(tmp_path: Path) -> None:
    assert free_memory(container(tmp_path, str(60 * MB), 61 * MB, 0)) == 0


def test_a_container_without_a_limit_or_of_another_kind_is_no_limit(tmp_path: Path) -> None:
    free = free_memory(container(tmp_path, "max", 59 * MB, 0))

    assert free > 60 * MB
    (tmp_path / "memory.max").write_text("1000")
    (tmp_path / "memory.stat").write_text("anon 7\n")
    assert free_memory(tmp_path) > 60 * MB
