"""A JSON document whose file the user has a schema for: what the schema keeps out while the model writes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from treefill.app import make_request
from treefill.completion import (
    Check,
    CompletionRequest,
    Declined,
    Habits,
    Memory,
    Suggestion,
    complete,
    complete_next,
    learn,
)
from treefill.completion.schemas import schema_for
from treefill.engine.api import CancelFlag
from treefill.settings import load_settings, without_protected
from treefill.syntax import schema as schema_module
from treefill.syntax.rules.read import rules_from
from treefill.text import Document

from tests.helpers.choosing_engine import ChoosingEngine
from tests.helpers.word_engine import WordEngine

SCHEMA = {
    "type": "object",
    "required": ["name", "restart"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string"},
        "name": {"type": "string"},
        "restart": {"enum": ["never", "on-failure"]},
        "port": {"type": "integer"},
    },
}
Said = Suggestion | Declined


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "app.schema.json"
    path.write_text(json.dumps(SCHEMA))
    return path


def answer(
    buffer: str, *texts: str, schemas: dict[str, str], path: str = "shop/app.json", **options: Any
) -> Said:
    offset = buffer.index("‸")
    document = Document(path, buffer.replace("‸", ""), options.pop("language", "json"))
    engine = options.pop("engine", ChoosingEngine)(*texts)
    request = CompletionRequest(document, offset, schemas=tuple(schemas.items()), **options)
    return complete(request, engine, CancelFlag())


def text_of(said: Said) -> str:
    assert isinstance(said, Suggestion), said
    return said.text


def note(said: Said) -> str:
    return said.explanation.syntax.schema if said.explanation.syntax else ""


def test_a_value_that_the_schema_does_not_know_is_not_written(file: Path) -> None:
    buffer = '{\n  "name": "shop",\n  "restart": ‸\n}\n'

    free = answer(buffer, '"always"', '"never"', schemas={})
    held = answer(buffer, '"always"', '"never"', schemas={"app.json": str(file)})

    assert text_of(free) == '"always"'
    assert note(free) == ""
    assert text_of(held) == '"never"'
    assert note(held) == f"Held to the schema {file}."
    assert held.generation is not None
    assert held.generation.n_refused_first == 1


def test_the_grammar_holds_beside_it(file: Path) -> None:
    said = answer('{\n  "port": ‸\n}\n', "8]", '"8"', "80", schemas={"app.json": str(file)})

    assert text_of(said) == "80"


NO_NEVER = rules_from(b"[[rule]]\nname = 'no never'\nstrings.forbid = ['never']\n", "rules")


def test_grammar_schema_and_rules_hold_together(file: Path) -> None:
    said = answer(
        '{\n  "restart": ‸\n}\n', "]", '"always"', '"never"', '"on-failure"',
        schemas={"app.json": str(file)}, rules=NO_NEVER, engine=WordEngine,
    )  # fmt: skip

    assert text_of(said) == '"on-failure"'
    assert said.explanation.syntax is not None
    assert said.explanation.syntax.rules is not None
    assert note(said) == f"Held to the schema {file}."
    assert said.explanation.syntax.rules.rules == ("no never",)
    assert said.explanation.syntax.rules.refused == ("The rule “no never” is against the string `never`.",)


def test_a_rule_is_kept_where_the_schema_does_not_decide(file: Path) -> None:
    said = answer(
        '{\n  "colour": 3,\n  "restart": ‸\n}\n', '"never"', '"always"',
        schemas={"app.json": str(file)}, rules=NO_NEVER, engine=WordEngine,
    )  # fmt: skip

    assert text_of(said) == '"always"'


@pytest.mark.parametrize(
    ("value", "source"), [('"never"', "habit"), ('"always"', "decoded")], ids=["as it says", "against it"]
)
def test_a_habit_is_held_to_the_schema(value: str, source: str, file: Path) -> None:
    head, tail, habits = '{\n  "restart": ', "\n}\n", Habits()
    accepted = CompletionRequest(Document("shop/app.json", head + value + tail, "json"), len(head))
    assert sum(learn(accepted, len(head) + len(value), habits) for _ in range(5)) == 5
    request = CompletionRequest(
        Document("shop/app.json", head + tail, "json"), len(head), schemas=(("app.json", str(file)),)
    )

    (said,), _ = complete_next(request, ChoosingEngine('"on-failure"'), CancelFlag(), Memory(), habits)

    assert isinstance(said, Suggestion)
    assert (said.source, note(said)) == (source, f"Held to the schema {file}.")


def test_what_is_due_may_stand_right_of_the_cursor(file: Path) -> None:
    said = answer(
        '{\n  "port": 1,\n  ‸\n  "restart": "never"\n}\n', '"name": "a",', schemas={"*.json": str(file)}
    )

    assert text_of(said) == '"name": "a",'


def test_a_document_that_is_not_as_its_schema_says_is_completed_all_the_same(file: Path) -> None:
    buffer = '{\n  "colour": 3,\n  "restart": ‸\n}\n'
    said = answer(buffer, '"always"', '"never"', schemas={"app.json": str(file)})

    assert text_of(said) == '"always"'
    assert (
        note(said)
        == f"The schema {file} does not decide: what is before the cursor is not as it says (line 2)."
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read (No such file or directory): name a file in the setting schemas."),
        ("{", "is not JSON (Expecting property name"),
        ('{"type": "strin"}', "cannot be followed (Invalid type: strin): mend it."),
        ('{"$ref": "https://example.com/x"}', "refers to 'https://example.com/x', which is not in it"),
    ],
)
def test_a_schema_that_is_none_costs_nobody_a_suggestion(
    file: Path, content: str | None, sentence: str
) -> None:
    file.unlink()
    if content is not None:
        file.write_text(content)
    said = answer('{\n  "restart": ‸\n}\n', '"always"', schemas={"app.json": str(file)})

    assert text_of(said) == '"always"'
    assert note(said).startswith(f"The schema {file} ")
    assert sentence in note(said)


def test_nor_does_one_that_breaks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TypeError("no text of the user's in here")

    monkeypatch.setattr(schema_module, "schema_guard_after", fail)
    said = answer('{"restart": ‸}\n', '"always"', schemas={"app.json": str(file)})

    assert text_of(said) == '"always"'
    assert note(said) == f"The schema {file} could not be asked (TypeError)."


def test_a_schema_is_read_again_when_it_has_changed(file: Path) -> None:
    buffer, schemas = '{\n  "restart": ‸\n}\n', {"app.json": str(file)}
    assert text_of(answer(buffer, '"always"', '"never"', schemas=schemas)) == '"never"'

    file.write_text(json.dumps(SCHEMA).replace('"never"', '"always"'))
    os.utime(file, ns=(1, 1))
    assert text_of(answer(buffer, '"always"', '"never"', schemas=schemas)) == '"always"'


def test_it_is_told_also_where_nothing_is_left_to_suggest(file: Path) -> None:
    said = answer('{\n  "restart": ‸\n}\n', "   ", schemas={"app.json": str(file)})

    assert isinstance(said, Declined)
    assert note(said) == f"Held to the schema {file}."


@pytest.mark.parametrize(
    ("check", "language"), [(Check.OFF, "json"), (Check.PARSE, "json"), (Check.FULL, "yaml")]
)
def test_other_documents_are_not_held_to_it(file: Path, check: Check, language: str) -> None:
    said = answer(
        '{"restart": ‸}\n', '"always"', schemas={"app.json": str(file)}, check=check, language=language
    )

    assert text_of(said) == '"always"'
    assert note(said) == ""


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("package.json", "{}", "package"),
        ("/home/me/shop/package.json", "{}", "package"),
        ("C:/shop/package.json", "{}", "package"),
        ("untitled:package.json", "{}", None),
        ("my-package.json", "{}", None),
        ("shop/.github/workflows/ci.json", "{}", "workflow"),
        ("workflows/ci.json", "{}", None),
        ("a.json", '{"$schema": "https://example.com/app"}', "app"),
        ("a.json", '{\n  "$schema" : "https://example.com/app#",\n', "app"),
        ("a.json", '{"$schema": "https://example.com/other"}', None),
        ("a.json", '{"$schema": "/etc/passwd"}', None),
        ("package.json", '{"$schema": "https://example.com/app"}', "package"),
        ("a.json", " " * 5_000 + '{"$schema": "https://example.com/app"}', None),
    ],
)
def test_which_schema_is_a_documents(path: str, text: str, found: str | None) -> None:
    schemas = [
        ("package.json", "package"),
        (".github/workflows/*.json", "workflow"),
        ("https://example.com/app", "app"),
    ]

    assert schema_for(path, text, schemas) == found


def test_an_address_is_never_fetched() -> None:
    said = answer('{"restart": ‸}\n', '"always"', schemas={"app.json": "https://example.com/schema.json"})

    assert text_of(said) == '"always"'
    assert note(said) == (
        "The schema https://example.com/schema.json is an address, and nothing is fetched: name a file in the setting "
        "schemas."
    )


def test_the_users_file_names_schemas_and_a_workspace_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[schemas]\n"package.json" = "/s/package.json"\n')
    monkeypatch.setenv("TREEFILL_SETTINGS", str(settings))
    allowed, sentences = without_protected({"schemas": {"*": "/etc/passwd"}})
    options = load_settings(allowed).settings.request_options
    request = make_request(options, Document("package.json", "{}", "json"), 1)

    assert len(sentences) == 1
    assert request.schemas == (("package.json", "/s/package.json"),)


def test_without_a_schema_for_the_document_nothing_is_loaded() -> None:

    script = (
        "from treefill.completion import CompletionRequest, complete\n"
        "from treefill.completion.schemas import schema_at_cursor\n"
        "from treefill.text import Document\n"
        "import sys\n"
        "schema_at_cursor(CompletionRequest(Document('a.json', '{}', 'json'), 1, schemas=(('b.json', '/b'),)))\n"
        "print('llguidance' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "False"
