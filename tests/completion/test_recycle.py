"""Typing along a suggestion, while it is written and afterwards; and typing against it."""

from dataclasses import dataclass, field

import pytest
from treefill.completion import CompletionRequest, Declined, Memory, Suggestion, complete_next
from treefill.completion.plan import Plan, plan_completion
from treefill.completion.recycle import go_on
from treefill.engine.api import CancelFlag, Finish, GenerateRequest, Generation
from treefill.text import Document

from tests.helpers.contract import assert_sound
from tests.helpers.scripted_engine import ByteVocabulary, ScriptedEngine


class CancelsAfter(ScriptedEngine):
    """Cancels the first request after some characters, as the next key would."""

    def __init__(self, n_characters: int, *scripts: str) -> None:
        super().__init__(*scripts)
        self._n_left = n_characters

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        wanted = request.should_stop
        if not self.requests:

            def should_stop(text: str) -> bool:
                if len(text) >= self._n_left:
                    cancel.cancel()
                return wanted(text)

            request = GenerateRequest(
                request.prompt_ids,
                request.forced,
                request.max_new_tokens,
                request.sampling,
                should_stop,
                request.reuse,
                request.begun,
                request.is_begun_whole,
            )
        return super().generate(request, cancel)


@dataclass
class Typist:
    """One document, asked again and again."""

    engine: ScriptedEngine
    memory: Memory = field(default_factory=Memory)

    def ask(self, buffer: str) -> str:
        """The buffer after accepting what is suggested at the mark, or the reason for nothing."""
        offset = buffer.index("‸")
        document = Document("a.py", buffer.replace("‸", ""), "python")
        request = CompletionRequest(document, offset)
        answers, self.memory = complete_next(request, self.engine, CancelFlag(), self.memory)
        if isinstance(answers[0], Declined):
            return str(answers[0].reason)
        assert_sound(document, offset, answers[0])
        self.source = answers[0].source
        return answers[0].applied_to(document)

    @property
    def n_decoded(self) -> int:
        """Requests that the model wrote something new for."""
        return sum(not request.begun for request in self.engine.requests)


def test_what_is_typed_along_a_suggestion_is_not_decoded_again() -> None:
    typist = Typist(ScriptedEngine("unt(1)\n", "nothing else"))

    assert typist.ask("xs.co‸\n") == "xs.count(1)\n"
    assert typist.ask("xs.cou‸\n") == "xs.count(1)\n"
    assert typist.source == "recycled"
    assert typist.ask("xs.coun‸\n") == "xs.count(1)\n"
    assert typist.n_decoded == 1


def test_brackets_that_the_editor_closes_on_the_way_change_nothing() -> None:
    typist = Typist(ScriptedEngine("unt(f[1])\n", "nothing else"))

    assert typist.ask("xs.co‸\n") == "xs.count(f[1])\n"
    assert typist.ask("xs.count(‸)\n") == "xs.count(f[1])\n"
    assert typist.ask("xs.count(f[‸])\n") == "xs.count(f[1])\n"
    assert typist.n_decoded == 1


def test_g12_only_the_model_may_be_skipped_when_the_text_after_the_cursor_changes() -> None:
    typist = Typist(ScriptedEngine("a, b)"))

    assert typist.ask("foo(‸") == "foo(a, b)"
    assert typist.ask("foo(‸)") == "foo(a, b)"
    assert typist.n_decoded == 1
    typist.ask("foo(‸\na, b)\n")
    assert typist.n_decoded == 2


def test_typing_against_a_suggestion_asks_the_model() -> None:
    typist = Typist(ScriptedEngine("unt(1)\n", "(2)\n"))
    typist.ask("xs.co‸\n")

    assert typist.ask("xs.cop‸\n") == "xs.cop(2)\n"
    assert typist.n_decoded == 2


def test_taking_a_character_back_brings_the_earlier_suggestion() -> None:
    typist = Typist(ScriptedEngine("unt(1)\n", "(2)\n"))
    typist.ask("xs.co‸\n")
    typist.ask("xs.cop‸\n")

    assert typist.ask("xs.co‸\n") == "xs.count(1)\n"
    assert typist.n_decoded == 2


@pytest.mark.parametrize("n_written", range(1, 6))
@pytest.mark.parametrize("typed", ["", "u", "un", "unt", "unt(", "unt(1"])
def test_g10_a_suggestion_that_was_cut_goes_on_where_it_stopped(n_written: int, typed: str) -> None:
    typist = Typist(CancelsAfter(n_written, "unt(12)\n", "WRONG\n"))

    assert typist.ask("xs.co‸\n") == "cancelled"
    closer = ")" if "(" in typed else ""
    assert typist.ask(f"xs.co{typed}‸{closer}\n") == "xs.count(12)\n"
    assert typist.n_decoded == 1


def test_a_cut_suggestion_that_is_typed_against_is_forgotten() -> None:
    typist = Typist(CancelsAfter(2, "unt(12)\n", "(3)\n"))
    typist.ask("xs.co‸\n")

    assert typist.ask("xs.copy‸\n") == "xs.copy(3)\n"
    assert typist.n_decoded == 2


def test_a_suggestion_that_is_typed_to_its_end_makes_room_for_the_next() -> None:
    typist = Typist(ScriptedEngine("unt(1)\n", " + 2\n"))
    typist.ask("xs.co‸\n")

    assert typist.ask("xs.count(1)‸\n") == "xs.count(1) + 2\n"


def test_a_block_stays_a_block_while_its_first_line_is_typed() -> None:
    typist = Typist(ScriptedEngine("if n < 2:\n        return n\n    return f(n - 1)\n\n\n"))
    whole = "def f(n):\n    if n < 2:\n        return n\n    return f(n - 1)\n"

    assert typist.ask("def f(n):\n    ‸\n") == whole
    assert typist.ask("def f(n):\n    if n‸\n") == whole
    assert typist.ask("def f(n):\n    if n < 2‸\n") == whole
    assert typist.n_decoded == 1


def test_other_options_are_another_request() -> None:
    typist = Typist(ScriptedEngine("unt(1)\n", "py()\n"))
    typist.ask("xs.co‸\n")
    document = Document("a.py", "xs.co\n", "python")
    request = CompletionRequest(document, 5, max_lines=3)

    answers, _ = complete_next(request, typist.engine, CancelFlag(), typist.memory)

    assert isinstance(answers[0], Suggestion)
    assert answers[0].text == "py()"


def test_line_endings_of_the_document_are_typed_along() -> None:
    typist = Typist(ScriptedEngine("if n < 2:\n        return n\n    return f(n - 1)\n\n\n"))
    typist.ask("def f(n):\r\n    ‸\r\n")

    assert typist.ask("def f(n):\r\n    if n < 2:\r\n        r‸\r\n").startswith(
        "def f(n):\r\n    if n < 2:\r\n        return"
    )
    assert typist.n_decoded == 1


def test_half_an_emoji_is_asked_about_anew() -> None:
    """Editors send an emoji as two halves; the first may come when only a part of a character is written."""
    half_written = Generation("", (240,), Finish.CANCELLED, 1, 0, 1, 1, 0.0, 0.0)
    before, after = (
        plan_completion(
            CompletionRequest(Document("a.py", text, "python"), len(text)), ByteVocabulary(), 4096
        )
        for text in ('x = "', 'x = "\ud83d')
    )
    assert isinstance(before, Plan)
    assert isinstance(after, Plan)

    assert go_on(after, Memory().with_answer(before, half_written)) is None


def test_what_is_remembered_holds_no_other_documents() -> None:
    document = Document("/w/a.py", "total = count(", "python")
    other = Document("/w/b.py", "def count(total): ...\n" * 5, "python")
    request = CompletionRequest(document, len(document.text), neighbours=(other,))
    engine = ScriptedEngine("1)")

    (answer,), memory = complete_next(request, engine, CancelFlag(), Memory())

    assert any(part.name.startswith("neighbour") for part in answer.explanation.parts)
    (decoded,) = memory.decoded
    assert (decoded.plan.request.neighbours, decoded.plan.neighbours) == ((), ())
    assert memory.n_chars == len(document.text)
