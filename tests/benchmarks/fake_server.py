"""A llama-server on loopback that answers as a test says: rightly, wrongly, slowly, or with garbage."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], tuple[int, bytes]]
"""From a request's body to a status and the bytes of the answer."""

MODELS = {"data": [{"id": "tiny.gguf", "meta": {"n_embd": 64, "n_vocab": 300}}]}


def said(found: object, status: int = 200) -> Answer:
    """Always the same JSON."""
    return lambda body: (status, json.dumps(found).encode())


def raw(data: bytes, status: int = 200) -> Answer:
    """Always the same bytes."""
    return lambda body: (status, data)


def completion(body: dict[str, Any]) -> tuple[int, bytes]:
    """As many tokens as are wanted, 10 ms each."""
    n = body["n_predict"]
    timings = {
        "prompt_ms": 500.0,
        "prompt_n": len(body["prompt"]),
        "predicted_ms": 10.0 * (n - 1),
        "predicted_n": n,
    }
    return 200, json.dumps(
        {"tokens": [1, 2, 3, 4] * n, "timings": timings} | {"tokens": ([1, 2, 3, 4] * n)[:n]}
    ).encode()


def streamed(*texts: str, n_evaluated: int = 12, stop: bool = True) -> Answer:
    """Server-sent events, one a token."""
    events = [
        {"content": text, "tokens_predicted": n, "stop": False, "timings": {"prompt_n": n_evaluated}}
        for n, text in enumerate(texts, 1)
    ]
    if stop:
        last = {
            "content": "",
            "tokens_predicted": len(texts),
            "stop": True,
            "timings": {"prompt_n": n_evaluated},
        }
        events.append(last)
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return raw(data.encode())


GOOD: dict[str, Answer] = {
    "/v1/models": said(MODELS),
    "/completion": completion,
    "/slots": said([{"id": 0, "is_processing": False}]),
    "/infill": streamed("a", "b", " = 1", "\n", "c"),
}


class FakeServer:
    """What it was asked, and where."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[dict[str, Any]] = []


@contextmanager
def fake_server(answers: dict[str, Answer]) -> Iterator[FakeServer]:
    """Serve until the block ends; a path that is not named is answered as a good server would."""
    known = {**GOOD, **answers}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: dict[str, Any]) -> None:
            made.bodies.append(body)
            status, data = known[self.path](body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = FakeServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
