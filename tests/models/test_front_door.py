"""What importing the package costs, and what its bar shows."""

import io
import json
import subprocess
import sys
import time

from rich.console import Console
from treefill.models import TerminalProgress

SLOW = ["torch", "transformers", "gguf", "huggingface_hub", "tokenizers", "safetensors"]


def loaded_after(code: str) -> list[str]:
    """Which slow libraries a fresh interpreter has loaded after running `code`."""
    script = (
        f"{code}\nimport json, sys\nprint(json.dumps([name for name in {SLOW!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded: list[str] = json.loads(done.stdout)
    return loaded


def test_importing_the_package_loads_no_slow_library() -> None:
    assert loaded_after("import treefill.models; treefill.models.ModelStore().list()") == []


def test_converting_loads_no_torch() -> None:
    loaded = loaded_after("import treefill.models.convert, treefill.models.source, gguf, tokenizers")

    assert loaded == ["gguf", "tokenizers"]


def test_the_bar_shows_work_amount_and_rate() -> None:
    out = io.StringIO()
    progress = TerminalProgress(Console(file=out, force_terminal=True, width=100))

    progress.say("About to download [2] MB.")
    progress.start("Down[b]loading", 2_000_000)
    for _ in range(4):
        progress.advance(500_000)
        time.sleep(0.01)  # a rate needs two moments
    progress.finish()

    text = out.getvalue()
    assert "About to download [2] MB." in text
    assert "Down[b]loading" in text
    assert "2.0/2.0 MB" in text
    assert "/s" in text
