"""Stop where a line or block is whole, and never offer half a line."""

import re

from treefill.completion.loops import find_loop
from treefill.completion.postprocess.item import Drop, Item, Setting
from treefill.completion.request import Mode, Reason
from treefill.completion.scan import scan
from treefill.completion.situation import Situation, ends_with_opener
from treefill.completion.stop import find_stop, leaves_string_open
from treefill.engine.api import Finish

_WORD_END = re.compile(r"[\w)\]}\"'](?![\w(\[.\"'])")


def cut_to_whole(item: Item, setting: Setting) -> Item | Drop:
    """The text up to where the stop rule ends it, without a last line that the model did not finish."""
    text = item.text
    stop = find_stop(text, setting.mode, setting.situation, setting.max_lines, setting.may_end)
    if stop is not None:
        is_loop = stop == find_loop(text)
        whole = _until_line_end(text, stop) if is_loop else text[:stop]
        if setting.mode is Mode.BLOCK and whole.count("\n") + 1 >= setting.max_lines:
            whole = _until_closed(whole, setting.situation)
        is_half = setting.mode is Mode.LINE and leaves_string_open(whole + "\n", setting.situation)
        return item.with_text(whole) if whole.strip() and not is_half else _incomplete(is_loop)
    if setting.finish is not Finish.LENGTH:
        return item
    lines, newline, _ = text.rpartition("\n")
    if not newline or not lines.strip():
        whole = _sane_part(text, setting.situation)
    elif setting.mode is Mode.BLOCK:
        whole = _until_closed(lines, setting.situation)
    else:  # the line was not whole, so the model was let go on; if in vain, it is judged as it is
        end = find_stop(text, setting.mode, setting.situation, setting.max_lines)
        line = text[: end or 0]
        is_half = leaves_string_open(line + "\n", setting.situation)
        whole = _until_closed(lines, setting.situation, otherwise="" if is_half else line)
    return item.with_text(whole) if whole.strip() else _incomplete(is_loop=False)


def _until_closed(text: str, situation: Situation, otherwise: str | None = None) -> str:
    """Whole lines up to the last after which everything opened is closed again; where none is, all or `otherwise`."""
    lines = text.split("\n")
    for count in range(len(lines), 0, -1):
        part = "\n".join(lines[:count])
        is_body_missing = ends_with_opener(lines[count - 1], situation.language)
        if part.strip() and not is_body_missing and _is_closed(part, situation):
            return part
    return text if otherwise is None else otherwise


def _until_line_end(text: str, stop: int) -> str:
    """A loop that begins within a line leaves half of it: only the whole lines before are kept."""
    if text[stop : stop + 1] == "\n":
        return text[:stop]
    return text[:stop].rpartition("\n")[0]


def _sane_part(text: str, situation: Situation) -> str:
    """A single line that was cut short, up to the last word after which everything opened is closed again.

    Less than half of the line is not worth a suggestion.
    """
    ends = [found.end() for found in _WORD_END.finditer(text) if len(text) / 2 <= found.end() < len(text)]
    return next((text[:end] for end in reversed(ends) if _is_closed(text[:end], situation)), "")


def _is_closed(text: str, situation: Situation) -> bool:
    after = scan(text, situation.language, situation.state)
    return not after.opened and after.state.is_code >= situation.state.is_code


def _incomplete(is_loop: bool) -> Drop:
    if is_loop:
        return Drop(Reason.LOOP, "The model went round in circles before a line was whole.")
    return Drop(Reason.INCOMPLETE, "The model did not come to the end of a line.")
