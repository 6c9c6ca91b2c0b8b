"""`treefill eval …`: the measurements as commands. What is measured and how is told in `evaluation`."""

import json
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from treefill.commands.options import AsJson, CacheDir, EngineOption, ModelOption, open_app
from treefill.completion import Check, Mode
from treefill.completion.prompt import policy_named
from treefill.engine.api import CancelFlag, Engine
from treefill.engine.tokenizer import TokenizerVocabulary
from treefill.errors import BadInput
from treefill.evaluation.fidelity import LogitsModel, measure
from treefill.evaluation.grammar_exam import DEFAULT_SIZES, GrammarMarks, Sizes, examine
from treefill.evaluation.holes import VARIANTS, Hole, Variant, read_human_eval, schedule
from treefill.evaluation.infill import ARMS, Run, fill_holes, header_of
from treefill.evaluation.keystrokes import Keystroke, choose_typings, replay, summarise_keystrokes
from treefill.evaluation.mask_exam import DEFAULT_MASK_SIZES, MaskMarks, MaskSizes, examine_masks
from treefill.evaluation.positions import FREE_TURNS, TURNS, Position, choose_positions
from treefill.evaluation.real_files import gather
from treefill.evaluation.report import (
    fidelity_json,
    fidelity_markdown,
    grammar_json,
    grammar_markdown,
    infill_json,
    infill_markdown,
    infill_report,
    keystrokes_json,
    keystrokes_markdown,
    masks_json,
    masks_markdown,
    validity_json,
    validity_markdown,
)
from treefill.evaluation.results import AnyRow, ResultsFile, Row, read_results
from treefill.evaluation.texts import WINDOW, choose_windows, installed_documents
from treefill.evaluation.validity import (
    MODES,
    ValidityRow,
    ValidityRun,
    ask_everywhere,
    validity_header,
    validity_report,
)
from treefill.models.fetch.local import find_files
from treefill.models.source import open_source
from treefill.settings import Settings
from treefill.syntax.languages import language_by_id, language_of
from treefill.text import Document, read_document

eval_app = typer.Typer(help="Measure how good completions are on this machine.", no_args_is_help=True)

ArmsOption = Annotated[str, typer.Option(help="Where the prompt is split: policies, separated by commas.")]
Results = Annotated[Path, typer.Option(help="Rows go here; a run that was cut short goes on.")]
Variants = Annotated[str, typer.Option(help="Kinds of holes, separated by commas.")]
Passes = Annotated[int, typer.Option(min=1, max=len(VARIANTS), help="Kinds of holes that each line gets.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Stop after this many holes.", show_default=False)]
Baseline = Annotated[
    str | None, typer.Option(help="The arm that others are compared with.", show_default=False)
]
ReportOnly = Annotated[bool, typer.Option("--report-only", help="Fill nothing; report what there is.")]

Files = Annotated[list[Path] | None, typer.Argument(help="Source files to measure on.", show_default=False)]
Keys = Annotated[int, typer.Option(min=1, max=1000, help="Characters typed at each place.")]
Places = Annotated[int, typer.Option(min=1, max=100, help="Places in each file.")]
Tokens = Annotated[int, typer.Option(min=1, help="How many tokens at least, where there is that much text.")]
Engines = Annotated[str, typer.Option(help="What is compared with float32, separated by commas.")]
Source = Annotated[
    Path | None,
    typer.Option(
        help="The makers' weights; what the model was converted from by default.", show_default=False
    ),
]
Languages = Annotated[
    list[str] | None,
    typer.Option(
        "--language", help="May be repeated; python, cpp, sql and javascript by default.", show_default=False
    ),
]
Positions = Annotated[int, typer.Option(min=1, help="Positions in each language, and each mode.")]
Modes = Annotated[str, typer.Option("--mode", help="line, block or both.")]
Checks = Annotated[str, typer.Option(help="Checks that are compared, separated by commas.")]
Seed = Annotated[int, typer.Option(help="Chooses files and positions.")]
From = Annotated[
    list[Path] | None,
    typer.Option("--from", help="A folder with more files; may be repeated.", show_default=False),
]
CleanFiles = Annotated[int, typer.Option("--files", min=1, help="Files without fault in each language.")]
Mutants = Annotated[int, typer.Option(min=0, help="Changed files in each language.")]
Statements = Annotated[int, typer.Option(min=0, help="Changed statements in each language.")]
PositionsOnly = Annotated[int, typer.Option(min=1, help="Positions in each language.")]
MaskLanguages = Annotated[
    list[str] | None,
    typer.Option(
        "--language",
        help="May be repeated; all of treefill's own grammars by default.",
        show_default=False,
    ),
]
Judged = Annotated[
    int, typer.Option("--judged", min=0, help="Allowed tokens that tree-sitter judges, and as many refused.")
]
WithPolicies = Annotated[
    bool, typer.Option("--policies", help="With what the language forbids beyond its grammar.")
]
Seconds = Annotated[float, typer.Option(min=1, help="After so long a language is left, finished or not.")]
MASK_LANGUAGES = ("python", "cpp", "c", "json", "javascript", "typescript", "sql")
LANGUAGES = ("python", "cpp", "sql", "javascript")
ALL_CHECKS = ",".join(Check)
BOTH = "both"
ENGINES = "int8,bitsandbytes"
CACHE_TYPES: dict[str, str] = {
    "int8": Settings.model_fields["kv_cache_type"].default,
    "int8-float32": "float32",
    "int8-bfloat16": "bfloat16",
    "int8-int8": "int8",
}
"""The int8 decoder under its names, and how each keeps keys and values."""
ALL_ARMS = ",".join(ARMS)
ALL_VARIANTS = ",".join(VARIANTS)


@eval_app.command("infill")
def infill_command(
    results: Results = Path("infill.jsonl"),
    arms: ArmsOption = ALL_ARMS,
    variants: Variants = ALL_VARIANTS,
    passes: Passes = 3,
    limit: Limit = None,
    baseline: Baseline = None,
    report_only: ReportOnly = False,
    engine: EngineOption = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Fill holes in the HumanEval problems; the problems' own tests judge."""
    chosen_arms = _arms(arms)
    if baseline is not None:
        _know_arm(baseline)
    chosen_variants = [_variant(name) for name in chosen(variants)]
    is_stopped = False
    if not report_only:
        holes = list(schedule(read_human_eval(), chosen_variants, passes))[:limit]
        opened = open_app(engine=engine, model=model, cache_dir=cache_dir).open_engine()
        try:
            is_stopped = _fill(holes, chosen_arms, opened, results)
        finally:
            opened.close()
    header, rows = read_results(results, Row)
    wanted = [row for row in rows if row.variant in chosen_variants]
    report = infill_report(header, wanted, chosen_arms, baseline)
    print(json.dumps(infill_json(report)) if as_json else infill_markdown(report))
    if is_stopped:
        raise typer.Exit(130)


def _fill(holes: Sequence[Hole], arms: Sequence[str], engine: Engine, path: Path) -> bool:
    """Run until all holes are filled; True where the user stopped it before."""
    file = ResultsFile(path, header_of(engine), Row)
    cancel, run = CancelFlag(), Run()
    rows = fill_holes(holes, arms, engine, tuple(file.rows), cancel, run=run)
    try:
        return _keep_all(rows, file, cancel, run, "Filling holes", len(holes) * len(arms))
    finally:
        for task in run.unsound:
            _stderr().print(f"{task} is left out: its own solution fails its tests on this machine.")


@eval_app.command("keystrokes")
def keystrokes_command(
    files: Files = None,
    arms: ArmsOption = ALL_ARMS,
    keys: Keys = 40,
    places: Places = 2,
    engine: EngineOption = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Type parts of FILES again and count the tokens that each keystroke evaluates."""
    chosen_arms = _arms(arms)
    documents = [read_document(path, language_of(path).id) for path in files or []] or _two_installed()
    typings = choose_typings(documents, places, keys)
    if not typings:
        raise BadInput(f"The files are too short to type {keys} characters again: name longer ones.")
    opened = open_app(engine=engine, model=model, cache_dir=cache_dir).open_engine()
    found: list[Keystroke] = []
    try:
        with _progress() as progress:
            n_requests = len(typings) * len(chosen_arms) * (keys + 1)
            bar = progress.add_task("Typing", total=n_requests, rate="keys")
            for keystroke in replay(typings, chosen_arms, opened):
                found.append(keystroke)
                progress.advance(bar)
    finally:
        opened.close()
    summaries = summarise_keystrokes(found)
    print(json.dumps(keystrokes_json(summaries)) if as_json else keystrokes_markdown(summaries))


@eval_app.command("validity")
def validity_command(
    language: Languages = None,
    positions: Positions = 300,
    mode: Modes = BOTH,
    arms: Checks = ALL_CHECKS,
    seed: Seed = 0,
    folders: From = None,
    results: Results = Path("validity.jsonl"),
    report_only: ReportOnly = False,
    engine: EngineOption = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Complete at random positions of real files, and count the syntax errors that this adds."""
    languages = _languages(language)
    modes = _modes(mode)
    chosen_arms = [_check(name) for name in chosen(arms)]
    is_stopped = False
    if not report_only:
        asked = [
            (position, each)
            for name in languages
            for each in modes
            for position in _positions(name, positions, each, seed, folders or [])
        ]
        opened = open_app(engine=engine, model=model, cache_dir=cache_dir).open_engine()
        try:
            is_stopped = _ask_everywhere(asked, chosen_arms, opened, results, seed)
        finally:
            opened.close()
    header, rows = read_results(results, ValidityRow)
    wanted = [row for row in rows if row.language in languages and row.mode in modes]
    report = validity_report(header, wanted, chosen_arms)
    print(json.dumps(validity_json(report)) if as_json else validity_markdown(report))
    if is_stopped:
        raise typer.Exit(130)


def _positions(language: str, n: int, mode: Mode, seed: int, folders: Sequence[Path]) -> list[Position]:
    """Positions in this machine's files, and a line on how many there are."""
    files = gather(language, folders, seed)
    turns = FREE_TURNS if mode is Mode.BLOCK else TURNS
    found = choose_positions(files.documents(), n, seed, turns)
    n_files = len({position.document.path for position in found})
    if not found:
        raise BadInput(f"This machine has no files in {language}: name a folder that has some with --from.")
    _stderr().print(f"{language}, {mode}: {len(found)} positions in {n_files} of {files.n_found} files.")
    return found


def _ask_everywhere(
    asked: Sequence[tuple[Position, Mode]], arms: Sequence[str], engine: Engine, path: Path, seed: int
) -> bool:
    """Run until every arm was asked everywhere; True where the user stopped it before."""
    file = ResultsFile(path, validity_header(engine, seed), ValidityRow)
    cancel, run = CancelFlag(), ValidityRun()
    rows = ask_everywhere(asked, arms, engine, tuple(file.rows), cancel, run)
    return _keep_all(rows, file, cancel, run, "Asking", len(asked) * len(arms))


def _vocabulary(model: str | None, cache_dir: Path | None) -> tuple[TokenizerVocabulary, int]:
    """The model's tokens, and how many logits it has."""
    app = open_app(model=model, cache_dir=cache_dir)
    stored = app.store.open(app.settings.model or None)
    n_logits: int = stored.config["vocab_size"]
    return TokenizerVocabulary(stored.tokenizer_path, stored.end_ids, n_logits), n_logits


@eval_app.command("grammar")
def grammar_command(
    language: Languages = None,
    files: CleanFiles = DEFAULT_SIZES.n_files,
    positions: PositionsOnly = DEFAULT_SIZES.n_positions,
    mutants: Mutants = DEFAULT_SIZES.n_mutants,
    statements: Statements = DEFAULT_SIZES.n_statements,
    seed: Seed = 0,
    folders: From = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Examine the acceptor on real files, beside tree-sitter. Of the model, only its vocabulary is used."""
    languages = _languages(language)
    vocabulary, _ = _vocabulary(model, cache_dir)
    sizes = Sizes(files, positions, mutants, statements)

    from treefill.evaluation.built_in import BuiltIn  # native: the command line starts without it

    examinee = BuiltIn()
    found: list[GrammarMarks] = []
    for name in languages:
        documents = gather(name, folders or [], seed).documents()
        with _stderr().status(name) as status:
            told = lambda part, name=name, status=status: status.update(f"{name}: {part}")  # noqa: E731
            found.append(examine(name, documents, examinee, vocabulary, sizes, seed, told))
    print(json.dumps(grammar_json(found)) if as_json else grammar_markdown(found))


@eval_app.command("masks")
def masks_command(
    language: MaskLanguages = None,
    files: CleanFiles = DEFAULT_MASK_SIZES.n_files,
    positions: PositionsOnly = DEFAULT_MASK_SIZES.n_positions,
    judged: Judged = DEFAULT_MASK_SIZES.n_judged,
    seconds: Seconds = DEFAULT_MASK_SIZES.seconds,
    policies: WithPolicies = False,
    seed: Seed = 0,
    folders: From = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Examine the masks of a model's vocabulary on real files, token by token and beside tree-sitter."""
    languages = _languages(language or list(MASK_LANGUAGES))
    vocabulary, n_logits = _vocabulary(model, cache_dir)
    sizes = MaskSizes(positions, judged, not policies, files, seconds)

    from treefill.evaluation.built_in import BuiltInMasks  # native: the command line starts without it
    from treefill.syntax.vocabulary import MaskVocabulary

    examinee = BuiltInMasks(MaskVocabulary(vocabulary, n_logits), policies)
    found: list[MaskMarks] = []
    for name in languages:
        documents = gather(name, folders or [], seed).documents()
        with _progress() as progress:
            bar = progress.add_task(name, total=positions, rate="positions")
            told = lambda n, progress=progress, bar=bar: progress.update(bar, completed=n)  # noqa: E731
            found.append(examine_masks(name, documents, examinee, vocabulary, sizes, seed, told))
    print(json.dumps(masks_json(found)) if as_json else masks_markdown(found))


@eval_app.command("fidelity")
def fidelity_command(
    files: Files = None,
    tokens: Tokens = 5_000,
    engines: Engines = ENGINES,
    source: Source = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare int8 and LLM.int8 with the makers' weights in float32, on FILES or on installed files."""
    wanted = chosen(engines)
    for name in wanted:
        if name not in (*CACHE_TYPES, "bitsandbytes"):
            known = ", ".join((*CACHE_TYPES, "bitsandbytes"))
            raise BadInput(f"engine {name!r} cannot be measured: use some of {known}.")
    app = open_app(model=model, cache_dir=cache_dir)
    stored = app.store.open(app.settings.model or None)
    vocabulary = TokenizerVocabulary(stored.tokenizer_path, stored.end_ids, stored.config["vocab_size"])
    windows = choose_windows(vocabulary, files or [], tokens)
    floats = open_source(find_files(source)) if source else app.store.open_source(stored.name)

    from treefill.engine.native.logits import NativeLogits
    from treefill.engine.torch_backend import reference  # torch costs seconds

    with _progress() as progress:
        bar = progress.add_task(
            "Loading float32", total=sum(window.n_predicted for window in windows), rate=""
        )
        base = reference.float_model(stored, floats)
        models: list[LogitsModel] = []
        for name in wanted:
            progress.update(bar, description=f"Loading {name}")
            models.append(
                NativeLogits(name, stored, WINDOW, CACHE_TYPES[name])
                if name in CACHE_TYPES
                else reference.llm_int8_model(stored, floats)
            )
        progress.reset(bar, description="Comparing", rate="tokens")
        found = measure(windows, base, models, lambda window: progress.advance(bar, window.n_predicted))
    print(json.dumps(fidelity_json(found)) if as_json else fidelity_markdown(found))


def chosen(names: str) -> list[str]:
    """The names of a comma-separated list, each once."""
    found = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not found:
        raise BadInput(f"{names!r} names nothing: write one or more names, separated by commas.")
    return found


def _arms(names: str) -> list[str]:
    arms = chosen(names)
    for arm in arms:
        _know_arm(arm)
    return arms


def _know_arm(arm: str) -> None:
    """Raises `BadInput` for a policy, or a check behind its colon, that is not known."""
    policy, _, check = arm.partition(":")
    policy_named(policy)
    if check:
        _check(check)


def _languages(names: Sequence[str] | None) -> list[str]:
    """Ids of languages that have a grammar."""
    ids = list(dict.fromkeys(language_of("", name).id for name in names or LANGUAGES))
    for each in ids:
        if not language_by_id(each).grammars:
            raise BadInput(f"There is no grammar for {each}: name another --language.")
    return ids


def _modes(name: str) -> list[Mode]:
    if name == BOTH:
        return list(MODES)
    if name not in MODES:
        raise BadInput(f"mode {name!r} is not known: use line, block or {BOTH}.")
    return [Mode(name)]


def _check(name: str) -> str:
    if name not in [*Check]:
        raise BadInput(f"check {name!r} is not known: use some of {ALL_CHECKS}.")
    return name


def _two_installed() -> list[Document]:
    """One Python and one C++ file that every installation has."""
    documents = list(installed_documents())
    first_of = {document.language: document for document in reversed(documents)}
    return [first_of[language] for language in ("python", "cpp") if language in first_of]


def _variant(name: str) -> Variant:
    if name not in VARIANTS:
        raise BadInput(f"variant {name!r} is not known: use some of {', '.join(VARIANTS)}.")
    return Variant(name)


RowOfRun = TypeVar("RowOfRun", bound=AnyRow)


class _Resumed(Protocol):
    """A run that goes on where one before it ended."""

    n_skipped: int
    """Rows that were there already."""


def _keep_all(
    rows: Generator[RowOfRun],
    file: ResultsFile[RowOfRun],
    cancel: CancelFlag,
    run: _Resumed,
    title: str,
    n_total: int,
) -> bool:
    """Write each row as it comes, and close the file; True where the user stopped it before the last one."""
    try:
        with _progress() as progress:
            bar = progress.add_task(title, total=n_total, rate="")
            for n_new, row in enumerate(rows, 1):
                file.append(row)
                seconds = (progress.tasks[0].elapsed or 0.0) / n_new
                progress.update(bar, completed=n_new + run.n_skipped, rate=f"{seconds:.2f} s each")
    except KeyboardInterrupt:
        cancel.cancel()
        return True
    finally:
        rows.close()
        file.close()
    return False


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=_stderr(),
    )


def _stderr() -> Console:
    return Console(stderr=True)
