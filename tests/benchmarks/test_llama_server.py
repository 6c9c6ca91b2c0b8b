"""A llama-server as a contender; and one sentence for one that is not there, is slow, is another, or talks nonsense."""

import json
import math
import threading
from collections.abc import Callable
from itertools import pairwise

import pytest
from treefill.benchmarks.llama_server import LlamaServer, Piece
from treefill.errors import BadInput, PeerError

from tests.benchmarks.fake_server import Answer, fake_server, raw, said, streamed

CONFIG = {"hidden_size": 64, "vocab_size": 300}


def test_it_evaluates_and_goes_on_by_its_own_clock() -> None:
    with fake_server({}) as fake:
        server = LlamaServer(fake.url)
        server.check_model("tiny", CONFIG)
        decoded = server.decode([7, 8, 9], 5)

        assert server.prefill([7, 8, 9]) == 500.0
    assert decoded.ids == (1, 2, 3, 4, 1)
    assert decoded.step_ms == 10.0
    assert fake.bodies[1] == {
        "prompt": [7, 8, 9], "n_predict": 5, "temperature": 0.0, "cache_prompt": True, "return_tokens": True,
    }  # fmt: skip
    assert fake.bodies[2]["cache_prompt"] is False


def test_what_is_filled_in_arrives_token_by_token() -> None:
    with fake_server({"/infill": streamed("x", " = 1", "\n")}) as fake:
        pieces = list(LlamaServer(fake.url).infill({"prompt": "x"}))

    assert [(piece.text, piece.n_tokens, piece.n_evaluated) for piece in pieces] == [
        ("x", 1, 12), ("x = 1", 2, 12), ("x = 1\n", 3, 12), ("x = 1\n", 3, 12),
    ]  # fmt: skip
    assert all(earlier.ms <= later.ms for earlier, later in pairwise(pieces))
    assert fake.bodies[0] == {"prompt": "x", "stream": True, "timings_per_token": True}


def test_a_cancelled_request_is_waited_for() -> None:
    is_processing = iter([True, True, False])

    def slots(body: object) -> tuple[int, bytes]:
        return 200, json.dumps([{"is_processing": next(is_processing)}]).encode()

    with fake_server({"/slots": slots}) as fake:
        LlamaServer(fake.url).wait_idle()

    assert len(fake.bodies) == 3


def check(server: LlamaServer) -> None:
    server.check_model("tiny", CONFIG)


def decode(server: LlamaServer) -> None:
    server.decode([1], 4)


def infill(server: LlamaServer) -> list[Piece]:
    return list(server.infill({}))


def wait_idle(server: LlamaServer) -> None:
    server.wait_idle()


def timed(ms: float) -> Answer:
    """Four tokens that took so long."""
    return said({"tokens": [1, 2, 3, 4], "timings": {"predicted_ms": ms}})


ENDLESS = {"data": [{"id": "x", "meta": {"n_embd": math.inf, "n_vocab": 300}}]}
OTHER = {"data": [{"id": "big.gguf", "meta": {"n_embd": 128, "n_vocab": 300}}]}


@pytest.mark.parametrize(
    ("ask", "path", "answer", "sentence"),
    [
        (
            check,
            "/v1/models",
            said(OTHER),
            "runs 'big.gguf', which is 128 wide with a vocabulary of 300, and ours is",
        ),
        (check, "/v1/models", said({"object": "list"}), "is none (what it says of its model cannot be read)"),
        (check, "/v1/models", said([1]), "is none (its answer to /v1/models is not an object)"),
        (
            check,
            "/v1/models",
            raw(b"<html>It works!</html>"),
            "is none (its answer to /v1/models is not JSON)",
        ),
        (check, "/v1/models", raw(b"\xff\xfe"), "is none (its answer to /v1/models is not JSON)"),
        (check, "/v1/models", raw(b"[" * 100_000), "is none (its answer to /v1/models is not JSON)"),
        (check, "/v1/models", said(ENDLESS), "is none (what it says of its model cannot be read)"),
        (check, "/v1/models", raw(b"[" * 100_000, 500), "refused /v1/models (500): wait"),
        (
            check,
            "/v1/models",
            said({"error": {"message": "Loading model"}}, 503),
            "refused /v1/models (503: Loading model): wait",
        ),
        (decode, "/completion", raw(b"not found", 404), "refused /completion (404): wait"),
        (decode, "/completion", said({}), "is none (its answer has no tokens)"),
        (decode, "/completion", said({"tokens": [1, 2]}), "wrote 2 of 4 tokens"),
        (decode, "/completion", said({"tokens": [1, 2, 3, 4]}), "lacks the number timings.predicted_ms"),
        (decode, "/completion", timed(math.nan), "lacks the number timings.predicted_ms"),
        (decode, "/completion", timed(10**400), "lacks the number timings.predicted_ms"),
        (decode, "/completion", said({"tokens": ["a"]}), "is none (its answer has no tokens)"),
        (wait_idle, "/slots", said({}), "is none (its answer to /slots is no list of objects)"),
        (infill, "/infill", raw(b"data: {\n\n"), "is none (it streams something that is not JSON)"),
        (infill, "/infill", raw(b"data: " + b"[" * 100_000 + b"\n\n"), "something that is not JSON)"),
        (infill, "/infill", raw(b'data: {"tokens_predicted": NaN}\n\n'), "lacks the number tokens_predicted"),
        (infill, "/infill", raw(b"data: 1\n\n"), "is none (it streams something that is not an object)"),
        (infill, "/infill", streamed("x", stop=False), "broke off in the middle of an answer"),
        (infill, "/infill", raw(b'data: {"content": "x"}\n\n'), "lacks the number tokens_predicted"),
        (infill, "/infill", raw(b""), "broke off in the middle of an answer"),
    ],
)
def test_a_wrong_answer_is_one_sentence(
    ask: Callable[[LlamaServer], object], path: str, answer: Answer, sentence: str
) -> None:
    with fake_server({path: answer}) as fake, pytest.raises(PeerError) as error:
        ask(LlamaServer(fake.url))

    assert sentence in str(error.value)
    assert fake.url in str(error.value)
    assert "\n" not in str(error.value)


def test_a_slow_server_is_not_waited_for() -> None:
    is_over = threading.Event()

    def slow(body: object) -> tuple[int, bytes]:
        is_over.wait(20)
        return 200, b"{}"

    with fake_server({"/completion": slow}) as fake:
        try:
            with pytest.raises(PeerError) as error:
                decode(LlamaServer(fake.url, limit_s=0.2))
        finally:
            is_over.set()

    assert "gave no answer within 0.2 s" in str(error.value)


def test_a_server_that_is_not_there_is_said() -> None:
    with fake_server({}) as fake:
        url = fake.url

    with pytest.raises(
        PeerError, match=r"cannot be reached \(Connection refused\): start it as docs/bench.md says"
    ):
        check(LlamaServer(url))


def test_a_name_that_no_machine_or_path_can_have_is_not_reached() -> None:
    with fake_server({}) as fake:
        for url in (f"http://{'x' * 70}.example", f"{fake.url}/é"):
            with pytest.raises(PeerError, match="cannot be reached"):
                check(LlamaServer(url))


@pytest.mark.parametrize(
    "url", ["", "localhost:8012", "https://x", "http://", "http://x:port", "http://[::1"]
)
def test_what_is_no_address_is_said(url: str) -> None:
    with pytest.raises(BadInput, match=r"is not an address of llama-server: write http://HOST:PORT"):
        LlamaServer(url)
