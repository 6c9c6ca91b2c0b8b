"""A peer behind a small program of ours that speaks lines: llama.cpp's library, or transformers.

    the program       →  ready SOME WORDS ABOUT ITSELF
    threads 2         →  ok 0.1                          milliseconds, of this as of every line
    forget            →  ok 0.1                          the cache is empty
    prefill 12 7 9    →  ok 53.0 345                     evaluates what is not cached; the likeliest token after it
    decode 3          →  ok 99.1 88 12 7                 so many tokens after that one
                      →  error ONE SENTENCE              and the program ends

Programs are named by a folder's `peer.json`, as `make bench-peers` writes it:
`{"name": "…", "command": ["./llama-driver", "serve", "{gguf}", "{n_context}"], "models": {"NAME": "x.gguf"}}`.
Paths in it are the folder's.
"""

import contextlib
import json
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from treefill.benchmarks.contenders import Decoded
from treefill.engine.api import TokenId
from treefill.errors import PeerError

LIMIT_S = 300.0
"""An answer that takes longer does not come."""
MAX_LINE_BYTES = 1_000_000


class Driver:
    """A `Contender` behind a program that speaks lines."""

    def __init__(self, name: str, command: Sequence[str], limit_s: float = LIMIT_S) -> None:
        self.name = name
        self.n_threads: int | None = 1
        self.pid: int | None = None
        self._limit_s = limit_s
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        except OSError as error:
            raise PeerError(
                f"{name} cannot be started ({command[0]}: {error.strerror}): run `make bench-peers` again."
            ) from None
        self.pid = self._process.pid
        assert self._process.stdin
        assert self._process.stdout
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        self._lines = _Lines(self._stdout)
        try:
            self.about = " ".join(self._answer("ready"))
        except PeerError:
            self.close()
            raise

    def set_threads(self, n_threads: int) -> None:
        """Work on so many threads from now on."""
        self._ask("threads", n_threads)
        self.n_threads = n_threads

    def prefill(self, ids: Sequence[TokenId]) -> float:
        """Milliseconds of a cold prompt."""
        self._ask("forget")
        return self._ask("prefill", *ids)[0]

    def decode(self, ids: Sequence[TokenId], n_tokens: int) -> Decoded:
        """Go on after `ids`."""
        _, first = self._ask("prefill", *ids)
        ms, rest = self._ask("decode", n_tokens - 1)
        return Decoded((*first, *rest), ms / max(1, n_tokens - 1))

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()
        self._stdin.close()
        self._stdout.close()

    def _ask(self, *words: object) -> tuple[float, tuple[TokenId, ...]]:
        with contextlib.suppress(BrokenPipeError):  # where it has ended, what it said last tells why
            self._tell((" ".join(map(str, words)) + "\n").encode())
        answer = self._answer("ok")
        try:
            return float(answer[0]), tuple(map(int, answer[1:]))
        except (IndexError, ValueError):
            raise self._nonsense(answer) from None

    def _tell(self, line: bytes) -> None:
        """Write what may be more than a pipe holds, to a program that may not read it."""
        ends_at = time.monotonic() + self._limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE)
            while line:
                if not selector.select(max(0.0, ends_at - time.monotonic())):
                    raise self._too_slow()
                line = line[self._stdin.write(line) or 0 :]

    def _answer(self, expected: str) -> list[str]:
        try:
            line = self._lines.read(self._limit_s)
        except TimeoutError:
            raise self._too_slow() from None
        words = line.split()
        if words[:1] == ["error"]:
            raise PeerError(f"{self.name} gave up: {' '.join(words[1:])}. Run `make bench-peers` again.")
        if not words:
            raise PeerError(f"{self.name} ended without an answer: run `make bench-peers` again.")
        if words[0] != expected:
            raise self._nonsense(words)
        return words[1:]

    def _too_slow(self) -> PeerError:
        return PeerError(
            f"{self.name} gave no answer within {self._limit_s:g} s: free the machine, or use a smaller model."
        )

    def _nonsense(self, words: Sequence[str]) -> PeerError:
        said = " ".join(words)[:60]
        return PeerError(f"{self.name} said {said!r}, which is no answer: run `make bench-peers` again.")


class _Lines:
    """A pipe's lines, each within a time."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._rest = b""

    def read(self, limit_s: float) -> str:
        """One line; empty at the pipe's end. Raises `TimeoutError`."""
        ends_at = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            while b"\n" not in self._rest and len(self._rest) < MAX_LINE_BYTES:
                if not selector.select(max(0.0, ends_at - time.monotonic())):
                    raise TimeoutError
                data = os.read(self._pipe.fileno(), 1 << 16)
                if not data:
                    break
                self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")


def open_driver(folder: Path, model: str, n_context: int) -> Driver:
    """The peer that a folder's `peer.json` describes, on the weights of `model`."""
    described = _described(folder / "peer.json")
    gguf = described["models"].get(model)
    if gguf is None:
        raise PeerError(
            f"{folder} has no weights of {model}: run `make bench-peers MODEL={model}`, which makes them from the "
            "same file."
        )
    given = {"{gguf}": str((folder / gguf).resolve()), "{n_context}": str(n_context)}
    program, *arguments = (_filled_in(word, given) for word in described["command"])
    is_here = program.startswith("./")
    return Driver(described["name"], [str((folder / program).resolve()) if is_here else program, *arguments])


def _filled_in(word: str, given: Mapping[str, str]) -> str:
    """The word with what is given in the place of each name, and nothing else changed: braces are no language here."""
    for name, value in given.items():
        word = word.replace(name, value)
    return word


def _described(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise PeerError(f"{path} does not exist: run `make bench-peers`, or name the folder that it made.")
    try:
        found = json.loads(path.read_text("utf-8"))
        command, models = found["command"], found["models"]
        is_sound = (
            isinstance(command, list)
            and len(command) > 0
            and all(map(_is_word, [found["name"], *command, *models.values()]))
        )
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
        is_sound = False
    if not is_sound:
        raise PeerError(f"{path} does not describe a peer: run `make bench-peers` again.")
    described: Mapping[str, Any] = found
    return described


def _is_word(value: object) -> bool:
    """True of what a program can be given: text without zeros and half characters."""
    if not isinstance(value, str) or "\0" in value:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in value)
