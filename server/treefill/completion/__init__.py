"""One keystroke's journey: surroundings, neighbours, prompt, decode, stop, clean-up.

`complete` is the front door. The engine is seen through `engine.api` only; no tensor, parser or protocol
lives here.
"""

from treefill.completion.at_once import AtOnce, begin_at_once
from treefill.completion.complete import carry_out, complete, complete_many, complete_next
from treefill.completion.fim import LAYOUTS, FimLayout, choose_layout, nearest_missing
from treefill.completion.guard import prepare
from treefill.completion.habits import Habits, learn
from treefill.completion.plan import Plan, plan_completion
from treefill.completion.prompt import POLICIES, Prompt, build_prompt, choose_anchor
from treefill.completion.recycle import Memory
from treefill.completion.request import (
    Anchor,
    Budgets,
    Check,
    CompletionRequest,
    Declined,
    Explanation,
    FilterStep,
    Mode,
    PromptPart,
    Reason,
    Refusal,
    RuleFinding,
    Suggestion,
    SyntaxFinding,
)

__all__ = [
    "LAYOUTS",
    "POLICIES",
    "Anchor",
    "AtOnce",
    "Budgets",
    "Check",
    "CompletionRequest",
    "Declined",
    "Explanation",
    "FilterStep",
    "FimLayout",
    "Habits",
    "Memory",
    "Mode",
    "Plan",
    "Prompt",
    "PromptPart",
    "Reason",
    "Refusal",
    "RuleFinding",
    "Suggestion",
    "SyntaxFinding",
    "begin_at_once",
    "build_prompt",
    "carry_out",
    "choose_anchor",
    "choose_layout",
    "complete",
    "complete_many",
    "complete_next",
    "learn",
    "nearest_missing",
    "plan_completion",
    "prepare",
]
