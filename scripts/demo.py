"""`make demo`: complete the files in examples/ and show them as an editor would, the suggestion marked."""

import time
from pathlib import Path

from rich.console import Console
from rich.text import Text
from treefill.app import App
from treefill.commands.progress import TerminalProgress
from treefill.completion import Declined, Suggestion, complete
from treefill.engine.api import CancelFlag
from treefill.settings import load_settings
from treefill.syntax.languages import language_of
from treefill.text import line_bounds, offset_at, read_document

EXAMPLES = Path(__file__).parent.parent / "examples"
PLACES = [
    ("inventory.py", 21, 13),
    ("inventory.py", 27, 33),
    ("inventory.py", 36, 13),
    ("matrix.cpp", 13, 7),
    ("matrix.cpp", 22, 34),
    ("shop.sql", 19, 16),
    ("shop.sql", 28, 7),
]


def main() -> None:
    """Load the model once, then answer each place."""
    console = Console(highlight=False)
    app = App(load_settings().settings, progress=TerminalProgress())
    files = app.store.pull(app.settings.model or app.store.current())
    console.print(f"Loading {files.name} …", style="dim")
    engine = app.open_engine()
    for name, line, column in PLACES:
        document = read_document(EXAMPLES / name, language_of(name).id)
        offset = offset_at(document, line, column)
        started = time.perf_counter()
        answer = complete(app.completion_request(document, offset), engine, CancelFlag())
        elapsed_ms = (time.perf_counter() - started) * 1000
        console.print(f"\nexamples/{name} {line}:{column}", style="bold")
        console.print(_shown(document.text, offset, answer))
        if answer.generation:
            g = answer.generation
            reuse = f"{g.n_reused_tokens} of {g.n_prompt_tokens} prompt tokens reused, {g.n_new_tokens} new"
            console.print(f"  {elapsed_ms:.0f} ms ({reuse})", style="dim")
    engine.close()


def _shown(text: str, offset: int, answer: Suggestion | Declined) -> Text:
    """The cursor's line and the two above, with the suggestion in green between » and «."""
    start, end = line_bounds(text, offset)
    for _ in range(2):
        start, _ = line_bounds(text, max(0, start - 1))
    if isinstance(answer, Declined):
        return Text(text[start:offset]) + Text(f"  (nothing: {answer.sentence})", "yellow")
    ghost = Text("»" + answer.text + "«", "green")
    return Text(text[start : answer.start]) + ghost + Text(text[answer.end : end])


if __name__ == "__main__":
    main()
