"""`treefill masks …`: what was kept of the masks that were made before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from treefill.commands.heap import Heap, heap
from treefill.commands.options import AsJson, CacheDir, ModelOption, open_app
from treefill.commands.syntax import GrammarOption, LanguageOption
from treefill.errors import BadInput, GrammarError
from treefill.syntax.languages import Grammar, Language, language_of
from treefill.text import Document, read_document

if TYPE_CHECKING:
    from treefill.app import App
    from treefill.syntax.mask_file import MaskFile
    from treefill.syntax.mask_profile import MaskProfile, Spent

masks_app = typer.Typer(help="Masks that were made before.", no_args_is_help=True)

Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[FILE]...", help="Files to read token by token.", show_default=False),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="OUT.html", help="Write a page with plots, too.", show_default=False),
]

MAX_CHI_SQUARE = 350.0
"""Of 256 buckets: many hashes that are spread as by chance are beyond it once in 30,000 times."""
MIN_HASHES = 2_000
"""Of fewer it tells nothing."""
HOW_TO_PROFILE = "Name FILEs to see which of their masks are known, and where the time goes."
MAX_CHARS = 100_000
"""Of a file to read."""
PAGE_MARK = b"<title>Masks that were made before</title>"
"""By which a page is known again, in its"""
MAX_MARK_BYTES = 4_096
"""first bytes."""
NOT_GUARDED = "{grammar} makes no masks. {why}"


@masks_app.command("doctor")
def doctor_command(
    files: Files = None,
    html: Html = None,
    language: LanguageOption = None,
    grammar: GrammarOption = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Say whether the masks that are kept for the next process are whole, and how they are kept.

    With FILEs also which masks were known in them, where they were found, and where the time went: their beginnings,
    2,000 tokens each, are read with the model's vocabulary, and what is missing is made. That takes up to 20 s a file,
    and nothing of it is kept. Exits with 1 where a file of masks is not as it was written.
    """
    documents = [
        _read(file, language) for file in files or []
    ]  # all that can be wrong with a path comes first
    app = open_app(model=model, cache_dir=cache_dir)
    found, complaints = _kept_files(app.store.grammars_dir)
    profiles = _profiles(documents, grammar, app) if documents else []
    memory = heap() if profiles else None
    if html is not None:
        _write_page(html, found, profiles, complaints, memory)
    if as_json:
        print(json.dumps(report_json(found, profiles, complaints, memory)))
    else:
        _print(found, profiles, complaints, memory, app.store.grammars_dir)
    if complaints:
        raise typer.Exit(1)


def report_json(
    files: Iterable[MaskFile], profiles: Iterable[MaskProfile], complaints: list[str], memory: Heap | None
) -> dict[str, Any]:
    """All that was found, as programs read it."""
    return {
        "files": [file_json(file) for file in files],
        "complaints": complaints,
        "profiles": [profile_json(profile) for profile in profiles],
        "heap": None
        if memory is None
        else {
            "bytes": memory.n_bytes,
            "idle_bytes": memory.n_idle_bytes,
            "idle_share": _rounded(memory.idle_share),
        },
    }


def file_json(file: MaskFile) -> dict[str, Any]:
    """A file as programs read it."""
    keys = [len(record.key) for record in file.records]
    return {
        "file": file.name,
        "language": file.language,
        "bytes": file.n_bytes,
        "keys": len(file.records),
        "deeper": file.n_deeper,
        "masks": len(file.masks),
        "forms": dict(sorted(file.forms.items())),
        "key_bytes_p50": median(keys) if keys else 0,
        "key_bytes_max": max(keys, default=0),
        "mask_bytes_p50": median(file.sizes) if file.sizes else 0,
        "mask_bytes_max": max(file.sizes, default=0),
        "open_tokens_max": max((record.n_open for record in file.records), default=0),
        "shared_hashes": file.n_shared_hashes,
        "chi_square": round(file.chi_square, 1),
        "occupancy": _rounded(file.occupancy.share),
        "fullest_bucket": file.occupancy.fullest,
        "idle_bytes": file.n_idle_bytes,
        "damaged": file.n_damaged,
    }


def profile_json(profile: MaskProfile) -> dict[str, Any]:
    """What came of reading files, as programs read it. Times are processor time."""
    from treefill.syntax.mask_profile import percentiles

    def pair(values: Iterable[float]) -> dict[str, float]:
        p50, p99 = percentiles(values)
        return {"p50": _rounded(p50), "p99": _rounded(p99)}

    def spent(all_of: Mapping[Any, Spent]) -> dict[str, dict[str, float]]:
        return {
            str(name): {
                "places": each.n,
                "made": each.n_made,
                "asked_ms": _rounded(each.asked_ms),
                "made_ms": _rounded(each.made_ms),
                "share": _rounded(each.ms / profile.ms if profile.ms else 0.0),
            }
            for name, each in all_of.items()
        }

    return {
        "grammar": profile.grammar,
        "keys_in_file": profile.n_in_file,
        "files": profile.n_texts,
        "files_cut": profile.n_cut,
        "places": profile.n,
        "gave_up": profile.n_gave_up,
        "hit_share": _rounded(profile.hit_share),
        "tiers": {
            str(tier): {"places": len(us), "lookup_us": pair(us)} for tier, us in profile.tiers.items()
        },
        "made_ms": pair(profile.made_ms),
        "ms": _rounded(profile.ms),
        "causes": spent(profile.causes),
        "brackets": spent(profile.brackets),
        "kept": dict(profile.counts),
    }


def _rounded(value: float) -> float:
    return round(value, 4)


def _kept_files(folder: Path) -> tuple[list[MaskFile], list[str]]:
    """The files of masks in there, and what is wrong with them."""
    from treefill.syntax.mask_file import read_mask_file

    found: list[MaskFile] = []
    complaints: list[str] = []
    try:
        paths = [folder / name for name in sorted(os.listdir(folder)) if name.endswith(".masks")]
    except FileNotFoundError:
        paths = []
    except OSError as error:
        complaints.append(f"{folder} cannot be read ({error.strerror}): check its permissions.")
        paths = []
    for path in paths:
        try:
            found.append(read_mask_file(path))
        except GrammarError as error:
            complaints.append(str(error))
    return found, complaints + [complaint for file in found for complaint in _complaints(file)]


def _complaints(file: MaskFile) -> list[str]:
    found = []
    if file.n_damaged:
        n = "1 record is" if file.n_damaged == 1 else f"{file.n_damaged} records are"
        found.append(f"{file.name}: {n} damaged; none of the file will be used from there on.")
    if file.n_shared_hashes:
        found.append(f"{file.name}: {file.n_shared_hashes} keys share a hash and are not found.")
    if len(file.records) >= MIN_HASHES and file.chi_square > MAX_CHI_SQUARE:
        found.append(f"{file.name}: the hashes are not spread evenly (chi-square {file.chi_square:.0f}).")
    return found


def _read(file: Path, language: str | None) -> tuple[Document, Language]:
    document = read_document(file)
    known = language_of(file, language)
    return replace(document, language=known.id, text=document.text.removeprefix("\ufeff")), known


def _profiles(documents: list[tuple[Document, Language]], wanted: str | None, app: App) -> list[MaskProfile]:
    """What came of reading the documents, one for each grammar. Raises `GrammarError`, and for the lack of a model."""
    from treefill.engine.tokenizer import TokenizerVocabulary
    from treefill.syntax.check import grammar_for
    from treefill.syntax.dictionary import MAX_BYTES
    from treefill.syntax.grammars import load
    from treefill.syntax.lexers import LEXERS
    from treefill.syntax.mask_profile import Reader
    from treefill.syntax.vocabulary import MaskVocabulary

    chosen = [_guarding(grammar_for(known, document.text, wanted)) for document, known in documents]
    LEXERS.folder = app.store.grammars_dir
    stored = app.store.open(app.settings.model or None)
    vocabulary = TokenizerVocabulary(stored.tokenizer_path, stored.end_ids, stored.config["vocab_size"])
    masks = MaskVocabulary(vocabulary)  # as completions have it: their file is to be found
    readers: dict[Grammar, Reader] = {}
    for (document, known), grammar in zip(documents, chosen, strict=True):
        if grammar not in readers:
            loaded = load(grammar)
            readers[grammar] = Reader(loaded, known.kinds, masks, MAX_BYTES, app.store.grammars_dir)
        begin = document.text[:MAX_CHARS]  # more than is read
        readers[grammar].read([vocabulary.token_bytes(token) for token in vocabulary.encode(begin)])
    return [reader.profile for reader in readers.values()]


def _guarding(grammar: Grammar) -> Grammar:
    """The grammar. Raises `GrammarError` for one that cannot be asked."""
    if grammar.parse_only:
        raise GrammarError(NOT_GUARDED.format(grammar=grammar.name, why=grammar.parse_only))
    return grammar


def _write_page(
    path: Path,
    found: list[MaskFile],
    profiles: list[MaskProfile],
    complaints: list[str],
    memory: Heap | None,
) -> None:
    from treefill.commands.masks_page import page

    # A file's name may have bytes that are no text.
    data = page(found, profiles, complaints, memory).encode(errors="backslashreplace")
    try:
        if path.is_file() and PAGE_MARK not in path.read_bytes()[:MAX_MARK_BYTES]:
            raise BadInput(f"{path} is there already and is no page of this command: name another file.")
        path.write_bytes(data)
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}): name another place.") from None


def _print(
    found: list[MaskFile],
    profiles: list[MaskProfile],
    complaints: list[str],
    memory: Heap | None,
    folder: Path,
) -> None:
    console = Console(width=120)
    if found:
        console.print(_table(found))
    elif not complaints:
        print(f"No masks are kept in {folder}: `treefill generate --masks dictionary` leaves some there.")
    for profile in profiles:
        _print_profile(console, profile)
    if memory:
        print(
            f"The process's allocator holds {memory.n_bytes / 1e6:.0f} MB, {memory.idle_share:.0%} of it idle."
        )
    for complaint in complaints:
        print(complaint)
    if not profiles:
        print(HOW_TO_PROFILE)


def _print_profile(console: Console, profile: MaskProfile) -> None:
    from treefill.syntax.mask_profile import Tier, percentiles

    made_p50, made_p99 = percentiles(profile.made_ms)
    print(f"\n{profile_title(profile)}: {profile.hit_share:.1%} of the masks were known")
    console.print(
        _columns(
            ("found in", "places", "share", "look-up µs p50", "p99"),
            (
                (str(tier), f"{len(us):,}", _share(len(us), profile.n), *map(_short, percentiles(us)))
                for tier, us in profile.tiers.items()
            ),
        )
    )
    if profile.tiers[Tier.MADE]:
        print(f"Making one took {made_p50:.2f} ms, p99 {made_p99:.2f} ms.")
    for heading, rows in (("what may come", profile.causes), ("within", profile.brackets)):
        console.print(
            _columns(
                (heading, "places", "made", "ms", "share of the time"),
                (
                    (
                        str(name),
                        f"{each.n:,}",
                        f"{each.n_made:,}",
                        f"{each.ms:.1f}",
                        _share(each.ms, profile.ms),
                    )
                    for name, each in rows.items()
                ),
            )
        )
    print(memory_sentence(profile))


def profile_title(profile: MaskProfile) -> str:
    """Of what the figures are."""
    n = "1 file" if profile.n_texts == 1 else f"{profile.n_texts} files"
    cut = f", {profile.n_cut} not to the end" if profile.n_cut else ""
    return f"{profile.grammar}: {profile.n:,} places in {n}{cut}"


def memory_sentence(profile: MaskProfile) -> str:
    """How much memory the dictionary has taken."""
    from treefill.syntax.dictionary import MAX_BYTES

    counts = profile.counts
    return (
        f"In memory: {counts['n_entries']:,} keys and {counts['n_masks']:,} masks in {counts['n_bytes'] / 1e6:.1f} MB "
        f"of at most {MAX_BYTES / 1e6:.1f} MB; {counts['n_dropped']:,} were dropped for want of room, "
        f"{counts['n_collisions']:,} shared a hash."
    )


def _table(files: list[MaskFile]) -> Table:
    table = Table()
    for heading in (
        "grammar",
        "MB",
        "keys",
        "deeper",
        "masks",
        "as ids / rest / bits",
        "key bytes p50, max",
        "open",
    ):
        table.add_column(heading, justify="left" if heading == "grammar" else "right")
    for heading in ("chi²/256", "occupied", "idle bytes"):
        table.add_column(heading, justify="right")
    for file in files:
        row = file_json(file)
        forms = " / ".join(str(row["forms"].get(form, 0)) for form in ("allowed", "refused", "bits"))
        table.add_row(
            row["language"],
            f"{row['bytes'] / 1e6:.1f}",
            f"{row['keys']:,}",
            f"{row['deeper']:,}",
            f"{row['masks']:,}",
            forms,
            f"{row['key_bytes_p50']:.0f}, {row['key_bytes_max']}",
            str(row["open_tokens_max"]),
            f"{row['chi_square']:.0f}",
            f"{row['occupancy']:.1%}",
            str(row["idle_bytes"]),
        )
    return table


def _columns(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table()
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    return table


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def _short(value: float) -> str:
    return f"{value:.1f}"
