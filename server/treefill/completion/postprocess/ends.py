"""The last touches: white space at the ends, emptiness, and the document's own line endings."""

from treefill.completion.postprocess.item import Drop, Item, Setting
from treefill.completion.request import Reason
from treefill.text import to_lf, with_line_ending


def use_line_feeds(item: Item, setting: Setting) -> Item | Drop:
    """Line feeds only, as all rules expect."""
    return item.with_text(to_lf(item.text))


def trim_end(item: Item, setting: Setting) -> Item | Drop:
    """No white space at the end, except in front of text that follows on the line."""
    situation = setting.situation
    right = situation.right[item.n_replaced :]
    is_before_text = bool(right) and not right[0].isspace() and not situation.is_right_free
    text = item.text.rstrip("\n") if is_before_text else item.text.rstrip()
    return item.with_text(text)


def refuse_empty(item: Item, setting: Setting) -> Item | Drop:
    """Nothing, or nothing but white space, is no suggestion."""
    if not item.text.strip():
        return Drop(Reason.EMPTY, "The model has nothing to add here.")
    if item.text == setting.situation.right[: item.n_replaced]:
        return Drop(Reason.NO_CHANGE, "The suggestion already stands right of the cursor.")
    return item


def restore_line_endings(item: Item, setting: Setting) -> Item | Drop:
    """The ending of the cursor's line, for every line that is added."""
    return item.with_text(with_line_ending(item.text, setting.situation.line_ending))
