"""Where a suggestion that nobody asked for makes sense: the rules that hold an automatic request back.

An invoked request is always answered as well as it can be.
"""

from treefill.completion.request import CompletionRequest, Reason
from treefill.completion.situation import Situation

MAX_LINE_CHARS = 1_000
"""A longer line is data or minified; what stands in it is not typed by hand."""


def hold_back(request: CompletionRequest, situation: Situation) -> tuple[Reason, str] | None:
    """Why an automatic request is not worth the model's time, or None."""
    if not request.is_automatic:
        return None
    if not request.document.text.strip():
        return Reason.NOTHING_WRITTEN, "The file is empty: nothing tells yet what it will be."
    if _is_inside_word(situation):
        return Reason.INSIDE_WORD, "The cursor stands inside a word."
    if len(situation.left) + len(situation.right) > MAX_LINE_CHARS:
        return Reason.LONG_LINE, f"The line is longer than {MAX_LINE_CHARS} characters: it looks like data."
    return None


def _is_inside_word(situation: Situation) -> bool:
    following = situation.right[:1]
    return following.isalnum() or following == "_"
