"""Numbers as Markdown and JSON."""

import json

from treefill.evaluation.report import infill_json, infill_markdown, infill_report, table

from tests.evaluation.test_results import HEADER
from tests.evaluation.test_statistics import rows_for

ROWS = [*rows_for("plain", [True, False]), *rows_for("line", [True, True])]


def test_the_tables_name_arms_variants_and_the_baseline() -> None:
    text = infill_markdown(infill_report(HEADER, ROWS))

    assert "tiny, int8, treefill 0.1.0: 2 holes that every arm has filled." in text
    assert "| all     | plain | 2 |  50.0 % |" in text
    assert "against `plain`" in text
    assert "+50.0" in text


def test_another_baseline_turns_the_difference_round() -> None:
    text = infill_markdown(infill_report(HEADER, ROWS, baseline="line"))

    assert "against `line`" in text
    assert "-50.0" in text


def test_arms_that_have_no_row_yet_do_not_empty_the_report() -> None:
    report = infill_report(HEADER, ROWS, arms=["plain", "lines-3"])

    assert (report.n_holes, [summary.arm for summary in report.summaries]) == (2, ["plain", "plain"])
    assert report.differences == []


def test_a_file_without_rows_is_reported_in_a_sentence() -> None:
    assert infill_markdown(infill_report(HEADER, [])).startswith("No hole has been filled yet")


def test_json_holds_the_same_numbers() -> None:
    report = json.loads(json.dumps(infill_json(infill_report(HEADER, ROWS))))

    assert report["header"]["model"] == "tiny"
    assert report["n_holes"] == 2
    assert report["summaries"][-1]["passed"] == 1.0
    assert report["differences"][-1]["passed"] == 0.5


def test_numbers_lean_right() -> None:
    assert table(("a", "b", "n"), [("x", "y", "10"), ("x", "y", "1")]).splitlines() == [
        "| a | b |  n |",
        "| - | - | -: |",
        "| x | y | 10 |",
        "| x | y |  1 |",
    ]
