"""An engine in this process: one backend, one session, one thread that runs them."""

from concurrent.futures import ThreadPoolExecutor

from treefill.engine.api import CancelFlag, GenerateRequest, Generation, Vocabulary
from treefill.engine.backend import Backend
from treefill.engine.generate import Generator
from treefill.engine.session import Session
from treefill.engine.tokenizer import TokenizerVocabulary
from treefill.errors import EngineError


class LocalEngine:
    """`engine.api.Engine` over a backend. Requests queue for its one thread; each carries its own cancel flag."""

    def __init__(self, backend: Backend, vocabulary: TokenizerVocabulary, model: str) -> None:
        self.name = backend.name
        self.model = model
        self.vocabulary: Vocabulary = vocabulary
        self.n_context = backend.n_context
        self._backend = backend
        self._generator = Generator(Session(backend), vocabulary, backend.n_context, vocabulary.barred_ids)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="treefill-engine")

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        """Continue a prompt on the engine's thread and wait for it."""
        try:
            future = self._thread.submit(self._generator.generate, request, cancel)
            return future.result()
        except KeyboardInterrupt:
            cancel.cancel()  # or the process would wait for the whole generation before it ends
            raise
        except (RuntimeError, MemoryError, ValueError, TypeError, IndexError, OverflowError) as error:
            # torch raises the first for out of memory, a closed engine and broken shapes alike; the others mean a
            # model that is not what its configuration says, or ids that no vocabulary has.
            raise EngineError(f"The model could not be run: {error}") from error

    def close(self) -> None:
        """Wait for the request under way, then free the model."""
        self._thread.shutdown(wait=True)
        self._backend.close()
