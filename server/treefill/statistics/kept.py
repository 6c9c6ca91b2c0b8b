"""How much of an accepted suggestion is still there after a while."""

from collections import Counter


def kept_share(written: str, text: str) -> float:
    """The share of the characters of `written`, by lines, that `text` still has.

    Lines count without the blanks around them, wherever they stand, each as often as it is there. The last line of
    `written` may have been written on: it is there if a line begins with it.
    """
    *lines, last = _lines(written) or [""]
    if not last:
        return 1.0
    there = Counter(_lines(text))
    n_kept = 0
    for line in lines:
        if there[line] > 0:
            there[line] -= 1
            n_kept += len(line)
    if any(n > 0 and line.startswith(last) for line, n in there.items()):
        n_kept += len(last)
    return n_kept / (sum(map(len, lines)) + len(last))


def _lines(text: str) -> list[str]:
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line]
