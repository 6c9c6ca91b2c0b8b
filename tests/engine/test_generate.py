"""The decode loop: what is written, what is never written, and when it ends."""

import time
from collections.abc import Callable

import pytest
from treefill.engine.api import CancelFlag, Finish, GenerateRequest, Generation, Sampling
from treefill.engine.generate import Generator
from treefill.engine.session import Session
from treefill.errors import EngineError

from tests.helpers.scripted_backend import ScriptedBackend
from tests.helpers.scripted_engine import ByteVocabulary

VOCABULARY = ByteVocabulary()
END = VOCABULARY.control_id("<|endoftext|>")
MIDDLE = VOCABULARY.control_id("<|fim_middle|>")
PROMPT = tuple(b"prompt:")
GREEDY = Sampling()


def writes(text: bytes | str) -> Callable[[tuple[int, ...]], int]:
    """The model wants to write `text` after the prompt and then to end."""
    data = text.encode() if isinstance(text, str) else text

    def script(ids: tuple[int, ...]) -> int:
        n_written = len(ids) - len(PROMPT)
        assert END is not None
        return data[n_written] if n_written < len(data) else END

    return script


def generate(
    script: Callable[[tuple[int, ...]], int],
    forced: bytes = b"",
    max_new_tokens: int = 64,
    should_stop: Callable[[str], bool] = lambda text: False,
    sampling: Sampling = GREEDY,
    cancel: CancelFlag | None = None,
    n_context: int = 512,
) -> Generation:
    backend = ScriptedBackend(script, width=VOCABULARY.n_tokens + 10, n_context=n_context)
    control = frozenset(range(256, VOCABULARY.n_tokens))
    generator = Generator(Session(backend), VOCABULARY, n_context, control)
    request = GenerateRequest(PROMPT, forced, max_new_tokens, sampling, should_stop)
    return generator.generate(request, cancel or CancelFlag())


def test_writes_until_the_end_token() -> None:
    generation = generate(writes("hello"))

    assert (generation.text, generation.finish) == ("hello", Finish.END)
    assert (generation.n_prompt_tokens, generation.n_reused_tokens, generation.n_new_tokens) == (7, 0, 5)


def test_stops_when_the_caller_has_enough() -> None:
    generation = generate(writes("one\ntwo\n"), should_stop=lambda text: "\n" in text)

    assert (generation.text, generation.finish) == ("one\n", Finish.STOPPED)


def test_stops_at_the_token_limit_and_at_the_end_of_the_context() -> None:
    assert generate(writes("abcdef"), max_new_tokens=3).text == "abc"
    assert generate(writes("abcdef"), n_context=len(PROMPT) + 2).text == "ab"
    assert generate(writes("abcdef"), max_new_tokens=3).finish is Finish.LENGTH


def test_forced_bytes_are_spelled_and_left_out_of_the_text() -> None:
    generation = generate(writes(" print(x)"), forced=b" pri")

    assert (generation.text, generation.n_new_tokens) == ("nt(x)", 5)
    assert bytes(generation.token_ids) == b" print(x)"


def test_a_model_that_wants_something_else_must_spell_the_forced_bytes_all_the_same() -> None:
    generation = generate(writes("xxxx!"), forced=b"ret")

    assert bytes(generation.token_ids).startswith(b"ret")
    assert generation.text == "x!"


def test_forced_bytes_that_no_token_spells_end_at_once() -> None:
    class NoTabs(ByteVocabulary):
        def token_bytes(self, token_id: int) -> bytes:
            return b"" if token_id == 9 else super().token_bytes(token_id)

    generator = Generator(Session(ScriptedBackend(writes("x"))), NoTabs(), 512, frozenset())

    assert generator.generate(GenerateRequest(PROMPT, b"\tx"), CancelFlag()).finish is Finish.UNHEALABLE


def test_control_tokens_and_unused_ids_are_never_written() -> None:
    def wants(token: int) -> Callable[[tuple[int, ...]], int]:
        return lambda ids: token if len(ids) < len(PROMPT) + 3 else int(END or 0)

    assert MIDDLE is not None
    for barred in (MIDDLE, VOCABULARY.n_tokens, VOCABULARY.n_tokens + 9):
        for sampling in (Sampling(), Sampling(temperature=1.0, seed=3)):
            generation = generate(wants(barred), sampling=sampling, max_new_tokens=3)

            assert all(token < 256 for token in generation.token_ids)


def test_a_character_of_several_tokens_appears_whole_or_not_at_all() -> None:
    seen: list[str] = []
    generation = generate(writes("a🙂b"), should_stop=lambda text: bool(seen.append(text)))

    assert generation.text == "a🙂b"
    assert set(seen) == {"a", "a🙂", "a🙂b"}
    assert generate(writes("a🙂"), max_new_tokens=3).text == "a"


def test_a_cancelled_request_writes_nothing_more() -> None:
    flag = CancelFlag()
    generation = generate(
        writes("abcdef"), cancel=flag, should_stop=lambda text: text == "abc" and bool(flag.cancel())
    )

    assert (generation.text, generation.finish) == ("abc", Finish.CANCELLED)


def test_the_same_seed_draws_the_same_tokens() -> None:
    def draw(seed: int) -> tuple[int, ...]:
        sampling = Sampling(temperature=2.0, top_k=50, seed=seed)
        return generate(writes("abcdefgh"), sampling=sampling, max_new_tokens=8).token_ids

    assert draw(1) == draw(1)
    assert len({draw(seed) for seed in range(5)}) > 1


def test_a_prompt_that_the_context_cannot_hold_is_an_error() -> None:
    with pytest.raises(EngineError, match="The prompt has 7 tokens; this model takes 1 to 5"):
        generate(writes(""), n_context=6)


def cut_after(n_tokens: int) -> tuple[Generator, GenerateRequest, Generation]:
    """A generation that was cancelled after so many tokens, and the generator that may go on with it."""
    backend = ScriptedBackend(writes("hello world"), width=VOCABULARY.n_tokens + 10)
    generator = Generator(
        Session(backend),
        VOCABULARY,
        512,
        frozenset(range(256, VOCABULARY.n_tokens)),
    )
    cancel = CancelFlag()

    def cancel_late(text: str) -> bool:
        if len(text) == n_tokens:
            cancel.cancel()
        return False

    request = GenerateRequest(PROMPT, should_stop=cancel_late)
    return generator, request, generator.generate(request, cancel)


@pytest.mark.parametrize("n_tokens", [1, 4, 11])
def test_a_cut_generation_goes_on_as_if_it_had_not_been_cut(n_tokens: int) -> None:
    generator, _, cut = cut_after(n_tokens)
    assert cut.finish is Finish.CANCELLED

    whole = generator.generate(GenerateRequest(PROMPT, begun=cut.token_ids), CancelFlag())

    assert (whole.text, whole.finish, whole.n_new_tokens) == ("hello world", Finish.END, 11)
    assert whole.n_evaluated == 1
    assert whole.n_reused_tokens == len(PROMPT)


def test_what_is_typed_of_a_cut_generation_is_left_out_of_its_text() -> None:
    generator, _, cut = cut_after(4)

    rest = generator.generate(GenerateRequest(PROMPT, forced=b"hello w", begun=cut.token_ids), CancelFlag())

    assert (rest.text, rest.n_new_tokens) == ("orld", 4)


def test_a_generation_that_was_whole_is_told_again_without_the_model() -> None:
    backend = ScriptedBackend(writes("hello"), width=VOCABULARY.n_tokens + 10)
    generator = Generator(
        Session(backend),
        VOCABULARY,
        512,
        frozenset(range(256, VOCABULARY.n_tokens)),
    )
    whole = generator.generate(GenerateRequest(PROMPT), CancelFlag())
    backend.evaluated.clear()

    request = GenerateRequest(PROMPT, forced=b"he", begun=whole.token_ids, is_begun_whole=True)
    again = generator.generate(request, CancelFlag())

    assert (again.text, again.finish, again.n_evaluated) == ("llo", Finish.END, 0)
    assert backend.evaluated == []


def test_a_model_that_is_too_slow_is_stopped_with_what_it_has_written() -> None:
    def slowly(text: str) -> bool:
        time.sleep(0.02)
        return False

    backend = ScriptedBackend(writes("x" * 60), width=VOCABULARY.n_tokens + 10)
    generator = Generator(
        Session(backend),
        VOCABULARY,
        512,
        frozenset(range(256, VOCABULARY.n_tokens)),
    )

    generation = generator.generate(
        GenerateRequest(PROMPT, should_stop=slowly, time_limit_s=0.1), CancelFlag()
    )

    assert generation.finish is Finish.LENGTH
    assert 1 <= len(generation.text) <= 6


def test_what_was_begun_ends_where_something_else_was_typed() -> None:
    """Cut in the middle of a character, an answer has tokens and no text yet; then another character is typed."""
    backend = ScriptedBackend(writes("é!"), width=VOCABULARY.n_tokens + 10)
    generator = Generator(Session(backend), VOCABULARY, 512, frozenset(range(256, VOCABULARY.n_tokens)))
    cut = generator.generate(GenerateRequest(PROMPT, max_new_tokens=1), CancelFlag())
    assert (cut.text, len(cut.token_ids)) == ("", 1)

    request = GenerateRequest(PROMPT, forced=b"x", begun=cut.token_ids, max_new_tokens=2, is_begun_whole=True)
    rest = generator.generate(request, CancelFlag())

    assert rest.token_ids[0] == ord("x")
