"""The whole journey, told as typing stories."""

import dataclasses

import pytest
from treefill.completion import (
    Anchor,
    CompletionRequest,
    Declined,
    Mode,
    Reason,
    Suggestion,
    complete,
    complete_many,
)
from treefill.engine.api import CancelFlag, Finish, Sampling
from treefill.errors import BadInput
from treefill.text import Document

from tests.helpers.scripted_engine import ScriptedEngine


def request_at(marked: str, language: str = "python", **options: object) -> CompletionRequest:
    offset = marked.index("‸")
    document = Document("a.py", marked.replace("‸", ""), language)
    return CompletionRequest(document, offset, **options)  # type: ignore[arg-type]


def suggested(answer: Suggestion | Declined) -> str:
    assert isinstance(answer, Suggestion), answer
    return answer.text


def test_ten_more_characters_reuse_all_but_those_and_the_healed_token() -> None:
    typed = "def load(path):\n    retu"
    engine = ScriptedEngine(lambda middle: "x")
    anchor: Anchor | None = None
    for n_typed in (len(typed) - 10, len(typed)):
        request = request_at(f"import os\n\n\n{typed[:n_typed]}‸\n\n\ndef last():\n    pass\n")
        answer = complete(request, engine, CancelFlag(), anchor)
        anchor = answer.anchor

    assert answer.generation is not None
    n_new = answer.generation.n_prompt_tokens - answer.generation.n_reused_tokens
    assert n_new <= 10


def test_the_letter_typed_meanwhile_does_not_come_twice() -> None:
    engine = ScriptedEngine(lambda middle: {"co": "unt(1)", "cou": "nt(1)"}[middle.split(".")[-1]])

    first = complete(request_at("xs.co‸"), engine, CancelFlag())
    second = complete(request_at("xs.cou‸"), engine, CancelFlag())

    assert suggested(first) == "unt(1)"
    assert suggested(second) == "nt(1)"


def test_the_clean_up_sees_the_text_after_the_cursor_as_it_is_now() -> None:
    engine = ScriptedEngine("a, b)")

    before = complete(request_at("foo(‸"), engine, CancelFlag())
    closed = complete(request_at("foo(‸)"), engine, CancelFlag(), before.anchor)
    below = complete(request_at("foo(‸\na, b)"), engine, CancelFlag(), closed.anchor)

    assert isinstance(before, Suggestion)
    assert isinstance(closed, Suggestion)
    assert before.applied_to(Document("a.py", "foo(")) == "foo(a, b)"
    assert closed.applied_to(Document("a.py", "foo()")) == "foo(a, b)"
    assert closed.anchor == before.anchor
    assert below.anchor != before.anchor


def test_a_cancelled_request_is_declined() -> None:
    cancel = CancelFlag()
    cancel.cancel()

    answer = complete(request_at("x = ‸"), ScriptedEngine("1"), cancel)

    assert isinstance(answer, Declined)
    assert answer.reason is Reason.CANCELLED
    assert answer.generation is not None
    assert answer.generation.finish is Finish.CANCELLED


def test_a_vocabulary_that_cannot_spell_the_healed_word_gets_it_in_the_prompt() -> None:
    engine = ScriptedEngine("t(1)", is_healing=False)

    answer = complete(request_at("xs.coun‸"), engine, CancelFlag())

    assert suggested(answer) == "t(1)"
    first, second = engine.requests
    assert first.forced == b".coun"
    assert second.forced == b""
    assert engine.middle_of(second) == "xs.coun"


def test_decoding_stops_where_the_line_is_whole() -> None:
    engine = ScriptedEngine("1\n" + "y = 2\n" * 1000)

    answer = complete(request_at("def f(x):\n    x = ‸\n", max_new_tokens=500), engine, CancelFlag())

    assert suggested(answer) == "1"
    assert answer.generation is not None
    assert answer.generation.n_new_tokens == 2
    assert answer.generation.finish is Finish.STOPPED


def test_decoding_stops_soon_in_a_loop() -> None:
    engine = ScriptedEngine("x = x + 1\n    " * 1000)

    answer = complete(request_at("def f(x):\n    ‸\n", max_new_tokens=5000), engine, CancelFlag())

    assert suggested(answer) == "x = x + 1"
    assert answer.generation is not None
    assert answer.generation.n_new_tokens < 60


def test_four_hundred_lines_become_no_more_than_the_limit() -> None:
    lines = "\n    ".join(f"x{number} = {number}" for number in range(400))

    answer = complete(
        request_at("def f():\n    ‸\n", max_new_tokens=5000), ScriptedEngine(lines), CancelFlag()
    )

    assert suggested(answer).count("\n") == 11
    assert suggested(answer).endswith("x11 = 11")


def test_the_same_file_with_either_line_ending_gives_the_same_prompt_and_text() -> None:
    marked = "int f() {\n    ‸\n}\n"
    engine = ScriptedEngine("int a = 1;\nreturn a;")

    with_lf = complete(request_at(marked, "cpp"), engine, CancelFlag())
    with_cr = complete(request_at(marked.replace("\n", "\r\n"), "cpp"), engine, CancelFlag())

    assert engine.requests[0].prompt_ids == engine.requests[1].prompt_ids
    assert suggested(with_cr).replace("\r\n", "\n") == suggested(with_lf)


def test_a_cursor_inside_a_line_ending_means_the_lines_end() -> None:
    document = Document("a.py", "x = \r\ny = 2\r\n", "python")

    answer = complete(CompletionRequest(document, 5), ScriptedEngine("1"), CancelFlag())

    assert isinstance(answer, Suggestion)
    assert answer.applied_to(document) == "x = 1\r\ny = 2\r\n"


def test_a_cursor_outside_the_text_is_the_callers_mistake() -> None:
    with pytest.raises(BadInput, match=r"offset 9 is outside a.py"):
        CompletionRequest(Document("a.py", "x"), 9)


def test_half_an_emoji_raises_nothing() -> None:
    for marked in ('s = "\ud83d‸"', 's = "‸\ud83d"', "\ud83d‸", "‸\ude42"):
        complete(request_at(marked), ScriptedEngine("x"), CancelFlag())


def test_an_answer_explains_itself() -> None:
    answer = complete(request_at("print(‸)\n"), ScriptedEngine("END)<|endoftext|>\nfoo"), CancelFlag())

    explanation = answer.explanation
    assert explanation.mode is Mode.LINE
    assert explanation.layout == "qwen2.5-coder"
    assert [part.name for part in explanation.parts] == [
        "<|fim_prefix|>",
        "prefix",
        "<|fim_suffix|>",
        "suffix",
        "<|fim_middle|>",
        "middle",
    ]
    assert answer.generation is not None
    assert sum(part.n_tokens for part in explanation.parts) == answer.generation.n_prompt_tokens
    assert explanation.raw_text.startswith("END)<|endoftext|>")
    assert [step.name for step in explanation.steps] == ["cut_control_tokens", "fit_to_suffix"]
    assert [stage for stage, _ in explanation.timings_ms] == [
        "look around",
        "neighbours",
        "prompt",
        "grammar",
        "decode",
        "postprocess",
        "syntax",
    ]


def test_several_candidates_are_different_and_the_greedy_one_comes_first() -> None:
    engine = ScriptedEngine("1", "2", "1", "")
    request = request_at("x = ‸", n_candidates=4)

    answers = complete_many(request, engine, CancelFlag())

    assert [suggested(answer) for answer in answers] == ["1", "2"]
    assert engine.requests[0].sampling == Sampling()
    assert all(asked.sampling.temperature > 0 for asked in engine.requests[1:])
    assert len({asked.sampling.seed for asked in engine.requests[1:]}) == 3


def test_candidates_that_are_all_nothing_are_one_refusal() -> None:
    (answer,) = complete_many(request_at("x = ‸", n_candidates=3), ScriptedEngine(""), CancelFlag())

    assert isinstance(answer, Declined)
    assert answer.reason is Reason.EMPTY


def test_the_requests_settings_reach_the_engine() -> None:
    engine = ScriptedEngine("1")
    sampling = Sampling(temperature=0.5, top_k=9, top_p=0.8, seed=3)

    complete(request_at("x = ‸", max_new_tokens=7, sampling=sampling, reuse=False), engine, CancelFlag())

    (asked,) = engine.requests
    assert (asked.max_new_tokens, asked.sampling, asked.reuse) == (7, sampling, False)


def test_a_small_context_is_not_overrun() -> None:
    engine = ScriptedEngine("1", n_context=2048)
    text = "value = compute(1, 2, 3)\n" * 4000

    answer = complete(request_at(text + "x = ‸\n" + text), engine, CancelFlag())

    assert suggested(answer) == "1"
    assert len(engine.requests[0].prompt_ids) > 500


def test_a_context_too_small_for_anything_is_a_reason_and_no_error() -> None:
    engine = ScriptedEngine("1", n_context=64)

    answer = complete(request_at("x = ‸", max_new_tokens=64), engine, CancelFlag())

    assert isinstance(answer, Declined)
    assert answer.reason is Reason.TOO_LONG


@pytest.mark.timeout(30)  # a hang guard: what is quadratic in a megabyte takes minutes
@pytest.mark.parametrize("policy", ["plain", "plain-healed", "line", "lines-3"])
@pytest.mark.parametrize("text", ["x = [" + "1, " * 400_000, "{" * 100_000, "\n" * 500_000, "ab\r" * 200_000])
def test_an_odd_large_file_is_completed(text: str, policy: str) -> None:
    offset = len(text) // 2
    request = CompletionRequest(Document("a.py", text, "python"), offset, anchor_policy=policy)

    answer = complete(request, ScriptedEngine("7"), CancelFlag())

    assert isinstance(answer, Suggestion)
    assert len(answer.explanation.parts) == 6


@pytest.mark.parametrize(
    ("marked", "language", "mode"),
    [
        ("def f():\n    ‸\n", "python", Mode.BLOCK),
        ("def f():‸\n", "python", Mode.BLOCK),
        ("def f():  # why‸\n", "python", Mode.LINE),
        ("x = ‸\n", "python", Mode.LINE),
        ("x = foo(‸)\n", "python", Mode.LINE),
        ("    ‸)\n", "python", Mode.BLOCK),
        ("    ‸foo()\n", "python", Mode.LINE),
        ("x = {‸}\n", "python", Mode.LINE),
        ("x = y[1:‸]\n", "python", Mode.LINE),
        ('"""Doc.\n\n‸\n"""\n', "python", Mode.LINE),
        ("int f() {‸}\n", "cpp", Mode.BLOCK),
        ("if (a) ‸\n", "cpp", Mode.LINE),
        ("SELECT a FROM t WHERE ‸\n", "sql", Mode.LINE),
        ("SELECT a\n‸\n", "sql", Mode.BLOCK),
        ("‸", "python", Mode.BLOCK),
    ],
)
def test_a_block_only_where_one_can_open(marked: str, language: str, mode: Mode) -> None:
    answer = complete(request_at(marked, language), ScriptedEngine("pass"), CancelFlag())

    assert answer.explanation.mode is mode


def test_a_block_is_not_forced_into_the_middle_of_a_line() -> None:
    request = dataclasses.replace(request_at("x = foo(‸) + bar\n"), mode=Mode.BLOCK)

    answer = complete(request, ScriptedEngine("a)\ny = 2"), CancelFlag())

    assert answer.explanation.mode is Mode.LINE
