"""How soon an editor is answered after its start: `make start`. With `--cold` the system's file cache is dropped first.

The answer is checked first: the suggestion of every round must be the same. Times are this machine's; look at the load
before you believe them.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from lsprotocol import types
from pygls.lsp.client import LanguageClient

CODE = "def fibonacci(n):\n    if n < 2:\n        return n\n    return \n"
LIMIT_S = 30.0


async def one_start(folder: Path) -> dict[str, Any]:
    """Start a server with a core of its own, and wait for its first suggestion."""
    own = {"TREEFILL_RUNTIME_DIR": str(folder), "TREEFILL_CORE_LINGER_S": "0", "TREEFILL_STATISTICS": "false"}
    os.environ.update(own)
    began = time.time()
    client = LanguageClient("treefill-bench", "1")
    await client.start_io(sys.executable, "-m", "treefill", "serve")
    inline = types.InlineCompletionClientCapabilities()
    capabilities = types.ClientCapabilities(
        text_document=types.TextDocumentClientCapabilities(inline_completion=inline)
    )
    await client.initialize_async(types.InitializeParams(capabilities, os.getpid()))
    initialised = time.time()
    client.initialized(types.InitializedParams())
    uri = (folder / "fib.py").as_uri()
    item = types.TextDocumentItem(uri, "python", 1, CODE)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
    params = types.InlineCompletionParams(context, types.TextDocumentIdentifier(uri), types.Position(3, 11))
    answer: Any = None
    while not (answer and answer.items) and time.time() < began + LIMIT_S:
        await asyncio.sleep(0.01)
        answer = await client.text_document_inline_completion_async(params)
    answered = time.time()
    told: Any = await client.workspace_execute_command_async(
        types.ExecuteCommandParams("treefill.explain", [uri])
    )
    front = next(each for each in psutil.Process().children(True) if "serve" in each.cmdline())
    core = next(each for each in psutil.process_iter(["cmdline"]) if str(folder) in str(each.info["cmdline"]))
    found = {
        "initialize_s": initialised - began,
        "first_completion_s": answered - began,
        # The system's start times have a zero of their own, so they are compared with each other alone.
        "first_completion_after_core_start_s": answered - began - (core.create_time() - front.create_time()),
        "first_token_after_core_start_s": answered
        - began
        - (core.create_time() - front.create_time())
        - (told["total_ms"] - told["ttft_ms"]) / 1000,
        "front_mb": front.memory_info().rss / 1e6,
        "core_mb": core.memory_info().rss / 1e6,
        "text": answer.items[0].insert_text,
    }
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    core.wait(20)
    return found


def main() -> None:
    """Start again and again; print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="drop the system's file cache before each (root)")
    options = parser.parse_args()
    load = psutil.getloadavg()[0]
    rounds = []
    for _ in range(options.rounds):
        if options.cold:
            subprocess.run(["sync"], check=True)
            Path("/proc/sys/vm/drop_caches").write_text("3")
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(asyncio.run(one_start(Path(folder))))
    texts = {found.pop("text") for found in rounds}
    assert len(texts) == 1, f"the suggestions differ: {texts}"
    medians = {name: round(statistics.median(found[name] for found in rounds), 2) for name in rounds[0]}
    print(json.dumps({"load": round(load, 1), "cold": options.cold, "rounds": len(rounds), **medians}))


if __name__ == "__main__":
    main()
