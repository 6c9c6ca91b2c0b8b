"""The decode loop under a guard: the model's own choice among what may come next, and nothing else changed by it."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.engine.api import CancelFlag, Finish, GenerateRequest, Generation, Sampling
from treefill.engine.backend import Logits
from treefill.engine.generate import Generator
from treefill.engine.sampler import candidates
from treefill.engine.session import Session

from tests.helpers.scripted_backend import ScriptedBackend
from tests.helpers.scripted_engine import ByteVocabulary

PROMPT_BYTES = b"prompt:"
PROMPT = tuple(PROMPT_BYTES)
BYTES = ByteVocabulary()
END = int(BYTES.control_id("<|endoftext|>") or 0)
NEVER = frozenset(range(256, BYTES.n_tokens))


class Pieces(ByteVocabulary):
    """Bytes, and after the control tokens some longer tokens."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__()
        self.pieces = pieces
        self.n_tokens += len(pieces)

    def token_bytes(self, token_id: int) -> bytes:
        number = token_id - (self.n_tokens - len(self.pieces))
        return self.pieces[number] if number >= 0 else super().token_bytes(token_id)

    def id_of(self, piece: bytes) -> int:
        """The longer token, or the byte."""
        return (
            self.n_tokens - len(self.pieces) + self.pieces.index(piece) if piece in self.pieces else piece[0]
        )


class Rule:
    """A guard that allows the texts of which `is_fine` says so, and keeps what it was asked."""

    def __init__(
        self, is_fine: Callable[[bytes], bool], may_stop: Callable[[bytes], bool] = lambda _: True
    ) -> None:
        self.is_fine, self.may_stop = is_fine, may_stop
        self.pieces: list[bytes] = []
        self.asked: list[bytes] = []

    @property
    def text(self) -> bytes:
        return b"".join(self.pieces)

    def allows(self, more: bytes) -> bool:
        self.asked.append(more)
        return self.is_fine(self.text + more)

    def accept(self, more: bytes) -> bool:
        if self.is_fine(self.text + more):
            self.pieces.append(more)
            return True
        return False

    def rollback(self, n: int) -> None:
        assert 0 < n <= len(self.pieces)
        del self.pieces[-n:]

    def can_stop(self) -> bool:
        return self.may_stop(self.text)

    def forced(self) -> bytes:
        return b""


def beginnings(*texts: bytes) -> Callable[[bytes], bool]:
    """Allows what one of the texts begins with."""
    return lambda written: any(text.startswith(written) for text in texts)


def ranked(*texts: bytes) -> Callable[[tuple[int, ...]], list[int]]:
    """The model wants to write the first of the texts that goes on from what it has written, else the next."""

    def script(ids: tuple[int, ...]) -> list[int]:
        written = bytes(ids[len(PROMPT) :])
        return [
            text[len(written)] if len(text) > len(written) else END
            for text in texts
            if text.startswith(written)
        ] or [END]

    return script


def generate(
    script: Callable[[tuple[int, ...]], int | Sequence[int]], guard: Rule | None, **more: object
) -> Generation:
    backend = ScriptedBackend(script, width=BYTES.n_tokens)
    return on(backend, GenerateRequest(PROMPT, guard=guard, **more))  # type: ignore[arg-type]


def on(backend: ScriptedBackend, request: GenerateRequest, vocabulary: ByteVocabulary = BYTES) -> Generation:
    return Generator(Session(backend), vocabulary, backend.n_context, NEVER).generate(request, CancelFlag())


# A small vocabulary, so that laws can be told by hand: six letters and the end.

LETTERS = b"abcdef"


class Random(ScriptedBackend):
    """Logits drawn anew after each text, only the letters and the end among them."""

    def __init__(self, seed: int) -> None:
        super().__init__(lambda ids: 0, width=BYTES.n_tokens)
        self.seed = seed

    def logits_after(self, ids: tuple[int, ...]) -> Logits:
        logits = np.full(BYTES.n_tokens, -np.inf, np.float32)
        drawn = np.random.default_rng((self.seed, *ids)).normal(0, 2, len(LETTERS) + 1)
        logits[[*LETTERS, END]] = drawn.round(1)  # now and then two are equal
        return logits


def letters_at(seed: int) -> Callable[[bytes], bool]:
    """Allows at each place some of the letters, at least one."""

    def is_fine(text: bytes) -> bool:
        for at, letter in enumerate(text):
            bits = np.random.default_rng((seed, at)).integers(1, 1 << len(LETTERS))
            if not bits >> LETTERS.index(letter) & 1:
                return False
        return True

    return is_fine


@given(st.integers(0, 1 << 30), st.integers(0, 1 << 30), st.integers(1, 12))
def test_greedy_writes_what_masking_all_others_gives(seed: int, rule: int, n_tokens: int) -> None:
    backend, is_fine = Random(seed), letters_at(rule)
    expected: list[int] = []
    while len(expected) < n_tokens:
        logits = backend.logits_after((*PROMPT, *expected))
        may_come = [letter for letter in LETTERS if is_fine(bytes([*expected, letter]))]
        may_come += [END] * (not expected or len(expected) % 3 == 0)
        best = max(sorted(may_come), key=lambda token: logits[token])
        if best == END:
            break
        expected.append(best)

    guard = Rule(is_fine, lambda text: len(text) % 3 == 0)
    generation = on(backend, GenerateRequest(PROMPT, guard=guard, max_new_tokens=n_tokens))

    assert list(generation.token_ids) == expected
    assert guard.text == bytes(expected)
    assert generation.n_undone == 0


@pytest.mark.parametrize("sampling", [Sampling(1.0), Sampling(0.7, top_k=4), Sampling(1.5, top_p=0.8)])
def test_what_is_drawn_follows_the_models_law_given_that_it_may_come(sampling: Sampling) -> None:
    logits = np.array([1.0, 0.5, 2.0, -0.5, 0.0, 1.5], np.float32)
    may_come = {0, 1, 3, 5}
    order = np.argsort(-logits)[: sampling.top_k or None]
    law = np.exp(logits[order].astype(np.float64) / sampling.temperature)
    law /= law.sum()
    kept = np.cumsum(law) - law < sampling.top_p
    left = {
        int(token): float(p) for token, p in zip(order[kept], law[kept], strict=True) if token in may_come
    }
    expected = {token: p / sum(left.values()) for token, p in left.items()}

    n = 4_000
    random = np.random.default_rng(0)
    drawn = Counter(
        next(token for token in candidates(logits, sampling, random) if token in may_come) for _ in range(n)
    )

    assert set(drawn) == set(expected)
    for token, share in expected.items():
        assert drawn[token] / n == pytest.approx(share, abs=4 * (share * (1 - share) / n) ** 0.5)


def test_where_all_that_would_be_drawn_is_refused_the_likeliest_other_comes() -> None:
    logits = np.array([5.0, 4.0, 1.0, 2.0], np.float32)
    random = np.random.default_rng(0)

    for _ in range(20):
        assert list(candidates(logits, Sampling(1.0, top_k=2), random))[2:] == [3, 2]


@given(st.integers(0, 1 << 30), st.floats(0, 2), st.sampled_from([0, 3]), st.sampled_from([0.9, 1.0]))
def test_a_guard_that_allows_everything_changes_nothing(
    seed: int, temperature: float, top_k: int, top_p: float
) -> None:
    sampling = Sampling(temperature, top_k, top_p, seed)
    alone = on(Random(seed), GenerateRequest(PROMPT, sampling=sampling, max_new_tokens=9))
    guarded = on(
        Random(seed), GenerateRequest(PROMPT, sampling=sampling, max_new_tokens=9, guard=Rule(lambda _: True))
    )

    assert (guarded.text, guarded.token_ids, guarded.finish) == (alone.text, alone.token_ids, alone.finish)
    assert guarded.n_guarded == guarded.n_new_tokens + (guarded.finish is Finish.END)
    assert (guarded.n_refused_first, guarded.n_undone) == (0, 0)
    assert (alone.n_guarded, alone.n_refused_first, alone.n_undone) == (0, 0, 0)


def test_the_second_choice_is_written_where_the_first_may_not_come() -> None:
    generation = generate(ranked(b"f(a]", b"f(a)"), Rule(beginnings(b"f(a)")))

    assert (generation.text, generation.finish) == ("f(a)", Finish.END)
    assert (generation.n_guarded, generation.n_refused_first, generation.n_undone) == (5, 1, 0)


def test_the_model_ends_only_where_the_text_may_end() -> None:
    def script(ids: tuple[int, ...]) -> list[int]:
        return [END, *b"()xy"[len(ids) - len(PROMPT) :][:1]] if len(ids) > len(PROMPT) else [ord("(")]

    generation = generate(script, Rule(lambda _: True, lambda text: text.count(b"(") == text.count(b")")))

    assert (generation.text, generation.finish) == ("()", Finish.END)
    assert generation.n_refused_first == 1


def test_a_model_that_has_nothing_to_say_may_say_nothing() -> None:
    """Even where the text as it stands is not whole: nothing is written, so nothing is made worse."""
    generation = generate(ranked(b""), Rule(lambda _: True, lambda _: False))

    assert (generation.text, generation.finish) == ("", Finish.END)


def test_forced_bytes_are_not_asked_about_but_what_is_beyond_them() -> None:
    vocabulary = Pieces(b"int(", b"int[")
    guard = Rule(beginnings(b"(x)"))

    def script(ids: tuple[int, ...]) -> list[int]:
        if ids[-1] == ord("r"):
            return [vocabulary.id_of(b"int["), vocabulary.id_of(b"int(")]
        n_written = len(ids) - len(PROMPT)
        return [b"pr.x)"[n_written] if n_written < 5 else END]

    backend = ScriptedBackend(script, width=vocabulary.n_tokens)
    generation = on(backend, GenerateRequest(PROMPT, forced=b"print", guard=guard), vocabulary)

    assert (generation.text, generation.finish) == ("(x)", Finish.END)
    assert guard.asked[:2] == [b"[", b"("]
    assert guard.pieces == [b"(", b"x", b")"]
    assert (generation.n_guarded, generation.n_refused_first) == (4, 1), "`p` and `r` were not asked about"


def test_forced_bytes_may_be_what_the_guard_would_refuse() -> None:
    generation = generate(ranked(b"xx)", b"xx"), Rule(beginnings(b"")), forced=b"xx")

    assert (generation.text, generation.finish) == ("", Finish.END)


def test_what_was_begun_is_gone_on_with_as_far_as_it_may_come() -> None:
    guard = Rule(beginnings(b"ab)"))
    generation = generate(ranked(b"ab)"), guard, begun=tuple(b"ab]x"), is_begun_whole=True)

    assert (generation.text, generation.finish) == ("ab)", Finish.END)
    assert guard.pieces == [b"a", b"b", b")"]
    assert generation.n_guarded == 2, "what was begun was chosen before"


def test_what_was_begun_and_may_come_is_whole_without_the_model() -> None:
    generation = generate(ranked(b"zzz"), Rule(beginnings(b"ab)")), begun=tuple(b"ab)"), is_begun_whole=True)

    assert (generation.text, generation.finish, generation.n_evaluated) == ("ab)", Finish.END, 0)


def only(*texts: bytes) -> Rule:
    """Everything that one of these begins with, and the end only after one of them."""
    return Rule(beginnings(*texts), lambda text: text in texts)


def rare(*wanted: bytes) -> ScriptedBackend:
    """A model that knows only these texts: all other tokens are out of the question."""
    return ScriptedBackend(ranked(*wanted), width=BYTES.n_tokens, is_narrow=True)


class Forcing(Rule):
    """Knows what must come where only one of its texts goes on."""

    def __init__(self, *texts: bytes) -> None:
        super().__init__(beginnings(*texts), lambda text: text in texts)
        self.texts = texts

    def forced(self) -> bytes:
        left = [text[len(self.text) :] for text in self.texts if text.startswith(self.text)]
        return left[0] if len(left) == 1 else b""


def test_what_must_come_is_written_without_asking_the_model() -> None:
    asked: list[bytes] = []

    def script(ids: tuple[int, ...]) -> list[int]:
        written = bytes(ids[len(PROMPT) :])
        asked.append(written)
        return [b"import"[len(written)] if len(written) < 6 else END]

    backend = ScriptedBackend(script, width=BYTES.n_tokens)
    generation = on(backend, GenerateRequest(PROMPT, guard=Forcing(b"import", b"if")))

    assert (generation.text, generation.finish) == ("import", Finish.END)
    assert (generation.n_new_tokens, generation.n_forced) == (6, 4)
    assert asked == [b"", b"i", b"import"]
    assert bytes(backend.cached) == PROMPT_BYTES + b"import", "what was written is in the cache"


@pytest.mark.parametrize("limit", range(1, 6))
def test_what_must_come_counts_as_what_was_asked_for(limit: int) -> None:
    generation = generate(ranked(b"import"), Forcing(b"import", b"if"), max_new_tokens=limit)

    assert (generation.text, generation.finish) == ("import"[:limit], Finish.LENGTH)


def test_what_must_come_ends_where_enough_is_written() -> None:
    generation = generate(
        ranked(b"import"), Forcing(b"import", b"if"), should_stop=lambda text: text == "impo"
    )

    assert (generation.text, generation.finish, generation.n_forced) == ("impo", Finish.STOPPED, 2)


def test_at_a_dead_end_one_token_is_taken_back() -> None:
    guard = only(b"ab", b"cd")
    backend = rare(b"ax", b"cd")
    generation = on(backend, GenerateRequest(PROMPT, guard=guard))

    assert (generation.text, generation.finish) == ("cd", Finish.END)
    assert (generation.n_undone, generation.n_new_tokens) == (1, 2)
    assert guard.text == b"cd"
    assert bytes(backend.cached) == PROMPT_BYTES + b"cd", "what was taken back is out of the cache, too"


def test_the_choice_after_one_that_was_taken_back_is_no_refused_first_choice() -> None:
    """What was taken back had been the model's first choice at its place, and was allowed."""
    generation = on(rare(b"ax", b"cd"), GenerateRequest(PROMPT, guard=only(b"ab", b"cd")))

    assert (generation.text, generation.n_undone, generation.n_refused_first) == ("cd", 1, 0)

    # The first of three is refused, the second taken back: one refused first choice at this place.
    generation = on(rare(b"x", b"ax", b"cd"), GenerateRequest(PROMPT, guard=only(b"ab", b"cd")))

    assert (generation.text, generation.n_undone, generation.n_refused_first) == ("cd", 1, 1)


def test_never_are_two_taken_back_in_a_row() -> None:
    guard = only(b"abc", b"xyz")
    generation = on(rare(b"abq", b"xyz"), GenerateRequest(PROMPT, guard=guard))

    assert generation.finish is Finish.DEAD_END
    assert generation.n_undone == 1
    assert generation.text == guard.text.decode() == "a", "what was written up to there is the answer's"


def test_a_place_is_gone_back_to_only_once() -> None:
    generation = on(rare(b"ax", b"cx", b"ef"), GenerateRequest(PROMPT, guard=only(b"ab", b"cd", b"ef")))

    assert (generation.text, generation.finish, generation.n_undone) == ("c", Finish.DEAD_END, 1)


def test_at_another_place_it_may_go_back_again() -> None:
    guard = only(b"abij", b"cdkl", b"cdmn")
    generation = on(rare(b"ax", b"cdkx", b"cdmn"), GenerateRequest(PROMPT, guard=guard))

    assert (generation.text, generation.finish, generation.n_undone) == ("cdmn", Finish.END, 2)


def test_at_the_beginning_there_is_nothing_to_take_back() -> None:
    generation = on(rare(b"x"), GenerateRequest(PROMPT, guard=only(b"a")))

    assert (generation.text, generation.finish, generation.n_undone) == ("", Finish.DEAD_END, 0)


def test_what_was_typed_is_never_taken_back() -> None:
    generation = on(rare(b"prx"), GenerateRequest(PROMPT, forced=b"pr", guard=only(b"a")))

    assert (generation.text, generation.finish, generation.n_undone) == ("", Finish.DEAD_END, 0)


def test_what_goes_on_from_what_was_typed_is_taken_back_and_that_is_spelled_again() -> None:
    pieces = Pieces(b" ax", b" c")
    script = {(): [pieces.id_of(b" ax"), pieces.id_of(b" c")], (pieces.id_of(b" c"),): [ord("d")]}

    def wanted(ids: tuple[int, ...]) -> list[int]:
        return script.get(ids[len(PROMPT) :], [END])

    backend = ScriptedBackend(wanted, width=pieces.n_tokens, is_narrow=True)
    guard = Rule(beginnings(b"axy", b"cd"), may_stop=lambda text: text == b"cd")
    generation = on(backend, GenerateRequest(PROMPT, forced=b" ", guard=guard), pieces)

    assert (generation.text, generation.finish) == ("cd", Finish.END)
    assert (generation.n_undone, generation.n_new_tokens) == (1, 2)
    assert generation.token_ids == (pieces.id_of(b" c"), ord("d"))


def test_half_a_character_is_taken_back_as_a_half() -> None:
    """`é` and `è` begin with the same byte; after the other one nothing may come."""
    guard = only("aéb".encode(), "aèc".encode())
    generation = on(rare("aéx".encode(), "aèc".encode()), GenerateRequest(PROMPT, guard=guard))

    assert (generation.text, generation.finish, generation.n_undone) == ("aèc", Finish.END, 1)
    assert guard.pieces == [b"a", b"\xc3", b"\xa8", b"c"]


def test_a_token_that_ends_within_a_character_is_asked_about_as_it_is() -> None:
    vocabulary = Pieces(b"a\xc3", b"\xa9b")
    wanted = [vocabulary.id_of(b"a\xc3"), vocabulary.id_of(b"\xa9b"), END]
    guard = Rule(beginnings("aéb".encode()))
    backend = ScriptedBackend(lambda ids: wanted[len(ids) - len(PROMPT)], width=vocabulary.n_tokens)

    generation = on(backend, GenerateRequest(PROMPT, guard=guard), vocabulary)

    assert (generation.text, guard.pieces) == ("aéb", [b"a\xc3", b"\xa9b"])


def test_a_model_that_wants_nothing_of_what_may_come_comes_to_an_end() -> None:
    """A guard that refuses all is asked about no more than so many tokens."""
    guard = Rule(lambda _: False, lambda _: False)
    generation = generate(ranked(b"abc"), guard)

    assert (generation.text, generation.finish) == ("", Finish.DEAD_END)
    assert len(guard.asked) <= 256
