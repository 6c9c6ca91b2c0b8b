"""What encloses a piece of code, by the names that its grammar has for it."""

from time import perf_counter

from treefill.syntax.baseline import Baseline
from treefill.syntax.parse import TIME_LIMIT_S, encoded, parse


def kind_around(baseline: Baseline, start: int, end: int, text: str) -> str:
    """What encloses `text` in the place of the document's characters from `start` to `end`: the node and its parent.

    `call/expression_statement` for `Equal(a, b)` behind `self.assert`. Empty where it can't be told: in a fence, where
    there is no time, and where the grammar has no reading for the place.
    """
    begin, stop = start - baseline.start, end - baseline.start
    if baseline.fence or begin < 0 or stop > len(baseline.text) or not text.strip():
        return ""
    head, tail = encoded(baseline.text[:begin]), encoded(baseline.text[stop:])
    written = encoded(text)
    data = head + written + tail
    parsed = (
        baseline.before
        if data == baseline.before.data
        else parse(data, baseline.grammar, baseline.before, perf_counter() + TIME_LIMIT_S)
    )
    if parsed is None:
        return ""
    first = len(head) + len(written) - len(written.lstrip())
    last = len(head) + len(written.rstrip())
    node = parsed.tree.root_node.named_descendant_for_byte_range(first, last)
    while node is not None and first <= node.start_byte and node.end_byte <= last:
        node = node.parent
    if node is None or node.is_error or (node.parent is not None and node.parent.is_error):
        return ""
    return f"{node.type}/{node.parent.type}" if node.parent is not None else node.type
