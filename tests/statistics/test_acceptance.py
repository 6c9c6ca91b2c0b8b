"""Which edits are acceptances: a document, its suggestion and an editor's edits in, what is counted out."""

from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from treefill.statistics.acceptance import Accepted, Fate, Recogniser, Suggested, is_one_key
from treefill.text import Edit, Text


@dataclass
class Desk:
    """A document with a suggestion at its `‸`; what stands in `[]` there is replaced by it."""

    text: Text
    recogniser: Recogniser
    item: Suggested

    @classmethod
    def of(cls, buffer: str, *suggestions: str) -> "Desk":
        before, _, after = buffer.partition("‸")
        head, bracket, replaced_left = before.rpartition("⟦")
        replaced_right, closing, rest = after.partition("⟧")
        if not bracket:
            head, replaced_left = before, ""
        if not closing:
            replaced_right, rest = "", after
        start, end = len(head), len(head) + len(replaced_left) + len(replaced_right)
        items = tuple(Suggested(start, end, suggestion) for suggestion in suggestions)
        recogniser = Recogniser()
        recogniser.show(items, Fate())
        return cls(Text.of(head + replaced_left + replaced_right + rest), recogniser, items[0])

    def edit(self, start: int, end: int, text: str) -> Accepted | None:
        """One edit; offsets count from the suggestion's start."""
        edit = Edit(self.item.start + start, self.item.start + end, text)
        accepted = self.recogniser.follow(self.text, (edit,))
        self.text = self.text.replace(edit.start, edit.end, edit.text)
        return accepted


def counted(buffer: str, suggestion: str, *edits: tuple[int, int, str]) -> list[str]:
    """Of each acceptance how much, whether it is a new one, and the text that is said to stand where it was made."""
    desk, seen = Desk.of(buffer, suggestion), []
    for edit in edits:
        accepted = desk.edit(*edit)
        if accepted is not None:
            how = "whole" if accepted.is_whole else "part" if accepted.is_news else "more"
            seen.append(f"{how} {accepted.n_characters} {desk.text.slice(accepted.start, accepted.end)!r}")
    return seen


@pytest.mark.parametrize(
    ("buffer", "suggestion", "edits", "expected"),
    [
        # All at once, as editors send it.
        ("x = ‸\n", "1 + 2", [(0, 0, "1 + 2")], ["whole 5 '1 + 2'"]),
        ("‸", "import os\nimport re", [(0, 0, "import os\nimport re")], ["whole 19 'import os\\nimport re'"]),
        ("f(⟦‸)⟧\n", "a, b)", [(0, 1, "a, b)")], ["whole 4 'a, b)'"]),
        ("f(⟦‸)⟧\n", "a, b)", [(0, 0, "a, b")], ["whole 4 'a, b)'"]),
        ("f(⟦‸)⟧;\n", "a)", [(0, 1, "a)")], ["whole 1 'a)'"]),
        ("if y:\n⟦        ‸⟧\n", "    return", [(0, 8, "    return")], ["whole 2 '    return'"]),
        ("if y:\n⟦    ‸⟧\n", "    return", [(4, 4, "return")], ["whole 6 '    return'"]),
        ("if y:\n    ‸\n", "return", [(-4, 0, "    return")], ["whole 6 'return'"]),
        ("x = ‸\r\n", "[\r\n1]", [(0, 0, "[\n1]")], ["whole 5 '[\\n1]'"]),
        ("🙂 = ‸\n", '"🙂🙂"', [(0, 0, '"🙂🙂"')], ["whole 4 '\"🙂🙂\"'"]),
        # Told by comparing texts: the same letters stand right of the cursor.
        ("ab‸ab\n", "cdab", [(2, 2, "cdab")], []),
        ("b‸ab\n", "abab", [(2, 2, "abab")], ["whole 4 'abab'"]),
        ("x = ‸ + a\n", "a + b", [(0, 0, "a + b")], ["whole 5 'a + b'"]),
        ("(‸)\n", "f()", [(0, 0, "f()")], ["whole 3 'f()'"]),
        (
            "(‸)\n",
            "f(x) + g(y)",
            [(0, 0, "f(x)"), (4, 4, " + g(y)")],
            ["part 4 'f(x)'", "whole 7 'f(x) + g(y)'"],
        ),
        # Pasted: the user got what was suggested.
        ("x = ‸\n", "foo(1)", [(0, 0, "foo(1)")], ["whole 6 'foo(1)'"]),
        # A word, a line, the rest.
        ("x = ‸\n", "foo + bar", [(0, 0, "foo")], ["part 3 'foo'"]),
        ("x = ‸\n", "foo + bar", [(0, 0, "foo"), (3, 3, " + bar")], ["part 3 'foo'", "whole 6 'foo + bar'"]),
        (
            "x = ‸\n",
            "foo + bar - 1",
            [(0, 0, "foo"), (3, 3, " +"), (5, 5, " bar")],
            ["part 3 'foo'", "more 2 ' +'", "more 4 ' bar'"],
        ),
        ("‸\n", "a = 1\nb = 2\nc = 3", [(0, 0, "a = 1\n")], ["part 6 'a = 1\\n'"]),
        ("f(⟦‸)⟧\n", "first, second)", [(0, 0, "first")], ["part 5 'first'"]),
        # Typing: keys, with the pairs that editors close, and new lines with blanks.
        ("x = ‸\n", "12", [(0, 0, "1"), (1, 1, "2")], []),
        ("x = ‸\n", "1", [(0, 0, "1")], []),
        ("f‸\n", "()", [(0, 0, "()")], []),
        ("f‸\n", "(a, b)", [(0, 0, "()"), (1, 1, "a")], []),
        ("s = ‸\n", '""', [(0, 0, '""')], []),
        ("if x:‸\n", "\n    return 1", [(0, 0, "\n    ")], []),
        ("if x:‸\r\n", "\r\n    return 1", [(0, 0, "\r\n    ")], []),
        ("f() {‸}\n", "\n    return 1;\n}", [(0, 0, "\n    \n")], []),
        ("// a‸\n", "\n// b", [(0, 0, "\n// ")], []),
        ("/* a‸\n", "\n * b", [(0, 0, "\n * ")], []),
        ("# a‸\n", "\n# b", [(0, 0, "\n# ")], []),
        ("‸\n", "    return", [(0, 0, "    ")], []),
        # Typing, and then accepting the rest: only that was saved.
        ("x = ‸\n", "foo + bar", [(0, 0, "f"), (1, 1, "oo + bar")], ["whole 8 'foo + bar'"]),
        ("f‸\n", "(a, b)", [(0, 0, "()"), (1, 2, "a, b)")], ["whole 4 '(a, b)'"]),
        ("f‸\n", "(a, b)", [(0, 0, "()"), (1, 1, "a, b")], ["whole 4 '(a, b)'"]),
        ("if x:‸\n", "\n    return 1", [(0, 0, "\n    "), (5, 5, "return 1")], ["whole 8 '\\n    return 1'"]),
        # Keys that an editor gathers are typing still.
        ("x = ‸\n", "foo + bar", [(0, 0, "fo"), (2, 2, "o +"), (5, 5, " b"), (7, 7, "ar")], []),
        ("x = ‸\n", "foo + bar", [(0, 0, "f"), (1, 1, "oo")], []),
        # Backspace, and accepting then.
        ("x = ‸\n", "foo()", [(0, 0, "f"), (0, 1, ""), (0, 0, "foo()")], ["whole 5 'foo()'"]),
        # The editor's own list writes a word out from its beginning.
        ("x = ap‸\n", "pend(1)", [(-2, 0, "append")], []),
        ("x = ap‸\n", "pend", [(-2, 0, "append")], []),
        ("x = ap‸\n", "pend(1)", [(-2, 0, "append"), (4, 4, "(1)")], []),
        ("x = ap‸\n", "pend(1, 2)", [(-2, 0, "append"), (4, 4, "(1, 2)")], ["whole 6 'pend(1, 2)'"]),
        ("x = ⟦ap‸⟧\n", "append(1)", [(0, 2, "append")], []),
        ("x = ⟦ap‸⟧\n", "append(1)", [(0, 2, "append(1)")], ["whole 7 'append(1)'"]),
        # Something else.
        ("x = ‸\n", "foo", [(0, 0, "bar")], []),
        ("x = ‸\n", "foo", [(0, 0, "foo()")], []),
        ("x = ‸\n", "foo", [(-4, -4, "foo")], []),
        ("x = ‸\n", "foo", [(1, 1, "foo")], []),
        ("x = ‸\n", "foobar", [(0, 0, "fox"), (3, 3, "bar")], []),
        ("x = ‸\n", "foo", [(-4, 0, ""), (-4, -4, "foo")], []),
        # Undone and accepted again: one suggestion, accepted once.
        ("x = ‸\n", "foo()", [(0, 0, "foo()"), (0, 5, ""), (0, 0, "foo()")], ["whole 5 'foo()'"]),
    ],
)
def test_what_an_edit_accepts(
    buffer: str, suggestion: str, edits: list[tuple[int, int, str]], expected: list[str]
) -> None:
    assert counted(buffer, suggestion, *edits) == expected


def test_any_of_several_suggestions_may_be_the_accepted_one() -> None:
    desk = Desk.of("x = ‸\n", "foo(1)", "bar(22)")

    assert desk.edit(0, 0, "bar(22)") == Accepted(True, True, 7, 4, 11)


def test_several_edits_at_once_are_nothing_that_we_know() -> None:
    desk = Desk.of("x = ‸\n", "foo()")

    assert desk.recogniser.follow(desk.text, (Edit(4, 4, "foo"), Edit(7, 7, "()"))) is None
    assert desk.recogniser.told(5) == Accepted(True, True, 5), "but the editor's command is believed"


def test_the_editors_command_and_the_edit_are_one_acceptance() -> None:
    desk = Desk.of("x = ‸\n", "foo()")

    assert desk.edit(0, 0, "foo()") is not None
    assert desk.recogniser.told(5) is None


def test_the_editors_command_tells_of_what_no_edit_can() -> None:
    desk = Desk.of("f‸\n", "()")

    assert desk.edit(0, 0, "()") is None
    assert desk.recogniser.told(2) == Accepted(True, True, 2)
    assert desk.recogniser.told(2) is None


def test_the_command_may_come_before_the_edit() -> None:
    desk = Desk.of("x = ‸\n", "foo()")

    assert desk.recogniser.told(5) is not None
    assert desk.edit(0, 0, "foo()") is None


def test_a_command_of_another_suggestion_is_no_acceptance_of_this_one() -> None:
    assert Desk.of("x = ‸\n", "foo()").recogniser.told(9) is None
    assert Recogniser().told(9) is None


@pytest.mark.parametrize("text", ["a", "()", '""""""', "\n", "\r\n\t", "\n    \n", "\n    * ", "\n/// ", ""])
def test_one_key_may_write(text: str) -> None:
    assert is_one_key(text)


@pytest.mark.parametrize("text", ["ab", "(a)", "\n    x", "()()", " = ", "\n}"])
def test_no_single_key_writes(text: str) -> None:
    assert not is_one_key(text)


PIECES = st.lists(st.sampled_from(["a", "b", "ab", "(", ")", "()", " ", "\n", "\r\n", "🙂"]), max_size=8).map(
    "".join
)


def difference(before: str, after: str) -> tuple[int, int, str]:
    """The edit that an editor sends which compares the two texts from the front and then from the back."""
    start = next((n for n, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), None)
    start = min(len(before), len(after)) if start is None else start
    n_same = 0
    while n_same < min(len(before), len(after)) - start and before[-1 - n_same] == after[-1 - n_same]:
        n_same += 1
    return start, len(before) - n_same, after[start : len(after) - n_same]


@given(before=PIECES, after=PIECES, suggestion=PIECES, n_typed=st.integers(0, 8))
def test_whoever_types_keys_has_accepted_nothing(
    before: str, after: str, suggestion: str, n_typed: int
) -> None:
    assume(suggestion.strip())
    desk = Desk.of(f"{before}‸{after}", suggestion)

    for number, key in enumerate(suggestion[:n_typed]):
        assert desk.edit(number, number, key) is None


@given(before=PIECES, after=PIECES, suggestion=PIECES, n_typed=st.integers(0, 8), is_compared=st.booleans())
def test_whoever_takes_the_rest_has_accepted_what_was_not_typed(
    before: str, after: str, suggestion: str, n_typed: int, is_compared: bool
) -> None:
    n_typed = min(n_typed, len(suggestion))
    rest = suggestion[n_typed:]
    assume(not is_one_key(rest) and len(rest) >= 4)
    desk = Desk.of(f"{before}‸{after}", suggestion)
    for number, key in enumerate(suggestion[:n_typed]):
        desk.edit(number, number, key)
    edit = (len(before) + n_typed, len(before) + n_typed, rest)
    if is_compared:
        edit = difference(str(desk.text), before + suggestion + after)
        assume(not is_one_key(edit[2]))

    accepted = desk.edit(edit[0] - len(before), edit[1] - len(before), edit[2])

    assert accepted == Accepted(True, True, len(rest), len(before), len(before) + len(suggestion))
