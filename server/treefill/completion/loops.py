"""Finding the place where a model begins to say the same again and again, and which lines tell of that."""

import re

MAX_PERIOD_LINES = 4
MAX_LINE_REPEATS = 2
"""So often may the same lines stand in a row; one more is a loop."""
_LOOP_IN_LINE = re.compile(r"([^\n]{1,32}?)\1{7,}")
_MIN_LOOP_CHARS = 40


def find_loop(text: str) -> int | None:
    """Where a loop's first repetition begins: what stands before it is said once. None without a loop."""
    found = [place for place in (_loop_of_lines(text), _loop_in_line(text)) if place is not None]
    return min(found, default=None)


def is_telling(line: str) -> bool:
    """False for lines like `}` or `);`, which often come again."""
    return re.search(r"\w", line) is not None


def _loop_of_lines(text: str) -> int | None:
    """Up to four lines that come a third time; blank lines do not count."""
    filled: list[tuple[str, int]] = []
    offset = 0
    for line in text.split("\n"):
        is_ended = offset + len(line) < len(text)
        if line.strip() and is_ended:
            filled.append((line.strip(), offset))
        offset += len(line) + 1
    lines = [line for line, _ in filled]
    are_telling = [is_telling(line) for line in lines]
    for period in range(1, MAX_PERIOD_LINES + 1):
        n_same = 0
        for last in range(period, len(lines)):
            n_same = n_same + 1 if lines[last] == lines[last - period] else 0
            if n_same >= period * MAX_LINE_REPEATS and any(are_telling[last - period + 1 : last + 1]):
                first = last + 1 - period * (MAX_LINE_REPEATS + 1)
                return max(0, filled[first + period][1] - 1)
    return None


def _loop_in_line(text: str) -> int | None:
    """Something with a letter or digit that comes eight times and more within one line."""
    for found in _LOOP_IN_LINE.finditer(text):
        if len(found.group()) >= _MIN_LOOP_CHARS and re.search(r"\w", found.group(1)):
            return found.start() + len(found.group(1))
    return None
