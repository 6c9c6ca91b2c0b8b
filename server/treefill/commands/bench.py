"""`treefill bench …`: how long this machine takes, beside peers. What is measured and how is told in `benchmarks`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from treefill.benchmarks.against import (
    FOLDER,
    SERVER,
    TRANSFORMERS,
    Peer,
    open_peer,
    open_server,
    read_peers,
)
from treefill.commands.options import AsJson, CacheDir, ModelOption, open_app
from treefill.errors import BadInput
from treefill.syntax.languages import language_of
from treefill.text import read_document

if TYPE_CHECKING:
    from treefill.benchmarks.speed import Speed, SpeedReport
    from treefill.models import ModelFiles
    from treefill.syntax.languages import Language

bench_app = typer.Typer(
    help="Measure how long this machine takes, beside llama.cpp or transformers.", no_args_is_help=True
)

Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="KIND=WHERE",
        help="A peer: llama-server=URL, llama.cpp=FOLDER (made by `make bench-peers`), transformers. Repeatable.",
    ),
]
Rounds = Annotated[int, typer.Option(min=1, max=100, help="Turns that each takes.")]
Threads = Annotated[
    int | None, typer.Option(min=1, max=256, help="Threads of ours and its peers.", show_default=False)
]
Prompt = Annotated[int, typer.Option(min=64, max=30_000, help="Tokens of the prompt.")]
NewTokens = Annotated[int, typer.Option(min=2, max=1000, help="Tokens decoded in each turn.")]
Sizes = Annotated[str, typer.Option(help="Tokens of the prompts, separated by commas.")]
Busy = Annotated[str, typer.Option(help="How many busy processes beside it, separated by commas.")]
WithMemory = Annotated[
    bool, typer.Option("--memory", help="Also resident memory, and what a token of prompt adds.")
]
Files = Annotated[list[Path] | None, typer.Argument(help="Source files to type again.", show_default=False)]
Keys = Annotated[int, typer.Option(min=1, max=1000, help="Keys in each file.")]
DictionaryLanguages = Annotated[
    list[str] | None,
    typer.Option("--language", help="May be repeated; python, cpp, json and sql by default."),
]
Boundaries = Annotated[int, typer.Option(min=10, help="Boundaries of tokens to ask at, and as many to mine.")]
Compared = Annotated[int, typer.Option(min=0, help="Of them, where the mask is made anew and compared.")]
Places = Annotated[int, typer.Option(min=1, help="Places in each language.")]
Taught = Annotated[int, typer.Option(min=0, help="Completions that the dictionary sees before, a language.")]
Temperature = Annotated[float, typer.Option(min=0, max=5, help="0 takes the likeliest token.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Chooses the files.")]
FromFolders = Annotated[
    list[Path] | None,
    typer.Option("--from", help="A folder with more files; may be repeated.", show_default=False),
]

DICTIONARY_LANGUAGES = ("python", "cpp", "json", "sql")
MARGIN = 64
"""Context beyond the longest prompt and what is written after it."""


@bench_app.command("decode")
def decode_command(
    against: Against = None,
    rounds: Rounds = 5,
    threads: Threads = None,
    prompt: Prompt = 512,
    tokens: NewTokens = 33,
    memory: WithMemory = False,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Tokens a second, one after the other, and how near that is to reading the weights once for each."""
    from treefill import _kernels
    from treefill.benchmarks.bandwidth import WeightsReader
    from treefill.benchmarks.memory import N_MANY

    peers = read_peers(against or [], (SERVER, FOLDER, TRANSFORMERS))
    n_prompt = max(prompt, N_MANY) if memory else prompt
    with _speed(peers, n_prompt, tokens, threads, model, cache_dir) as (speed, files):
        _say("Reading the weights")
        reader = WeightsReader(files.weights, _kernels.instruction_set())
        report = speed.decode(prompt, tokens, rounds, reader)
        if memory:
            report = replace(report, memory=speed.memory())
    _print_speed(report, as_json)


@bench_app.command("prefill")
def prefill_command(
    against: Against = None,
    rounds: Rounds = 5,
    threads: Threads = None,
    sizes: Sizes = "512,2048",
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Tokens a second of whole prompts that nothing is cached of."""
    peers = read_peers(against or [], (SERVER, FOLDER, TRANSFORMERS))
    chosen = _numbers(sizes, "--sizes", 64, 30_000)
    with _speed(peers, max(chosen), 2, threads, model, cache_dir) as (speed, _):
        report = speed.prefill(chosen, rounds)
    _print_speed(report, as_json)


@bench_app.command("load")
def load_command(
    against: Against = None,
    rounds: Rounds = 5,
    busy: Busy = "0,1,2",
    prompt: Prompt = 128,
    tokens: NewTokens = 25,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Decode beside busy processes: ours as it comes, each peer with the threads that suit it best."""
    peers = read_peers(against or [], (SERVER, FOLDER))
    chosen = _numbers(busy, "--busy", 0, 64)
    with _speed(peers, prompt, tokens, None, model, cache_dir) as (speed, _):
        report = speed.load(chosen, prompt, tokens, rounds)
    _print_speed(report, as_json)


@bench_app.command("keystrokes")
def keystrokes_command(
    files: Files = None,
    against: Against = None,
    keys: Keys = 60,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Type parts of FILES again, a request a key: time to the first whole line, and tokens evaluated."""
    from treefill.benchmarks.editor import Editor
    from treefill.benchmarks.keystrokes import Typed, choose_places, default_documents, type_all
    from treefill.benchmarks.llama_vim import LlamaVim
    from treefill.benchmarks.report import keys_json, keys_report, keys_text
    from treefill.benchmarks.rounds import load_average

    peers = read_peers(against or [], (SERVER,))
    documents = [read_document(path, language_of(path).id) for path in files or []] or default_documents()
    typings = choose_places(documents, keys)
    with _speed([], 512, 33, None, model, cache_dir) as (speed, stored):
        step = speed.decode(512, 33, 3)
        servers = [open_server(peer, stored) for peer in peers]
    settings = {"TREEFILL_MODEL": stored.name, "TREEFILL_CACHE_DIR": str(stored.folder.parents[1])}
    with ExitStack() as stack:
        contenders: list[Typed] = [Editor(settings), *map(LlamaVim, servers)]
        for contender in contenders:
            stack.callback(contender.close)
        found = list(type_all(typings, contenders, keys, _say))
    conditions = replace(step.conditions, load_after=load_average())
    report = keys_report(found, step.timed[0].ms.median, conditions)
    print(json.dumps(keys_json(report)) if as_json else keys_text(report))


@bench_app.command("dictionary")
def dictionary_command(
    language: DictionaryLanguages = None,
    boundaries: Boundaries = 20_000,
    compared: Compared = 5_000,
    seed: SeedOption = 0,
    folders: FromFolders = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Measure how often the dictionary of masks knows the next one, on files that it has not seen."""
    from treefill.benchmarks.dictionary import (
        DictionarySizes,
        figures_json,
        figures_markdown,
        measure_dictionary,
    )
    from treefill.engine.tokenizer import TokenizerVocabulary
    from treefill.evaluation.real_files import gather
    from treefill.syntax.vocabulary import MaskVocabulary

    languages = _with_grammars(language)
    app = open_app(model=model, cache_dir=cache_dir)
    stored = app.store.open(app.settings.model or None)
    n_logits = stored.config["vocab_size"]
    vocabulary = TokenizerVocabulary(stored.tokenizer_path, stored.end_ids, n_logits)
    masks = MaskVocabulary(vocabulary, n_logits)
    sizes = DictionarySizes(boundaries, min(compared, boundaries))
    figures = []
    for each in languages:
        documents = gather(each.id, folders or [], seed).documents()
        _say(f"{each.id}: {boundaries:,} boundaries to mine, as many to ask at")
        figures.append(measure_dictionary(each.id, documents, vocabulary, masks, sizes, seed))
    print(json.dumps([figures_json(each) for each in figures]) if as_json else figures_markdown(figures))


@bench_app.command("completions")
def completions_command(
    language: DictionaryLanguages = None,
    places: Places = 75,
    taught: Taught = 40,
    temperature: Temperature = 0.0,
    seed: SeedOption = 0,
    folders: FromFolders = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Measure what it costs to hold completions to their grammar, with masks and without."""
    from treefill.benchmarks.completions import completion_json, completion_markdown, measure_completions
    from treefill.engine.api import Sampling
    from treefill.evaluation.positions import choose_positions
    from treefill.evaluation.real_files import gather
    from treefill.syntax.masks import put_away

    languages = _with_grammars(language)
    engine = open_app(model=model, cache_dir=cache_dir).open_engine()
    figures = []
    try:
        for each in languages:
            chosen = choose_positions(gather(each.id, folders or [], seed).documents(), places + taught, seed)
            _say(f"{each.id}: {len(chosen)} places, the first {taught} of them only teach")
            sampling = Sampling(temperature, seed=seed)
            figures.append(measure_completions(each.id, chosen, engine, taught, sampling))
    finally:
        engine.close()
        put_away()
    print(
        json.dumps([completion_json(each) for each in figures]) if as_json else completion_markdown(figures)
    )


def _with_grammars(names: list[str] | None) -> list[Language]:
    """The languages of these names. Raises `BadInput` for one that there is no grammar for."""
    from treefill.syntax.languages import language_by_id

    found = [language_by_id(name) for name in names or DICTIONARY_LANGUAGES]
    for name, each in zip(names or (), found, strict=False):
        if not each.grammars:
            raise BadInput(
                f"There is no grammar for the language {name}: `treefill languages` lists those there are."
            )
        if each.grammars[0].parse_only:
            raise BadInput(f"There are no masks for the language {name}. {each.grammars[0].parse_only}")
    return found


@contextmanager
def _speed(
    peers: Sequence[Peer],
    n_prompt: int,
    n_new: int,
    threads: int | None,
    model: str | None,
    cache_dir: Path | None,
) -> Iterator[tuple[Speed, ModelFiles]]:
    """Ours and its peers, opened on a prompt of so many tokens, and closed again."""
    from treefill.benchmarks.contenders import Ours
    from treefill.benchmarks.rounds import load_average
    from treefill.benchmarks.speed import N_CHECKED, Speed, prompt_of

    load_before = load_average()
    app = open_app(model=model, cache_dir=cache_dir, threads=threads, engine="int8")
    files = app.store.open(app.settings.model or None)
    n_context = n_prompt + max(n_new, N_CHECKED) + MARGIN
    with ExitStack() as stack:
        opened = []
        for peer in peers:
            _say(f"Opening {peer.kind}")
            opened.append(open_peer(peer, files, n_context, _transformers(files)))
            stack.callback(opened[-1].close)
        _say(f"Loading {files.name}")
        engine = app.open_engine()
        ours = Ours(engine)
        stack.callback(ours.close)
        for contender in opened:
            contender.set_threads(ours.n_threads or 1)
        ids = prompt_of(engine.vocabulary, n_prompt)
        yield Speed(ours, opened, ids, files.name, load_before, _say), files


def _transformers(files: ModelFiles) -> list[str]:
    """The command of the loop over transformers, for a model of the same store."""
    module = "treefill.engine.torch_backend.plain_loop"
    return [sys.executable, "-m", module, files.name, str(files.folder.parents[1])]


def _print_speed(report: SpeedReport, as_json: bool) -> None:
    from treefill.benchmarks.report import speed_json, speed_text

    print(json.dumps(speed_json(report)) if as_json else speed_text(report))


def _numbers(text: str, option: str, low: int, high: int) -> list[int]:
    """The whole numbers of a comma-separated list. Raises `BadInput`."""
    words = [word.strip() for word in text.split(",")]
    if not all(_is_between(word, low, high) for word in words):
        raise BadInput(
            f"{option} {text!r} is no list of numbers from {low} to {high}: write them as in {low},{high}."
        )
    return [int(word) for word in words]


def _is_between(word: str, low: int, high: int) -> bool:
    is_short = len(word.lstrip("0")) <= len(str(high))  # what is longer is not turned into a number
    return word.isascii() and word.isdigit() and is_short and low <= int(word.lstrip("0") or "0") <= high


def _say(what: str) -> None:
    """On standard error, a line a step: a spinner would take time from what is measured."""
    Console(stderr=True).print(f"{what} …", style="dim", highlight=False)
