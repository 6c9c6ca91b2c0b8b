"""What a session counts, and what the numbers come to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.statistics.counts import Counts
from treefill.statistics.kept import kept_share
from treefill.statistics.latency import MAX_RELATIVE_ERROR, bucket_of, ms_of, percentile
from treefill.statistics.observer import Observer, Shown
from treefill.statistics.report import report_on
from treefill.text import Buffer, Edit, Text

URI = "file:///w/a.py"


class Desk:
    """One document, edited and asked about; `counts` is what was counted of it."""

    def __init__(self, text: str, language: str = "python") -> None:
        self.now_s = 0.0
        self.day = "2026-11-30"
        self.counted = Counts(lambda: self.day)
        self.observer = Observer(self.counted, lambda: self.now_s)
        self.buffer: Buffer | None = Buffer(URI, language, 1, Text.of(text))

    @property
    def text(self) -> Buffer:
        assert self.buffer is not None
        return self.buffer

    def offer(self, offset: int, text: str, source: str = "decoded", ms: float = 40, **told: Any) -> None:
        self.observer.answered(self.text, [Shown(offset, offset, text, source)], "", told, ms)

    def decline(self, reason: str, **told: Any) -> None:
        self.observer.answered(self.text, [], reason, told, 5)

    def edit(self, start: int, end: int, text: str) -> None:
        before = self.text
        self.buffer = Buffer(URI, before.language, before.version + 1, before.text.replace(start, end, text))
        self.observer.edited(before, self.buffer, (Edit(start, end, text),))

    def close(self) -> None:
        self.observer.closed(self.text)
        self.buffer = None

    def judge(self, is_the_end: bool = False) -> None:
        self.observer.judge(lambda uri: self.buffer if uri == URI else None, is_the_end)

    @property
    def counts(self) -> dict[str, int]:
        """Without times and tokens."""
        return {name: n for (_, _, name), n in self.counted if not name.startswith("latency.")}

    @property
    def report(self) -> dict[str, Any]:
        return report_on(self.counted)


def test_a_suggestion_that_is_accepted_and_stays() -> None:
    desk = Desk("x = \n")
    desk.offer(4, "1 + 2")
    desk.edit(4, 4, "1 + 2")
    desk.now_s = 59
    desk.judge()

    offered = {"offered": 1, "characters_offered": 5, "accepted": 1, "characters_accepted": 5}
    assert desk.counts == offered
    desk.now_s = 60
    desk.judge()
    desk.judge()

    assert desk.counts == {**offered, "characters_judged": 5, "characters_kept": 5}
    assert not desk.observer.has_to_judge


def test_one_that_is_taken_away_again_is_not_kept() -> None:
    desk = Desk("x = \n")
    desk.offer(4, "1 + 2")
    desk.edit(4, 4, "1 + 2")
    desk.edit(4, 9, "None")
    desk.close()

    assert desk.report["kept_share"] == 0
    assert desk.report["acceptance_rate"] == 1


def test_half_of_its_lines_are_kept() -> None:
    desk = Desk("")
    desk.offer(0, "a = 1\nb = 2\n")
    desk.edit(0, 0, "a = 1\nb = 2\n")
    desk.edit(0, 5, "c = 3")
    desk.judge(is_the_end=True)

    assert desk.report["kept_share"] == 0.5


def test_a_rest_that_is_offered_while_it_is_typed_is_the_same_suggestion() -> None:
    desk = Desk("f\n")
    desk.offer(1, "(a, b)")
    desk.edit(1, 1, "()")
    desk.observer.answered(desk.text, [Shown(2, 3, "a, b)", "typed through")], "", {}, 1)
    desk.edit(2, 2, "a")
    desk.observer.answered(desk.text, [Shown(3, 4, ", b)", "typed through")], "", {}, 1)
    desk.edit(3, 4, ", b)")

    assert desk.counts == {"offered": 1, "characters_offered": 6, "accepted": 1, "characters_accepted": 3}
    assert desk.report["latency_ms"]["decoded"]["n"] == 1
    assert desk.report["latency_ms"]["reused"]["n"] == 2


def test_one_that_comes_back_after_other_keys_is_the_same_suggestion() -> None:
    desk = Desk("x = \n")
    desk.offer(4, "foo()")
    desk.edit(4, 4, "b")
    desk.edit(4, 5, "")
    desk.offer(4, "foo()", "typed through")
    desk.edit(4, 4, "foo()")

    assert desk.counts == {"offered": 1, "characters_offered": 5, "accepted": 1, "characters_accepted": 5}


def test_word_by_word_to_the_end() -> None:
    desk = Desk("x = \n")
    desk.offer(4, "foo + bar")
    desk.edit(4, 4, "foo")
    desk.offer(7, " + bar", "typed through")
    desk.edit(7, 7, " +")
    desk.edit(9, 9, " bar")

    assert desk.report["total"] == {
        "offered": 1, "accepted": 1, "partly_accepted": 1, "characters_accepted": 9, "characters_offered": 9,
    }  # fmt: skip


def test_the_editors_command_after_the_edit_adds_nothing() -> None:
    desk = Desk("x = \n")
    desk.offer(4, "1 + 2")
    desk.edit(4, 4, "1 + 2")
    desk.observer.told_accepted(desk.text, 5)

    assert desk.counts["accepted"] == 1
    assert desk.counts["characters_accepted"] == 5


def test_the_editors_command_alone_is_believed() -> None:
    desk = Desk("f\n")
    desk.offer(1, "()")
    desk.edit(1, 1, "()")
    desk.observer.told_accepted(desk.text, 2)

    assert desk.counts["accepted"] == 1
    assert desk.counts["characters_accepted"] == 2


def test_what_is_declined_is_counted_by_its_reason_and_tokens_by_what_was_done() -> None:
    desk = Desk("x = \n")
    desk.decline("inside-word")
    desk.decline("empty", n_reused_tokens=90, n_evaluated=10, n_new_tokens=3)
    desk.decline("empty", n_reused_tokens="?")
    desk.offer(4, "1", n_reused_tokens=100, n_evaluated=2, n_new_tokens=1)

    assert desk.report["declined"] == {"empty": 2, "inside-word": 1}
    assert desk.report["cache"] == {"reused_tokens": 190, "evaluated_tokens": 12, "decoded_tokens": 4}


NO_SYNTAX = {
    "guarded": 0, "unguarded": 0, "guarded_share": None, "guarded_tokens": 0, "refused_first": 0, "undone": 0,
    "cut": 0, "invalid": 0,
}  # fmt: skip


def test_what_the_grammar_did_is_counted_by_language_and_without_a_word() -> None:
    desk = Desk("x = \n")
    fine, cut, silent = (
        {"unguarded": why, "cut": cut} for why, cut in (("", ""), ("", ")x"), ("why not", ""))
    )
    desk.offer(4, "1", n_guarded=5, n_refused_first=2, n_undone=1, syntax=fine)
    desk.offer(4, "2", n_guarded=3, n_refused_first=0, syntax=cut)
    desk.offer(4, "3", n_guarded=0, syntax=silent)
    desk.offer(4, "4", n_guarded=7, syntax=silent)  # it gave up on the way
    desk.decline("invalid", n_guarded=1, syntax=fine)
    desk.decline("empty", syntax=None)
    desk.decline("empty", n_guarded=0, n_undone="?", syntax="?")

    told = {
        "guarded": 3, "unguarded": 2, "guarded_share": 0.6, "guarded_tokens": 16, "refused_first": 2, "undone": 1,
        "cut": 1, "invalid": 1,
    }  # fmt: skip
    assert desk.report["syntax"] == told
    assert desk.report["languages"][0]["syntax"] == told
    assert not any("why" in name or ")x" in name for (_, _, name), _ in desk.counted)


def test_days_and_languages_are_told_apart() -> None:
    desk = Desk("x = \n")
    desk.offer(4, "1")
    desk.day = "2026-12-01"
    desk.offer(4, "22")
    assert desk.buffer is not None
    desk.buffer = Buffer("b.rs", "rust", 1, desk.buffer.text)
    desk.offer(4, "3")
    desk.offer(4, "4")

    report = desk.report

    assert report["since"] == "2026-11-30"
    assert [(day["day"], day["offered"]) for day in report["days"]] == [("2026-11-30", 1), ("2026-12-01", 3)]
    assert [(each["language"], each["offered"]) for each in report["languages"]] == [
        ("python", 2),
        ("rust", 2),
    ]


@pytest.mark.parametrize(
    ("language", "counted"),
    [
        ("c++", "c++"),
        ("objective-c", "objective-c"),
        ("", "other"),
        ("x = secret()", "other"),
        ("a" * 99, "other"),
    ],
)
def test_what_is_no_name_of_a_language_is_not_stored(language: str, counted: str) -> None:
    desk = Desk("x = \n", language)
    desk.offer(4, "1")

    assert {key[1] for key, _ in desk.counted} == {counted}


@pytest.mark.parametrize("source", ["template", "habit"])
def test_what_no_model_was_asked_for_is_counted_apart(source: str) -> None:
    desk = Desk("x = \n")
    desk.offer(4, "1 + 2", source, ms=2)
    desk.edit(4, 4, "1")
    desk.offer(5, " + 2", "typed through", ms=1)
    desk.edit(5, 5, " + 2")
    desk.offer(9, " + 3")

    nothing = {"offered": 0, "accepted": 0}
    assert desk.report["without_model"] == {
        "template": nothing, "habit": nothing, source: {"offered": 1, "accepted": 1},
    }  # fmt: skip
    assert {way: times["n"] for way, times in desk.report["latency_ms"].items()} == {
        "at_once": 1, "reused": 1, "decoded": 1,
    }  # fmt: skip
    assert desk.report["total"]["accepted"] == 1


def test_nothing_at_all_is_a_report_too() -> None:
    nothing = {"p50": None, "p95": None, "p99": None, "n": 0}

    assert report_on([]) == {
        "since": None,
        "days": [],
        "languages": [],
        "total": {
            "offered": 0, "accepted": 0, "partly_accepted": 0, "characters_accepted": 0,
            "characters_offered": 0,
        },
        "latency_ms": {"decoded": nothing, "reused": nothing, "at_once": nothing},
        "without_model": {
            "template": {"offered": 0, "accepted": 0}, "habit": {"offered": 0, "accepted": 0},
        },
        "cache": {"reused_tokens": 0, "evaluated_tokens": 0, "decoded_tokens": 0},
        "syntax": NO_SYNTAX,
        "declined": {},
        "acceptance_rate": None,
        "kept_share": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("written", "text", "share"),
    [
        ("x = 1", "x = 1\n", 1),
        ("x = 1", "if y:\n    x = 1\n", 1),
        ("x = 1", "x = 1 + 2\n", 1),
        ("x = 1", "y = 1\n", 0),
        ("x = 1", "", 0),
        ("  \n", "", 1),
        ("a\nb\nc\nd", "a\nb\n", 0.5),
        ("a\n\nb", "b\na", 1),
        ("a\na\nb", "a\nb", 2 / 3),
        ("a\na", "a", 0.5),
        ("long\nb", "long", 0.8),
        ("a\r\nb", "a\nb", 1),
    ],
)
def test_the_share_that_is_kept(written: str, text: str, share: float) -> None:
    assert kept_share(written, text) == pytest.approx(share)


@given(st.floats(0.02, 1_000_000))
def test_a_bucket_is_near_what_it_stands_for(ms: float) -> None:
    assert ms_of(bucket_of(ms)) == pytest.approx(ms, rel=MAX_RELATIVE_ERROR)


@given(st.lists(st.floats(0.1, 60_000), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_percentiles_are_those_of_the_sorted_list(times_ms: list[float], share: float) -> None:
    histogram: dict[int, int] = {}
    for ms in times_ms:
        histogram[bucket_of(ms)] = histogram.get(bucket_of(ms), 0) + 1
    n_wanted = share * len(times_ms)
    exact = next(ms for n, ms in enumerate(sorted(times_ms), 1) if n >= n_wanted)

    assert percentile(histogram, share) == pytest.approx(exact, rel=MAX_RELATIVE_ERROR)


def test_times_beyond_all_bounds_have_a_bucket() -> None:
    assert [ms_of(bucket_of(ms)) for ms in (0, -1, 1e12)] == pytest.approx([0.01, 0.01, 3.6e6], rel=0.05)
