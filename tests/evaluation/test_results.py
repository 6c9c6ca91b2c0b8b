"""The results file: rows at once on the disk, going on after a cut, and refusing other conditions."""

from dataclasses import replace
from pathlib import Path

import pytest
from treefill.errors import BadInput
from treefill.evaluation.results import Header, ResultsFile, Row, read_results

HEADER = Header("tiny", "int8", "0.1.0", {"max_new_tokens": 64})


def a_row(line: int = 1, arm: str = "plain", **fields: object) -> Row:
    row = Row("Small/0", line, "whole", "indent", arm, True, False, None, 20, 5, 19, 4, 12.5, "return", 0)
    return replace(row, **fields)  # type: ignore[arg-type]


def test_a_row_is_on_the_disk_as_soon_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    file = ResultsFile(path, HEADER, Row)
    file.append(a_row(1))

    assert read_results(path, Row) == (HEADER, (a_row(1),))
    file.close()


def test_a_run_goes_on_with_the_rows_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    first = ResultsFile(path, HEADER, Row)
    first.append(a_row(1))
    first.close()

    second = ResultsFile(path, HEADER, Row)
    assert list(second.rows) == [a_row(1).key]
    second.append(a_row(2))
    second.close()

    assert read_results(path, Row)[1] == (a_row(1), a_row(2))


def test_a_row_that_was_cut_by_a_kill_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    first = ResultsFile(path, HEADER, Row)
    first.append(a_row(1))
    first.append(a_row(2))
    first.close()
    path.write_bytes(path.read_bytes()[:-20])

    assert read_results(path, Row)[1] == (a_row(1),)
    second = ResultsFile(path, HEADER, Row)
    second.append(a_row(3))
    second.close()

    assert read_results(path, Row)[1] == (a_row(1), a_row(3))


@pytest.mark.parametrize(
    "other",
    [
        replace(HEADER, model="big"),
        replace(HEADER, engine="bitsandbytes"),
        replace(HEADER, version="0.2.0"),
        replace(HEADER, settings={"max_new_tokens": 32}),
    ],
)
def test_a_file_made_under_other_conditions_is_refused(tmp_path: Path, other: Header) -> None:
    path = tmp_path / "rows.jsonl"
    ResultsFile(path, HEADER, Row).close()

    with pytest.raises(BadInput, match="was made with the"):
        ResultsFile(path, other, Row)
    assert read_results(path, Row) == (HEADER, ())


@pytest.mark.parametrize(
    "text", ["hello\n", "{}\n", "[1]\n", '{"format": "treefill-infill-1"}\n', "\ud800\n"]
)
def test_a_file_that_is_something_else_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text, errors="surrogatepass")
    before = path.read_bytes()

    with pytest.raises(BadInput, match=str(path)):
        ResultsFile(path, HEADER, Row)
    assert path.read_bytes() == before


def test_a_broken_row_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    file = ResultsFile(path, HEADER, Row)
    file.append(a_row(1))
    file.close()
    path.write_text(path.read_text() + '{"task": 1}\n')

    with pytest.raises(BadInput, match="line 3 of"):
        read_results(path, Row)


def test_a_file_that_cannot_be_written_or_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        ResultsFile(tmp_path / "missing" / "rows.jsonl", HEADER, Row)
    with pytest.raises(BadInput, match="cannot be read"):
        read_results(tmp_path / "rows.jsonl", Row)
