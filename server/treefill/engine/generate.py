"""The decode loop: reuse → prefill → choose → append, until something says stop.

It never sees a tensor of the model, a grammar or an editor; it sees logits, bytes and a flag.
"""

import time
from codecs import getincrementaldecoder

import numpy as np

from treefill.engine.api import CancelFlag, Finish, GenerateRequest, Generation, TokenId, Vocabulary
from treefill.engine.backend import Logits
from treefill.engine.healing import PrefixIndex
from treefill.engine.sampler import choose
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
            if not run.fits(spelled):  # something else was typed than was begun
                break
            run.append(begun, spelled)
        is_whole = request.is_begun_whole and len(run.ids) == len(request.begun)
        ids = (*request.prompt_ids, *run.ids)
        n_reused = self._session.reuse(ids, request.cache_salt)
        finish = self._finish(run) or (Finish.END if is_whole else None)
        logits = None
        if finish is None:
            run.n_evaluated = len(ids) - n_reused
            logits = self._session.prefill(ids[n_reused:], cancel)
        while logits is not None and not cancel.is_cancelled:
            token = self._choose(logits, run)
            if token is None:
                finish = Finish.UNHEALABLE
                break
            if token in self._vocabulary.end_ids:
                finish = Finish.END
                break
            run.append(token, self._vocabulary.token_bytes(token))
            finish = self._finish(run)
            if finish is not None:
                break
            run.n_evaluated += run.n_new == 0
            logits = self._session.decode_one(token, cancel)
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
        """The next token, or None when no token spells the bytes that are still forced."""
        allowed = self._index.allowed(run.remaining) if run.remaining else None
        if allowed is not None and not len(allowed):
            return None
        logits[self._never] = -np.inf
        logits[self._vocabulary.n_tokens :] = -np.inf
        return choose(logits, run.request.sampling, run.random, allowed)


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
        self.started = started
        self._first: float | None = None
        self._decoder = _Utf8Decoder(errors="replace")

    def fits(self, spelled: bytes) -> bool:
        """True where the token spells what is still forced, or a beginning of it, or goes on from it."""
        n_both = min(len(self.remaining), len(spelled))
        return self.remaining[:n_both] == spelled[:n_both]

    def append(self, token: TokenId, spelled: bytes) -> None:
        self._first = self._first or time.perf_counter()
        self.ids.append(token)
        n_forced = min(len(self.remaining), len(spelled))
        self.remaining = self.remaining[n_forced:]
        if len(spelled) > n_forced or n_forced == 0:
            self.n_new += 1
        self.text += self._decoder.decode(spelled[n_forced:])

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
        )
