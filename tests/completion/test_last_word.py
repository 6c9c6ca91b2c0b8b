"""The grammar's last word, where a golden can't tell it: what is explained, what is left alone, what is survived."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from treefill.completion import Check, CompletionRequest, Declined, Suggestion, complete, last_word
from treefill.completion.request import SyntaxFinding
from treefill.engine.api import CancelFlag
from treefill.syntax import baseline
from treefill.text import Document

from tests.helpers.scripted_engine import ScriptedEngine


def answer(buffer: str, said: str, language: str = "python", **options: object) -> Suggestion | Declined:
    offset = buffer.index("‸")
    document = Document(f"last-word.{language}", buffer.replace("‸", ""), language)
    request = replace(CompletionRequest(document, offset), **options)  # type: ignore[arg-type]
    return complete(request, ScriptedEngine(said), CancelFlag())


def finding_of(said: Suggestion | Declined) -> SyntaxFinding:
    assert said.explanation.syntax is not None
    return said.explanation.syntax


def test_it_is_explained_what_was_found_and_cut() -> None:
    finding = finding_of(answer("d = {‸}\n", '"a": 1, "b": '))

    assert finding.grammar == "python"
    assert (finding.n_faults_before, finding.n_faults_after) == (0, 0)
    assert finding.complaint == "something is missing"
    assert finding.cut == ' "b":'


def test_why_nothing_is_left_is_one_sentence() -> None:
    said = answer('try:\n    open("f")\n‸', "print(1)")

    assert isinstance(said, Declined)
    assert said.sentence == (
        "What the model wrote is not valid python here: expected 'except' or 'finally' block."
    )


def test_off_is_off() -> None:
    said = answer('{"a": ‸}', "01", "json", check=Check.OFF)

    assert isinstance(said, Suggestion)
    assert said.explanation.syntax is None


def test_a_language_whose_wheel_is_not_installed_is_not_checked(without_wheel: Callable[[str], None]) -> None:
    without_wheel("tree_sitter_go")
    finding = finding_of(answer("x := ‸", "1", "go"))

    assert finding.unchecked.startswith("The grammar go is not installed")


def test_no_time_means_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "TIME_LIMIT_S", -1.0)

    said = answer("y = 1\n" * 3_000 + "x = ‸", "1")

    assert isinstance(said, Suggestion)
    assert "no time" in finding_of(said).unchecked


def test_a_check_that_fails_costs_nobody_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TypeError("no text of the user's in here")

    monkeypatch.setattr(last_word.Baseline, "of", fail)

    said = answer("x = ‸", "1")

    assert isinstance(said, Suggestion)
    assert finding_of(said).unchecked == "The check failed (TypeError)."


def test_half_an_emoji_in_the_document_is_no_hindrance() -> None:
    said = answer('s = "\ud83d"\nx = ‸\n', "1")

    assert isinstance(said, Suggestion)
    assert not finding_of(said).unchecked


def test_a_cell_with_magics_is_checked_without_them() -> None:
    document = Document("cell", "%timeit f(\nx = \n", "python", is_cell=True)
    offset = document.text.index("= ") + 2

    said = complete(CompletionRequest(document, offset), ScriptedEngine("1"), CancelFlag())

    assert isinstance(said, Suggestion)
    assert finding_of(said).n_faults_after == 0


def test_the_user_chooses_among_a_languages_grammars() -> None:
    ours = answer("SELECT ‸;", "a", "sql")
    theirs = answer("SELECT ‸;", "a", "sql", grammars=(("sql", "sql"),))
    nobodys = answer("SELECT ‸;", "a", "sql", grammars=(("sql", "klingon"),))

    assert finding_of(ours).grammar == "postgres"
    assert finding_of(theirs).grammar == "sql"
    assert finding_of(nobodys).unchecked == (
        "There is no grammar 'klingon' for sql: use one of postgres, sql."
    )


def test_typing_on_gives_the_same_as_starting_anew() -> None:
    buffer = "import os\n\n\ndef f(path):\n    for name in os.listdir(path‸\n\n\ndef g():\n    return 1\n"
    for typed in ("", ")", "):", "):\n        pr", "):\n        print(", "):\n        print(na"):
        said = answer(buffer.replace("‸", typed + "‸"), "x = (")
        baseline.TREES = baseline.RecentTrees()
        anew = answer(buffer.replace("‸", typed + "‸"), "x = (")
        assert type(said) is type(anew)
        assert getattr(said, "text", "") == getattr(anew, "text", "")


def test_g15_a_document_that_would_end_the_process_is_left_unparsed() -> None:
    script = """
from treefill.completion import CompletionRequest, complete
from treefill.engine.api import CancelFlag
from treefill.text import Document
from tests.helpers.scripted_engine import ScriptedEngine

def ask(name, text, said):
    document = Document(name, text, "python")
    answer = complete(CompletionRequest(document, len(text)), ScriptedEngine(said), CancelFlag())
    return answer.explanation.syntax

for depth in (480, 510, 511, 512, 520, 600):
    deep = "\\n".join(" " * i + "while t:" for i in range(depth)) + "\\n" + " " * depth
    print(ask("deep.py", deep + '"s"', ".x").unchecked)
    print(ask("deep.py", deep, '"s"').unchecked)
print(ask("ok.py", "x = ", "1").grammar)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )

    *deep, ok = run.stdout.splitlines()
    assert ok == "python"
    assert len(deep) == 12
    # Longer texts are parsed in a window, which holds few of their indentations.
    assert all("different indentations" in line for line in deep[:2])
    assert set(deep[2:]) <= {"", deep[0]}
