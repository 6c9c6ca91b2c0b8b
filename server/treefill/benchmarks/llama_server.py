"""A running llama-server, as a `Contender` and as what an editor's plugin asks to fill in.

Its own times are believed: they leave out HTTP, which is to its favour. Whatever it does instead of answering is said
in one sentence.
"""

import http.client
import json
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from treefill.benchmarks.contenders import Decoded
from treefill.engine.api import TokenId
from treefill.errors import BadInput, PeerError

LIMIT_S = 120.0
"""The longest silence of a server that is working."""
CONNECT_LIMIT_S = 5.0
MAX_BYTES = 10_000_000
MAX_NUMBER = 1e12
"""No time and no count is as large; what is not a number isn't less, either."""
IDLE_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Piece:
    """What has arrived of a text that is being filled in."""

    text: str
    """All of it so far."""
    n_tokens: int
    ms: float
    """Since the request was sent."""
    n_evaluated: int
    """Prompt tokens that were not cached."""


class LlamaServer:
    """The server at one address."""

    def __init__(self, url: str, limit_s: float = LIMIT_S) -> None:
        self.name = f"llama-server at {url}"
        self.n_threads: int | None = None
        self.pid: int | None = None
        self._host, self._port, self._path = _parts(url)
        self._limit_s = limit_s

    def check_model(self, name: str, config: Mapping[str, Any]) -> None:
        """See that the same architecture is behind the address. Raises `PeerError`."""
        try:
            served = self._json("GET", "/v1/models")["data"][0]
            meta = served["meta"]
            theirs = (int(meta["n_embd"]), int(meta["n_vocab"]))
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            raise self._no_llama_server("what it says of its model cannot be read") from None
        ours = (int(config["hidden_size"]), int(config["vocab_size"]))
        if theirs != ours:
            model = str(served.get("id", "a model"))[-80:]
            raise PeerError(
                f"{self.name} runs {model!r}, which is {theirs[0]} wide with a vocabulary of {theirs[1]}, and ours is "
                f"{name} with {ours[0]} and {ours[1]}: start it on the file that `make bench-peers` made."
            )

    def set_threads(self, n_threads: int) -> None:
        """Whoever starts the server decides; see `-t`."""

    def prefill(self, ids: Sequence[TokenId]) -> float:
        """Milliseconds of a cold prompt."""
        done = self._complete(ids, 1, cached=False)
        self._complete(ids, 1, cached=True)  # so that `decode` finds it in the cache
        return self._number(done, "timings", "prompt_ms")

    def decode(self, ids: Sequence[TokenId], n_tokens: int) -> Decoded:
        """Go on after `ids`."""
        done = self._complete(ids, n_tokens, cached=True)
        tokens = done.get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
            raise self._no_llama_server("its answer has no tokens")
        if len(tokens) != n_tokens:
            raise PeerError(
                f"{self.name} wrote {len(tokens)} of {n_tokens} tokens, so it cannot be timed: start it with a larger "
                "context (`-c`)."
            )
        return Decoded(tuple(tokens), self._number(done, "timings", "predicted_ms") / max(1, n_tokens - 1))

    def infill(self, body: Mapping[str, Any]) -> Generator[Piece]:
        """Ask at `/infill` and yield what arrives, token by token; whoever stops listening cancels the request."""
        began = time.perf_counter()
        connection = self._send("POST", "/infill", {**body, "stream": True, "timings_per_token": True})
        try:
            text = ""
            for event in self._events(connection):
                ms = (time.perf_counter() - began) * 1000
                text += str(event.get("content", ""))
                n_tokens = self._number(event, "tokens_predicted")
                n_evaluated = self._number(event, "timings", "prompt_n")
                yield Piece(text, int(n_tokens), ms, int(n_evaluated))
        finally:
            connection.close()

    def wait_idle(self) -> None:
        """Wait until a cancelled request has stopped, so that it takes nothing from what is timed next."""
        ends_at = time.monotonic() + self._limit_s
        while any(slot.get("is_processing") for slot in self._slots()):
            if time.monotonic() > ends_at:
                raise self._too_slow()
            time.sleep(IDLE_POLL_S)

    def close(self) -> None:
        """It is not ours to end."""

    def _complete(self, ids: Sequence[TokenId], n_tokens: int, *, cached: bool) -> dict[str, Any]:
        body = {
            "prompt": list(ids),
            "n_predict": n_tokens,
            "temperature": 0.0,
            "cache_prompt": cached,
            "return_tokens": True,
        }
        return self._json("POST", "/completion", body)

    def _slots(self) -> list[dict[str, Any]]:
        found = self._parsed("GET", "/slots")
        if not isinstance(found, list) or not all(isinstance(slot, dict) for slot in found):
            raise self._no_llama_server("its answer to /slots is no list of objects")
        return found

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        found = self._parsed(method, path, body)
        if not isinstance(found, dict):
            raise self._no_llama_server(f"its answer to {path} is not an object")
        return found

    def _parsed(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        connection = self._send(method, path, body)
        try:
            return json.loads(self._read(connection.getresponse().read, MAX_BYTES))
        except (ValueError, RecursionError):
            raise self._no_llama_server(f"its answer to {path} is not JSON") from None
        finally:
            connection.close()

    def _events(self, connection: http.client.HTTPConnection) -> Generator[dict[str, Any]]:
        """The objects of a stream of server-sent events."""
        response = connection.getresponse()
        while line := self._read(response.readline, MAX_BYTES):
            if not line.startswith(b"data:"):
                continue
            data = line.removeprefix(b"data:").strip()
            if data == b"[DONE]":
                return
            try:
                event = json.loads(data)
            except (ValueError, RecursionError):
                raise self._no_llama_server("it streams something that is not JSON") from None
            if not isinstance(event, dict):
                raise self._no_llama_server("it streams something that is not an object")
            yield event
            if event.get("stop") is True:
                return
        raise PeerError(
            f"{self.name} broke off in the middle of an answer: look at its log, and start it again."
        )

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> http.client.HTTPConnection:
        """A connection on which a good answer has begun."""
        connection = _Connection(self._host, self._port, timeout=CONNECT_LIMIT_S)
        try:
            connection.connect()
            connection.sock.settimeout(self._limit_s)
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, self._path + path, data, {"Content-Type": "application/json"})
            response = connection.begun()
        except TimeoutError:
            connection.close()
            raise self._too_slow() from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # the last of a name that is none
            connection.close()
            raise self._unreachable(error) from None
        if response.status != 200:
            said = _message(self._read(response.read, MAX_BYTES))
            connection.close()
            raise PeerError(
                f"{self.name} refused {path} ({response.status}{said}): wait until its model is loaded, and start it "
                "as docs/bench.md says."
            )
        return connection

    def _read(self, read: Any, n_most: int) -> bytes:
        try:
            data: bytes = read(n_most)
        except TimeoutError:
            raise self._too_slow() from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        return data

    def _number(self, found: Mapping[str, Any], *names: str) -> float:
        value: Any = found
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not abs(value) < MAX_NUMBER:
            raise self._no_llama_server(f"its answer lacks the number {'.'.join(names)}")
        return float(value)

    def _unreachable(self, error: Exception) -> PeerError:
        what = getattr(error, "strerror", None) or type(error).__name__
        return PeerError(
            f"{self.name} cannot be reached ({what}): start it as docs/bench.md says, or name another address."
        )

    def _too_slow(self) -> PeerError:
        return PeerError(
            f"{self.name} gave no answer within {self._limit_s:g} s: see whether it hangs, or give it a smaller model."
        )

    def _no_llama_server(self, why: str) -> PeerError:
        return PeerError(f"What answers as {self.name} is none ({why}): check the address.")


class _Connection(http.client.HTTPConnection):
    """A connection whose response is asked for once, and handed out to whoever reads it."""

    _response: http.client.HTTPResponse | None = None

    def begun(self) -> http.client.HTTPResponse:
        """Wait for the answer's first lines."""
        self._response = super().getresponse()
        return self._response

    def getresponse(self) -> http.client.HTTPResponse:
        """The answer that has begun."""
        return self._response or self.begun()

    def close(self) -> None:
        """Close both: where the server closes after its answer, that one holds the socket."""
        super().close()
        if self._response is not None:
            self._response.close()


def _parts(url: str) -> tuple[str, int, str]:
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme != "http" or not parts.hostname:
        raise BadInput(
            f"{url!r} is not an address of llama-server: write http://HOST:PORT, as in http://127.0.0.1:8012."
        )
    return parts.hostname, port, parts.path.rstrip("/")


def _message(data: bytes) -> str:
    try:
        return ": " + str(json.loads(data)["error"]["message"])[:120].rstrip(".")
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
