"""A suggestion that the user types along is offered on, without asking anybody.

A suggestion is a text that the document may come to have. As long as what is typed leads there, the rest of it is
offered; brackets that the editor closes or that are typed over on the way don't matter, because it is the outcome that
is compared and not the keys.
"""

from collections import OrderedDict
from dataclasses import dataclass

from treefill.core.messages import AnswerItem
from treefill.text import Text

WINDOW = 2_000
"""Characters on either side of a suggestion that must be what they were."""
MAX_AUTO_CLOSED = 32
"""Characters right of the cursor that may have come since, and that the rest of the suggestion writes again."""
N_KEPT = 64


@dataclass(frozen=True, slots=True)
class Remembered:
    """A suggestion and what stood around it."""

    start: int
    """Where it begins, in code points."""
    text: str
    before: str
    """What stood before `start`, as far as the window goes."""
    after: str
    """What stood after the text that it replaces."""


def remember(text: Text, item: AnswerItem) -> Remembered:
    """The item, made for `text`."""
    return Remembered(
        item.start,
        item.text,
        text.slice(item.start - WINDOW, item.start),
        text.slice(item.end, item.end + WINDOW),
    )


def rest_of(remembered: Remembered, text: Text, offset: int) -> AnswerItem | None:
    """What is still to be typed of a suggestion at `offset`, or None where it doesn't lead there any more."""
    n_typed = offset - remembered.start
    rest = remembered.text[n_typed:] if n_typed >= 0 else ""
    if not rest.strip():
        return None
    written = remembered.before + remembered.text[:n_typed]
    if text.slice(remembered.start - WINDOW, offset) != written:
        return None
    end = _end_of_replaced(remembered, text, offset)
    if end is None:
        return None
    between = text.slice(offset, end)
    if between not in rest or between == rest:  # the same again: all of it is written already
        return None
    return AnswerItem(offset, end, rest, "typed through")


def _end_of_replaced(remembered: Remembered, text: Text, offset: int) -> int | None:
    """Where the text that stood after the suggestion begins now; only on the cursor's line."""
    _, line_end = text.line_bounds(offset)
    following = text.slice(offset, offset + MAX_AUTO_CLOSED + WINDOW + 1)
    is_to_the_end = len(remembered.after) < WINDOW
    for n_between in range(min(MAX_AUTO_CLOSED, line_end - offset) + 1):
        window = following[n_between : n_between + WINDOW + is_to_the_end]
        if window == remembered.after:
            return offset + n_between
    return None


class TypedThrough:
    """The latest suggestions, by document."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], Remembered] = OrderedDict()
        self._n_kept = 0

    def keep(self, uri: str, text: Text, item: AnswerItem) -> None:
        """Remember an item that was made for `text`."""
        self._n_kept += 1
        self._kept[uri, self._n_kept] = remember(text, item)
        if len(self._kept) > N_KEPT:
            self._kept.popitem(last=False)

    def find(self, uri: str, text: Text, offset: int) -> AnswerItem | None:
        """The rest of the newest suggestion that still leads somewhere."""
        for (owner, _), remembered in reversed(self._kept.items()):
            found = rest_of(remembered, text, offset) if owner == uri else None
            if found is not None:
                return found
        return None

    def forget(self, uri: str | None = None) -> None:
        """Drop what is remembered of a document, or everything."""
        for key in [key for key in self._kept if uri is None or key[0] == uri]:
            del self._kept[key]
