"""What the numbers come to, as plain data for programs: shares, percentiles, sums by day and language."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from treefill.statistics.counts import Key
from treefill.statistics.latency import percentile
from treefill.statistics.observer import AT_ONCE, DECODED, REUSED, WITHOUT_MODEL

_SUMMED = ("offered", "accepted", "partly_accepted", "characters_accepted")


def report_on(values: Iterable[tuple[Key, int]]) -> dict[str, Any]:
    """The answer of `treefill.statistics`; a share or time of nothing is None."""
    days: dict[str, Counter[str]] = {}
    languages: dict[str, Counter[str]] = {}
    total: Counter[str] = Counter()
    for (day, language, name), n in values:
        for sums in (days.setdefault(day, Counter()), languages.setdefault(language, Counter()), total):
            sums[name] += n
    busiest = sorted(languages, key=lambda language: (-languages[language]["offered"], language))
    return {
        "since": min(days, default=None),
        "days": [{"day": day, **_sums(days[day])} for day in sorted(days)],
        "languages": [
            {"language": language, **_sums(languages[language]), "syntax": _syntax(languages[language])}
            for language in busiest
        ],
        "total": _sums(total) | {"characters_offered": total["characters_offered"]},
        "latency_ms": {way: _times(total, f"latency.{way}.") for way in (DECODED, REUSED, AT_ONCE)},
        "without_model": {
            source: {name: total[f"{source}.{name}"] for name in ("offered", "accepted")}
            for source in WITHOUT_MODEL
        },
        "cache": {name: total[name] for name in ("reused_tokens", "evaluated_tokens", "decoded_tokens")},
        "syntax": _syntax(total),
        "declined": dict(Counter(_under("declined.", total)).most_common()),
        "acceptance_rate": _share(total["accepted"], total["offered"]),
        "kept_share": _share(total["characters_kept"], total["characters_judged"]),
    }


def _sums(sums: Counter[str]) -> dict[str, int]:
    return {name: sums[name] for name in _SUMMED}


def _syntax(sums: Counter[str]) -> dict[str, float | int | None]:
    n_guarded, n_unguarded = sums["syntax.guarded"], sums["syntax.unguarded"]
    return {
        "guarded": n_guarded,
        "unguarded": n_unguarded,
        "guarded_share": _share(n_guarded, n_guarded + n_unguarded),
        "guarded_tokens": sums["syntax.guarded_tokens"],
        "refused_first": sums["syntax.refused_first"],
        "undone": sums["syntax.undone"],
        "cut": sums["syntax.cut"],
        "invalid": sums["declined.invalid"],
    }


def _times(total: Counter[str], prefix: str) -> dict[str, float | int | None]:
    histogram = {int(bucket): n for bucket, n in _under(prefix, total).items()}
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    times = {name: percentile(histogram, share) for name, share in shares.items()}
    return {**times, "n": sum(histogram.values())}


def _under(prefix: str, total: Counter[str]) -> dict[str, int]:
    return {name.removeprefix(prefix): n for name, n in total.items() if name.startswith(prefix)}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
