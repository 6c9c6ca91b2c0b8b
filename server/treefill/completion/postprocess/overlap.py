"""Agree with the text right of the cursor: nothing of it comes twice, and nothing of it is lost.

Worked example, `|` the cursor: `f(g(|))` and the model writes `x)) + 1`. Its two closers close what the
buffer opened, and an editor has closed both already. They cannot be trimmed, because text follows them; so
the buffer's `))` is replaced, and the text that replaces it writes `))` again in one piece.
"""

import re

from treefill.completion.postprocess.item import Drop, Item, Setting
from treefill.completion.request import Reason
from treefill.completion.scan import BEFORE_TEXT, CLOSERS, OPENERS, Pair, scan
from treefill.completion.situation import Situation

_TOKEN = re.compile(r"\s*(\w+|[^\w\s]+)")


def fit_to_suffix(item: Item, setting: Setting) -> Item | Drop:
    """Trim what the text repeats, replace what it writes again, cut what the buffer has closed."""
    situation = setting.situation
    text, right = item.text, situation.right
    text = text[: len(text) - _overlap(text, right, situation)]
    text = _inside_enclosure(text, right, situation)
    text = _without_surplus_closers(text, right, situation)
    text = _without_bared_closers(text, right, situation)
    rewritten = _rewritten(text, right, situation)
    n_replaced = len(rewritten)
    if n_replaced and _begin_alike(text[rewritten.stop :], right[n_replaced:]):
        # The model wrote the rest of the line in its own way: with `COUNT(|) AS n` and `*) AS total` only `*` is new.
        text, n_replaced = text[: rewritten.start], 0
    if n_replaced:
        # What is replaced must come again, so nothing of it may be trimmed.
        text = text[: len(text) - _overlap(text, right[n_replaced:], situation, rewritten.stop)]
    if not text.strip() and "\n" not in text:
        return Drop(Reason.NO_CHANGE, "The suggestion already stands right of the cursor.")
    return Item(text, n_replaced)


def reach_line_end(item: Item, setting: Setting) -> Item | Drop:
    """Let a text of several lines replace the rest of the line and write it again: editors want it so."""
    right = setting.situation.right
    written = item.text + right[item.n_replaced :]
    return Item(written, len(right)) if "\n" in item.text and right in written else item


def _begin_alike(left: str, right: str) -> bool:
    """True where both begin with the same word or punctuation, white space apart."""
    first, second = _TOKEN.match(left), _TOKEN.match(right)
    return first is not None and second is not None and first[1] == second[1]


def _overlap(text: str, right: str, situation: Situation, floor: int = 0) -> int:
    """Length of the longest end of `text` that `right` begins with and `text` itself does not need.

    It begins at `floor` or after it.
    """
    pairs = scan(text, situation.language, situation.state).pairs
    for length in range(min(len(text) - floor, len(right)), 0, -1):
        start = len(text) - length
        if (
            text.endswith(right[:length])
            and _is_separate(text, start, right, length)
            and not _closes_own(pairs, start)
        ):
            return length
    return 0


def _is_separate(text: str, start: int, right: str, length: int) -> bool:
    """True where the overlap tears no word apart, and is more than white space."""
    tears_left = start > 0 and _is_word(text[start - 1]) and _is_word(text[start])
    tears_right = length < len(right) and _is_word(right[length - 1]) and _is_word(right[length])
    return bool(right[:length].strip()) and not tears_left and not tears_right


def _closes_own(pairs: tuple[Pair, ...], start: int) -> bool:
    """True where what begins at `start` holds the closer of something that the text before it opens."""
    return any(pair.close_offset >= start and BEFORE_TEXT < pair.open_offset < start for pair in pairs)


def _rewritten(text: str, right: str, situation: Situation) -> range:
    """Where the text writes the beginning of `right` again, a closer of the buffer's in it; or nowhere."""
    found = scan(text, situation.language, situation.state)
    if not found.unmatched:
        return range(0)
    stripped = right.rstrip()
    start = text.find(stripped)
    goes_on = _is_word(text[start + len(stripped) :][:1]) and _is_word(stripped[-1:])
    if len(stripped) > 1 and start >= 0 and stripped[-1] not in OPENERS and not goes_on:
        place = range(start, start + len(stripped))
        if not _closes_own(tuple(pair for pair in found.pairs if pair.close_offset in place), start):
            return place
    run = situation.auto_closed
    start = found.unmatched[0].close_offset
    for length in range(len(run), 0, -1):
        if text.startswith(run[:length], start) and (run[length - 1] in CLOSERS or length == 1):
            return range(start, start + length)
    return range(0)


def _without_surplus_closers(text: str, right: str, situation: Situation) -> str:
    """Cut before the first closer of a bracket that the buffer closes itself, unless it is written again."""
    closers = [pair for pair in _unmatched(text, situation) if pair.text in CLOSERS]
    rewritten = _rewritten(text, right, situation)
    n_wanted = situation.n_needed_closers + sum(pair.close_offset in rewritten for pair in closers)
    for number, pair in enumerate(closers, start=1):
        is_fitting = _fits_open(situation, number, pair) or pair.close_offset in rewritten
        if number > n_wanted or not is_fitting:
            return _before_separator(text[: pair.close_offset], right, situation).rstrip()
    return text


def _without_bared_closers(text: str, right: str, situation: Situation) -> str:
    """Trim closers that the cuts have left at the text's end: the buffer's own stand right behind them."""
    while rewritten := _rewritten(text, right, situation):
        length = _overlap(text, right, situation)
        if not length or len(text) - length >= rewritten.stop:
            return text
        text = text[: len(text) - length]
    return text


def _before_separator(text: str, right: str, situation: Situation) -> str:
    """Where the model wrote the rest of the line in its own way, only what comes before that rest is new.

    With `i < |; ++i) {` and `n; i++` it is `n`: the line goes on with the buffer's own semicolon.
    """
    separator = right.lstrip()[:1]
    if not separator or separator not in ";,:":
        return text
    found = scan(text, situation.language, situation.state)
    places = [at for at, character in enumerate(text) if character == separator and not found.is_enclosed(at)]
    return text[: places[0]] if places and places[0] > 0 else text


def _inside_enclosure(text: str, right: str, situation: Situation) -> str:
    """Cut before the end of a string or comment that the buffer ends itself, unless it is written again."""
    if situation.state.is_code or not situation.is_enclosure_closed:
        return text
    ends = [
        end for start, end in scan(text, situation.language, situation.state).spans if start == BEFORE_TEXT
    ]
    if not ends or ends[0] > len(text) or _rewritten(text, right, situation):
        return text
    closer = situation.state.quote or situation.state.comment_end
    return text[: text.rfind(closer, 0, ends[0] + len(closer))].rstrip()


def _fits_open(situation: Situation, n_closed: int, pair: Pair) -> bool:
    brackets = situation.state.brackets
    return n_closed <= len(brackets) and OPENERS[brackets[-n_closed]] == pair.text


def _unmatched(text: str, situation: Situation) -> tuple[Pair, ...]:
    return scan(text, situation.language, situation.state).unmatched


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
