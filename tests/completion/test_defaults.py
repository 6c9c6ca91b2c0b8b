"""A request that says nothing is the request that the untouched settings make."""

from typing import get_args

from treefill.completion import POLICIES, Budgets, CompletionRequest, Mode
from treefill.engine.api import Sampling
from treefill.settings import AnchorPolicy, Settings
from treefill.text import Document

SETTINGS = Settings()


def test_a_requests_defaults_are_those_of_the_settings() -> None:
    request = CompletionRequest(Document("a.py", ""), 0)

    assert request.mode is Mode(SETTINGS.mode)
    assert request.max_new_tokens == SETTINGS.max_new_tokens
    assert request.max_lines == SETTINGS.max_lines
    assert request.anchor_policy == SETTINGS.anchor
    assert (request.templates, request.habits) == (SETTINGS.templates, SETTINGS.habits)
    assert request.secret_patterns == tuple(SETTINGS.secret_patterns)
    assert request.sampling == Sampling(
        SETTINGS.temperature, SETTINGS.top_k, SETTINGS.top_p, seed=SETTINGS.seed
    )
    assert request.budgets == Budgets(
        SETTINGS.n_neighbour_tokens, SETTINGS.n_prefix_tokens, SETTINGS.n_suffix_tokens
    )


def test_every_anchor_policy_can_be_set_and_no_other() -> None:
    assert set(get_args(AnchorPolicy)) == set(POLICIES)
