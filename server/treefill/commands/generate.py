"""`treefill generate`: a whole valid document from a request on standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treefill.commands.options import AsJson, CacheDir, EngineOption, ModelOption, open_app
from treefill.errors import BadInput
from treefill.syntax.languages import language_by_id, language_of

if TYPE_CHECKING:
    from treefill.engine.api import Engine
    from treefill.generation import DocumentRequest, Written
    from treefill.generation.masks import MaskTokens
    from treefill.settings import Settings
    from treefill.syntax.rules import Rules

MAX_WISH_BYTES = 1_000_000
N_LEARNT = 3
"""So often the dictionary sees a document before it is compared."""
LEARNING_S = 60.0
"""So long it may take each time."""

LanguageOption = Annotated[
    str | None,
    typer.Option("--language", help="What to write: json, yaml, xml, python, …", show_default=False),
]
SchemaOption = Annotated[
    Path | None,
    typer.Option("--schema", help="A JSON Schema that JSON or YAML must follow.", show_default=False),
]
MaxTokens = Annotated[int, typer.Option("--max-tokens", min=1, help="Most tokens to write.")]
MasksOption = Annotated[
    str,
    typer.Option(
        "--masks",
        help="off, check (each token), each (a whole mask for each token) or dictionary (those made before).",
    ),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Write with --masks check, dictionary and each, and tell the times.")
]
Temperature = Annotated[float | None, typer.Option(help="0 takes the likeliest token.", show_default=False)]
Seed = Annotated[int | None, typer.Option(help="The same seed draws the same tokens.", show_default=False)]


def generate_command(
    language: LanguageOption = None,
    schema: SchemaOption = None,
    max_tokens: MaxTokens = 1024,
    masks: MasksOption = "check",
    compare: Compare = False,
    temperature: Temperature = None,
    seed: Seed = None,
    engine: EngineOption = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Write a whole valid document for the request on standard input.

    For instance: echo "three users" | treefill generate --language json. The report of --json goes to standard error.
    Exits with 1 where no whole document came of it.
    """
    # The parsers and what reads schemas are loaded for nobody else.
    from treefill.engine.api import Sampling
    from treefill.generation import DocumentRequest, Masks, Unfinished
    from treefill.syntax.lexers import LEXERS
    from treefill.syntax.masks import put_away
    from treefill.syntax.schema import read_schema

    if language is None and schema is None:
        raise BadInput("Name what is to be written with --language, as in --language json, or a --schema.")
    if masks not in list(Masks):
        raise BadInput(f"--masks is {masks!r}: use one of {', '.join(Masks)}.")
    wanted = language_of("", language) if language else language_by_id("json")
    app = open_app(temperature=temperature, seed=seed, engine=engine, model=model, cache_dir=cache_dir)
    settings = app.settings
    LEXERS.folder = app.store.grammars_dir
    request = DocumentRequest(
        wish="",
        language=wanted,
        schema=read_schema(schema) if schema else None,
        max_new_tokens=max_tokens,
        sampling=Sampling(settings.temperature, settings.top_k, settings.top_p, settings.seed),
        masks=Masks(masks),
        rules=_rules(settings),
    )
    request = replace(request, wish=_wish())
    opened = app.open_engine()
    try:
        if compare:
            written, report = _compared(request, opened)
        else:
            written = _written(request, opened)
            report = written_json(written, request, opened)
    except Unfinished as error:
        print(f"treefill: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    finally:
        opened.close()
        put_away()
    sys.stdout.write(written.text)
    for sentence in notices(written, request):
        print(f"treefill: {sentence}", file=sys.stderr)
    if as_json:
        print(json.dumps(report), file=sys.stderr)
    elif compare:
        print(comparison(report), file=sys.stderr)


def _rules(settings: Settings) -> Rules:
    """The user's own, and those of the folder that this was started in where it is trusted."""
    from treefill.syntax.rules.read import rules_in_force

    file = settings.rules if settings.rules != Path("") else None
    return rules_in_force(file, [Path(folder) for folder in settings.trusted_workspaces], Path.cwd())


def written_json(written: Written, request: DocumentRequest, engine: Engine) -> dict[str, Any]:
    """How a document came about, as programs read it."""
    generation = written.generation
    return {
        "language": request.language.id,
        "model": engine.model,
        "masks": str(request.masks),
        "valid_by": list(written.parsers),
        "n_prompt_tokens": generation.n_prompt_tokens,
        "n_new_tokens": generation.n_new_tokens,
        "finish": str(generation.finish),
        "n_guarded": generation.n_guarded,
        "n_refused_first": generation.n_refused_first,
        "n_undone": generation.n_undone,
        "n_forced": generation.n_forced,
        "n_masked": generation.n_masked,
        "n_cut_bytes": written.n_cut_bytes,
        "added": written.added,
        "seconds": round(written.seconds, 3),
        "ttft_s": round(generation.ttft_ms / 1000, 3),
        "guard_s": round(written.guard_s, 4),
        "unguarded": written.unguarded,
        "schema_notes": list(written.notes),
        "rules": [rule.name for rule in request.rules.in_language(request.language)],
        "refused_by_rules": list(written.refused),
    }


def notices(written: Written, request: DocumentRequest) -> Iterator[str]:
    """What whoever asked should know of the document, a sentence each."""
    if written.generation.finish != "stopped" and written.generation.finish != "end":
        why = (
            f"after {written.generation.n_new_tokens} tokens"
            if written.generation.finish == "length"
            else "where nothing that the model wants may come"
        )
        n = written.n_cut_bytes
        cut = f", without its last {'byte' if n == 1 else f'{n} bytes'}" if n else ""
        added = f" with {written.added!r}" if written.added else ""
        yield f"The document was brought to an end{added} {why}{cut}: --max-tokens may be raised."
    if request.rules.note:
        yield request.rules.note
    yield from (f"{request.schema.name}: {note}" for note in written.notes if request.schema)


def comparison(report: dict[str, Any]) -> str:
    """The runs side by side, for people."""
    check, dictionary, each = report["check"], report["dictionary"], report["each"]
    lines = [f"{'':10}{'seconds':>10}{'in guard and masks':>22}{'a token':>14}"]
    for name, run in (("check", check), ("dictionary", dictionary), ("each", each)):
        a_token_ms = 1000 * run["guard_s"] / max(run["n_new_tokens"], 1)
        lines.append(f"{name:10}{run['seconds']:>10.2f}{run['guard_s']:>20.3f} s{a_token_ms:>11.3f} ms")
    lines.append(
        f"The same {check['n_new_tokens']} tokens. Checking each token as it is proposed took "
        f"{report['saved_s']:.3f} s less than a mask for each: 1/{report['ratio']:.0f} of the time."
    )
    if dictionary["n_masked"]:
        lines.append(
            f"The dictionary had seen this document written before: it knew the masks of {dictionary['n_masked']} "
            "tokens, and the others were checked."
        )
    if each["n_masked"] == 0:
        lines.append(f"No masks were made: {each['unguarded'] or 'no token was chosen under one'}")
    return "\n".join(lines)


def _compared(request: DocumentRequest, engine: Engine) -> tuple[Written, dict[str, Any]]:
    """With every token checked as it is proposed, with the masks that the dictionary has learned of the same document,
    and with a mask for each. Raises where they differ.
    """
    from treefill.engine.api import CancelFlag, GenerateRequest
    from treefill.generation import Masks
    from treefill.syntax.dictionary import BACKGROUND

    tokens = _mask_tokens(engine)
    # The first one would find a model that nobody has used yet.
    engine.generate(GenerateRequest((0,), max_new_tokens=2, reuse=False), CancelFlag())
    known = replace(request, masks=Masks.DICTIONARY)
    for _ in range(N_LEARNT):
        _written(known, engine, tokens)
        BACKGROUND.wait(LEARNING_S)
    asked = [replace(request, masks=how) for how in (Masks.CHECK, Masks.DICTIONARY, Masks.EACH)]
    check, dictionary, each = (_written(one, engine, tokens) for one in asked)
    if not check.generation.token_ids == dictionary.generation.token_ids == each.generation.token_ids:
        raise RuntimeError("other tokens were written under masks than without")
    report = {
        "check": written_json(check, asked[0], engine),
        "dictionary": written_json(dictionary, asked[1], engine),
        "each": written_json(each, asked[2], engine),
        "saved_s": round(each.guard_s - check.guard_s, 4),
        "ratio": round(each.guard_s / max(check.guard_s, 1e-6), 1),
    }
    return check, report


def _written(request: DocumentRequest, engine: Engine, tokens: MaskTokens | None = None) -> Written:
    from treefill.engine.api import CancelFlag
    from treefill.generation import write

    if request.masks.is_of_all and tokens is None:
        tokens = _mask_tokens(engine)
    return write(request, engine, CancelFlag(), tokens)


def _mask_tokens(engine: Engine) -> MaskTokens:
    from treefill.generation.masks import MaskTokens

    return MaskTokens.of(engine.vocabulary)


def _wish() -> str:
    data = sys.stdin.buffer.read(MAX_WISH_BYTES + 1)
    if len(data) > MAX_WISH_BYTES:
        raise BadInput(f"The request on standard input has more than {MAX_WISH_BYTES:,} bytes: shorten it.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadInput("The request on standard input is not UTF-8 text: convert it first.") from None
