"""Whether an edit accepts a suggestion, told from the edit alone: no protocol says so.

A suggestion is a text that the document may come to have. An edit that leads there at once has accepted it; one that
writes a beginning of it, a word or a line, has accepted that part; one that writes a key's worth is typing.

What one key can write is never an acceptance, though a suggestion may say the same: a character, a pair that the editor
closes (`()`), the blanks and comment mark of a new line. Nor is what replaces a word from before the suggestion's
place: there the editor's own list was used. Editors that gather keys before they send them (Neovim does) write two or
three characters at once: so few are taken for typing after other keys of the same suggestion.
"""

import re
from dataclasses import dataclass, field, replace

from treefill.text import Edit, Text, to_lf

MAX_SPAN = 20_000
"""Characters between a suggestion and an edit; one that is farther away or replaces more has nothing to do with it."""
MIN_AFTER_KEYS = 4
"""Fewer characters inserted at once are taken for typing, where some of the suggestion has been typed already."""

_ONE_KEY = re.compile(
    r"""
    | .                                                   # a character
    | \(\) | \[\] | \{\} | <> | "" | '' | `` | "{6} | '{6}  # a pair
    | \s* (?: (?: \* | // [/!]? | \#+ | -- | ; | % ) \s* )?   # a new line, in a comment too; Tab
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Suggested:
    """A text in place of a range of the document as it stands: what is shown."""

    start: int
    """In code points, as all offsets."""
    end: int
    text: str

    @property
    def n_characters(self) -> int:
        """What accepting it adds to the document."""
        return max(0, len(self.text) - (self.end - self.start))


@dataclass(slots=True)
class Fate:
    """What has become of an answer's suggestions so far, however often their rest was offered."""

    source: str = ""
    """Where the answer came from when it was first offered."""
    lengths: set[int] = field(default_factory=set)
    """Of all texts that were shown of it: by them an editor's command is told to mean it."""
    was_typed: bool = False
    is_partly_accepted: bool = False
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """One acceptance."""

    is_whole: bool
    is_news: bool
    """False for a further part of a suggestion that was partly accepted."""
    n_characters: int
    """Characters that the user need not type."""
    start: int = 0
    end: int = 0
    """Where it stands after the edit; both 0 where that is not known."""


class Recogniser:
    """What is shown in one document, followed through its edits."""

    def __init__(self) -> None:
        self._items: tuple[Suggested, ...] = ()
        self._fate: Fate | None = None
        self._n_left = 0
        """What accepting would have added, when last known."""

    @property
    def source(self) -> str:
        """Where that came from which is shown."""
        return self._fate.source if self._fate else ""

    def show(self, items: tuple[Suggested, ...], fate: Fate) -> None:
        """These are shown from now on, in place of what was."""
        fate.lengths.update(len(item.text) for item in items)
        self._items, self._fate, self._n_left = items, fate, items[0].n_characters

    def follow(self, before: Text, edits: tuple[Edit, ...]) -> Accepted | None:
        """What the edits accept, if anything; several at once are no acceptance that we know."""
        fate, items = self._fate, self._items
        if fate is None or not items:
            return None
        if len(edits) != 1:
            self._items = ()
            return None
        (edit,) = edits
        is_few = edit.start == edit.end and len(edit.text) < MIN_AFTER_KEYS
        is_typing = is_one_key(edit.text) or (fate.was_typed and is_few)
        reached = [item for item in items if _leads_to(item, before, edit)]
        if reached and not is_typing:
            return self._accept_whole(fate, reached[0], edit)
        steps = [step for item in items if (step := _step(item, before, edit))]
        self._items = tuple(step.item for step in steps)
        if steps:
            self._n_left = steps[0].item.n_characters or self._n_left
        part = next((step.part for step in steps if step.part), None)
        if part is None or is_typing:
            fate.was_typed |= bool(edit.text)
            return None
        return self._accept_part(fate, part, edit)

    def told(self, length: int) -> Accepted | None:
        """The editor says that a suggestion of this length was accepted; None where its edit has told that already."""
        fate = self._fate
        if fate is None or fate.is_accepted or length not in fate.lengths:
            return None
        fate.is_accepted = True
        return Accepted(True, True, self._n_left)

    def _accept_whole(self, fate: Fate, item: Suggested, edit: Edit) -> Accepted | None:
        self._items = ()
        if fate.is_accepted:  # undone, and accepted again
            return None
        fate.is_accepted = True
        end = item.end + len(edit.text) - (edit.end - edit.start)
        return Accepted(True, True, item.n_characters, item.start, end)

    def _accept_part(self, fate: Fate, part: tuple[int, int], edit: Edit) -> Accepted | None:
        if fate.is_accepted:
            return None
        is_news, fate.is_partly_accepted = not fate.is_partly_accepted, True
        return Accepted(False, is_news, _n_added(edit), *part)


def is_one_key(text: str) -> bool:
    """True for what a single key may write."""
    return _ONE_KEY.fullmatch(to_lf(text)) is not None


def _n_added(edit: Edit) -> int:
    return max(0, len(edit.text) - (edit.end - edit.start))


def _leads_to(item: Suggested, before: Text, edit: Edit) -> bool:
    """True where the document is afterwards what accepting makes of it, whatever range and line endings are used."""
    first, last = min(item.start, edit.start), max(item.end, edit.end)
    if last - first > MAX_SPAN or before.slice(edit.start, item.start).strip():
        return False
    wanted = before.slice(first, item.start) + item.text + before.slice(item.end, last)
    written = before.slice(first, edit.start) + edit.text + before.slice(edit.end, last)
    return to_lf(wanted) == to_lf(written)


@dataclass(frozen=True, slots=True)
class _Step:
    """A suggestion after an edit that goes along it, or takes some of it back."""

    item: Suggested
    part: tuple[int, int] | None
    """Where the words or lines stand that the edit has written of it; None where it wrote no whole ones."""


def _step(item: Suggested, before: Text, edit: Edit) -> _Step | None:
    edit = _moved_into(item, before, edit)
    if not item.start <= edit.start <= edit.end <= item.end:
        return _step_of_list(item, before, edit)
    head = before.slice(item.start, edit.start)
    if not item.text.startswith(head + edit.text[:1]):
        return None
    written = head + edit.text
    is_part = item.text.startswith(written) and _ends_a_word(item.text, len(written))
    is_inserted = not before.slice(edit.start, edit.end).strip()
    after = replace(item, end=item.end + len(edit.text) - (edit.end - edit.start))
    return _Step(after, (edit.start, edit.start + len(edit.text)) if is_part and is_inserted else None)


def _step_of_list(item: Suggested, before: Text, edit: Edit) -> _Step | None:
    """The same where a word is written out that begins before the suggestion: nothing of this is accepting it."""
    n_head = item.start - edit.start
    head = before.slice(edit.start, item.start) if 0 < n_head < MAX_SPAN else ""
    if not head or not edit.text.startswith(head) or not item.start <= edit.end <= item.end:
        return None
    step = _step(item, before, Edit(item.start, edit.end, edit.text[n_head:]))
    return replace(step, part=None) if step else None


def _moved_into(item: Suggested, before: Text, edit: Edit) -> Edit:
    """An insertion right of the suggestion that might as well have been made at its place.

    Editors that compare texts tell `a|a` → `aaa` as an insertion after the last `a`.
    """
    n_moved = edit.start - item.end
    if edit.start != edit.end or not 0 < n_moved <= len(edit.text):
        return edit
    passed = before.slice(item.end, edit.start)
    moved = Edit(item.end, item.end, passed + edit.text[:-n_moved])
    return moved if edit.text.endswith(passed) else edit


def _ends_a_word(text: str, length: int) -> bool:
    return not _WORD.match(text, length) or not _WORD.match(text, length - 1)
