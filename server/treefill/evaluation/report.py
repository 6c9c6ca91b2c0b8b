"""What was measured, as Markdown tables for people and as plain values for JSON. Nothing is computed here."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from treefill.evaluation.fidelity import MAX_DIVERGENCE, MAX_PERPLEXITY_CHANGE, Fidelity
from treefill.evaluation.grammar_exam import GrammarMarks, percentile
from treefill.evaluation.keystrokes import KeystrokeSummary
from treefill.evaluation.mask_exam import MaskMarks
from treefill.evaluation.results import Header, Row
from treefill.evaluation.statistics import Difference, Summary, arms_of, common_rows, compare, summarise
from treefill.evaluation.validity import ALL, SLOW_MS, ValidityDifference, ValidityReport, ValiditySummary


@dataclass(frozen=True, slots=True)
class InfillReport:
    """The numbers of one results file."""

    header: Header
    n_rows: int
    n_holes: int
    """Holes that all arms have filled: everything below is about them."""
    summaries: Sequence[Summary]
    differences: Sequence[Difference]


VALIDITY_HEAD = (
    *("language", "mode", "arm", "n", "shown", "declined", "cut", "unchecked", "characters", "ratio"),
    *("add errors", "errors added", "faults inside", "first refused", "ms p50"),
)
EXACT_HEAD = (
    *("language", "clean files", "tokens", "files refused", "places", "tokens", "places refused"),
    *("mutants", "of them clean", "wrongly accepted", "wrongly refused", "gave up"),
)
CHANGED_HEAD = (
    *("language", "changed statements", "at work", "file refuses", "skeleton refuses", "file alone"),
    *("skeleton alone", "file whole", "may end", "file whole alone", "may end alone"),
)
REACH_HEAD = (
    *("language", "positions", "at work", "statements", "own text refused", "ends", "ends refused"),
    *("set-up ms p50", "p99", "a token µs p50", "p99"),
)
MASK_HEAD = (
    *("language", "positions", "out of reach", "tokens compared", "allowed", "over", "under"),
    *(
        "walked",
        "own refused",
        "warm differs",
        "first mask ms p50",
        "p90",
        "p99",
        "next ms p50",
        "p90",
        "p99",
    ),
)
JUDGED_HEAD = (
    *("language", "allowed", "completed", "undecided", "wrong wholes"),
    *("refused", "ways tried", "wrongly refused"),
)


def infill_report(
    header: Header, rows: Sequence[Row], arms: Sequence[str] | None = None, baseline: str | None = None
) -> InfillReport:
    """Sum up `rows`. Without `arms`, those that the file has; without `baseline`, the first arm."""
    arms = [arm for arm in arms or arms_of(rows) if any(row.arm == arm for row in rows)]
    common = common_rows(rows, arms)
    first = baseline if baseline in arms else next(iter(arms), "")
    n_holes = len(common) // len(arms) if arms else 0
    return InfillReport(header, len(rows), n_holes, summarise(common, arms), compare(common, arms, first))


def infill_json(report: InfillReport) -> dict[str, Any]:
    """The report as plain values."""
    return asdict(report)


def infill_markdown(report: InfillReport) -> str:
    """The report as two tables."""
    header = report.header
    if not report.summaries:
        return f"No hole has been filled yet ({header.model}, {header.engine})."
    parts = [
        f"{header.model}, {header.engine}, treefill {header.version}: "
        f"{report.n_holes} holes that every arm has filled.",
        table(
            ("variant", "arm", "n", "passed", "exact", "declined"),
            (_summary_cells(summary) for summary in report.summaries),
        ),
    ]
    if report.differences:
        baseline = report.differences[0].baseline
        parts += [
            f"Percentage points against `{baseline}` on the same holes, with 95 % intervals over problems:",
            table(
                ("variant", "arm", "n", "passed", "interval", "exact", "interval"),
                (_difference_cells(difference) for difference in report.differences),
            ),
        ]
    return "\n\n".join(parts)


def fidelity_json(found: Sequence[Fidelity]) -> list[dict[str, Any]]:
    """What was measured as plain values."""
    return [asdict(line) | {"is_within_targets": line.is_within_targets} for line in found]


def fidelity_markdown(found: Sequence[Fidelity]) -> str:
    """A table, and a line on what int8 must reach."""
    rows = (
        (
            line.language,
            line.model,
            str(line.n),
            f"{line.reference_perplexity:.4f}",
            f"{line.perplexity:.4f}",
            f"{100 * line.change:+.3f} ± {100 * line.change_error:.3f} %",
            f"{line.divergence:.5f}",
            f"{100 * line.agreement:.2f} %",
        )
        for line in found
    )
    head = ("language", "model", "tokens", "float32 perplexity", "perplexity", "change", "KL", "top-1")
    targets = f"Wanted of int8: change within {MAX_PERPLEXITY_CHANGE:.1%}, KL at most {MAX_DIVERGENCE}."
    return f"{table(head, rows)}\n\n{targets}"


def keystrokes_json(found: Sequence[KeystrokeSummary]) -> list[dict[str, Any]]:
    """What was measured as plain values."""
    return [asdict(line) for line in found]


def keystrokes_markdown(found: Sequence[KeystrokeSummary]) -> str:
    """A table of the tokens evaluated per keystroke."""
    rows = (
        (
            line.arm,
            str(line.n),
            f"{line.prompt_median:.0f}",
            f"{line.evaluated_median:.0f}",
            f"{line.evaluated_p95:.0f}",
            str(line.evaluated_max),
            f"{line.healed_mean:.1f}",
            f"{line.ttft_ms_median:.0f}",
        )
        for line in found
    )
    head = ("arm", "keys", "prompt p50", "evaluated p50", "p95", "max", "healed mean", "first token ms p50")
    return table(head, rows, n_words=1)


def validity_json(report: ValidityReport) -> dict[str, Any]:
    """The report as plain values."""
    return asdict(report)


def validity_markdown(report: ValidityReport) -> str:
    """The report as two tables, and a line on requests that took long."""
    header = report.header
    if not report.summaries:
        return f"No position has been asked at yet ({header.model}, {header.engine})."
    parts = [
        f"{header.model}, {header.engine}, treefill {header.version}, seed {header.settings['seed']}: "
        f"{report.n_positions} positions that every arm was asked at.",
        table(VALIDITY_HEAD, (_validity_cells(summary) for summary in report.summaries), n_words=3),
    ]
    if report.differences:
        baseline = report.differences[0].baseline
        parts += [
            f"Characters shown less those of `{baseline}` at the same position, with 95 % intervals over files:",
            table(
                ("language", "mode", "arm", "n", "fewer", "same", "more", "a position", "interval"),
                (_validity_difference_cells(difference) for difference in report.differences),
                n_words=3,
            ),
        ]
    slow = [summary for summary in report.summaries if summary.n_slow and summary.language != ALL]
    if slow:
        told = ", ".join(f"{each.n_slow} in {each.language} {each.mode} {each.arm}" for each in slow)
        parts.append(f"Requests of more than {SLOW_MS / 1000:.0f} s, counted like the others: {told}.")
    return "\n\n".join(parts)


def grammar_json(found: Sequence[GrammarMarks]) -> list[dict[str, Any]]:
    """The marks as plain values, the times as percentiles."""
    return [_grammar_json(marks) for marks in found]


def grammar_markdown(found: Sequence[GrammarMarks]) -> str:
    """Three tables: what must be right, how skeletons judge, what it reaches and costs; and the first mistakes."""
    exact = table(
        EXACT_HEAD,
        (_exact_cells(marks) for marks in found),
        n_words=1,
    )
    changed = table(CHANGED_HEAD, (_changed_cells(marks) for marks in found), n_words=1)
    reach = table(
        REACH_HEAD,
        (_reach_cells(marks) for marks in found),
        n_words=1,
    )
    mistakes = [
        f"- {marks.language}, {each.part}: {each.path}, byte {each.byte_offset}: `{each.text!r}`"
        for marks in found
        for each in marks.mistakes
    ]
    return "\n\n".join([exact, changed, reach, *(["\n".join(mistakes)] if mistakes else [])])


def masks_json(found: Sequence[MaskMarks]) -> list[dict[str, Any]]:
    """The marks as plain values, the times as percentiles, tokens as text."""
    return [_masks_json(marks) for marks in found]


def masks_markdown(found: Sequence[MaskMarks]) -> str:
    """Two tables, what each token alone says and what tree-sitter says, and the first mistakes."""
    parts = [
        table(MASK_HEAD, (_mask_cells(marks) for marks in found), n_words=1),
        table(JUDGED_HEAD, (_judged_cells(marks) for marks in found), n_words=1),
    ]
    mistakes = [
        f"- {marks.language}, {each.part}: {each.path}, byte {each.byte_offset}: `{each.token!r}`"
        + (f", then `{each.how[:80]!r}`" if each.how else "")
        for marks in found
        for each in marks.mistakes
    ]
    return "\n\n".join([*parts, *(["\n".join(mistakes)] if mistakes else [])])


def table(head: Sequence[str], rows: Iterable[Sequence[str]], n_words: int = 2) -> str:
    """A Markdown table; columns after the first `n_words` are numbers and lean right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    rule = [
        "-" * width if column < n_words else "-" * (width - 1) + ":" for column, width in enumerate(widths)
    ]
    return "\n".join(_line(cells, widths, n_words) for cells in (head, rule, *lines[1:]))


def _line(cells: Sequence[str], widths: Sequence[int], n_words: int) -> str:
    padded = [
        cell.ljust(width) if column < n_words else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def _summary_cells(summary: Summary) -> tuple[str, ...]:
    return (
        summary.variant,
        summary.arm,
        str(summary.n),
        _percent(summary.passed),
        _percent(summary.exact),
        _percent(summary.declined),
    )


def _difference_cells(difference: Difference) -> tuple[str, ...]:
    return (
        difference.variant,
        difference.arm,
        str(difference.n),
        _points(difference.passed),
        f"{_points(difference.passed_low)} … {_points(difference.passed_high)}",
        _points(difference.exact),
        f"{_points(difference.exact_low)} … {_points(difference.exact_high)}",
    )


def _validity_cells(summary: ValiditySummary) -> tuple[str, ...]:
    return (
        summary.language,
        summary.mode,
        summary.arm,
        str(summary.n),
        str(summary.shown),
        str(summary.declined),
        str(summary.n_cut),
        str(summary.n_unchecked),
        str(summary.n_chars),
        _number_or_none(summary.chars_ratio, 3),
        str(summary.n_breaking),
        str(summary.added_errors),
        str(summary.n_faults_inside),
        _percent_or_none(summary.refused_first),
        f"{summary.ms_p50:.0f}",
    )


def _validity_difference_cells(difference: ValidityDifference) -> tuple[str, ...]:
    return (
        difference.language,
        difference.mode,
        difference.arm,
        str(difference.n),
        str(difference.n_fewer),
        str(difference.n_same),
        str(difference.n_more),
        f"{difference.chars:+.1f}",
        f"{difference.chars_low:+.1f} … {difference.chars_high:+.1f}",
    )


def _grammar_json(marks: GrammarMarks) -> dict[str, Any]:
    plain = asdict(marks)
    setup_ms, check_us = plain.pop("setup_ms"), plain.pop("check_us")
    return plain | {
        "reach": marks.reach,
        "own_refused": marks.own_refused,
        "setup_ms_p50": percentile(setup_ms, 50),
        "setup_ms_p99": percentile(setup_ms, 99),
        "check_us_p50": percentile(check_us, 50),
        "check_us_p99": percentile(check_us, 99),
    }


def _exact_cells(marks: GrammarMarks) -> tuple[str, ...]:
    numbers = (
        *(marks.n_files, marks.n_boundaries, marks.n_boundaries_refused),
        *(marks.n_skeletons_at_work, marks.n_skeleton_tokens, marks.n_skeletons_refused),
        *(marks.n_mutants, marks.n_mutants_clean, marks.n_wrongly_accepted, marks.n_wrongly_refused),
        marks.n_gave_up,
    )
    return (marks.language, *map(str, numbers))


def _changed_cells(marks: GrammarMarks) -> tuple[str, ...]:
    changed = marks.changed
    numbers = (
        *(changed.n, changed.n_at_work, changed.n_file_refuses, changed.n_skeleton_refuses),
        *(changed.n_file_alone_refuses, changed.n_skeleton_alone_refuses),
        *(changed.n_file_whole, changed.n_may_stop, changed.n_file_alone_whole, changed.n_may_stop_alone),
    )
    return (marks.language, *map(str, numbers))


def _reach_cells(marks: GrammarMarks) -> tuple[str, ...]:
    return (
        marks.language,
        str(marks.n_positions),
        _percent_or_none(marks.reach),
        str(marks.n_statements),
        _percent_or_none(marks.own_refused),
        str(marks.n_ends),
        str(marks.n_ends_refused),
        _number_or_none(percentile(marks.setup_ms, 50), 2),
        _number_or_none(percentile(marks.setup_ms, 99), 2),
        _number_or_none(percentile(marks.check_us, 50), 1),
        _number_or_none(percentile(marks.check_us, 99), 1),
    )


def _masks_json(marks: MaskMarks) -> dict[str, Any]:
    plain = asdict(marks)
    cold_ms, warm_ms = plain.pop("cold_ms"), plain.pop("warm_ms")
    mistakes = [
        asdict(each)
        | {"token": each.token.decode(errors="replace"), "how": each.how.decode(errors="replace")}
        for each in marks.mistakes
    ]
    times = {
        f"{name}_ms_p{percent}": percentile(values, percent)
        for name, values in (("cold", cold_ms), ("warm", warm_ms))
        for percent in (50, 90, 99)
    }
    return plain | times | {"n_undecided": marks.n_undecided, "mistakes": mistakes}


def _mask_cells(marks: MaskMarks) -> tuple[str, ...]:
    share = marks.n_allowed / marks.n_compared if marks.n_compared else None
    times = [percentile(values, each) for values in (marks.cold_ms, marks.warm_ms) for each in (50, 90, 99)]
    return (
        *(marks.language, str(marks.n_positions), str(marks.n_out_of_reach), f"{marks.n_compared:,}"),
        *(_percent_or_none(share), str(marks.n_over), str(marks.n_under)),
        *(str(marks.n_walked), str(marks.n_own_refused), str(marks.n_warm_different)),
        *(_number_or_none(each, 2) for each in times),
    )


def _judged_cells(marks: MaskMarks) -> tuple[str, ...]:
    numbers = (
        *(marks.n_judged_allowed, marks.n_completed, marks.n_undecided, marks.n_wrong_wholes),
        *(marks.n_judged_refused, marks.n_tried, marks.n_wrongly_refused),
    )
    return (marks.language, *map(str, numbers))


def _percent_or_none(share: float | None) -> str:
    return "–" if share is None else _percent(share)


def _number_or_none(number: float | None, n_digits: int) -> str:
    return "–" if number is None else f"{number:.{n_digits}f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"
