"""How large the cache is on machines of different sizes: never more than there is, else a sentence."""

import pytest
from treefill.engine.native.memory import MB, plan_cache
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
    with pytest.raises(BadSetting, match="kv_cache_mb is 50: a context of 4,096 tokens takes 107"):
        plan_cache(4096, 256, BLOCK_BYTES, limit_mb=50, free=16_000 * MB)


def test_a_setting_beyond_the_memory_is_no_way_to_run_out_of_it() -> None:
    assert plan_cache(4096, 256, BLOCK_BYTES, limit_mb=9000, free=1000 * MB).n_blocks == 158
    with pytest.raises(EngineError, match="107 MB of memory, and 90 MB are free"):
        plan_cache(4096, 256, BLOCK_BYTES, limit_mb=9000, free=90 * MB)
