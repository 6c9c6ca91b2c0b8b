"""What importing the package costs, and what its bar shows."""

import json
import subprocess
import sys

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
