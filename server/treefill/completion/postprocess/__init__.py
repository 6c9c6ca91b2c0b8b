"""From what the model wrote to what the editor is given: small pure filters in one chain, top to bottom.

A filter takes the item and the setting, and gives the item back, changed or not, or drops it with a reason.
"""

from collections.abc import Callable

from treefill.completion.postprocess.control_tokens import cut_control_tokens
from treefill.completion.postprocess.ends import refuse_empty, restore_line_endings, trim_end, use_line_feeds
from treefill.completion.postprocess.fences import unwrap_fences
from treefill.completion.postprocess.indentation import fit_indentation
from treefill.completion.postprocess.item import Drop, Item, Setting
from treefill.completion.postprocess.overlap import fit_to_suffix, reach_line_end
from treefill.completion.postprocess.repeats import drop_repeats_above, drop_repeats_below
from treefill.completion.postprocess.whole import cut_to_whole
from treefill.completion.request import FilterStep

Filter = Callable[[Item, Setting], Item | Drop]

WITHOUT_MODEL: tuple[Filter, ...] = (
    drop_repeats_below,
    drop_repeats_above,
    trim_end,
    refuse_empty,
    fit_to_suffix,
    refuse_empty,
    reach_line_end,
    restore_line_endings,
)
"""For texts that no model wrote: they begin where they should, and end where they do."""
CHAIN: tuple[Filter, ...] = (
    use_line_feeds,
    cut_control_tokens,
    unwrap_fences,
    cut_to_whole,
    fit_indentation,
    *WITHOUT_MODEL,
)


def postprocess(
    raw_text: str, setting: Setting, chain: tuple[Filter, ...] = CHAIN
) -> tuple[Item | Drop, tuple[FilterStep, ...]]:
    """Run the chain; the steps name the filters that changed something."""
    item = Item(raw_text)
    steps: list[FilterStep] = []
    for apply in chain:
        result = apply(item, setting)
        if isinstance(result, Drop):
            return result, (*steps, FilterStep(apply.__name__, item.text, ""))
        if result != item:
            steps.append(FilterStep(apply.__name__, item.text, result.text))
        item = result
    return item, tuple(steps)


__all__ = ["CHAIN", "WITHOUT_MODEL", "Drop", "Filter", "Item", "Setting", "postprocess"]
