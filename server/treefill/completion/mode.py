"""A line or a block: decided by where the cursor stands, before the model is asked."""

from treefill.completion.request import Mode
from treefill.completion.situation import Situation


def choose_mode(wanted: Mode, situation: Situation) -> Mode:
    """A block only where one can open or go on; else the rest of the line."""
    if not situation.is_right_free:
        return Mode.LINE
    if wanted is not Mode.AUTO:
        return wanted
    if not situation.state.is_code:
        return Mode.LINE
    is_new_line = situation.is_blank_line
    is_behind_opener = situation.opener_line is not None
    return Mode.BLOCK if is_new_line or is_behind_opener else Mode.LINE
