"""Cut before text that spells a control token, and before what no editor should be given."""

import re

from treefill.completion.postprocess.item import Drop, Item, Setting
from treefill.completion.request import Reason

_ANY_MARKER = re.compile(
    r"<\|[A-Za-z][A-Za-z0-9_]*\|>|<｜[^｜\s]{1,40}｜>|<fim[_-](?:prefix|suffix|middle|pad)>"
)
_UNPRINTABLE = re.compile("[\0\ufeff\ufffd\ud800-\udfff]")


def cut_control_tokens(item: Item, setting: Setting) -> Item | Drop:
    """The text before the first marker; models spell them out when they were trained on them as text."""
    # Names without a bar (`<s>`, `[PREFIX]`) are markers only for models that use them: pages hold them, too.
    places = [item.text.find(name) for name in setting.control_names]
    places += [
        found.start() for pattern in (_ANY_MARKER, _UNPRINTABLE) if (found := pattern.search(item.text))
    ]
    cut = min((place for place in places if place >= 0), default=None)
    if cut is None:
        return item
    if not item.text[:cut].strip():
        return Drop(Reason.CONTROL_TOKENS, "The model answered with control tokens instead of code.")
    return item.with_text(item.text[:cut])
