"""A peer behind a program that speaks lines: what it says, and one sentence for whatever else it does."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from treefill.benchmarks.driver import Driver, open_driver
from treefill.errors import PeerError

GOOD = """
import sys
print("ready AVX2", flush=True)
for line in sys.stdin:
    verb, *rest = line.split()
    print({"prefill": "ok 40.5 7", "decode": "ok 30 8 9 10"}.get(verb, "ok 0"), flush=True)
"""


def driver(program: str, limit_s: float = 20.0) -> Driver:
    return Driver("llama.cpp", [sys.executable, "-c", program], limit_s)


@pytest.fixture
def good() -> Iterator[Driver]:
    made = driver(GOOD)
    yield made
    made.close()


def test_it_evaluates_and_goes_on(good: Driver) -> None:
    good.set_threads(2)

    assert good.about == "AVX2"
    assert good.n_threads == 2
    assert good.prefill([1, 2, 3]) == 40.5
    decoded = good.decode([1, 2, 3], 4)
    assert decoded.ids == (7, 8, 9, 10)
    assert decoded.step_ms == 10.0


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("", "llama.cpp ended without an answer: run `make bench-peers` again."),
        ("print('error it cannot load x.gguf')", "llama.cpp gave up: it cannot load x.gguf. Run"),
        ("print('GGML_ASSERT failed')", "llama.cpp said 'GGML_ASSERT failed', which is no answer"),
        ("print('ok 1')", "which is no answer"),
        ("import time; time.sleep(60)", "llama.cpp gave no answer within 0.5 s"),
        ("print('x' * 3_000_000)", "which is no answer"),
    ],
)
def test_a_program_that_does_not_begin_is_one_sentence(program: str, sentence: str) -> None:
    with pytest.raises(PeerError) as error:
        driver(program, 0.5 if "sleep" in program else 20.0)

    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("ok", "said '', which is no answer"),
        ("ok soon 7", "said 'soon 7', which is no answer"),
        ("error no room", "gave up: no room."),
        ("", "ended without an answer"),
    ],
)
def test_a_wrong_answer_is_one_sentence(answer: str, sentence: str) -> None:
    made = driver(f"import sys; print('ready', flush=True); sys.stdin.readline(); print({answer!r})")
    try:
        with pytest.raises(PeerError) as error:
            made.prefill([1])
    finally:
        made.close()

    assert sentence in str(error.value)


def test_a_long_prompt_arrives_whole() -> None:
    made = driver("""
import sys, time
print("ready", flush=True)
for line in sys.stdin:
    time.sleep(0.1)
    print("ok 1", len(line.split()), flush=True)
""")
    try:
        decoded = made.decode(range(100_000, 130_000), 2)
    finally:
        made.close()

    assert decoded.ids == (30_001, 2)


def test_a_program_that_does_not_read_a_long_prompt_is_not_waited_for() -> None:
    made = driver("import time; print('ready', flush=True); time.sleep(60)", limit_s=2.0)
    try:
        with pytest.raises(PeerError, match="gave no answer within 2 s"):
            made.decode(range(100_000, 130_000), 2)
    finally:
        made.close()


def test_a_program_that_is_not_there_is_said() -> None:
    with pytest.raises(PeerError, match="cannot be started"):
        Driver("llama.cpp", ["/nowhere/llama-driver"])


def test_a_folder_describes_its_peer(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; print('ready', *sys.argv[1:])")
    command = [sys.executable, str(tmp_path / "program.py"), "{gguf}", "{n_context}", "{other}", "{"]
    described = {"name": "llama.cpp 1", "command": command, "models": {"tiny": "w.gguf"}}
    (tmp_path / "peer.json").write_text(json.dumps(described))
    made = open_driver(tmp_path, "tiny", 600)
    made.close()

    assert made.name == "llama.cpp 1"
    assert made.about == f"{tmp_path / 'w.gguf'} 600 {{other}} {{"
    with pytest.raises(PeerError, match="no weights of other: run `make bench-peers MODEL=other`"):
        open_driver(tmp_path, "other", 600)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"name": 1, "command": ["x"], "models": {}}',
        '{"name": "x", "command": [], "models": {}}',
        '{"name": "x", "command": "./x", "models": {}}',
        '{"name": "x", "command": ["./x\\u0000"], "models": {"tiny": "w"}}',
        '{"name": "x", "command": ["./x"], "models": {"tiny": "\\ud800"}}',
        "[" * 100_000,
    ],
)
def test_a_folder_that_describes_none_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "peer.json").write_text(text)

    with pytest.raises(PeerError, match="does not describe a peer"):
        open_driver(tmp_path, "tiny", 600)


def test_a_folder_without_a_description_is_said(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match=r"peer.json does not exist: run `make bench-peers`"):
        open_driver(tmp_path, "tiny", 600)
