"""What was measured, as one JSON object or as lines to read. Ratios are of medians of the same run."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from treefill.benchmarks.keystrokes import (
    ALL,
    Key,
    KeysSummary,
    Percentiles,
    SameTokens,
    same_tokens,
    summarise,
)
from treefill.benchmarks.speed import N_CHECKED, Conditions, SpeedReport, Timed


@dataclass(frozen=True, slots=True)
class KeysReport:
    """Keystrokes of one run."""

    conditions: Conditions
    step_ms: float
    """One step of our own decoding, taken before the keys."""
    summaries: list[KeysSummary]
    same_tokens: list[SameTokens]


def keys_report(keys: Sequence[Key], step_ms: float, conditions: Conditions) -> KeysReport:
    """Sum the keys up."""
    return KeysReport(conditions, step_ms, summarise(keys, step_ms), same_tokens(keys))


def speed_json(report: SpeedReport) -> dict[str, Any]:
    """All of it, and what is derived from it."""
    found = asdict(report)
    found["ratios"] = [
        {
            "peer": peer.contender,
            "n_prompt_tokens": peer.n_prompt_tokens,
            "n_busy": peer.n_busy,
            "ours_to_peer": round(ours.tokens_per_s.median / peer.tokens_per_s.median, 3),
        }
        for ours, peer in _pairs(report.timed)
    ]
    if report.bandwidth is not None:
        found["bandwidth"]["our_share"] = round(report.bandwidth.ms.low / report.timed[0].ms.median, 3)
    return found


def keys_json(report: KeysReport) -> dict[str, Any]:
    """All of it."""
    return {"bench": "keystrokes", **asdict(report)}


def speed_text(report: SpeedReport) -> str:
    """A table and a line for each thing beside it."""
    return "\n".join(_speed_lines(report))


def _speed_lines(report: SpeedReport) -> Iterator[str]:
    yield _conditions_line(report.conditions)
    width = max(len(timed.contender) for timed in report.timed)
    ratios = {
        id(peer): ours.tokens_per_s.median / peer.tokens_per_s.median for ours, peer in _pairs(report.timed)
    }
    for timed in report.timed:
        rate, ms = timed.tokens_per_s, timed.ms
        beside = f" beside {timed.n_busy} busy" if report.bench == "load" else ""
        ratio = f"  ours is {ratios[id(timed)]:.2f} times as fast" if id(timed) in ratios else ""
        threads = "? threads" if timed.n_threads is None else f"{timed.n_threads} threads"
        yield (
            f"{report.bench:8}{timed.contender:{width}}  {threads:>9}{beside}  {timed.n_prompt_tokens:5} tokens of "
            f"prompt  {rate.median:7.1f} tokens/s [{rate.low:.1f} to {rate.high:.1f}]  {ms.median:.1f} ms{ratio}"
        )
    if report.bandwidth is not None:
        limit, ours = report.bandwidth, report.timed[0]
        yield (
            f"limit   the weights of a step, {limit.n_bytes / 1e6:.0f} MB, are read in {limit.ms.low:.1f} ms "
            f"[to {limit.ms.high:.1f}] by {limit.n_threads} threads ({limit.gb_per_s:.1f} GB/s): "
            f"our decoding is at {100 * limit.ms.low / ours.ms.median:.0f} % of that"
        )
    for name, memory in report.memory.items():
        grown = f"{memory.kb_per_token:.1f} kB more a token of prompt"
        yield f"memory  {name}: at most {memory.peak_mb:.0f} MB resident, {grown}"
    for name, n_same in report.n_agreeing.items():
        yield f"checked {name}: {n_same} of our first {N_CHECKED} tokens are its own"


def keys_text(report: KeysReport) -> str:
    """Tables over all keys, and by language."""
    return "\n".join(_keys_lines(report))


def _keys_lines(report: KeysReport) -> Iterator[str]:
    yield _conditions_line(report.conditions)
    yield f"One step of our own decoding took {report.step_ms:.1f} ms. In the tables: p50 / p95 / max."
    for summary in report.summaries:
        if summary.language != ALL:
            continue
        yield ""
        yield (
            f"{summary.contender}: {summary.n_keys} keys, {summary.n_new_lines} new lines, "
            f"{summary.n_bracket_edits} bracket edits; {_sources(summary)}"
        )
        yield from _rows(summary)
    for pair in report.same_tokens:
        yield ""
        yield f"To the same number of tokens, the {pair.ours_ms.n} keys for which ours and {pair.peer} both decoded:"
        yield f"  ours {_three(pair.ours_ms)} ms, the peer {_three(pair.peer_ms)} ms"
    yield ""
    yield "Tokens evaluated, by language:"
    for summary in report.summaries:
        if summary.language != ALL:
            yield (
                f"  {summary.contender}, {summary.language}: all {summary.n_keys} keys {_three(summary.evaluated)}, "
                f"{summary.asked_evaluated.n} asked {_three(summary.asked_evaluated)}, "
                f"{summary.n_new_lines} new lines {_three(summary.new_line_evaluated)}"
            )


def _rows(summary: KeysSummary) -> Iterator[str]:
    yield f"  to the first whole line   {_three(summary.line_ms)} ms, or {_three(summary.line_steps)} of our steps"
    yield f"  of the {summary.asked_line_ms.n} asked            {_three(summary.asked_line_ms)} ms"
    yield f"  to their first token      {_three(summary.ttft_ms)} ms"
    yield f"  tokens they evaluated     {_three(summary.asked_evaluated)}"
    yield f"  at new lines              {_three(summary.new_line_ms)} ms"


def _sources(summary: KeysSummary) -> str:
    return ", ".join(f"{n} {source}" for source, n in summary.sources.items())


def _three(found: Percentiles) -> str:
    return f"{found.p50:.1f} / {found.p95:.1f} / {found.max:.1f}" if found.n else "-"


def _conditions_line(found: Conditions) -> str:
    return (
        f"{found.model} on {found.processor}, {found.n_cores} cores, {found.instruction_set}; "
        f"load average {found.load_before:.1f} before and {found.load_after:.1f} after"
    )


def _pairs(timed: Sequence[Timed]) -> Iterator[tuple[Timed, Timed]]:
    """Each peer's row with ours of the same situation; ours comes first in each."""
    ours: dict[tuple[int, int], Timed] = {}
    for each in timed:
        situation = (each.n_prompt_tokens, each.n_busy)
        if situation in ours:
            yield ours[situation], each
        else:
            ours[situation] = each
