"""`treefill complete` and `treefill explain`: one place in one file, answered as an editor would be."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from treefill.app import App
from treefill.commands.options import AsJson, CacheDir, EngineOption, ModelOption, offset_of, open_app
from treefill.completion import (
    Anchor,
    Declined,
    Suggestion,
    SyntaxFinding,
    begin_at_once,
    complete,
    complete_many,
)
from treefill.engine.api import CancelFlag, Engine, Generation
from treefill.errors import BadInput
from treefill.syntax.languages import language_of
from treefill.text import Document, position_at, read_document

Answer = Suggestion | Declined

File = Annotated[Path, typer.Argument(help="The file to complete.", show_default=False)]
Place = Annotated[str, typer.Argument(metavar="LINE:COL", help="Where, counted from 1.", show_default=False)]
MaxTokens = Annotated[int | None, typer.Option(help="Most tokens to write.", show_default=False)]
Neighbours = Annotated[
    list[Path] | None, typer.Option("--neighbour", help="Another file to learn from; repeatable.")
]
Workspace = Annotated[
    Path | None, typer.Option(help="Neighbours outside this folder are refused.", show_default=False)
]
NoReuse = Annotated[bool, typer.Option("--no-reuse", help="Evaluate every prompt token anew.")]
ModeOption = Annotated[str | None, typer.Option("--mode", help="auto, line or block.", show_default=False)]
LanguageOption = Annotated[
    str | None, typer.Option("--language", help="The file's language.", show_default=False)
]
SyntaxOption = Annotated[str | None, typer.Option("--syntax", help="off, parse or full.", show_default=False)]
Candidates = Annotated[int, typer.Option(min=1, max=16, help="How many different suggestions.")]
Temperature = Annotated[float | None, typer.Option(help="0 takes the likeliest token.", show_default=False)]
TopK = Annotated[int | None, typer.Option(help="Draw among this many likeliest tokens.", show_default=False)]
TopP = Annotated[
    float | None, typer.Option(help="Draw among tokens that reach this probability.", show_default=False)
]
Seed = Annotated[int | None, typer.Option(help="The same seed draws the same tokens.", show_default=False)]
AnchorOption = Annotated[
    str | None, typer.Option("--anchor", help="Where the prompt is split.", show_default=False)
]
TypedFrom = Annotated[
    str | None,
    typer.Option(
        metavar="LINE:COL", help="Complete there first, as if the text up to LINE:COL came by typing."
    ),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which place is asked for, as the command line says it."""

    file: Path
    place: str
    language: str | None
    neighbours: tuple[Path, ...]
    workspace: Path | None
    typed_from: str | None
    n_candidates: int
    reuse: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of it."""

    document: Document
    answers: Sequence[Answer]
    """The first, and further candidates."""
    engine: Engine | None
    """None where none was needed."""


Show = Callable[[Answered, bool], None]
"""Prints an answer; True for JSON."""


def _command(show: Show, help_text: str) -> Callable[..., None]:
    """A command that asks for one place and shows the answer in its own way."""

    def command(
        file: File,
        place: Place,
        max_tokens: MaxTokens = None,
        neighbour: Neighbours = None,
        workspace: Workspace = None,
        no_reuse: NoReuse = False,
        engine: EngineOption = None,
        model: ModelOption = None,
        mode: ModeOption = None,
        language: LanguageOption = None,
        syntax: SyntaxOption = None,
        candidates: Candidates = 1,
        temperature: Temperature = None,
        top_k: TopK = None,
        top_p: TopP = None,
        seed: Seed = None,
        anchor: AnchorOption = None,
        typed_from: TypedFrom = None,
        cache_dir: CacheDir = None,
        as_json: AsJson = False,
    ) -> None:
        app = open_app(
            max_new_tokens=max_tokens, engine=engine, model=model, mode=mode, temperature=temperature, top_k=top_k,
            top_p=top_p, seed=seed, anchor=anchor, syntax=syntax, cache_dir=cache_dir,
        )  # fmt: skip
        neighbours = tuple(neighbour or ())
        asked = Asked(file, place, language, neighbours, workspace, typed_from, candidates, not no_reuse)
        show(_answer(app, asked), as_json)

    command.__doc__ = help_text
    return command


def _show_completion(answered: Answered, as_json: bool) -> None:
    if as_json:
        print(json.dumps(completion_json(answered)))
        return
    for answer in answered.answers:
        if isinstance(answer, Declined):  # not where a program looks for text to insert
            print(f"Nothing to suggest: {answer.sentence}", file=sys.stderr)
        else:
            print(answer.text)


def _show_explanation(answered: Answered, as_json: bool) -> None:
    if as_json:
        print(json.dumps(completion_json(answered) | explanation_json(answered.answers[0])))
    else:
        _print_explanation(Console(), answered.answers[0], answered.engine)


complete_command = _command(
    _show_completion, "Print what would be suggested at LINE:COL of FILE, or why nothing is."
)
explain_command = _command(
    _show_explanation,
    "Complete, and show how it came about: prompt, reuse, filters and timings, or the reason for declining.",
)


def completion_json(answered: Answered) -> dict[str, Any]:
    """The first answer as programs read it; further candidates under `alternatives`."""
    document, first = answered.document, answered.answers[0]
    generation = first.generation
    result: dict[str, Any] = {
        "text": first.text if isinstance(first, Suggestion) else "",
        "range": _range(document, first) if isinstance(first, Suggestion) else None,
        "source": first.source if isinstance(first, Suggestion) else None,
        "declined": {"reason": str(first.reason), "sentence": first.sentence}
        if isinstance(first, Declined)
        else None,
        "n_prompt_tokens": generation.n_prompt_tokens if generation else 0,
        "n_reused_tokens": generation.n_reused_tokens if generation else 0,
        "n_new_tokens": generation.n_new_tokens if generation else 0,
        "n_guarded": generation.n_guarded if generation else 0,
        "n_refused_first": generation.n_refused_first if generation else 0,
        "n_undone": generation.n_undone if generation else 0,
        "n_forced": generation.n_forced if generation else 0,
        "ttft_ms": round(generation.ttft_ms, 1) if generation else 0.0,
        "total_ms": round(generation.total_ms, 1) if generation else 0.0,
        "model": answered.engine.model if answered.engine else None,
    }
    others = [answer for answer in answered.answers[1:] if isinstance(answer, Suggestion)]
    if others:
        result["alternatives"] = [
            {"text": answer.text, "range": _range(document, answer)} for answer in others
        ]
    return result


def explanation_json(answer: Answer) -> dict[str, Any]:
    """How an answer came about, as programs read it."""
    explanation = answer.explanation
    return {
        "explanation": {
            "mode": str(explanation.mode),
            "layout": explanation.layout,
            "parts": [
                {"name": part.name, "n_tokens": part.n_tokens, "text": part.text}
                for part in explanation.parts
            ],
            "template": explanation.template,
            "forced": explanation.forced,
            "refused_files": [{"path": r.path, "reason": r.reason} for r in explanation.refusals],
            "raw_text": explanation.raw_text,
            "filters": [{"name": s.name, "before": s.before, "after": s.after} for s in explanation.steps],
            "syntax": asdict(explanation.syntax) if explanation.syntax else None,
            "timings_ms": {name: round(ms, 2) for name, ms in explanation.timings_ms},
            "finish": str(answer.generation.finish) if answer.generation else None,
        }
    }


def _answer(app: App, asked: Asked) -> Answered:
    """Everything that can be wrong is read first: the model, which takes seconds to load, comes last."""
    document = _read(asked.file, asked.language)
    offset = offset_of(document, asked.place)
    start = offset_of(document, asked.typed_from) if asked.typed_from else offset
    if start > offset:
        raise BadInput(f"--typed-from {asked.typed_from} lies after {asked.place}: typing goes forward.")
    request = app.completion_request(
        document,
        offset,
        neighbours=tuple(_read(path) for path in asked.neighbours),
        workspace_root=asked.workspace,
        n_candidates=asked.n_candidates,
        reuse=asked.reuse,
    )
    at_once = begin_at_once(request, has_model=True) if asked.n_candidates == 1 else None
    suggestion = at_once.settle() if at_once else None
    if suggestion is not None:
        return Answered(document, (suggestion,), None)
    if sys.stderr.isatty():  # importing torch takes seconds
        print("Loading the model …", file=sys.stderr)
    engine = app.open_engine()
    anchor: Anchor | None = None
    if start < offset:
        untyped = replace(document, text=document.text[:start] + document.text[offset:])
        before = replace(request, document=untyped, offset=start, n_candidates=1)
        anchor = complete(before, engine, CancelFlag()).anchor
    return Answered(document, complete_many(request, engine, CancelFlag(), anchor), engine)


def _read(path: Path, language: str | None = None) -> Document:
    document = read_document(
        path
    )  # first: that a file is missing matters more than that its name tells no language
    return replace(document, language=language_of(path, language).id)


def _range(document: Document, suggestion: Suggestion) -> dict[str, Any]:
    return {"start": _place(document, suggestion.start), "end": _place(document, suggestion.end)}


def _place(document: Document, offset: int) -> dict[str, int]:
    line, column = position_at(document, offset)
    return {"line": line, "column": column}


def _print_explanation(console: Console, answer: Answer, engine: Engine | None) -> None:
    explanation, generation = answer.explanation, answer.generation
    if isinstance(answer, Suggestion):
        name = f", {explanation.template}" if explanation.template else ""
        console.print(Text(f"Suggested ({answer.source}{name})", "bold green"), Text(answer.text), sep="\n")
    else:
        console.print(Text(f"Nothing suggested ({answer.reason}): ", "bold yellow") + Text(answer.sentence))
    if explanation.parts:
        table = Table(
            "part",
            "tokens",
            "text",
            title=f"Prompt: {explanation.layout}, {explanation.mode}",
            title_justify="left",
        )
        for part in explanation.parts:
            table.add_row(Text(part.name), str(part.n_tokens), Text(_shortened(part.text)))
        table.add_row(Text("typed already"), "", Text(repr(explanation.forced)))
        console.print(table)
    for refusal in explanation.refusals:
        console.print(Text(f"Left out {refusal.path}: {refusal.reason}"))
    if explanation.steps:
        title = "The template" if explanation.template else "What the model wrote, cleaned up"
        table = Table("filter", "before", "after", title=title, title_justify="left")
        table.add_row(
            Text("template" if explanation.template else "model"), "", Text(repr(explanation.raw_text))
        )
        for step in explanation.steps:
            changed = step.before != step.after
            table.add_row(
                Text(step.name),
                Text(repr(step.before) if changed else "="),
                Text(repr(step.after) if changed else "="),
            )
        console.print(table)
    if explanation.syntax is not None:
        console.print(Text(_syntax(explanation.syntax)))
        if explanation.syntax.schema:
            console.print(Text(explanation.syntax.schema))
        for line in _rules(explanation.syntax):
            console.print(Text(line))
    for line in _guard(generation, explanation.syntax):
        console.print(Text(line))
    if generation is not None and engine is not None:
        console.print(Text(_figures(generation, engine)))
    if explanation.timings_ms:
        console.print(Text(" · ".join(f"{name} {ms:.1f} ms" for name, ms in explanation.timings_ms)))


def _syntax(finding: SyntaxFinding) -> str:
    if finding.unchecked:
        return f"Syntax not checked: {finding.unchecked}"
    faults = f"{finding.n_faults_before} faults before, {finding.n_faults_after} after"
    cut = f"; cut off {finding.cut!r}" if finding.cut else ""
    wrong = f" ({finding.complaint})" if finding.complaint else ""
    note = f". {finding.note}" if finding.note else ""
    return f"Syntax, grammar {finding.grammar}: {faults}{cut}{wrong}{note}"


def _rules(finding: SyntaxFinding) -> Iterator[str]:
    """What the rules had to say; nothing where none holds there."""
    rules = finding.rules
    if rules is None:
        return
    if rules.rules:
        yield f"Held to the rules: {', '.join(rules.rules)}"
    yield from (f"Refused while the model wrote: {sentence}" for sentence in rules.refused)
    if rules.complaint:
        yield f"Against the whole of it: {rules.complaint}" + (
            f" Cut off {rules.cut!r}." if rules.cut else ""
        )
    if rules.note:
        yield rules.note


def _guard(generation: Generation | None, finding: SyntaxFinding | None) -> Iterator[str]:
    """How the grammar stood by while the model wrote; nothing where it was not to, or no token was chosen."""
    silence = finding.unguarded if finding else ""
    if generation is not None and generation.n_guarded:
        yield (
            f"Tokens that the grammar was asked about while the model wrote: {generation.n_guarded}; "
            f"first choices refused: {generation.n_refused_first}; taken back: {generation.n_undone}"
            + (f"; written without the model: {generation.n_forced}" if generation.n_forced else "")
        )
        if silence:
            yield f"From somewhere on it did not decide: {silence}"
    elif silence:
        yield f"While the model wrote, the grammar was not asked: {silence}"


def _figures(generation: Generation, engine: Engine) -> str:
    n_evaluated = generation.n_prompt_tokens - generation.n_reused_tokens
    return (
        f"{engine.model} on {engine.name}: {generation.n_prompt_tokens} prompt tokens, "
        f"{generation.n_reused_tokens} reused, {n_evaluated} evaluated; "
        f"{generation.n_new_tokens} new ({generation.finish}); "
        f"first token after {generation.ttft_ms:.0f} ms, all after {generation.total_ms:.0f} ms"
    )


def _shortened(text: str, n_most: int = 60) -> str:
    shown = repr(text)
    half = n_most // 2
    return shown if len(shown) <= n_most else f"{shown[:half]} … {shown[-half:]}"
