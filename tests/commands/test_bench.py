"""`treefill bench` from its arguments to one sentence, without a model."""

from pathlib import Path

import pytest
from treefill.cli import cli
from treefill.errors import TreefillError
from typer.testing import CliRunner


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["decode", "--against", "llama"], "--against 'llama' names no peer: write llama-server=URL"),
        (["decode", "--against", "llama-server"], "names no peer"),
        (["decode", "--against", "llama-server="], "names no peer"),
        (["decode", "--against", "transformers=x"], "names no peer"),
        (["load", "--against", "transformers"], "--against transformers cannot be measured here"),
        (["keystrokes", "--against", "llama.cpp=build/peers/source"], "use llama-server"),
        (["prefill", "--sizes", "512,many"], "--sizes '512,many' is no list of numbers from 64 to 30000"),
        (["prefill", "--sizes", ""], "is no list of numbers"),
        (["prefill", "--sizes", "9" * 5000], "is no list of numbers"),
        (["load", "--busy", "1,99"], "--busy '1,99' is no list of numbers from 0 to 64"),
        (["keystrokes", "missing.py"], "does not exist"),
        (["decode"], "run 'treefill model pull qwen2.5-coder-0.5b'"),
        (["decode", "--model", "no-such-model"], "no-such-model"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.setenv("TREEFILL_CACHE_DIR", str(tmp_path))

    with pytest.raises(TreefillError) as error:
        CliRunner().invoke(cli, ["bench", *arguments], catch_exceptions=False)

    assert sentence in str(error.value)
    assert "\n" not in str(error.value)
