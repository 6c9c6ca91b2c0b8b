"""What the filters hand to each other."""

from dataclasses import dataclass, replace

from treefill.completion.request import Mode, Reason
from treefill.completion.situation import Situation
from treefill.completion.stop import MayEnd, anywhere
from treefill.engine.api import Finish


@dataclass(frozen=True, slots=True)
class Item:
    """A suggestion in the making: line feeds only until the last filter."""

    text: str
    n_replaced: int = 0
    """Characters right of the cursor that `text` writes again and that are therefore replaced."""

    def with_text(self, text: str) -> "Item":
        """The same with another text."""
        return replace(self, text=text)


@dataclass(frozen=True, slots=True)
class Drop:
    """A filter's word that nothing should be suggested."""

    reason: Reason
    sentence: str


@dataclass(frozen=True, slots=True)
class Setting:
    """What the filters may look at."""

    situation: Situation
    mode: Mode
    max_lines: int
    finish: Finish
    control_names: tuple[str, ...] = ()
    """Control tokens of the prompt's layout, spelt out."""
    may_end: MayEnd = anywhere
