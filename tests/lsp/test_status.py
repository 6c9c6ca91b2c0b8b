"""The status item: busy or not, and one sentence; told when it changes and not more often."""

import pytest
from treefill.lsp.status import Status, StatusKeeper

LOADING = Status("Normal", True, "loading the model", "loading")
READY = Status("Normal", False, "ready", "ready")
WORKING = Status("Normal", True, "working", "working")


class Shown:
    def __init__(self) -> None:
        self.states: list[Status] = []
        self.keeper = StatusKeeper(self.states.append)


def test_a_day_of_work_is_told_change_by_change() -> None:
    shown = Shown()
    keeper = shown.keeper

    keeper.engine("loading", "")
    keeper.engine("ready", "a model on an engine")
    for _ in range(2):
        keeper.working(True)
        keeper.working(False)
    keeper.engine("unloaded", "")
    keeper.engine("loading", "")
    keeper.engine("ready", "a model on an engine")

    assert shown.states == [LOADING, READY, WORKING, READY, WORKING, READY, LOADING, READY]
    assert keeper.current == READY


def test_what_does_not_change_is_not_told_again() -> None:
    shown = Shown()

    for _ in range(3):
        shown.keeper.engine("ready", "")
        shown.keeper.working(False)
    for _ in range(3):
        shown.keeper.working(True)

    assert shown.states == [READY, WORKING]


def test_g20_a_request_that_fails_does_not_leave_the_status_working() -> None:
    shown = Shown()
    shown.keeper.engine("ready", "")

    shown.keeper.working(True)
    shown.keeper.engine("lost", "The core is gone.")
    shown.keeper.working(False)
    shown.keeper.engine("ready", "")

    assert shown.states == [READY, WORKING, Status("Warning", False, "The core is gone.", "lost"), READY]


@pytest.mark.parametrize(
    ("state", "kind", "shown_state"),
    [("failed", "Error", "failed"), ("lost", "Warning", "lost"), ("something new", "Warning", "lost")],
)
def test_what_is_wrong_is_shown_whether_or_not_a_request_is_under_way(
    state: str, kind: str, shown_state: str
) -> None:
    shown = Shown()

    shown.keeper.working(True)
    shown.keeper.engine(state, "It went wrong.")
    shown.keeper.working(False)
    shown.keeper.working(True)

    assert shown.states == [Status(kind, False, "It went wrong.", shown_state)]
    assert shown.keeper.sentence == "It went wrong."


def test_loading_is_shown_rather_than_working() -> None:
    shown = Shown()

    shown.keeper.working(True)
    shown.keeper.engine("loading", "")
    shown.keeper.engine("ready", "")

    assert shown.states == [LOADING, WORKING]


def test_before_there_is_a_core_the_reason_for_nothing_is_that_it_starts() -> None:
    keeper = StatusKeeper(lambda status: None)
    assert keeper.sentence == "The core process is being started."

    keeper.engine("failed", "There is no model.")
    assert keeper.sentence == "There is no model."

    keeper.engine("ready", "a model")
    assert keeper.sentence == "The core process is being started."


def test_loading_tells_how_far_it_has_come_and_ready_tells_the_model() -> None:
    shown = Shown()

    shown.keeper.engine("loading", "")
    shown.keeper.engine("loading", "", percent=40)
    shown.keeper.engine("ready", "", model="qwen")
    shown.keeper.engine("unloaded", "")

    assert [(status.message, status.percent, status.model) for status in shown.states] == [
        ("loading the model", 0, ""),
        ("loading the model (40 %)", 40, ""),
        ("ready", 0, "qwen"),
    ]


def test_the_speed_of_the_last_suggestion_is_told_with_the_next_change() -> None:
    shown = Shown()
    shown.keeper.engine("ready", "")

    shown.keeper.working(True)
    shown.keeper.decoded(10, 250.0)
    shown.keeper.working(False)
    shown.keeper.decoded(0, 0.0)  # one that was recycled tells nothing of the speed
    shown.keeper.working(True)

    assert [status.tokens_per_s for status in shown.states] == [0.0, 0.0, 40.0, 40.0]
