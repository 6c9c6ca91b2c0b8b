"""From a key that goes down to its ghost text in the page, measured inside the page.

The clock starts with the key's own time stamp and ends when the text stands in the document, before it is painted.
Of the time, VS Code itself waits about 50 ms before it asks an extension: `stub_extension` tells what is left to win.
"""

import statistics
from dataclasses import dataclass

from tests.e2e.workbench import READ_GHOST, Workbench

# The times of the key and of the first ghost text that is another than before.
START_CLOCK = f"""() => {{
  const read = {READ_GHOST};
  const clock = window.keyToGhost = {{}};
  addEventListener('keydown', (event) => {{ clock.key_ms ??= event.timeStamp; }}, {{ capture: true, once: true }});
  clock.observer = new MutationObserver(() => {{
    if (clock.key_ms === undefined || clock.ghost_ms !== undefined || read() === null) return;
    clock.ghost_ms = performance.now();
    clock.observer.disconnect();
  }});
  clock.observer.observe(document.body, {{ childList: true, subtree: true, attributes: true, characterData: true }});
}}"""
READ_CLOCK = "() => window.keyToGhost.ghost_ms - window.keyToGhost.key_ms"


@dataclass(frozen=True, slots=True)
class Latency:
    """How long keys took to their ghost text."""

    samples_ms: tuple[float, ...]
    """In the order that they were typed in."""

    @property
    def median_ms(self) -> float:
        return statistics.median(self.samples_ms)

    def __str__(self) -> str:
        low, high = min(self.samples_ms), max(self.samples_ms)
        return f"median {self.median_ms:.0f} ms of {len(self.samples_ms)} keys, {low:.0f} to {high:.0f} ms"


def measure(workbench: Workbench, keys: str) -> Latency:
    """Type these keys, with no ghost text on the screen before any of them. The first is not counted."""
    samples = [key_to_ghost_ms(workbench, key) for key in keys]
    return Latency(tuple(samples[1:]))


def key_to_ghost_ms(workbench: Workbench, key: str) -> float:
    """One key; its ghost text is hidden again."""
    workbench.page.evaluate(START_CLOCK)
    workbench.type(key)
    workbench.wait_for_ghost()
    elapsed: float = workbench.page.evaluate(READ_CLOCK)
    workbench.press("Escape")
    workbench.wait_for_no_ghost()
    return elapsed
