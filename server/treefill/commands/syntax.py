"""`treefill syntax …`: what the acceptor, which watches over completions, says of files, and of places in them."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treefill.commands.options import AsJson, CacheDir, ModelOption, offset_of, open_app
from treefill.errors import BadInput
from treefill.syntax.languages import Language, language_of
from treefill.text import MAX_FILE_BYTES, Document, document_from, position_at, read_document

if TYPE_CHECKING:
    from treefill.syntax.check import Refusal, Verdict
    from treefill.syntax.mask_view import MaskView, Sample
    from treefill.syntax.vocabulary import MaskVocabulary

syntax_app = typer.Typer(help="What the grammars say of files.", no_args_is_help=True)

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Files to check; - is standard input.")]
LanguageOption = Annotated[
    str | None, typer.Option("--language", help="The files' language.", show_default=False)
]
GrammarOption = Annotated[
    str | None,
    typer.Option(
        "--grammar", help="Which of the language's grammars; else the text tells.", show_default=False
    ),
]
GrammarOnly = Annotated[
    bool, typer.Option("--grammar-only", help="Leave out what the language forbids beyond its grammar.")
]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The file; - is standard input.")]
Place = Annotated[str, typer.Argument(metavar="LINE:COL", help="The cursor, both counted from 1.")]
Samples = Annotated[int, typer.Option("--samples", min=0, help="Tokens that are shown of either kind.")]

POLICY_NOTE = "the grammar takes it, the language does not"


@syntax_app.command("check")
def check_command(
    files: Files,
    language: LanguageOption = None,
    grammar: GrammarOption = None,
    grammar_only: GrammarOnly = False,
    as_json: AsJson = False,
) -> None:
    """Say whether whole FILEs are accepted, and where not what was expected. Exits with 1 where one is refused."""
    # The parser library and the grammars are loaded for nobody else.
    from treefill.syntax.check import check, grammar_for

    documents = [_read(file, language) for file in files]  # all that can be wrong with a path comes first
    chosen = [grammar_for(known, document.text, grammar) for document, known in documents]
    told = [
        (document, check(document.text, each, with_policies=not grammar_only))
        for (document, _), each in zip(documents, chosen, strict=True)
    ]
    for document, verdict in told:
        if verdict.gave_up:
            print(f"{document.path}: not decided ({verdict.gave_up})", file=sys.stderr)
        elif verdict.refusal and not as_json:
            print(_sentence(document, verdict.refusal))
    is_refused = any(verdict.refusal for _, verdict in told)
    if as_json:
        rows = [_row(document, verdict, grammar_only) for document, verdict in told]
        print(json.dumps({"accepted": not is_refused, "files": rows}))
    if is_refused:
        raise typer.Exit(1)


@syntax_app.command("mask")
def mask_command(
    file: File,
    place: Place,
    samples: Samples = 12,
    language: LanguageOption = None,
    grammar: GrammarOption = None,
    model: ModelOption = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Say which of the model's tokens may come next at LINE:COL. Of the model, only its vocabulary is used."""
    document, known = _read(file, language)
    # Editors do not count a byte order mark.
    document = replace(document, text=document.text.removeprefix("\ufeff"))
    offset = offset_of(document, place)

    from treefill.syntax.check import grammar_for  # the parser library is loaded for nobody else
    from treefill.syntax.mask_view import mask_view

    grammar_for(known, "", grammar)  # what can be wrong with it comes before the model is read
    view = mask_view(document.text, offset, known, _vocabulary(model, cache_dir), samples, grammar)
    if reason := view.out_of_reach or view.gave_up:
        print(f"{document.path}:{place}: not decided, every token may come ({reason})", file=sys.stderr)
    elif not as_json:
        print(_mask_lines(f"{document.path}:{place}", view))
    if as_json:
        print(json.dumps(_mask_row(document, offset, view)))


def _vocabulary(model: str | None, cache_dir: Path | None) -> MaskVocabulary:
    """The vocabulary of the model that is named, or of the user's."""
    from treefill.engine.tokenizer import TokenizerVocabulary
    from treefill.syntax.vocabulary import MaskVocabulary

    app = open_app(model=model, cache_dir=cache_dir)
    stored = app.store.open(app.settings.model or None)
    n_logits = stored.config["vocab_size"]
    return MaskVocabulary(TokenizerVocabulary(stored.tokenizer_path, stored.end_ids, n_logits), n_logits)


def _mask_lines(place: str, view: MaskView) -> str:
    lines = [
        f"{place}: {view.n_allowed:,} of {view.n_tokens:,} tokens may come ({_share(view):.1%}, {view.grammar})",
        *_sample_line("may come", view.allowed),
        *_sample_line("may not come", view.refused),
        f"  set-up {view.setup_ms:.1f} ms, vocabulary {view.vocabulary_ms:.0f} ms, "
        f"first mask {view.first_ms:.2f} ms, again {view.again_ms:.2f} ms",
    ]
    return "\n".join(lines)


def _sample_line(title: str, samples: tuple[Sample, ...]) -> list[str]:
    return [f"  {title}: {' '.join(f'`{sample.text}`' for sample in samples)}"] if samples else []


def _mask_row(document: Document, offset: int, view: MaskView) -> dict[str, Any]:
    line, column = position_at(document, offset)
    not_decided = view.out_of_reach or view.gave_up
    return {
        "file": document.path,
        "language": document.language,
        "grammar": view.grammar,
        "line": line,
        "column": column,
        "offset": offset,
        "n_tokens": view.n_tokens,
        "n_allowed": view.n_allowed,
        "share": round(_share(view), 6),
        "allowed": [asdict(sample) for sample in view.allowed],
        "refused": [asdict(sample) for sample in view.refused],
        "setup_ms": round(view.setup_ms, 3),
        "vocabulary_ms": round(view.vocabulary_ms, 3),
        "first_mask_ms": round(view.first_ms, 3),
        "mask_again_ms": round(view.again_ms, 3),
        "out_of_reach": bool(view.out_of_reach),
        "gave_up": f"not decided: {not_decided}" if not_decided else "",
    }


def _share(view: MaskView) -> float:
    return view.n_allowed / max(view.n_tokens, 1)


def _read(file: Path, language: str | None) -> tuple[Document, Language]:
    if str(file) == "-":
        if language is None:
            raise BadInput("Standard input has no name that tells its language: name it with --language.")
        document = document_from(sys.stdin.buffer.read(MAX_FILE_BYTES + 1), "<stdin>")
    else:
        document = read_document(file)
    known = language_of(file, language)
    return replace(document, language=known.id), known


def _sentence(document: Document, refusal: Refusal) -> str:
    line, column = _place(document, refusal)
    more = ", …" if refusal.n_expected > len(refusal.expected) else ""
    note = f" ({POLICY_NOTE})" if refusal.by == "policy" else ""
    return (
        f"{document.path}:{line}:{column}: expected {', '.join(refusal.expected)}{more}, "
        f"found {refusal.found}{note}"
    )


def _row(document: Document, verdict: Verdict, grammar_only: bool) -> dict[str, Any]:
    refusal = verdict.refusal
    line, column = _place(document, refusal) if refusal else (None, None)
    return {
        "file": document.path,
        "language": document.language,
        "grammar": verdict.grammar,
        "accepted": verdict.is_accepted,
        "line": line,
        "column": column,
        "offset": refusal.offset if refusal else None,
        "expected": list(refusal.expected) if refusal else [],
        "found": refusal.found if refusal else None,
        "refused_by": str(refusal.by) if refusal else None,
        "policy": "left out" if grammar_only else POLICY_NOTE if refusal and refusal.by == "policy" else "",
        "gave_up": f"not decided: {verdict.gave_up}" if verdict.gave_up else "",
    }


def _place(document: Document, refusal: Refusal) -> tuple[int, int]:
    """Line and column as editors show them, which do not count a byte order mark."""
    line, column = position_at(document, refusal.offset)
    is_marked = line == 1 and document.text.startswith("\ufeff") and column > 1
    return line, column - is_marked
