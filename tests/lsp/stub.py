"""`python -m tests.lsp.stub serve|core`: the real commands with a scripted engine where the model would be.

What the engine does is told by the JSON file that TREEFILL_TEST_SCRIPT names; what it was asked is appended to the file
that TREEFILL_TEST_RECORD names, a JSON object a line. Both outlive a core that is killed. TREEFILL_TEST_BACK_OFF_S is
how long the front waits before it starts another core, where a test can't wait as patiently.
"""

import asyncio
import ctypes
import json
import logging
import os
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from treefill.app import connection_for, core_identity, make_service
from treefill.commands.serve import take_stdout
from treefill.core import client
from treefill.core.server import run_core
from treefill.engine.api import CancelFlag, GenerateRequest, Generation
from treefill.errors import UnknownModel
from treefill.lsp import serve_stdio
from treefill.settings import Settings

from tests.helpers.scripted_engine import ByteVocabulary, ScriptedEngine


@dataclass(frozen=True)
class Script:
    """What the stub writes, and how it misbehaves. Calls are counted from 1, over all cores of a test."""

    texts: list[str] = field(default_factory=lambda: [""])
    """The raw text of each call that is not a continuation, over and over."""
    by_end: dict[str, str] = field(default_factory=dict)
    """Texts by what the middle ends with; the longest fitting end wins over `texts`."""
    ms_per_token: float = 0
    """A token is one character."""
    load_ms: float = 0
    raises_at: list[int] = field(default_factory=list)
    hangs_at: list[int] = field(default_factory=list)
    """These calls sleep for a minute and heed no flag."""
    dies_at: list[int] = field(default_factory=list)
    """The process ends in the middle of these calls."""
    dies_on: str = ""
    """The process ends when the prompt holds this text."""
    prints: bool = False
    """Prints to stdout from Python and from C, while it loads and while it writes."""
    fails_to_load: str = ""
    """The sentence of the error that loading raises."""
    control_tokens: list[str] | None = None
    """The vocabulary's control tokens, Qwen's by default."""
    model: str = "script"
    """The model's name."""


class StubEngine(ScriptedEngine):
    """Writes what the script says, token by token, and records what it was asked."""

    name = "stub"

    def __init__(self, script: Script, record: Path) -> None:
        vocabulary = ByteVocabulary(script.control_tokens) if script.control_tokens is not None else None
        super().__init__(self._text, vocabulary=vocabulary)
        self.model = script.model
        self._script = script
        self._record = record
        self._n_texts = 0
        if script.prints:
            make_noise("loading")
        time.sleep(script.load_ms / 1000)

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        self._script = read_script()
        call = 1 + len(records(self._record))
        entry = {"call": call, "prompt": self.spelled(request), "forced": request.forced.decode()}
        entry |= {"n_begun": len(request.begun), "pid": os.getpid(), "at": time.time()}
        self._note(entry)
        if self._script.prints:
            make_noise("generating")
        if call in self._script.dies_at or (self._script.dies_on and self._script.dies_on in entry["prompt"]):
            os._exit(9)
        if call in self._script.hangs_at:
            time.sleep(60)
        if call in self._script.raises_at:
            raise RuntimeError(f"the stub was told to fail at {entry['prompt']}{entry['forced']}")
        n_written = 0

        def should_stop(text: str) -> bool:
            nonlocal n_written
            n_written += 1
            time.sleep(self._script.ms_per_token / 1000)
            return request.should_stop(text)

        generation = super().generate(replace(request, should_stop=should_stop), cancel)
        self._note({"done": call, "n_generated": n_written, "finish": generation.finish, "at": time.time()})
        return generation

    def close(self) -> None:
        self._note({"closed": os.getpid()})

    def spelled(self, request: GenerateRequest) -> str:
        """The prompt with its control tokens written out."""
        pieces, run = [], bytearray()
        for token_id in (*request.prompt_ids, -1):
            if 0 <= token_id < 256:
                run.append(token_id)
                continue
            pieces.append(run.decode(errors="replace"))
            run.clear()
            if token_id >= 256:
                pieces.append(f"⟦{self.byte_vocabulary.control_tokens[token_id - 256]}⟧")
        return "".join(pieces)

    def _text(self, middle: str) -> str:
        fitting = [end for end in self._script.by_end if middle.endswith(end)]
        if fitting:
            return self._script.by_end[max(fitting, key=len)]
        self._n_texts += 1
        return self._script.texts[(self._n_texts - 1) % len(self._script.texts)]

    def _note(self, entry: dict[str, object]) -> None:
        note(self._record, entry)


def note(record: Path, entry: dict[str, object]) -> None:
    """Add to a record."""
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def records(path: Path) -> list[dict[str, object]]:
    """The calls that were recorded, without the notes of their ends."""
    return [entry for entry in all_records(path) if "call" in entry]


def all_records(path: Path) -> list[dict[str, object]]:
    """Everything that was recorded."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def make_noise(when: str) -> None:
    """Print as libraries do, in every way there is."""
    print(f"noise while {when}", flush=True)
    libc = ctypes.CDLL(None)
    libc.puts(b"noise from C")
    libc.fflush(None)
    os.write(1, b"noise without a buffer\r50%|#####     |")


def read_script() -> Script:
    """The script as it stands: a test may change it under way."""
    return Script(**json.loads(Path(os.environ["TREEFILL_TEST_SCRIPT"]).read_text("utf-8")))


def open_stub() -> StubEngine:
    """What stands in for `App.open_engine`."""
    script = read_script()
    if script.fails_to_load:
        raise UnknownModel(script.fails_to_load)
    return StubEngine(script, Path(os.environ["TREEFILL_TEST_RECORD"]))


def main() -> None:
    """The two commands, by hand: `serve [--no-core]`, `core --address PATH` with settings on stdin."""
    level = os.environ.get("TREEFILL_TEST_LOG_LEVEL", "INFO")
    logging.basicConfig(stream=sys.stderr, level=level, format="treefill: %(message)s")
    command, *rest = sys.argv[1:]
    if command == "serve":
        if "TREEFILL_TEST_BACK_OFF_S" in os.environ:
            client.BACK_OFF_S = (float(os.environ["TREEFILL_TEST_BACK_OFF_S"]),)
        program = (sys.executable, "-m", "tests.lsp.stub")
        serve_stdio(
            lambda given: connection_for(given, "--no-core" in rest, program, open_stub), take_stdout()
        )
        return
    settings = Settings.model_validate(json.load(sys.stdin))
    note(Path(os.environ["TREEFILL_TEST_RECORD"]), {"settings": settings.model_dump(mode="json")})
    address = Path(rest[rest.index("--address") + 1])
    service = run_core(
        address, core_identity(settings), lambda: make_service(settings, open_stub), settings.core_linger_s
    )
    asyncio.run(service)


if __name__ == "__main__":
    main()
