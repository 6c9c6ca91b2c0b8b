"""Take code out of Markdown fences, and refuse sentences where code was wanted."""

import re

from treefill.completion.postprocess.item import Drop, Item, Setting
from treefill.completion.request import Reason
from treefill.completion.scan import scan
from treefill.completion.situation import Situation

_FENCE = re.compile(r"^[ \t]*```([\w+#.-]*)[ \t]*$", re.MULTILINE)
_PROSE = re.compile(
    r"\s*(?:here(?:'s| is| are)\b|sure[,!.]|certainly[,!.]|of course[,!.]|i(?:'m| am) sorry|i can(?:'t|not)\b"
    r"|(?:the|this) (?:following|code|function|completed|missing)\b[^\n=({]*[.:]\s*$"
    r"|to (?:complete|fix|implement) )",
    re.IGNORECASE | re.MULTILINE,
)


def unwrap_fences(item: Item, setting: Setting) -> Item | Drop:
    """The code inside the first fence, or the text before a fence that only closes."""
    situation = setting.situation
    if situation.language.is_prose or not situation.state.is_code:
        return item
    item = item.with_text(_without_glued_fence(item.text, situation))
    fences = list(_FENCE.finditer(item.text))
    # A fence inside a docstring is the docstring's own.
    if fences and not scan(item.text[: fences[0].start()], situation.language, situation.state).state.is_code:
        return item
    prose = Drop(Reason.PROSE, "The model answered with sentences instead of code.")
    if not fences:
        return prose if _PROSE.match(item.text) else item
    first = fences[0]
    lead = item.text[: first.start()]
    if lead.strip() and not first.group(1) and not _PROSE.match(lead):
        return item.with_text(lead)
    end = fences[1].start() if len(fences) > 1 else len(item.text)
    code = item.text[first.end() + 1 : end].rstrip("\n")
    return item.with_text(code) if code.strip() else prose


def _without_glued_fence(text: str, situation: Situation) -> str:
    """Models also end the last line of code with a fence right behind it."""
    end = text.rstrip()
    code = end.removesuffix("```")
    is_glued = code != end and not code.endswith("\n") and "`" not in situation.language.long_quotes
    return code if is_glued and scan(code, situation.language, situation.state).state.is_code else text
