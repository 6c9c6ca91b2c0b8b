"""What completions cost with masks and without, measured with an engine that writes what it is told."""

import pytest
from treefill.benchmarks.completions import Way, completion_json, completion_markdown, measure_completions
from treefill.evaluation.positions import choose_positions
from treefill.syntax import dictionary
from treefill.text import Document

from tests.helpers.choosing_engine import ChoosingEngine

FILES = [
    Document(f"file{number}.py", f"def f{number}(a, b):\n    total = a + b\n    return total\n", "python")
    for number in range(8)
]


@pytest.fixture(autouse=True)
def quickly_trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    for least in ("N_TRIALS", "N_PLACES"):
        monkeypatch.setattr(dictionary, least, 1)


def test_the_ways_take_turns_and_the_guarded_ones_write_the_same() -> None:
    positions = choose_positions(FILES, 16)
    figures = measure_completions("python", positions, ChoosingEngine("a]", "a + b"), n_taught=4)
    dictionary.BACKGROUND.stop()

    assert (figures.n_taught, figures.n_places + figures.n_short) == (4, 12)
    assert figures.n_places > 0
    assert figures.n_different == 0
    free, check, found, each = (figures.sums[way] for way in Way)
    assert free.n_guarded == free.mask_s == check.n_masked == check.mask_s == 0
    assert check.n_tokens == found.n_tokens == each.n_tokens
    assert 0 < found.n_masked <= each.n_masked
    assert each.n_masked >= each.n_guarded
    assert min(check.guard_s, found.mask_s, each.mask_s) > 0
    told = completion_json(figures)
    assert told["different"] == 0
    assert "other tokens at 0." in completion_markdown([figures])


def test_where_nothing_is_written_nothing_is_measured() -> None:
    figures = measure_completions("python", choose_positions(FILES, 3), ChoosingEngine(""), n_taught=0)
    dictionary.BACKGROUND.stop()

    assert (figures.n_places, figures.n_short) == (0, 3)
    assert "0 places, 3 left out" in completion_markdown([figures])
