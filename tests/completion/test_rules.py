"""What the user sees of rules: the ghost text that keeps them, or why there is none."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from treefill.completion import (
    Check,
    CompletionRequest,
    Declined,
    Habits,
    Memory,
    Mode,
    Reason,
    RuleFinding,
    Suggestion,
    complete,
    complete_next,
    learn,
)
from treefill.engine.api import CancelFlag
from treefill.syntax.rules import ruling
from treefill.syntax.rules.read import rules_from
from treefill.text import Document

from tests.helpers.scripted_engine import ScriptedEngine
from tests.helpers.word_engine import WordEngine

NO_EVAL = """
[[rule]]
name = "no eval"
because = "it runs any text"
calls.forbid = ['eval', 'os\\.system']
"""
SNAKE = """
[[rule]]
name = "snake case"
names.allow = ['[a-z_][a-z0-9_]*']
"""
NO_GLOBALS = """
[[rule]]
name = "no globals"
languages = ["python"]
kinds.forbid = ["global"]
"""
NO_GOTO = """
[[rule]]
name = "no goto"
languages = ["c"]
kinds.forbid = ["goto_statement"]
"""
NO_URLS = """
[[rule]]
name = "no addresses"
strings.forbid = ['https?://.*']
"""
KEYS = """
[[rule]]
name = "keys"
strings.allow = ['[a-z_]+', 'X-[A-Z]+']
"""
DOCS = """
[[rule]]
name = "docs"
docs.begins = ['[A-Z]\\w+s ']
"""
HEADER = """
[[rule]]
name = "header"
languages = ["python"]
header.lines = ['# Copyright \\d{4} Acme', '# SPDX-License-Identifier: MIT']
"""
READ_ONLY = """
[[rule]]
name = "read only"
sql = "read-only"
"""


def answer(
    buffer: str, rules: str, engine: ScriptedEngine, language: str = "python", **options: Any
) -> Suggestion | Declined:
    offset = buffer.index("‸")
    document = Document(f"rules.{language}", buffer.replace("‸", ""), language)
    request = replace(
        CompletionRequest(document, offset), rules=rules_from(rules.encode(), "rules"), **options
    )
    return complete(request, engine, CancelFlag())


def chosen(buffer: str, rules: str, *texts: str, language: str = "python") -> str | None:
    """What a model suggests that wants the first text, and the next one where that may not come; None for nothing."""
    said = answer(buffer, rules, WordEngine(*texts), language)
    return said.text if isinstance(said, Suggestion) else None


def finally_said(buffer: str, rules: str, text: str, language: str = "python", **options: Any) -> str:
    """What is left of a text by an engine that asks no guard; the reason's sentence where nothing is."""
    said = answer(buffer, rules, ScriptedEngine(text), language, **options)
    if isinstance(said, Declined):
        assert said.reason is Reason.RULE
        return said.sentence
    return said.text


def finding_of(said: Suggestion | Declined) -> RuleFinding:
    assert said.explanation.syntax is not None
    assert said.explanation.syntax.rules is not None
    return said.explanation.syntax.rules


@pytest.mark.parametrize(
    ("buffer", "rules", "first", "second", "language"),
    [
        ("x = ‸\n", NO_EVAL, "eval(s)", "int(s)", "python"),
        ("os.‸\n", NO_EVAL, "system(s)", "listdir(s)", "python"),
        ("f(\n    1,\n    ‸\n)\n", NO_EVAL, "eval(s)", "int(s)", "python"),
        ("x = ‸;\n", NO_EVAL, "eval(s)", "parse(s)", "javascript"),
        ("# Notes\n\n```python\nx = ‸\n```\n", NO_EVAL, "eval(s)", "int(s)", "markdown"),
        ("total = ‸\n", SNAKE, "fooBar + 1", "foo_bar + 1", "python"),
        ("total = foo‸\n", SNAKE, "Bar + 1", "_bar + 1", "python"),
        ("def f():\n    ‸\n", NO_GLOBALS, "global x", "return x", "python"),
        ("void f() {\n    ‸\n}\n", NO_GOTO, "goto end;", "return;", "c"),
        ("u = ‸\n", KEYS, '"Name"', '"name"', "python"),
        ("u = ‸\n", NO_URLS, '"http://a.b"', '"http:/a"', "python"),
        ("def f():\n    ‸\n", DOCS, '"""returns one."""', '"""Returns one."""', "python"),
        ('def f():\n    """‸\n', DOCS, '\n    one."""', '\n    Returns one."""', "python"),
        ("‸", HEADER, "import os", "# Copyright 2026 Acme", "python"),
        ("# Copyright 2026 Acme\n‸", HEADER, "import os", "# SPDX-License-Identifier: MIT", "python"),
        ("‸\n", READ_ONLY, "DELETE FROM t;", "SELECT 1;", "sql"),
        ("SELECT * ‸", READ_ONLY, "INTO u FROM t;", "FROM t;", "sql"),
        ("```sql\n‸\n```\n", READ_ONLY, "DROP TABLE t;", "SELECT 1;", "markdown"),
        ("WITH x AS (‸", READ_ONLY, "DELETE FROM t) SELECT 1", "SELECT 2) SELECT 1", "sql"),
    ],
)
def test_where_the_first_choice_is_against_a_rule_another_one_is_suggested(
    buffer: str, rules: str, first: str, second: str, language: str
) -> None:
    assert chosen(buffer, "", first, second, language=language) == first
    assert chosen(buffer, rules, first, second, language=language) == second


@pytest.mark.parametrize(
    ("buffer", "rules", "text", "language"),
    [
        ("x = ‸\n", NO_EVAL, "evaluate(s)", "python"),
        ("x = ‸\n", NO_EVAL, "model.eval()", "python"),
        ("x = ‸\n", NO_EVAL, 'f("eval(s)")  # eval(s)', "python"),
        ("‸\n", NO_EVAL, "def eval(s):\n    return s", "python"),
        ("x = map(‸)\n", NO_EVAL, "eval, s", "python"),
        ("‸\n", SNAKE, "if a is None:\n    return True", "python"),
        ("x = ‸\n", SNAKE, 'f("NotAName")', "python"),
        ("def f():\n    ‸\n", NO_GLOBALS, "global_x = 1", "python"),
        ("def f():\n    global ‸\n", NO_GOTO, "x", "python"),
        ("u = ‸\n", KEYS, '{"name": "X-NAME"}', "python"),
        ("def f():\n    ‸\n", KEYS, '"""A docstring is no such string."""\n    return "key"', "python"),
        ("def f():\n    ‸\n", DOCS, 'return "returns one"', "python"),
        ("import os\n‸", HEADER, "import sys", "python"),
        ("‸\nimport os\n", HEADER, "import sys", "python"),
        ("#!/usr/bin/python\n‸", HEADER, "# Copyright 2026 Acme", "python"),
        ("SELECT ‸\n", READ_ONLY, "replace(a, 'DROP', \"delete\"), t.update FROM t -- INSERT\n;", "sql"),
        ("‸\n", READ_ONLY, "EXPLAIN (ANALYZE, BUFFERS) SELECT 1;", "sql"),
        ("x = ‸\n", READ_ONLY, "delete(s)", "python"),
        ("Please ‸\n", NO_EVAL, "eval(s)", "plaintext"),
        ("Please ‸\n", SNAKE, "Call Me", "markdown"),
    ],
)
def test_what_only_looks_as_if_it_were_against_a_rule_is_suggested(
    buffer: str, rules: str, text: str, language: str
) -> None:
    free = chosen(buffer, "", text, language=language)

    assert free is not None
    assert chosen(buffer, rules, text, language=language) == free
    assert finally_said(buffer, rules, text, language) == free


@pytest.mark.parametrize(
    ("buffer", "rules", "text", "sentence", "language"),
    [
        (
            "x = ‸\n", NO_EVAL, "eval(s)",
            "The rule “no eval” is against a call of `eval`: it runs any text.", "python",
        ),
        (
            "x = eval‸\n", NO_EVAL, "(s)",
            "The rule “no eval” is against a call of `eval`: it runs any text.", "python",
        ),
        ("x = ‸\n", SNAKE, "fooBar", "The rule “snake case” is against the name `fooBar`.", "python"),
        ("x = foo‸\n", SNAKE, "Bar", "The rule “snake case” is against the name `fooBar`.", "python"),
        ("def f():\n    ‸\n", NO_GLOBALS, "global x", "The rule “no globals” is against `global`.", "python"),
        ("def f():\n    gl‸\n", NO_GLOBALS, "obal x", "The rule “no globals” is against `global`.", "python"),
        ("void f() {\n    ‸\n}\n", NO_GOTO, "goto a;", "The rule “no goto” is against `goto_statement`.", "c"),
        ("u = ‸\n", NO_URLS, '"https://a"', "The rule “no addresses” is against the string `https://a`.", "python"),
        (
            "def f():\n    ‸\n", DOCS, '"""one."""', "The rule “docs” is against a docstring that begins with `one.`.",
            "python",
        ),
        ("‸\nint f();\n", DOCS, "/** one */", "The rule “docs” is against a comment that begins with `one`.", "c"),
        (
            "‸", HEADER, "import os",
            "The rule “header” is against a header whose line 1 is not as `# Copyright \\d{4} Acme` says.", "python",
        ),
        ("DELETE FROM ‸;\n", READ_ONLY, "t", "The rule “read only” is against SQL that begins with `DELETE`.", "sql"),
        ("SELECT 1 ‸", READ_ONLY, "INTO t", "The rule “read only” is against SQL that writes: `INTO`.", "sql"),
        ("‸", READ_ONLY, "CALL f();", "The rule “read only” is against SQL that begins with `CALL`.", "sql"),
        ("‸", READ_ONLY, "COPY t TO 'f';", "The rule “read only” is against SQL that begins with `COPY`.", "sql"),
    ],
)  # fmt: skip
def test_the_last_word_keeps_a_rule_that_no_guard_kept_and_says_which(
    buffer: str, rules: str, text: str, sentence: str, language: str
) -> None:
    assert finally_said(buffer, rules, text, language) == sentence


def test_the_lines_before_are_kept() -> None:
    said = answer(
        "def f(s):\n    ‸\n", NO_EVAL, ScriptedEngine("x = int(s)\n    return eval(s)"), mode=Mode.BLOCK
    )

    assert isinstance(said, Suggestion)
    assert said.text == "x = int(s)"
    assert finding_of(said).complaint == "The rule “no eval” is against a call of `eval`: it runs any text."
    assert finding_of(said).cut == "\n    return eval(s)"


def test_rules_hold_also_where_the_grammar_is_not_asked() -> None:
    assert "eval" in finally_said("x = ‸\n", NO_EVAL, "eval(s)", check=Check.OFF)
    assert finally_said("x = ‸\n", NO_EVAL, "int(s)", check=Check.OFF) == "int(s)"
    assert answer("x = ‸\n", NO_EVAL, WordEngine("eval(s)", "int(s)"), check=Check.OFF).explanation.syntax


@pytest.mark.parametrize("broken", ["x = ) ‸\n", "class : ‸\n", "print(\n\nx = ‸\n"])
def test_in_broken_code_too(broken: str) -> None:
    assert "eval" in finally_said(broken, NO_EVAL, "eval(s)", check=Check.OFF)
    assert "globals" in finally_said(broken, NO_GLOBALS, "global x", check=Check.OFF)


def test_where_there_is_no_grammar_it_is_judged_by_words() -> None:
    assert "eval" in finally_said("x = ‸\n", NO_EVAL, "eval(s)", "haskell")
    assert finally_said("x = ‸\n", NO_EVAL, "reads s", "haskell") == "reads s"
    assert chosen("x = ‸\n", NO_EVAL, "eval(s)", "int(s)", language="haskell") == "int(s)"


def test_what_cannot_be_told_without_a_grammar_is_not_suggested(without_wheel: Callable[[str], None]) -> None:
    without_wheel("tree_sitter_go")
    rule = '[[rule]]\nname = "no goto"\nlanguages = ["go"]\nkinds.forbid = ["goto"]\n'

    assert finally_said("x := ‸\n", rule, "1", "go") == (
        "The rule “no goto” is against what cannot be judged: there is no grammar that knows kinds of nodes."
    )


def test_a_judge_that_breaks_lets_nothing_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TypeError("no text of the user's in here")

    monkeypatch.setattr(ruling, "breach_in_tree", fail)

    assert finally_said("x = ‸\n", NO_EVAL, "1") == "The rules could not be judged (TypeError)."


def test_so_does_one_that_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ruling, "TIME_LIMIT_S", -1.0)

    assert "eval" in finally_said("x = ‸\n", NO_EVAL, "eval(s)")


def test_it_is_told_what_was_refused_while_the_model_wrote() -> None:
    said = answer("x = ‸\n", NO_EVAL + SNAKE, WordEngine("eval(s)", "int(s)"))

    assert isinstance(said, Suggestion)
    assert finding_of(said) == RuleFinding(
        ("no eval", "snake case"), ("The rule “no eval” is against a call of `eval`: it runs any text.",)
    )
    assert said.generation.n_undone == 1


def test_where_a_rule_leaves_nothing_that_is_the_reason() -> None:
    said = answer("x = ‸\n", NO_EVAL, WordEngine("eval(s)"))

    assert isinstance(said, Declined)
    assert (said.reason, said.sentence) == (
        Reason.RULE,
        "The rule “no eval” is against a call of `eval`: it runs any text.",
    )


def test_no_part_of_a_forbidden_name_is_left() -> None:
    """A model may have nothing else to say in the middle of a word."""
    said = answer("x = a + ‸\n", NO_EVAL, WordEngine("os.system(s)"))

    assert isinstance(said, Declined)
    assert said.reason is Reason.RULE


def test_of_rules_all_hold() -> None:
    texts = ("fooBar(s)", "eval(s)", "int(s)")

    assert chosen("x = ‸\n", NO_EVAL + SNAKE, *texts) == "int(s)"


def test_a_rule_holds_in_its_languages() -> None:
    rule = NO_EVAL.replace("calls", 'languages = ["javascript"]\ncalls')

    assert chosen("x = ‸\n", rule, "eval(s)") == "eval(s)"
    assert chosen("x = ‸;\n", rule, "eval(s)", "f(s)", language="javascript") == "f(s)"


MAIN = "def main():\n    pass\n\n\nif __‸\n"
NO_MAIN = "[[rule]]\nname = 'no main'\ncalls.forbid = ['main']\n"
NO_TESTS = "[[rule]]\nname = 'no tests here'\nlanguages = ['rust']\nkinds.forbid = ['mod_item']\n"


@pytest.mark.parametrize(
    ("buffer", "rules", "language"),
    [
        (MAIN, NO_MAIN, "python"),
        ("#[cfg(t‸\n", NO_TESTS, "rust"),
        ("CREATE TABLE t ‸", READ_ONLY, "sql"),
    ],
    ids=["a call", "a line that could stand alone would be left", "SQL only reads"],
)
def test_where_a_rule_is_against_a_template_the_model_is_asked(
    buffer: str, rules: str, language: str
) -> None:
    engine, without_rules = ScriptedEngine("1"), answer(buffer, "", ScriptedEngine(""), language)
    assert isinstance(without_rules, Suggestion)
    assert without_rules.source == "template"

    said = answer(buffer, rules, engine, language)

    assert len(engine.requests) == 1
    assert isinstance(said, Declined) or said.source == "decoded"


def test_what_the_model_writes_instead_of_a_template_keeps_the_rule() -> None:
    buffer = MAIN.replace("if __‸", 'if __name__ == "__main__":\n    ‸')
    assert answer(buffer, "", ScriptedEngine("")).explanation.template

    said = answer(buffer, NO_MAIN, WordEngine("main()", "run()"))

    assert isinstance(said, Suggestion)
    assert (said.source, said.text) == ("decoded", "run()")
    assert "call of `main`" in finding_of(said).refused[0]


def test_a_template_that_keeps_them_is_offered_and_says_so() -> None:
    engine = ScriptedEngine("")
    said = answer(MAIN, NO_EVAL, engine)

    assert isinstance(said, Suggestion)
    assert (said.source, said.text, engine.requests) == ("template", 'name__ == "__main__":\n    main()', [])
    assert finding_of(said) == RuleFinding(("no eval",))


@pytest.mark.parametrize(
    ("habit", "rules", "source"),
    [
        ("(s)\nreturn eval(s)", NO_EVAL, "decoded"),
        ("(s)\nreturn int(s)", NO_EVAL, "habit"),
    ],
)
def test_a_habit_is_held_to_rules_that_came_later(habit: str, rules: str, source: str) -> None:
    """Its first line alone would keep them, but it is not what was accepted."""
    head, habits = "def f(s):\n    check", Habits()
    text = habit.replace("\n", "\n    ")
    accepted = CompletionRequest(Document("a.py", f"{head}{text}\n", "python"), len(head))
    assert sum(learn(accepted, len(head) + len(text), habits) for _ in range(5)) == 5

    request = CompletionRequest(
        Document("a.py", f"{head}\n", "python"), len(head), rules=rules_from(rules.encode(), "rules")
    )
    (said,), _ = complete_next(request, ScriptedEngine("(1)"), CancelFlag(), Memory(), habits)

    assert isinstance(said, Suggestion)
    assert said.source == source


def test_which_rules_were_not_read_is_told_of_a_template_too() -> None:
    document = Document("a.py", MAIN.replace("‸", ""), "python")
    rules = replace(rules_from(b"", "rules"), note="Nobody trusts the folder.")
    said = complete(
        CompletionRequest(document, MAIN.index("‸"), rules=rules), ScriptedEngine(""), CancelFlag()
    )

    assert isinstance(said, Suggestion)
    assert said.source == "template"
    assert finding_of(said).note == "Nobody trusts the folder."
