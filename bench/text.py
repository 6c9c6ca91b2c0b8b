"""Milliseconds that a keystroke costs in the text of an open file: `python bench/text.py`.

The answers are checked first against Python's own strings. Then come a file of 30 MB in ASCII, one with emoji, and
one line of 5 MB; an edit in the middle of each, best of several rounds, on a text that was never asked anything
before: so `replace` starts from a text as the edit before left it, and the rest from the one it makes.
Times are this machine's; look at the load before you believe them.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import psutil
from treefill.text import Position, PositionEncoding, Text

UTF_16 = PositionEncoding.UTF_16
NEW = "é🙂"
FILES = {
    "30 MB of ASCII": "total = total + 1  # one more\n" * 1_000_000,
    "30 MB with emoji": "total = '🙂é' + 'a'  # more\n" * 970_000,
    "one line of 5 MB": "total=1;" * 625_000,
}
"""What it is → the text."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of one file, in milliseconds but where a field says otherwise."""

    file: str
    """Which of the files."""
    machine: str
    """Processor and number of cores."""
    load: float
    """Processes that wanted a core just before the file was timed."""
    n_bytes: int
    """The file's size in UTF-8."""
    open_ms: float
    """To take the text up."""
    replace_ms: float
    """To type in the middle of it."""
    checksum_ms: float
    """The edited text's checksum."""
    position_at_ms: float
    """The line and UTF-16 character of the place typed at."""
    offset_at_ms: float
    """And back."""
    keystroke_ms: float
    """All four, one after the other."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print one JSON object a file")
    options = parser.parse_args()
    results = [measure(name, text, options.rounds) for name, text in FILES.items()]
    if options.json:
        print("\n".join(json.dumps(asdict(result)) for result in results))
        return
    print(f"{results[0].machine}, load {results[0].load:.1f} to {results[-1].load:.1f}; all in ms")
    print(
        f"{'':18}{'open':>8}{'replace':>9}{'checksum':>10}{'position_at':>13}{'offset_at':>11}{'all four':>10}"
    )
    for result in results:
        print(
            f"{result.file:18}{result.open_ms:8.0f}{result.replace_ms:9.2f}{result.checksum_ms:10.2f}"
            f"{result.position_at_ms:13.2f}{result.offset_at_ms:11.2f}{result.keystroke_ms:10.2f}"
        )


def measure(name: str, characters: str, rounds: int) -> Result:
    """Check, then time, best of `rounds`."""
    load = psutil.getloadavg()[0]
    middle = len(characters) // 2
    check(characters, middle)
    best = [float("inf")] * 4
    keystroke_ms = float("inf")
    open_ms = min(timed_ms(lambda: Text.of(characters)) for _ in range(3))
    text = Text.of(characters)
    for _ in range(rounds):
        text = text.replace(middle, middle + 1, "x")
        times = timed_keystroke(text, middle)
        best = [min(pair) for pair in zip(best, times, strict=True)]
        keystroke_ms = min(keystroke_ms, sum(times))
    return Result(
        name,
        f"{platform.machine()} with {psutil.cpu_count()} cores",
        load,
        len(characters.encode()),
        open_ms,
        *best,
        keystroke_ms,
    )


def timed_keystroke(text: Text, middle: int) -> list[float]:
    """Milliseconds of replace, checksum, position_at and offset_at."""
    edited, position = text, Position(0, 0)

    def replace() -> None:
        nonlocal edited
        edited = text.replace(middle, middle, NEW)

    def position_at() -> None:
        nonlocal position
        position = edited.position_at(middle + len(NEW), UTF_16)

    return [
        timed_ms(replace),
        timed_ms(lambda: edited.checksum),
        timed_ms(position_at),
        timed_ms(lambda: edited.offset_at(position, UTF_16)),
    ]


def check(characters: str, middle: int) -> None:
    """A wrong answer is not worth timing."""
    expected = characters[:middle] + NEW + characters[middle:]
    edited = Text.of(characters).replace(middle, middle, NEW)
    line_start = 1 + expected.rfind("\n", 0, middle)
    before = expected[line_start : middle + len(NEW)]
    position = Position(expected.count("\n", 0, middle), len(before.encode("utf-16-le")) // 2)
    is_right = (
        str(edited) == expected
        and edited.checksum == Text.of(expected).checksum
        and edited.position_at(middle + len(NEW), UTF_16) == position
        and edited.offset_at(position, UTF_16) == middle + len(NEW)
    )
    if not is_right:
        raise SystemExit("bench: an edited text is not what Python's strings make of it; nothing was timed.")


def timed_ms(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
