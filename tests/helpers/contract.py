"""What holds for every suggestion, whatever the model wrote: each golden and property asserts it."""

import re

from treefill.completion import Suggestion
from treefill.text import Document, line_bounds, line_ending_at

CONTROL_TOKENS = re.compile(r"<\|[a-z_]+\|>|<fim_\w+>|<｜[^｜]+｜>")
UNSENDABLE = re.compile("[\0\ufffd\ud800-\udfff]")


def assert_sound(document: Document, offset: int, suggestion: Suggestion) -> None:
    """The contract C0: a range on the cursor's line, nothing of the user's lost, nothing odd inserted."""
    line_start, line_end = line_bounds(document.text, offset)
    assert line_start <= suggestion.start <= offset <= suggestion.end <= line_end
    assert suggestion.text.startswith(document.text[suggestion.start : offset])
    assert document.text[offset : suggestion.end] in suggestion.text, (
        "replaced text must come again in one piece"
    )
    assert not CONTROL_TOKENS.search(suggestion.text)
    assert not UNSENDABLE.search(suggestion.text)
    endings = set(re.findall(r"\r\n|\r|\n", suggestion.text))
    assert endings <= {line_ending_at(document.text, offset)}
    assert suggestion.applied_to(document) != document.text, "accepting must change the document"
