"""The decode loop: reuse → prefill → choose → append, until something says stop.

It never sees a tensor of the model, a grammar or an editor; it sees logits, bytes and a flag.
"""

import time
from codecs import getincrementaldecoder
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from treefill.engine.api import CancelFlag, Finish, GenerateRequest, Generation, TokenId, Vocabulary
from treefill.engine.backend import Logits
from treefill.engine.healing import PrefixIndex
from treefill.engine.jump import certain_tokens
from treefill.engine.sampler import candidates, candidates_under, choose
from treefill.engine.session import Session
from treefill.errors import EngineError

_Utf8Decoder = getincrementaldecoder("utf-8")


class Generator:
    """Continues prompts on one session."""

    def __init__(
        self, session: Session, vocabulary: Vocabulary, n_context: int, barred_ids: frozenset[TokenId]
    ) -> None:
        self._session = session
        self._vocabulary = vocabulary
        self._n_context = n_context
        self._never = sorted(barred_ids - vocabulary.end_ids)
        self._ends = _words_of(vocabulary.end_ids)
        self._index = PrefixIndex(vocabulary)

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        """Continue one prompt. Raises `EngineError` for a prompt that the context cannot hold."""
        run = _Run(request, started=time.perf_counter())
        n_prompt = len(request.prompt_ids)
        if not 0 < n_prompt < self._n_context:
            raise EngineError(
                f"The prompt has {n_prompt} tokens; this model takes 1 to {self._n_context - 1}."
            )
        if not request.reuse:
            self._session.forget()
        for begun in request.begun:
            spelled = self._vocabulary.token_bytes(begun)
            # Something else was typed than was begun, or it may not be written here.
            if not run.fits(spelled) or not run.append(begun, spelled):
                break
        is_whole = request.is_begun_whole and len(run.ids) == len(request.begun)
        ids = (*request.prompt_ids, *run.ids)
        n_reused = self._session.reuse(ids, request.cache_salt)
        finish = self._finish(run) or (Finish.END if is_whole else None)
        logits = None
        if finish is None:
            run.n_evaluated = len(ids) - n_reused
            run.look_up_mask()
            logits = self._session.prefill(ids[n_reused:], cancel)
        while logits is not None and not cancel.is_cancelled:
            token = self._choose(logits, run)
            if token is None and run.can_step_back:
                logits = self._step_back(run, cancel)
                continue
            if token is None:
                finish = Finish.UNHEALABLE if run.remaining else Finish.DEAD_END
                break
            if token in self._vocabulary.end_ids:
                finish = Finish.END
                break
            run.append(token, self._vocabulary.token_bytes(token))
            finish = self._finish(run)
            if finish is not None:
                break
            run.n_evaluated += run.n_new == 0
            certain = self._jump(token, run)
            finish = self._finish(run) if certain else None
            if finish is not None:
                break
            run.look_up_mask()
            logits = self._session.prefill([token, *certain], cancel)
        return run.generation(finish or Finish.CANCELLED, min(n_reused, n_prompt))

    def _finish(self, run: "_Run") -> Finish | None:
        """Why no further token is wanted, or None."""
        if run.text and run.request.should_stop(run.text):
            return Finish.STOPPED
        n_held = len(run.request.prompt_ids) + len(run.ids)
        is_full = run.n_new >= run.request.max_new_tokens or n_held >= self._n_context
        is_late = time.perf_counter() - run.started >= run.request.time_limit_s
        return Finish.LENGTH if is_full or is_late else None

    def _choose(self, logits: Logits, run: "_Run") -> TokenId | None:
        """The next token, or None when none spells the bytes that are still forced or may come next."""
        allowed = self._index.allowed(run.remaining) if run.remaining else None
        if allowed is not None and not len(allowed):
            return None
        logits[self._never] = -np.inf
        logits[self._vocabulary.n_tokens :] = -np.inf
        if run.request.guard is None:
            return choose(logits, run.request.sampling, run.random, allowed)
        if run.mask is None:
            run.look_up_mask()
        words = run.mask
        numbered = (
            enumerate(candidates(logits, run.request.sampling, run.random, allowed))
            if words is None
            else candidates_under(
                logits, run.request.sampling, run.random, self._with_ends(words, len(logits))
            )
        )
        run.n_masked += words is not None
        for number, token in numbered:
            if token != run.undone and run.may_take(token, self._vocabulary):
                run.note_choice(token, self._vocabulary, is_first=number == 0)
                return token
        return None

    def _with_ends(self, words: NDArray[np.uint32], n_logits: int) -> NDArray[np.uint32]:
        """A mask as wide as the logits, with the tokens that end a text: of those the guard alone knows."""
        wide = np.zeros(-(-n_logits // 32), np.uint32)
        wide[: len(words)] = words
        wide[: len(self._ends)] |= self._ends
        return wide

    def _jump(self, last: TokenId, run: "_Run") -> list[TokenId]:
        """Write what must come after `last` whatever the model says, as far as its tokens are certain."""
        guard = run.request.guard
        forced = guard.forced() if guard is not None and not run.remaining else b""
        jumped: list[TokenId] = []
        for token in certain_tokens(self._vocabulary, last, forced) if forced else ():
            if self._finish(run) is not None or not run.append(token, self._vocabulary.token_bytes(token)):
                break
            jumped.append(token)
        run.n_forced += len(jumped)
        return jumped

    def _step_back(self, run: "_Run", cancel: CancelFlag) -> Logits | None:
        """Take the last token back, and the logits from which another one is to be chosen."""
        run.take_back()
        run.look_up_mask()
        ids = (*run.request.prompt_ids, *run.ids)
        n_reused = self._session.reuse(ids, run.request.cache_salt)
        return self._session.prefill(ids[n_reused:], cancel)


class _Run:
    """What one generation has produced so far."""

    def __init__(self, request: GenerateRequest, started: float) -> None:
        self.request = request
        self.remaining = request.forced
        self.random = np.random.default_rng(request.sampling.seed)
        self.ids: list[TokenId] = []
        self.text = ""
        self.n_new = 0
        self.n_evaluated = 0
        self.n_forced = 0
        self.n_masked = 0
        self.mask: NDArray[np.uint32] | None = None
        """Of the next token, where one is known."""
        self.started = started
        self.undone: TokenId | None = None
        """What was taken back at this place, and is not to be chosen again."""
        self._undone_at = -1
        self._n_guarded = 0
        self._n_refused_first = 0
        self._n_undone = 0
        self._first: float | None = None
        self._decoder = _Utf8Decoder(errors="replace")
        self._before_last: tuple[str, tuple[bytes, int], bytes] | None = None
        """Text, decoder and what was still forced before the last token, where that may be taken back."""

    def look_up_mask(self) -> None:
        """Ask for the next token's mask; before the model computes, so that a missing one can be made meanwhile."""
        is_wanted = self.request.guard is not None and self.request.mask is not None and not self.remaining
        self.mask = self.request.mask() if is_wanted and self.request.mask else None

    def fits(self, spelled: bytes) -> bool:
        """True where the token spells what is still forced, or a beginning of it, or goes on from it."""
        n_both = min(len(self.remaining), len(spelled))
        return self.remaining[:n_both] == spelled[:n_both]

    def may_take(self, token: TokenId, vocabulary: Vocabulary) -> bool:
        """Whether the guard has nothing against a token; against nothing at all it never has."""
        guard = self.request.guard
        if guard is None:
            return True
        if token in vocabulary.end_ids:
            return not self.text or guard.can_stop()
        more = self._beyond_forced(token, vocabulary)
        return not more or guard.allows(more)

    def _beyond_forced(self, token: TokenId, vocabulary: Vocabulary) -> bytes:
        return vocabulary.token_bytes(token)[len(self.remaining) :]

    def append(self, token: TokenId, spelled: bytes) -> bool:
        """Take a token; False, and nothing taken, where the guard is against it."""
        n_forced = min(len(self.remaining), len(spelled))
        more = spelled[n_forced:]
        if more and self.request.guard is not None and not self.request.guard.accept(more):
            return False
        self._first = self._first or time.perf_counter()
        is_new = bool(more) or n_forced == 0
        self._before_last = (self.text, self._decoder.getstate(), self.remaining) if is_new else None
        self.undone = None
        self.ids.append(token)
        self.remaining = self.remaining[n_forced:]
        if is_new:
            self.n_new += 1
        self.text += self._decoder.decode(more)
        return True

    @property
    def can_step_back(self) -> bool:
        """True where the last token is a new one, and none was taken back at its place before."""
        is_new = self._before_last is not None and self.request.guard is not None
        return is_new and len(self.ids) - 1 != self._undone_at

    def take_back(self) -> None:
        """Undo the last `append`."""
        if self._before_last is None or self.request.guard is None:
            raise EngineError("There is no token to take back.")
        self.request.guard.rollback(1)
        self.text, state, self.remaining = self._before_last
        self._decoder.setstate(state)
        self._before_last = None
        self.undone = self.ids.pop()
        self._undone_at = len(self.ids)
        self.n_new -= 1
        self._n_undone += 1

    def note_choice(self, token: TokenId, vocabulary: Vocabulary, is_first: bool) -> None:
        """Count a token that was chosen under the guard's eyes: one that only spells forced bytes was not.

        Where another one was taken back, what the guard thinks of the model's first choice has been counted before.
        """
        if token in vocabulary.end_ids or self._beyond_forced(token, vocabulary) or not is_first:
            self._n_guarded += 1
            self._n_refused_first += not is_first and self.undone is None

    def generation(self, finish: Finish, n_reused: int) -> Generation:
        now = time.perf_counter()
        return Generation(
            text=self.text,
            token_ids=tuple(self.ids),
            finish=finish,
            n_prompt_tokens=len(self.request.prompt_ids),
            n_reused_tokens=n_reused,
            n_new_tokens=self.n_new,
            n_evaluated=self.n_evaluated,
            ttft_ms=((self._first or now) - self.started) * 1000,
            total_ms=(now - self.started) * 1000,
            n_guarded=self._n_guarded,
            n_refused_first=self._n_refused_first,
            n_undone=self._n_undone,
            n_forced=self.n_forced,
            n_masked=self.n_masked,
        )


def _words_of(ids: Collection[TokenId]) -> NDArray[np.uint32]:
    """A mask of some tokens, as wide as it must be."""
    words = np.zeros(max(ids, default=-1) // 32 + 1, np.uint32)
    for token in ids:
        words[token // 32] |= np.uint32(1 << token % 32)
    return words
