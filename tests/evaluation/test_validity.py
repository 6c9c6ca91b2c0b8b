"""Completions at positions, judged by a parse of the whole file, with an engine that writes what the test says."""

import json
from dataclasses import replace

import pytest
from treefill.completion import Mode
from treefill.engine.api import CancelFlag, GenerateRequest, Generation
from treefill.errors import BadInput, EngineError
from treefill.evaluation import validity
from treefill.evaluation.faults import count_faults, find_faults, statement_at
from treefill.evaluation.positions import Kind, Position
from treefill.evaluation.report import validity_json, validity_markdown
from treefill.evaluation.results import Header
from treefill.evaluation.validity import (
    ValidityRow,
    ValidityRun,
    ask_everywhere,
    validity_header,
    validity_report,
)
from treefill.text import Document

from tests.helpers.scripted_engine import ScriptedEngine

HEADER = Header("tiny", "int8", "0.1.0", {"seed": 0}, ValidityRow.FORMAT)


def at(marked: str, language: str = "python") -> Position:
    """The place of `█` in a file."""
    offset = marked.index("█")
    document = Document("a.file", marked.replace("█", ""), language)
    return Position(document, offset, Kind.LINE_END, "", str(hash(marked)))


def ask(marked: str, script: str, language: str = "python", mode: Mode = Mode.LINE) -> ValidityRow:
    (row,) = ask_everywhere([(at(marked, language), mode)], ["off"], ScriptedEngine(script))
    return row


@pytest.mark.parametrize(
    ("marked", "script", "language", "shown", "added"),
    [
        ("x = █\n", "f(1)\n", "python", "f(1)", 0),
        ("x = 1█\n", " + = 2\n", "python", " + = 2", 1),
        ("f(█\n", "1)\n", "python", "1)", 0),  # one fault less than before is none added
        ("int x = █\n", "1;\n", "cpp", "1;", 0),
        ("const x = 1;\n█\n", "f(1, });\n", "javascript", "f(1, });", 1),
        ("SELECT █\n", "a FROM b;\n", "sql", "a FROM b;", 0),
    ],
)
def test_faults_after_accepting_are_counted_against_those_before(
    marked: str, script: str, language: str, shown: str, added: int
) -> None:
    row = ask(marked, script, language)

    assert (row.text, row.added_errors, row.declined) == (shown, added, None)


def test_a_fault_that_takes_the_place_of_unfinished_text_is_told_of_too() -> None:
    """`const x = ` lacks something, and what comes is wrong: no fault more, but one inside."""
    row = ask("const x = █\n", "[1, }];\n", "javascript")

    assert (row.n_faults_before, row.added_errors, row.n_faults_inside) == (1, 0, 1)
    assert ask("const x = █\n", "[1];\n", "javascript").n_faults_inside == 0


def test_declining_adds_nothing_and_says_why() -> None:
    row = ask("x = (█\n", "")

    assert (row.text, row.added_errors, row.n_faults_before, row.declined) == ("", 0, 1, "empty")


def test_faults_are_those_of_the_whole_file() -> None:
    assert count_faults("f(1\ng(]\n", "python") >= 2
    assert count_faults("é = 1\n".encode(), "python") == 0
    with pytest.raises(BadInput, match="no grammar"):
        count_faults("hello", "klingon")


@pytest.mark.parametrize(
    ("text", "language", "faults"),
    [
        ("a\ncall()call()\nb\n", "python", [8]),
        ("a = 1; b 2\ncall()call()\n", "python", [7, 17]),
        ("def f():\n    x = 1 y\n    call()g\n", "python", [17, 31]),
        ("x = [1, , 2]\n", "python", [6]),
        ("let s = `${`;\n", "javascript", [6]),
        ("{'(': 1}", "json", [0, 7]),
    ],
)
def test_what_a_grammar_hides_is_counted_too_where_it_is_missing(
    text: str, language: str, faults: list[int]
) -> None:
    """Two statements of Python in a line lack a `_newline`, which no walk over the tree comes by."""
    assert find_faults(text, language) == faults


def test_the_innermost_statement_is_found_and_whether_it_is_sound() -> None:
    text = "class A {\n  int f() { return 1; }\n  int g( { return ; ] }\n};\n"

    assert statement_at(text, text.index("return"), "cpp") == (22, 31, True)
    assert not statement_at(text, text.index("g("), "cpp")[2]


def test_the_prompt_is_evaluated_before_the_arms_are_timed() -> None:
    engine = ScriptedEngine("f(1)\n")
    list(ask_everywhere([(at("x = █\n"), Mode.LINE)], ["off"], engine))

    assert [request.max_new_tokens for request in engine.requests] == [1, 64]
    assert engine.requests[0].prompt_ids == engine.requests[1].prompt_ids


def test_arms_without_a_guard_decode_one_text() -> None:
    engine = ScriptedEngine(" + = 2\n")
    off, parse, full = ask_everywhere([(at("x = 1█\n"), Mode.LINE)], ["off", "parse", "full"], engine)

    assert len(engine.requests) == 3, "the prompt, without a guard, with one"
    assert (off.text, off.added_errors) == (" + = 2", 1)
    assert (parse.n_new_tokens, parse.added_errors) == (off.n_new_tokens, 0)
    assert full.added_errors == 0


def test_rows_that_are_done_are_not_made_again() -> None:
    positions = [(at(f"{name} = █\n"), mode) for name in "abc" for mode in (Mode.LINE, Mode.BLOCK)]
    everything = list(ask_everywhere(positions, ["off"], ScriptedEngine("1\n")))
    run = ValidityRun()
    done = [row.key for row in everything[:4]]
    rest = list(ask_everywhere(positions, ["off"], ScriptedEngine("1\n"), done, run=run))

    assert [row.key for row in rest] == [row.key for row in everything[4:]]
    assert (len({row.key for row in everything}), run.n_skipped) == (6, 4)


def test_a_run_that_is_cancelled_ends_without_a_half_row() -> None:
    cancel = CancelFlag()
    rows = ask_everywhere([(at("x = █\n"), Mode.LINE)] * 3, ["off"], ScriptedEngine("1\n"), cancel=cancel)
    next(rows)
    cancel.cancel()

    assert list(rows) == []


class Failing(ScriptedEngine):
    """A model that cannot be run."""

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        raise EngineError("The model is gone.")


def test_an_engine_that_fails_is_a_row_like_any_other() -> None:
    (row,) = ask_everywhere([(at("x = █\n"), Mode.LINE)], ["off"], Failing(""))

    assert (row.declined, row.text) == ("engine-failed", "")


def a_row(offset: int, arm: str, text: str, **fields: object) -> ValidityRow:
    declined = None if text else "invalid"
    row = ValidityRow(
        "python",
        "a.py",
        "d",
        offset,
        "mid-line",
        "line",
        arm,
        declined,
        text,
        *(0,) * 4,
        *("",) * 3,
        *(3, 0, 0, 0),
        "end",
        9.0,
    )
    return replace(row, **fields)  # type: ignore[arg-type]


ROWS = [
    a_row(1, "off", "f(1)", added_errors=2),
    a_row(1, "parse", ""),
    a_row(1, "full", "f(12)", n_guarded=8, n_refused_first=2),
    a_row(2, "off", "abcd"),
    a_row(2, "parse", "abcd"),
    a_row(2, "full", "abcd", n_guarded=2, ms=20_000.0),
    a_row(3, "off", "asked nowhere else"),
]


def test_arms_are_summed_up_at_the_positions_that_all_of_them_have() -> None:
    report = validity_report(HEADER, ROWS, validity.ARMS)
    off, parse, full = report.summaries

    assert (report.n_rows, report.n_positions, [each.n for each in report.summaries]) == (7, 2, [2, 2, 2])
    assert (off.shown, off.n_chars, off.chars_ratio, off.n_breaking, off.added_errors) == (2, 8, 1.0, 1, 2)
    assert (parse.declined, parse.reasons, parse.chars_ratio) == (1, {"invalid": 1}, 0.5)
    assert (full.refused_first, full.n_slow, off.refused_first) == (0.2, 1, None)


def test_characters_are_compared_position_by_position() -> None:
    parse, full = validity_report(HEADER, ROWS, validity.ARMS).differences

    assert (parse.n_fewer, parse.n_same, parse.n_more, parse.chars) == (1, 1, 0, -2.0)
    assert (full.n_fewer, full.n_same, full.n_more, full.chars) == (0, 1, 1, 0.5)
    assert full.baseline == "off"


def test_several_languages_are_also_told_together() -> None:
    rows = [*ROWS, *(replace(row, language="sql", path="a.sql") for row in ROWS)]
    report = validity_report(HEADER, rows, ["off", "full"])

    assert [(each.language, each.arm, each.n) for each in report.summaries] == [
        *[("python", "off", 2), ("python", "full", 2)],
        *[("sql", "off", 2), ("sql", "full", 2)],
        *[("all", "off", 4), ("all", "full", 4)],
    ]


def test_json_has_the_errors_of_each_arm() -> None:
    found = json.loads(json.dumps(validity_json(validity_report(HEADER, ROWS, validity.ARMS))))

    assert found["added_errors"] == {"off": 2, "parse": 0, "full": 0}
    assert found["summaries"][0]["n_chars"] == 8


def test_the_tables_tell_all_of_it_and_what_was_slow() -> None:
    text = validity_markdown(validity_report(HEADER, ROWS, validity.ARMS))

    assert "2 positions that every arm was asked at" in text
    assert "| python   | line | parse | 2 |     1 |        1 |   0 |         0 |          4 | 0.500 |" in text
    assert "Requests of more than 10 s, counted like the others: 1 in python line full." in text
    assert validity_markdown(validity_report(HEADER, [], ["off"])).startswith("No position has been asked")


def test_the_header_names_what_a_row_depends_on() -> None:
    header = validity_header(ScriptedEngine("", n_context=2048), seed=7)

    assert (header.model, header.format) == ("script", "treefill-validity-1")
    assert (header.settings["seed"], header.settings["n_context"]) == (7, 2048)
