"""What was accepted again and again in a place is offered there at once, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest
from treefill.completion import CompletionRequest, Habits, Memory, Mode, Suggestion, complete_next, learn
from treefill.completion import habits as habits_module
from treefill.completion.habits import Line
from treefill.engine.api import CancelFlag
from treefill.text import Document

from tests.helpers.contract import assert_sound
from tests.helpers.scripted_engine import ScriptedEngine

TEST = "class T(TestCase):\n    def test(self):\n        self.assert‸\n"
EQUAL = "Equal(actual, expected)"


class User:
    """Somebody who accepts suggestions, and is offered what became a habit."""

    def __init__(self) -> None:
        self.habits = Habits()

    def accept(
        self,
        marked: str,
        text: str,
        times: int = 1,
        path: str = "a.py",
        language: str = "python",
        **options: Any,
    ) -> int:
        """Accept `text` at the cursor so often; how often that was learned."""
        start = marked.index("‸")
        document = Document(f"/w/{path}", marked.replace("‸", text), language)
        request = CompletionRequest(document, start, **options)
        return sum(learn(request, start + len(text), self.habits) for _ in range(times))

    def offered(
        self, marked: str, path: str = "a.py", language: str = "python", **options: Any
    ) -> str | None:
        """What is suggested without asking the model; None where it is asked."""
        offset = marked.index("‸")
        document = Document(f"/w/{path}", marked.replace("‸", ""), language)
        request = CompletionRequest(document, offset, **options)
        engine = ScriptedEngine("")
        (answer,), _ = complete_next(request, engine, CancelFlag(), Memory(), self.habits)
        if not isinstance(answer, Suggestion):
            return None
        assert (answer.source, engine.requests) == ("habit", [])
        assert "accepted" in answer.explanation.template
        assert_sound(document, offset, answer)
        return answer.text


@pytest.fixture
def user() -> User:
    return User()


def test_five_times_make_a_habit(user: User) -> None:
    assert user.accept(TEST, EQUAL, times=4) == 4
    assert user.offered(TEST) is None

    user.accept(TEST, EQUAL)

    assert user.offered(TEST) == EQUAL


@pytest.fixture
def habitual(user: User) -> User:
    assert user.accept(TEST, EQUAL, times=5) == 5
    return user


@pytest.mark.parametrize(
    "marked",
    [
        "class Other(TestCase):\n  def test_more(self):\n    x = 1\n    self.assert‸\n    y = 2\n",
        "class T:\n\tdef test(self):\n\t\tif x:\n\t\t\tself.assert‸\n",
        TEST.replace("\n", "\r\n"),
    ],
    ids=["in another class and indentation", "with tabs, deeper", "with other line endings"],
)
def test_the_same_place_is_known_again(marked: str, habitual: User) -> None:
    assert habitual.offered(marked, "b.py") == EQUAL


@pytest.mark.parametrize(
    "marked",
    [
        "class T:\n    def test(self):\n        other.assert‸\n",
        "class T:\n    def test(self):\n        self.assert‸Equal\n",
        "class T:\n    def test(self):\n        self.assert‸ and more\n",
        "class T:\n    def test(self):\n        # self.assert‸\n",
        'class T:\n    def test(self):\n        """\n        self.assert‸\n        """\n',
        "class T:\n    def test(self):\n        x = [\n            self.assert‸\n        ]\n",
    ],
    ids=["another line", "inside a word", "text follows", "in a comment", "in a string", "in a list"],
)
def test_another_place_is_another(marked: str, habitual: User) -> None:
    assert habitual.offered(marked) is None


def test_languages_and_workspaces_share_nothing(habitual: User) -> None:
    assert habitual.offered(TEST, language="javascript", path="a.js") is None
    assert habitual.offered(TEST, path="other/a.py") is None, "without a workspace a folder is one"
    assert habitual.offered(TEST, workspace_root=Path("/w/sub")) is None

    habitual.accept(TEST, EQUAL, times=5, workspace_root=Path("/w"))

    assert habitual.offered(TEST, path="other/a.py", workspace_root=Path("/w")) == EQUAL


def test_lines_below_have_the_indentation_of_their_new_place(user: User) -> None:
    user.accept("def f():\n    with lock‸\n", ":\n        go()\n        if x:\n            y()", times=5)

    assert (
        user.offered("class A:\n  def g(self):\n    with lock‸\n")
        == ":\n      go()\n      if x:\n        y()"
    )
    assert user.offered("def f():\n\tif a:\n\t\twith lock‸\n") == ":\n\t\t\tgo()\n\t\t\tif x:\n\t\t\t\ty()"
    assert user.offered("def f():\n    with lock‸\n", max_lines=3) is None
    assert user.offered("def f():\n    with lock‸\n", mode=Mode.LINE) is None
    assert (
        user.offered("def f():\r\n    with lock‸\r\n")
        == ":\r\n        go()\r\n        if x:\r\n            y()"
    )


def test_brackets_that_the_editor_closes_come_once(user: User) -> None:
    # The editor had closed the bracket; the suggestion wrote it again, so nothing stands right of it now.
    user.accept("log = getLogger(‸\n", "__name__)", times=5)

    assert user.offered("log = getLogger(‸)\n") == "__name__"
    assert user.offered("log = getLogger(‸\n") == "__name__)"
    assert user.offered("log = getLogger(‸, x)\n") is None


def test_the_most_frequent_text_wins_and_only_with_more_than_half(user: User) -> None:
    user.accept(TEST, EQUAL, times=5)
    user.accept(TEST, "True(flag)", times=4)
    assert user.offered(TEST) == EQUAL

    user.accept(TEST, "True(flag)")
    assert user.offered(TEST) is None

    user.accept(TEST, "True(flag)", times=1)
    assert user.offered(TEST) == "True(flag)"


def test_what_is_offered_three_times_and_not_taken_has_to_be_earned_anew(habitual: User) -> None:
    for number in range(3):
        lines = "\n" * number
        assert habitual.offered(lines + TEST) == EQUAL
        assert habitual.offered(lines + TEST) == (EQUAL if number < 2 else None), (
            "asked again it is one offer"
        )

    habitual.accept(TEST, EQUAL, times=4)
    assert habitual.offered(TEST) is None
    habitual.accept(TEST, EQUAL)
    assert habitual.offered(TEST) == EQUAL


def test_what_is_taken_stays_a_habit(habitual: User) -> None:
    for number in range(8):
        assert habitual.offered("\n" * number + TEST) == EQUAL
        habitual.accept("\n" * number + TEST, EQUAL)


@pytest.mark.parametrize(
    ("marked", "text", "path", "options"),
    [
        (TEST, EQUAL, ".env", {}),
        (TEST, EQUAL, "mine.py", {"secret_patterns": ("mine.*",)}),
        (TEST, EQUAL, "a.py", {"habits": False}),
        (TEST, "Eq", "a.py", {}),
        (TEST, EQUAL + "\n        x()", "a.py", {"max_lines": 1}),
        ("    ‸\n", "x = 1", "a.py", {}),
        ("x = 1  # note: ‸\n", "read the manual", "a.py", {}),
        (TEST, "x" * 3_000, "a.py", {}),
        (TEST, "Equal(a, \ud83d)", "a.py", {}),
        (TEST, "Equal(((", "a.py", {}),
    ],
    ids=[
        "a secrets file", "one by the user's own pattern", "switched off", "two characters", "too many lines",
        "nothing on the line", "a comment", "too long", "half an emoji", "what the grammar has no reading for",
    ],
)  # fmt: skip
def test_what_is_never_learned(
    marked: str, text: str, path: str, options: dict[str, Any], user: User
) -> None:
    assert user.accept(marked, text, path=path, **options) == 0
    assert user.habits.plain() == []


def test_prose_and_languages_without_a_grammar_have_no_syntactic_places(user: User) -> None:
    assert user.accept("We are ‸\n", "happy to help.", path="a.md", language="markdown") == 0
    assert user.accept("We are ‸\n", "happy to help.", path="a.txt", language="plaintext") == 0


def test_a_habit_is_not_offered_where_it_is_switched_off_or_in_a_secrets_file(habitual: User) -> None:
    assert habitual.offered(TEST, habits=False) is None
    assert habitual.offered(TEST, path=".env") is None


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_an_import_is_not_offered_twice(ending: str, user: User) -> None:
    user.accept("import nu‸\n", "mpy as np", times=5)

    assert user.offered(f"import os{ending}import nu‸{ending}x = 1{ending}") == "mpy as np"
    for marked in (
        "import numpy as np\nimport os\nimport nu‸\nx = 1\n",
        "import nu‸\nimport os\nimport numpy as np\n",
    ):
        assert user.offered(marked.replace("\n", ending)) is None


def test_a_habit_wins_over_a_template(user: User) -> None:
    user.accept("def main():\n    pass\n\n\nif __‸\n", 'name__ == "__main__":\n    run()', times=5)

    assert user.offered("def main():\n    pass\n\n\nif __‸\n") == 'name__ == "__main__":\n    run()'


def test_what_is_kept_can_be_put_back(habitual: User) -> None:
    other = User()

    other.habits.add(habitual.habits.plain())

    assert other.offered(TEST) == EQUAL
    assert other.habits.plain() == habitual.habits.plain()


@pytest.mark.parametrize(
    "entries",
    [
        None, 1, {}, [1], [{}], [{"scope": 1}],
        [{"scope": "/w", "language": "python", "left": "x", "right": "", "kind": "k", "text": "t", "n": "5"}],
        [{"scope": "/w", "language": "python", "left": "x", "right": "", "kind": "k", "text": "t", "n": True}],
        [{"scope": "/w", "language": "python", "left": "x", "right": "", "kind": "k", "text": "t", "n": -1}],
        [{"scope": "/w", "language": "python", "left": "x" * 999, "right": "", "kind": "k", "text": "t", "n": 5}],
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_left_out(entries: object, user: User) -> None:
    user.habits.add(entries)

    assert user.habits.plain() == []


def test_what_was_learned_first_is_forgotten_when_there_is_too_much(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(habits_module, "MAX_PLACES", 3)
    for number in range(5):
        user.habits.accepted(Line("/w", "python", f"line {number}"), "", "kind", "text")
    assert [entry["left"] for entry in user.habits.plain()] == ["line 2", "line 3", "line 4"]

    monkeypatch.setattr(habits_module, "MAX_KEPT_CHARS", 60)
    user.habits.accepted(Line("/w", "python", "the last"), "", "kind", "t" * 40)
    assert [entry["left"] for entry in user.habits.plain()] == ["the last"]


def test_a_place_keeps_the_texts_that_came_last(user: User) -> None:
    for number in range(20):
        user.accept(TEST, f"Equal({number}, x)")

    texts = [entry["text"] for entry in user.habits.plain()]
    assert texts == [f"Equal({number}, x)" for number in range(12, 20)]
