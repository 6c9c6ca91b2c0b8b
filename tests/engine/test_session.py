"""What is reused between prompts, and that a cache is never believed to hold what it does not."""

import pytest
from treefill.engine.api import CancelFlag
from treefill.engine.backend import Logits
from treefill.engine.session import Session

from tests.helpers.scripted_backend import ScriptedBackend


def last_token(ids: tuple[int, ...]) -> int:
    return ids[-1]


def a_session() -> tuple[ScriptedBackend, Session]:
    backend = ScriptedBackend(last_token)
    return backend, Session(backend)


def prefill(session: Session, ids: list[int]) -> tuple[int, Logits | None]:
    n_reused = session.reuse(ids)
    return n_reused, session.prefill(ids[n_reused:], CancelFlag())


@pytest.mark.parametrize("n_shared", [0, 1, 5, 9, 10])
def test_g11_what_two_prompts_share_is_reused_less_the_last_token(n_shared: int) -> None:
    backend, session = a_session()
    first = list(range(10))
    second = first[:n_shared] + list(range(100, 110 - n_shared))
    prefill(session, first)

    n_reused, logits = prefill(session, second)

    assert n_reused == min(n_shared, 9)
    assert backend.cached == list(second)
    assert logits is not None
    assert logits.argmax() == second[-1]
    assert backend.evaluated == first + second[n_reused:]


def test_typing_evaluates_the_typed_tokens_only() -> None:
    backend, session = a_session()
    prefill(session, [1, 2, 3])
    session.prefill([4], CancelFlag())
    session.prefill([5], CancelFlag())
    backend.evaluated.clear()

    n_reused, _ = prefill(session, [1, 2, 3, 4, 9])

    assert n_reused == 4
    assert backend.evaluated == [9]


def test_a_shorter_prompt_evaluates_its_last_token_again() -> None:
    backend, session = a_session()
    prefill(session, [1, 2, 3, 4])

    assert prefill(session, [1, 2])[0] == 1
    assert backend.cached == [1, 2]


def test_a_cancelled_prefill_leaves_the_chunks_that_were_done() -> None:
    class CancelsAfterOneChunk(ScriptedBackend):
        def evaluate(self, ids, cancel, wants_logits=True):  # type: ignore[no-untyped-def]
            logits = super().evaluate(ids, cancel, wants_logits)
            flag.cancel()
            return logits

    flag = CancelFlag()
    backend = CancelsAfterOneChunk(last_token)
    session = Session(backend)

    assert session.prefill(list(range(200)), flag) is None
    assert backend.cached == list(range(64))
    assert prefill(session, list(range(200)))[0] == 64


def test_a_failed_evaluation_empties_the_cache() -> None:
    backend, session = a_session()
    prefill(session, [1, 2, 3])
    backend.fails_after = 3
    with pytest.raises(RuntimeError, match="out of memory"):
        prefill(session, [1, 2, 3, 4])
    backend.fails_after = None

    assert backend.cached == []
    assert prefill(session, [1, 2, 3, 4])[0] == 0


def test_forgetting_empties_the_cache() -> None:
    _, session = a_session()
    prefill(session, [1, 2, 3])
    session.forget()

    assert prefill(session, [1, 2, 3])[0] == 0


def test_nothing_is_reused_under_another_salt() -> None:
    _, session = a_session()
    session.reuse([1, 2, 3], "one")
    session.prefill([1, 2, 3], CancelFlag())

    assert session.reuse([1, 2, 3, 4], "two") == 0


def test_logits_are_asked_for_after_the_last_chunk_alone() -> None:
    wanted: list[bool] = []

    class Counts(ScriptedBackend):
        def evaluate(self, ids, cancel, wants_logits=True):  # type: ignore[no-untyped-def]
            wanted.append(wants_logits)
            return super().evaluate(ids, cancel, wants_logits)

    Session(Counts(last_token)).prefill(list(range(130)), CancelFlag())

    assert wanted == [False, False, True]
