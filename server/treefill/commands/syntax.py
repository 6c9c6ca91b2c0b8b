"""`treefill syntax check`: what the acceptor, which watches over completions, says of whole files."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treefill.commands.options import AsJson
from treefill.errors import BadInput
from treefill.syntax.languages import Language, language_of
from treefill.text import MAX_FILE_BYTES, Document, document_from, position_at, read_document

if TYPE_CHECKING:
    from treefill.syntax.check import Refusal, Verdict

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

POLICY_NOTE = "the grammar takes it, the language does not"


@syntax_app.callback()
def _group() -> None:
    """One command today: this keeps its name in front of it."""


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
