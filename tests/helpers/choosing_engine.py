"""An engine that has second thoughts: the real decode loop, over a model that knows several texts."""

from treefill.engine.api import CancelFlag, GenerateRequest, Generation, TokenId
from treefill.engine.generate import Generator
from treefill.engine.session import Session

from tests.helpers.scripted_backend import ScriptedBackend
from tests.helpers.scripted_engine import ByteVocabulary, ScriptedEngine


class ChoosingEngine(ScriptedEngine):
    """Wants to write the first of its texts that goes on from what it has written; where that may not come, the next.

    A token is a byte. What none of the texts says is never written.
    """

    def __init__(
        self, *texts: str, vocabulary: ByteVocabulary | None = None, n_context: int = 32_768
    ) -> None:
        super().__init__(*texts, vocabulary=vocabulary, n_context=n_context)
        self._texts = [text.encode() for text in texts]
        self._begins_at, self._forced = 0, b""
        self._end = next(iter(sorted(self.vocabulary.end_ids)))
        backend = ScriptedBackend(self._wanted, self.byte_vocabulary.n_tokens, n_context, is_narrow=True)
        control = frozenset(range(256, self.byte_vocabulary.n_tokens))
        self._generator = Generator(Session(backend), self.vocabulary, n_context, control)

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        """By the loop that real engines have, the guard included."""
        self.requests.append(request)
        self._begins_at, self._forced = len(request.prompt_ids), request.forced
        return self._generator.generate(request, cancel)

    def _wanted(self, ids: tuple[TokenId, ...]) -> list[TokenId]:
        """The next byte of each text that goes on from what is written, the end where one is written out."""
        written = bytes(ids[self._begins_at :])
        texts = [self._forced + text for text in self._texts]
        fitting = [text[len(written) :] for text in texts if text.startswith(written)]
        return [rest[0] if rest else self._end for rest in fitting] or [self._end]
