"""Decode, prefill and load over contenders that write and take what a test says; no model, no clock."""

import json
import math
from typing import Any, cast

import numpy as np
import pytest
from treefill.benchmarks import speed as speed_module
from treefill.benchmarks.bandwidth import WeightsReader
from treefill.benchmarks.busy import busy_processes
from treefill.benchmarks.contenders import Contender, Ours, check_agreement
from treefill.benchmarks.report import speed_json, speed_text
from treefill.benchmarks.rounds import Spread
from treefill.benchmarks.speed import Speed
from treefill.errors import BadInput, PeerError

from tests.benchmarks.contender import FakeContender
from tests.helpers.scripted_engine import ScriptedEngine


def speed_of(ours: FakeContender, *peers: Contender) -> Speed:
    return Speed(cast(Ours, ours), peers, range(2048), "tiny", 0.5, lambda what: None)


def test_decoding_is_reported_with_its_spread_the_ratio_and_the_share_of_the_limit() -> None:
    times = iter([20.0, 10.0, 12.5])
    ours = FakeContender("treefill", step_ms=lambda n: next(times))
    reader = WeightsReader(
        {"a.weight.q": np.zeros((4, 16), np.int8), "embedding": np.zeros(9, np.int8)}, "avx2"
    )
    report = speed_of(ours, FakeContender(step_ms=lambda n: 25.0)).decode(512, 33, 2, reader)
    found = speed_json(report)

    assert [timed["contender"] for timed in found["timed"]] == ["treefill", "peer"]
    assert found["timed"][0]["ms"] == {"median": 11.25, "low": 10.0, "high": 12.5, "n": 2}
    assert found["ratios"] == [
        {
            "peer": "peer",
            "n_prompt_tokens": 512,
            "n_busy": 0,
            "ours_to_peer": pytest.approx(25 / 11.25, abs=1e-3),
        }
    ]
    assert found["n_agreeing"] == {"peer": 24}
    assert found["bandwidth"]["n_bytes"] == 64
    assert found["bandwidth"]["our_share"] >= 0
    assert set(found) == {"bench", "conditions", "timed", "n_agreeing", "bandwidth", "memory", "ratios"}
    assert set(found["conditions"]) == {
        "model", "processor", "n_cores", "instruction_set", "load_before", "load_after",
    }  # fmt: skip
    json.dumps(found)


@pytest.mark.parametrize("ms", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_nothing_takes_is_not_reported(ms: float) -> None:
    speed = speed_of(FakeContender("treefill"), FakeContender(step_ms=lambda n: ms))
    with pytest.raises(PeerError, match=f"peer says that it took {ms:g} ms"):
        speed.decode(512, 33, 1)


def test_what_is_read_says_what_it_is_of() -> None:
    report = speed_of(FakeContender("treefill"), FakeContender(step_ms=lambda n: 30.0)).decode(512, 33, 5)
    text = speed_text(report)

    assert "load average" in text
    assert "100.0 tokens/s [100.0 to 100.0]" in text
    assert "ours is 3.00 times as fast" in text
    assert "24 of our first 24 tokens" in text


def test_each_size_is_prefilled_by_all_in_turn() -> None:
    ours, peer = FakeContender("treefill"), FakeContender()
    report = speed_of(ours, peer).prefill([512, 2048], 3)

    assert peer.n_prefilled == ours.n_prefilled == [512] * 3 + [2048] * 3
    assert [(timed.n_prompt_tokens, timed.tokens_per_s.median) for timed in report.timed] == [
        (512, 500.0), (512, 500.0), (2048, 500.0), (2048, 500.0),
    ]  # fmt: skip


def test_beside_busy_processes_a_peer_gets_the_threads_that_suit_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class NotBusy:
        def __init__(self, n: int) -> None:
            started.append(n)

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(speed_module, "busy_processes", NotBusy)
    monkeypatch.setattr(speed_module.os, "cpu_count", lambda: 4)
    peer = FakeContender(step_ms=lambda n_threads: {1: 40.0, 2: 15.0, 3: 900.0, 4: 20.0}[n_threads])
    server = FakeContender("server", n_threads=None)
    report = speed_of(FakeContender("treefill", n_threads=4), peer, server).load([0, 2], 128, 9, 2)

    assert started == [0, 2]
    assert [(timed.contender, timed.n_busy, timed.n_threads) for timed in report.timed] == [
        ("treefill", 0, 4), ("peer", 0, 2), ("server", 0, None),
        ("treefill", 2, 4), ("peer", 2, 2), ("server", 2, None),
    ]  # fmt: skip


def test_a_peer_that_parts_soon_is_not_timed() -> None:
    other = FakeContender("llama-server at http://x", ids=(1, 2, 9))

    with pytest.raises(
        PeerError, match=r"http://x writes other tokens than ours from the 3rd on, .*`make bench-peers`"
    ):
        speed_of(FakeContender("treefill"), other).decode(512, 33, 1)


def test_one_that_parts_later_is_and_it_is_said_when() -> None:
    ours = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)

    assert check_agreement(FakeContender(ids=(*ours[:9], 99)), [0], ours) == 9


def test_a_cache_that_writes_otherwise_is_not_timed() -> None:
    engine = ScriptedEngine("good morning to you all", "another text altogether")

    with pytest.raises(PeerError, match="A reused cache writes other tokens"):
        Ours(engine).check([1, 2, 3], 8)


def test_a_model_that_ends_too_soon_is_said() -> None:
    with pytest.raises(BadInput, match="ended after 3 of 8 tokens"):
        Ours(ScriptedEngine("abc")).decode([1, 2], 8)


def test_a_prompt_that_does_not_fit_is_said() -> None:
    with pytest.raises(BadInput, match="TREEFILL_N_CONTEXT"):
        Ours(ScriptedEngine("abc", n_context=8)).decode([1, 2], 8)


def test_busy_processes_end_with_their_block() -> None:
    processes: list[Any] = []
    with busy_processes(1):
        import psutil

        processes += psutil.Process().children()
        assert processes
    assert not any(process.is_running() for process in processes)


@pytest.mark.parametrize(("instruction_set", "n_bytes"), [("avx2", 1016), ("avx512vnni", 1032)])
def test_what_is_read_of_the_weights_is_what_the_kernels_read(instruction_set: str, n_bytes: int) -> None:
    weights = {
        "x.weight.q": np.arange(1000, dtype=np.int8),
        "x.weight.scale": np.zeros(8, np.float16),
        "x.weight.sum": np.zeros(8, np.int16),
        "embedding.weight": np.zeros(500, np.float16),
    }
    reader = WeightsReader(weights, instruction_set)
    found = reader.bandwidth(Spread(2.0, 1.0, 5.0, 3))

    assert reader.read_ms() > 0
    assert found.n_bytes == n_bytes
    assert found.gb_per_s == pytest.approx(n_bytes / 1.0 / 1e6)  # at the quickest reading
