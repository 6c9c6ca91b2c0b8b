"""What a terminal shows while a model is pulled."""

import io
import time

from rich.console import Console
from treefill.commands.progress import TerminalProgress


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
