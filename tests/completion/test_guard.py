"""The guard of a completion: what it did is told, and why there was none; nothing fails for want of it."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from treefill.commands.complete import Answered, _guard, completion_json
from treefill.completion import Check, CompletionRequest, Declined, Reason, Suggestion, complete, prepare
from treefill.engine.api import CancelFlag, Finish
from treefill.errors import GrammarError
from treefill.syntax import matcher
from treefill.syntax.languages import Grammar
from treefill.text import Document

from tests.helpers.choosing_engine import ChoosingEngine
from tests.helpers.scripted_engine import ScriptedEngine


def answer(
    buffer: str, *texts: str, language: str = "python", cancel: CancelFlag | None = None, **options: Any
) -> Suggestion | Declined:
    offset = buffer.index("‸")
    document = Document(f"guard.{language}", buffer.replace("‸", ""), language)
    request = replace(CompletionRequest(document, offset), **options)
    return complete(request, ChoosingEngine(*texts), cancel or CancelFlag())


def silence(said: Suggestion | Declined) -> str:
    return said.explanation.syntax.unguarded if said.explanation.syntax else ""


def lines(said: Suggestion | Declined) -> list[str]:
    return list(_guard(said.generation, said.explanation.syntax))


def test_it_is_told_what_was_asked_and_refused() -> None:
    said = answer("total = ‸\n", "f(a]", "f(a)")

    assert isinstance(said, Suggestion)
    assert said.text == "f(a)"
    assert lines(said) == [
        "Tokens that the grammar was asked about while the model wrote: 5; first choices refused: 1; taken back: 0"
    ]
    told = completion_json(Answered(Document("a.py", "total = \n", "python"), [said], ScriptedEngine("")))
    assert (told["n_guarded"], told["n_refused_first"], told["n_undone"]) == (5, 1, 0)


def test_a_dialect_is_told_by_the_other_open_files_where_the_file_itself_tells_nothing() -> None:
    mysql = "CREATE TABLE `t` (`id` int NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`)) ENGINE=InnoDB;\n"

    def grammar_beside(neighbour: Document) -> str:
        said = answer("SELECT ‸;\n", "1", language="sql", neighbours=(neighbour,))
        assert said.explanation.syntax
        return said.explanation.syntax.grammar

    assert grammar_beside(Document("schema.sql", mysql, "sql")) == "sql"
    assert grammar_beside(Document("schema.py", mysql, "python")) == "postgres"
    assert grammar_beside(Document("schema.sql", "SELECT 1;\n", "sql")) == "postgres"
    assert grammar_beside(Document(".ssh/schema.sql", mysql, "sql")) == "postgres", (
        "a secrets file tells nothing"
    )


@pytest.mark.parametrize(
    ("buffer", "language", "reason"),
    [
        ("x = ) ‸\n", "python", "The grammar cannot read the statement that the cursor is in."),
        ("x := ‸\n", "go", "The grammar go is not installed (tree_sitter_go): install "),
        ("a ‸\n", "plaintext", "There is no grammar for plaintext."),
    ],
)
def test_where_nobody_stands_guard_it_is_said_why(
    buffer: str, language: str, reason: str, without_wheel: Callable[[str], None]
) -> None:
    without_wheel("tree_sitter_go")
    said = answer(buffer, "1", language=language)

    assert isinstance(said, Suggestion)
    assert silence(said).startswith(reason)
    assert lines(said)[0].startswith(f"While the model wrote, the grammar was not asked: {reason}")


def test_it_is_said_also_where_nothing_is_left_to_suggest() -> None:
    said = answer("x = ) ‸\n", "   ")

    assert isinstance(said, Declined)
    assert silence(said) == "The grammar cannot read the statement that the cursor is in."
    assert said.explanation.syntax is not None
    assert said.explanation.syntax.unchecked == "There was no text to check."


def test_and_where_a_newer_request_took_over() -> None:
    flag = CancelFlag()
    flag.cancel()
    said = answer("x = ) ‸\n", "1", cancel=flag)

    assert isinstance(said, Declined)
    assert said.reason is Reason.CANCELLED
    assert silence(said)


@pytest.mark.parametrize("check", [Check.OFF, Check.PARSE])
def test_where_no_guard_is_wanted_nothing_is_said_of_it(check: Check) -> None:
    said = answer("x = ) ‸\n", "1", check=check)

    assert silence(said) == ""
    assert lines(said) == []
    assert said.generation is not None
    assert said.generation.n_guarded == 0


def test_a_guard_that_breaks_costs_nobody_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TypeError("no text of the user's in here")

    monkeypatch.setattr(matcher, "matcher_at", fail)
    said = answer("x = ‸\n", "1")

    assert isinstance(said, Suggestion)
    assert silence(said) == "The grammar could not be asked (TypeError)."


def test_one_that_gives_up_on_the_way_says_so_after_what_it_did() -> None:
    deep = "".join(" " * level + "while t:\n" for level in range(511)) + " " * 511 + "x = ‸"
    said = answer(deep, "1")

    assert silence(said) == "The text is nested too deeply for the grammar's scanner."
    assert lines(said)[-1].startswith("From somewhere on it did not decide: ")


def test_what_leads_nowhere_is_no_suggestion() -> None:
    said = answer('{"a": ‸}', ")", language="json")

    assert isinstance(said, Declined)
    assert said.generation is not None
    assert said.generation.finish is Finish.DEAD_END


def test_a_language_is_prepared_once_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    built, build = [], matcher.policy_of

    def counted(grammar: Grammar) -> object:
        built.append(grammar.name)
        return build(grammar)

    monkeypatch.setattr(matcher, "policy_of", counted)
    threads = [threading.Thread(target=prepare, args=("typescriptreact",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert isinstance(answer("const x = <div>‸</div>;\n", "{a}", language="typescriptreact"), Suggestion)
    assert len(built) <= 1, "it may have been built before this test"


def test_preparing_what_cannot_be_prepared(without_wheel: Callable[[str], None]) -> None:
    without_wheel("tree_sitter_go")
    prepare("plaintext")
    prepare("no-such-language")
    with pytest.raises(GrammarError, match="not installed"):
        prepare("go")
