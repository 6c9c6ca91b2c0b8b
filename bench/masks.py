"""Token masks of a whole vocabulary, ours beside llguidance and xgrammar: `make masks`, after `make mask-peers`.

Real code of `mask_texts/` goes through every engine token by token, with a mask before each. The answer is checked in
every pass: the mask must allow the token that comes, the engine must take it, and the text must be whole at its end.
An engine that fails at one is told of with the place, and timed up to there. The first pass is cold and stands in
columns of its own; later ones are taken in turns, and each place counts with the median of its times. An engine that
is slow takes fewer passes. Times are this machine's; look at the load before you believe them. With `--clock processor`
they leave out what other programs took of it, and count all threads of this one.
"""

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from treefill.app import App
from treefill.benchmarks.rounds import load_average, percentile
from treefill.benchmarks.speed import processor_name
from treefill.engine.tokenizer import TokenizerVocabulary
from treefill.errors import TreefillError
from treefill.settings import load_settings

from bench.mask_engines import (
    ENGINES,
    LANGUAGES,
    SET_UP,
    CannotLoad,
    Contender,
    Engine,
    Tokens,
    Walker,
    first_line,
    peers_folder,
)

TEXTS = Path(__file__).resolve().parent / "mask_texts"
SUFFIXES = {
    "json": ".json",
    "c": ".c",
    "java": ".java",
    "sql": ".sql",
    "go": ".go",
    "python": ".py",
    "cpp": ".cpp",
    "javascript": ".js",
}
"""Language → the suffix of its texts."""
CLOCKS: dict[str, Callable[[], int]] = {"wall": time.perf_counter_ns, "processor": time.process_time_ns}


@dataclass(frozen=True, slots=True)
class Text:
    """One text, as tokens."""

    name: str
    ids: tuple[int, ...]
    is_cut: bool = False
    """Whether it goes on after these."""


@dataclass(slots=True)
class Pass:
    """What came of all texts, once. One number a place that a mask was made at."""

    mask_us: list[float] = field(default_factory=list)
    accept_us: list[float] = field(default_factory=list)
    densities: list[float] = field(default_factory=list)
    """Which share of the logits the mask allows."""
    troubles: list[str] = field(default_factory=list)
    """What went wrong, and where."""

    def seconds(self) -> float:
        """What the engine took."""
        return (sum(self.mask_us) + sum(self.accept_us)) / 1e6


@dataclass(slots=True)
class Run:
    """What one contender has done so far."""

    walker: Walker
    texts: Sequence[Text]
    compile_ms: float
    never: NDArray[np.uint32]
    """A mask of the tokens that no mask may allow."""
    clock: Callable[[], int]
    """Nanoseconds."""
    first: Pass
    later: list[Pass] = field(default_factory=list)
    """Those that count."""


@dataclass(frozen=True, slots=True)
class Row:
    """One engine with one grammar. Microseconds a mask but where a field says otherwise; None where it has none."""

    language: str
    engine: str
    grammar: str
    n_masks: int
    """Places that a mask was made at."""
    n_passes: int
    """Passes that the times are of."""
    compile_ms: float | None = None
    p50_us: float | None = None
    p90_us: float | None = None
    p99_us: float | None = None
    mean_us: float | None = None
    max_us: float | None = None
    accept_us: float | None = None
    """Mean time to take a token."""
    density: float | None = None
    """Mean share of the logits that a mask allows."""
    first_mean_us: float | None = None
    """The same of the first pass, in which nothing is warm."""
    first_max_us: float | None = None
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the times hang on."""

    processor: str
    clock: str
    model: str
    n_logits: int
    n_tokens: int
    """Tokens that a text can have."""
    ready_ms: dict[str, float]
    """Engine → how long it took the vocabulary in."""
    missing: dict[str, str]
    """Engines that are not there → why."""
    load_before: float
    load_after: float


def main() -> None:
    """Check, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.masks", description=__doc__)
    parser.add_argument("--model", help="whose vocabulary; else the one in use")
    parser.add_argument(
        "--only", metavar="LANGUAGES", default=",".join(LANGUAGES), help="separated by commas"
    )
    parser.add_argument("--engines", default=",".join(ENGINES), help="separated by commas")
    parser.add_argument("--tokens", type=int, help="of each text the first so many, to be done sooner")
    parser.add_argument("--rounds", type=int, default=7, help="passes that are timed, at most")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="after so many an engine takes no other pass"
    )
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="what is read")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    options = parser.parse_args()
    languages = _chosen(parser, options.only, LANGUAGES)
    names = _chosen(parser, options.engines, tuple(ENGINES))
    sys.path.append(str(peers_folder() / "site"))
    load_before = load_average()
    try:
        model, tokens = open_tokens(options.model)
    except TreefillError as error:
        sys.exit(f"masks: {error}")
    engines, ready_ms, missing = open_engines(names, tokens)
    gc.disable()  # it would run while a mask is timed
    rows = [
        row
        for language_id in languages
        for row in measured(
            language_id,
            engines,
            tokens,
            texts_of(language_id, tokens.encode, options.tokens),
            CLOCKS[options.clock],
            options.rounds,
            options.seconds,
        )
    ]
    n_tokens = sum(map(bool, tokens.spelled))
    conditions = Conditions(
        processor_name(),
        options.clock,
        model,
        tokens.n_logits,
        n_tokens,
        ready_ms,
        missing,
        load_before,
        load_average(),
    )
    if options.json:
        print(json.dumps({"bench": "masks", "conditions": asdict(conditions), "rows": [*map(asdict, rows)]}))
    else:
        print("\n".join(report(rows, conditions)))


def open_tokens(model: str | None) -> tuple[str, Tokens]:
    """A model's name and tokens. Raises `TreefillError` where it isn't in the store."""
    settings = load_settings().settings
    stored = App(settings).store.open(model or settings.model or None)
    n_logits = stored.config["vocab_size"]
    vocabulary = TokenizerVocabulary(stored.tokenizer_path, stored.end_ids, n_logits)
    return stored.name, Tokens.of(vocabulary, n_logits)


def open_engines(
    names: Sequence[str], tokens: Tokens
) -> tuple[list[Engine], dict[str, float], dict[str, str]]:
    """Those that are there, how long each took, and why the others are not."""
    engines: list[Engine] = []
    ready_ms: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name in names:
        begun = time.perf_counter()
        try:
            engines.append(ENGINES[name](tokens))
        except ImportError as error:
            missing[name] = first_line(str(error)) if name == "treefill" else f"{error}: {SET_UP}"
            tell(f"{name} is not there: {missing[name]}")
        else:
            ready_ms[engines[-1].name] = _rounded((time.perf_counter() - begun) * 1000)
    return engines, ready_ms, missing


def measured(
    language_id: str,
    engines: Sequence[Engine],
    tokens: Tokens,
    texts: Sequence[Text],
    clock: Callable[[], int],
    n_rounds: int,
    seconds: float,
) -> list[Row]:
    """All of one language."""
    rows: dict[int, Row] = {}
    runs: dict[int, Run] = {}
    contenders = [each for engine in engines for each in engine.contenders(language_id)]
    for number, contender in enumerate(contenders):
        tell(f"{language_id}: {contender.engine}, {contender.grammar}")
        begun = clock()
        try:
            walker = contender.load()
        except CannotLoad as error:
            rows[number] = Row(language_id, contender.engine, contender.grammar, 0, 0, troubles=(str(error),))
            continue
        compile_ms = (clock() - begun) / 1e6
        runs[number] = Run(walker, texts, compile_ms, tokens.never(), clock, Pass())
        one_pass(runs[number], runs[number].first)
    take_turns(list(runs.values()), n_rounds, seconds)
    for number, run in runs.items():
        rows[number] = summary(language_id, contenders[number], run)
    return [rows[number] for number in range(len(contenders))]


def texts_of(language_id: str, encode: Callable[[str], list[int]], n_tokens: int | None = None) -> list[Text]:
    """A language's texts, of each at most `n_tokens`."""
    paths = sorted(TEXTS.glob(f"*{SUFFIXES[language_id]}"))
    each = [(path.name, tuple(encode(path.read_text("utf-8")))) for path in paths]
    return [Text(name, ids[:n_tokens], n_tokens is not None and n_tokens < len(ids)) for name, ids in each]


def take_turns(runs: Sequence[Run], n_rounds: int, seconds: float) -> None:
    """Passes one after the other, every other round in the opposite order.

    Whoever's passes took longer than `seconds` takes no other, but every one has one that counts; a second one to warm
    up is left out where it alone would take so long.
    """
    for run in runs:
        if run.first.seconds() < seconds:
            one_pass(run, Pass())
    for n_round in range(n_rounds):
        for run in runs if n_round % 2 == 0 else reversed(runs):
            if not run.later or sum(each.seconds() for each in run.later) < seconds:
                run.later.append(Pass())
                one_pass(run, run.later[-1])


def one_pass(run: Run, found: Pass) -> None:
    """Every text from its beginning, as far as the engine goes."""
    for text in run.texts:
        trouble = walk(run.walker, text, run.never, run.clock, found)
        if trouble:
            found.troubles.append(f"{text.name}, {trouble}")


def walk(walker: Walker, text: Text, never: NDArray[np.uint32], clock: Callable[[], int], found: Pass) -> str:
    """One text: a mask, is it right, the token; and so on to the end. What is wrong first, where something is."""
    walker.begin()
    for place, token_id in enumerate(text.ids):
        begun = clock()
        walker.fill_mask()
        filled = clock()
        if words := walker.trouble():
            return f"token {place}: dies ({words})"
        if not allows(walker.words, token_id):
            return f"token {place}: refuses the right one"
        if (walker.words & never).any():
            return f"token {place}: allows tokens that no text has"
        asked = clock()
        is_taken = walker.accept(token_id)
        taken = clock()
        if not is_taken:
            return f"token {place}: does not take what its mask allows ({walker.trouble() or 'no word why'})"
        found.mask_us.append((filled - begun) / 1000)
        found.accept_us.append((taken - asked) / 1000)
        found.densities.append(int(np.bitwise_count(walker.words).sum()) / (32 * len(walker.words)))
    return "" if text.is_cut or walker.is_whole() else "at its end: does not think it whole"


def allows(words: NDArray[np.uint32], token_id: int) -> bool:
    """What a mask says of a token."""
    return bool(int(words[token_id // 32]) >> token_id % 32 & 1)


def summary(language_id: str, contender: Contender, run: Run) -> Row:
    """A line of the table. Raises `ValueError` where passes ended at different places."""
    first, passes = run.first, run.later
    if any(each.troubles != first.troubles for each in passes):
        raise ValueError(f"{contender.engine} did not go as far each time in {language_id}.")
    about = (language_id, contender.engine, contender.grammar)
    times = medians([each.mask_us for each in passes])
    if not times:
        return Row(*about, 0, 0, _rounded(run.compile_ms), troubles=tuple(first.troubles))
    return Row(
        *about,
        n_masks=len(times),
        n_passes=len(passes),
        compile_ms=_rounded(run.compile_ms),
        p50_us=_rounded(percentile(times, 50)),
        p90_us=_rounded(percentile(times, 90)),
        p99_us=_rounded(percentile(times, 99)),
        mean_us=_rounded(statistics.fmean(times)),
        max_us=_rounded(max(times)),
        accept_us=_rounded(statistics.fmean(medians([each.accept_us for each in passes]))),
        density=round(statistics.fmean(first.densities), 4),
        first_mean_us=_rounded(statistics.fmean(first.mask_us)),
        first_max_us=_rounded(max(first.mask_us)),
        troubles=tuple(first.troubles),
    )


def medians(passes: Sequence[Sequence[float]]) -> list[float]:
    """Of each place over all passes."""
    return [statistics.median(values) for values in zip(*passes, strict=True)]


HEADINGS = {
    "language": "language",
    "engine": "engine",
    "grammar": "grammar",
    "compile ms": "compile_ms",
    "p50": "p50_us",
    "p90": "p90_us",
    "p99": "p99_us",
    "mean": "mean_us",
    "max": "max_us",
    "accept": "accept_us",
    "density": "density",
    "cold mean": "first_mean_us",
    "cold max": "first_max_us",
    "masks": "n_masks",
    "passes": "n_passes",
}
"""The table's columns → fields of a row."""


def report(rows: Sequence[Row], conditions: Conditions) -> Iterator[str]:
    """The conditions, a table, and what went wrong."""
    yield f"{conditions.processor}, load {conditions.load_before} before and {conditions.load_after} after"
    yield (
        f"Vocabulary of {conditions.model}: {conditions.n_tokens} tokens, {conditions.n_logits} logits. "
        f"Microseconds a mask by the {conditions.clock} clock, one thread."
    )
    for engine, ms in conditions.ready_ms.items():
        yield f"{engine}: the vocabulary taken in after {ms:g} ms"
    for engine, why in conditions.missing.items():
        yield f"{engine}: not there ({why})"
    yield ""
    yield from table(rows)
    yield ""
    for row in rows:
        for trouble in row.troubles:
            yield f"- {row.language}, {row.engine}, {row.grammar}: {trouble}"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Markdown that is also aligned for a terminal: words on the left, numbers on the right."""
    cells = [[_cell(getattr(row, name), name) for name in HEADINGS.values()] for row in rows]
    lines = [list(HEADINGS), *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_words = [name in ("language", "engine", "grammar") for name in HEADINGS.values()]
    rule = [
        "-" * width if words else "-" * (width - 1) + ":"
        for width, words in zip(widths, is_words, strict=True)
    ]
    for line in (lines[0], rule, *cells):
        padded = [
            cell.ljust(width) if words else cell.rjust(width)
            for cell, width, words in zip(line, widths, is_words, strict=True)
        ]
        yield f"| {' | '.join(padded)} |"


def _cell(value: str | float | None, name: str) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if name == "density":
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1000 else f"{value:.3g}"


def _rounded(value: float) -> float:
    """To what a time can tell."""
    return float(f"{value:.4g}")


def _chosen(parser: argparse.ArgumentParser, given: str, known: Sequence[str]) -> list[str]:
    """Names separated by commas; an unknown one ends the program."""
    names = given.split(",")
    for name in names:
        if name not in known:
            parser.error(f"{name!r} is none of {', '.join(known)}")
    return names


def tell(line: str) -> None:
    """Progress, beside the output."""
    print(f"masks: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
