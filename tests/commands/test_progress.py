"""What a terminal shows while a model is pulled."""

import io
import json
import time

import pytest
from rich.console import Console
from treefill.commands.progress import LineProgress, TerminalProgress


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


def test_a_program_is_told_each_percent_once(capsys: pytest.CaptureFixture[str]) -> None:
    progress = LineProgress()

    progress.say("About to download.")
    progress.start("Downloading", 1000)
    for _ in range(100):
        progress.advance(2)
    progress.finish()

    first, *lines = capsys.readouterr().err.splitlines()
    told = [json.loads(line)["progress"] for line in lines]
    assert first == "About to download."
    assert [each["done"] for each in told] == list(range(0, 201, 10))
    assert {(each["label"], each["total"]) for each in told} == {("Downloading", 1000)}
