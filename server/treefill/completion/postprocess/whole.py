"""Stop where a line or block is whole, and never offer half a line."""

import re

from treefill.completion.loops import find_loop
from treefill.completion.postprocess.item import Drop, Item, Setting
from treefill.completion.request import Reason
from treefill.completion.scan import ScanState, scan
from treefill.completion.stop import find_stop
from treefill.engine.api import Finish

_WORD_END = re.compile(r"[\w)\]}\"'](?![\w(\[.\"'])")


def cut_to_whole(item: Item, setting: Setting) -> Item | Drop:
    """The text up to where the stop rule ends it; the last line is dropped where the model was cut short in it."""
    text = item.text
    stop = find_stop(text, setting.mode, setting.situation, setting.max_lines)
    if stop is not None:
        is_loop = stop == find_loop(text)
        whole = _until_line_end(text, stop, setting) if is_loop else text[:stop]
        return item.with_text(whole) if whole.strip() else _incomplete(is_loop)
    if setting.finish not in (Finish.LENGTH, Finish.CANCELLED):
        return item
    lines, newline, _ = text.rpartition("\n")
    if newline and lines.strip():
        return item.with_text(lines)
    whole = _sane_part(text, setting)
    return item.with_text(whole) if whole.strip() else _incomplete(is_loop=False)


def _until_line_end(text: str, stop: int, setting: Setting) -> str:
    """A loop that begins within a line leaves half of it: only the whole lines before are kept."""
    if text[stop : stop + 1] == "\n":
        return text[:stop]
    return text[:stop].rpartition("\n")[0]


def _sane_part(text: str, setting: Setting) -> str:
    """A single line that was cut short, up to the last word after which everything opened is closed again.

    Less than half of the line is not worth a suggestion.
    """
    situation = setting.situation
    start = ScanState("", situation.state.quote, situation.state.comment_end)
    for found in reversed(list(_WORD_END.finditer(text))):
        end = found.end()
        if end == len(text) or end < len(text) / 2:
            continue
        after = scan(text[:end], situation.language, start)
        if not after.opened and after.state.is_code:
            return text[:end]
    return ""


def _incomplete(is_loop: bool) -> Drop:
    if is_loop:
        return Drop(Reason.LOOP, "The model went round in circles before a line was whole.")
    return Drop(Reason.INCOMPLETE, "The model did not come to the end of a line.")
