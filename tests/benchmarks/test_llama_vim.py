"""What llama.vim sends after a key, when it sends nothing, and what is measured of the answer."""

import pytest
from treefill.benchmarks.llama_server import LlamaServer
from treefill.benchmarks.llama_vim import Around, LlamaVim, around, has_whole_line
from treefill.evaluation.typist import Edit, Typist
from treefill.text import Document

from tests.benchmarks.fake_server import fake_server, streamed

EDIT = Edit(0, 0, "", is_new_line=False, is_bracket=False)


def test_the_line_so_far_is_the_prompt_and_lines_around_it_are_prefix_and_suffix() -> None:
    assert around("a\nb\n  c(d)\ne\n", 9) == Around("a\nb\n", "  c(d", ")\ne\n\n", ")")


def test_of_a_blank_line_neither_part_is_sent() -> None:
    assert around("a\n    \nb", 6) == Around("a\n", "", "\nb\n", "")


def test_so_many_lines_are_sent_and_no_more() -> None:
    text = "\n".join(str(number) for number in range(1000))
    cut = around(text, text.index("\n500\n") + 4)

    assert (cut.prefix[:4], cut.prefix[-4:]) == ("244\n", "499\n")
    assert cut.middle == "500"
    assert (cut.suffix[:5], cut.suffix[-4:]) == ("\n501\n", "564\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", False), ("x = 1", False), ("\n", False), ("\nx", False), ("x\n", True), ("\n  x\n", True)],
)
def test_a_line_is_whole_when_something_in_it_has_come_to_an_end(text: str, expected: bool) -> None:
    assert has_whole_line(text) is expected


def test_the_first_line_and_as_many_tokens_as_ours_are_timed_and_no_more_is_read() -> None:
    with fake_server({"/infill": streamed("a", " = 1", "\n", "b", " = 2", "\n")}) as fake:
        answer = LlamaVim(LlamaServer(fake.url)).ask(EDIT, Typist("x\n", 0, ""), 4)

    assert (answer.source, answer.n_tokens, answer.n_evaluated) == ("decoded", 3, 12)
    assert answer.ttft_ms is not None
    assert answer.same_tokens_ms is not None
    assert answer.ttft_ms <= answer.line_ms <= answer.same_tokens_ms
    assert fake.bodies[0]["input_extra"] == []
    assert fake.bodies[0]["cache_prompt"] is True


def test_where_it_wrote_fewer_tokens_than_ours_there_is_nothing_to_compare() -> None:
    with fake_server({"/infill": streamed("a", "b")}) as fake:
        answer = LlamaVim(LlamaServer(fake.url)).ask(EDIT, Typist("x\n", 0, ""), 5)

    assert (answer.same_tokens_ms, answer.n_tokens) == (None, 2)


def test_typing_along_with_an_answer_asks_nothing() -> None:
    """It says `ab = 1`; `a` is typed, then `ab`, then something else."""
    with fake_server({}) as fake:
        vim = LlamaVim(LlamaServer(fake.url))
        vim.open(Document("a.py", ""), Typist("top\n\nend\n", 4, ""))
        sources = [
            vim.ask(EDIT, Typist(f"top\n{typed}\nend\n", 4 + len(typed), ""), 0).source
            for typed in ("a", "ab", "ax")
        ]

    assert sources == ["typed through", "typed through", "decoded"]
    assert sum("prompt" in body for body in fake.bodies) == 2


def test_with_much_text_right_of_the_cursor_nobody_is_asked() -> None:
    with fake_server({}) as fake:
        answer = LlamaVim(LlamaServer(fake.url)).ask(EDIT, Typist("x = long_enough\n", 2, ""), 0)

    assert (answer.source, answer.ttft_ms, fake.bodies) == ("held back", None, [])
