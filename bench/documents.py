"""Whole documents under each way of holding them to their grammar: `python bench/documents.py`.

Each request is written without a guard, with every token checked as it is proposed, and with a mask computed for every
token. Told are the documents that came out whole, and what guard and masks took; the last two ways are checked to
write the same tokens first. Where a grammar's scanner has no model, a mask takes seconds (XML, shells): there none are
made, unless `--all-masks` is given. Times are this machine's; look at the load before you believe them.
"""

import argparse
import json
import sys
from dataclasses import dataclass, replace
from typing import Any

import psutil
from treefill.app import App
from treefill.benchmarks.speed import processor_name
from treefill.engine.api import CancelFlag, Engine, GenerateRequest
from treefill.generation import DocumentRequest, Masks, Unfinished, Written, write
from treefill.generation.masks import MaskTokens
from treefill.settings import load_settings
from treefill.syntax.languages import language_by_id
from treefill.syntax.lexers import LEXERS
from treefill.syntax.schema import schema_of

TABLES: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "columns"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string"},
            "columns": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "type"],
                    "additionalProperties": False,
                    "properties": {
                        "name": {"type": "string"},
                        "type": {"enum": ["integer", "text", "decimal", "date"]},
                        "nullable": {"type": "boolean"},
                    },
                },
            },
        },
    },
}
DDL = """CREATE TABLE customers (
  id INTEGER PRIMARY KEY,
  name VARCHAR(80) NOT NULL,
  email VARCHAR(120) UNIQUE
);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER REFERENCES customers(id),
  total NUMERIC(10, 2)
);"""
REQUESTS: list[tuple[str, str, Any]] = [
    ("json", DDL, None),
    ("json", DDL, TABLES),
    ("yaml", DDL, TABLES),
    ("json", "three users with name, e-mail address and a list of roles", None),
    ("json", "a package.json for an express server with jest", None),
    ("json", "a GeoJSON point in Paris with a name, and a comment", None),
    ("xml", "a Maven configuration for a project named shop with two dependencies", None),
    ("xml", "an RSS feed with two items", None),
    ("xml", "an SVG picture of a red circle in a blue square", None),
    ("yaml", "a docker compose file with a web service on port 8080 and a postgres database", None),
    ("yaml", "a GitHub workflow that runs pytest on two versions of Python", None),
    ("latex", "the quadratic formula", None),
    ("python", "a function that returns the n-th Fibonacci number, and one that tells whether a number is prime", None),
    ("python", "a class for a bank account that can't be overdrawn", None),
    ("cpp", "a program that prints the first ten squares", None),
    ("sql", "the total of orders by customer in 2024, the largest first", None),
    ("toml", "a pyproject for a package named shop that needs httpx", None),
    ("shellscript", "rename all jpeg files in a folder to lower case", None),
]  # fmt: skip


@dataclass(slots=True)
class Sum:
    """What came of all requests under one way."""

    n_whole: int = 0
    n_closed: int = 0
    """Of these, those that the model did not come to the end of."""
    n_tokens: int = 0
    seconds: float = 0.0
    guard_s: float = 0.0

    def add(self, written: Written | None) -> None:
        """One more, None where no document came of it."""
        if written is None:
            return
        self.n_whole += 1
        self.n_closed += written.generation.finish not in ("stopped", "end")
        self.n_tokens += written.generation.n_new_tokens
        self.seconds += written.seconds
        self.guard_s += written.guard_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="which model; else the one in use")
    parser.add_argument("--max-tokens", type=int, default=400, help="most tokens of a document")
    parser.add_argument("--all-masks", action="store_true", help="make masks also where each takes seconds")
    options = parser.parse_args()
    app = App(load_settings({"model": options.model}, given_by="command line").settings)
    LEXERS.folder = app.store.grammars_dir
    engine = app.open_engine()
    engine.generate(
        GenerateRequest((0,), max_new_tokens=2), CancelFlag()
    )  # the first call finds a cold machine
    tokens = MaskTokens.of(engine.vocabulary)
    load = psutil.getloadavg()[0]
    sums: dict[tuple[str, Masks], Sum] = {}
    for language, wish, schema in REQUESTS:
        request = DocumentRequest(
            wish,
            language_by_id(language),
            schema_of(schema, "tables") if schema else None,
            max_new_tokens=options.max_tokens,
        )
        ways = [
            how
            for how in (Masks.OFF, Masks.CHECK, Masks.EACH)
            if how is not Masks.EACH or options.all_masks or has_quick_masks(request)
        ]
        came = {how: tried(request, how, engine, tokens) for how in ways}
        check(came, language)
        name = f"{language}, schema" if schema else language
        for how, written in came.items():
            sums.setdefault((name, how), Sum()).add(written)
        print(
            f"{name}: {wish[:50]!r}",
            *(f"{how} {'ok' if came[how] else '-'}" for how in came),
            file=sys.stderr,
        )
    print(f"{engine.model}, {processor_name()}, load {load:.1f}, {len(REQUESTS)} requests")
    print("| | n | whole, off | whole, check | of these closed | ms a token, check | ms a token, each |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    names = [f"{language}, schema" if schema else language for language, _, schema in REQUESTS]
    for name in dict.fromkeys(names):
        off, checked, each = (sums.get((name, how), Sum()) for how in (Masks.OFF, Masks.CHECK, Masks.EACH))
        check_ms, each_ms = (1000 * s.guard_s / max(s.n_tokens, 1) for s in (checked, each))
        row = (
            name,
            names.count(name),
            off.n_whole,
            checked.n_whole,
            checked.n_closed,
            f"{check_ms:.3f}",
            f"{each_ms:.3f}" if each.n_tokens else "",
        )
        print("| " + " | ".join(map(str, row)) + " |")
    total = {how: Sum() for how in Masks}
    for (_, how), each in sums.items():
        total[how].n_tokens += each.n_tokens
        total[how].seconds += each.seconds
        total[how].guard_s += each.guard_s
    print(json.dumps({how: {"n_tokens": s.n_tokens, "seconds": round(s.seconds, 1), "guard_s": round(s.guard_s, 3)}
                      for how, s in total.items()}))  # fmt: skip


def tried(request: DocumentRequest, how: Masks, engine: Engine, tokens: MaskTokens) -> Written | None:
    """The document, or None where none came of it."""
    try:
        return write(replace(request, masks=how), engine, CancelFlag(), tokens)
    except Unfinished:
        return None


def has_quick_masks(request: DocumentRequest) -> bool:
    """Whether a mask takes milliseconds: its grammar has no scanner, or a model of it, or the document is JSON."""
    grammar = request.language.grammars[0]
    return request.schema is not None or not grammar.has_scanner or bool(grammar.scanner_model)


def check(came: dict[Masks, Written | None], language: str) -> None:
    """Other tokens under masks than without are not worth timing."""
    if Masks.EACH not in came:
        return
    by_check, by_mask = came[Masks.CHECK], came[Masks.EACH]
    ids = [written and written.generation.token_ids for written in (by_check, by_mask)]
    if ids[0] != ids[1]:
        raise SystemExit(f"bench: under masks other {language} was written; nothing is told.")


if __name__ == "__main__":
    main()
