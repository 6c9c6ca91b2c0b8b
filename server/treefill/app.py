"""Builds everything once and connects it.

Nothing waits at module level: a process makes one `App`, and what it does not use is not loaded.
"""

import glob
from pathlib import Path

from treefill.completion import Budgets, CompletionRequest, Mode
from treefill.engine.api import Engine, Sampling
from treefill.engine.local import LocalEngine
from treefill.engine.tokenizer import TokenizerVocabulary
from treefill.errors import BadSetting
from treefill.models import ModelStore, Progress, silent
from treefill.settings import Settings, default_file
from treefill.text import Document


class App:
    """Settings, the model store and engines made from them."""

    def __init__(self, settings: Settings, progress: Progress = silent) -> None:
        self.settings = settings
        self.store = ModelStore(settings.cache_dir, progress=progress, sources=settings.model_sources)

    def open_engine(self, model: str | None = None) -> Engine:
        """Load a model that is in the store: the one named, else the setting's, else the one in use.

        Raises `UnknownModel`, with the command that pulls it, when it is not there, and `BadSetting` when
        TREEFILL_ISA names an instruction set that this machine lacks.
        """
        files = self.store.open(model or self.settings.model or None)
        # Imported here: torch costs seconds, and most commands never run a model.
        from treefill import _kernels
        from treefill.engine.torch_backend import load_backend

        try:
            _kernels.instruction_set()
        except ValueError as error:
            raise BadSetting(f"TREEFILL_ISA: {error}") from None
        _kernels.set_threads(self.settings.threads)
        backend = load_backend(files, self.settings.engine, self.settings.n_context)
        vocabulary = TokenizerVocabulary(files.tokenizer_path, files.end_ids, files.config["vocab_size"])
        return LocalEngine(backend, vocabulary, files.name)

    def completion_request(
        self,
        document: Document,
        offset: int,
        *,
        neighbours: tuple[Document, ...] = (),
        workspace_root: Path | None = None,
        n_candidates: int = 1,
        reuse: bool = True,
    ) -> CompletionRequest:
        """A request as the settings want it."""
        s = self.settings
        return CompletionRequest(
            document=document,
            offset=offset,
            neighbours=neighbours,
            workspace_root=workspace_root,
            mode=Mode(s.mode),
            max_new_tokens=s.max_new_tokens,
            max_lines=s.max_lines,
            sampling=Sampling(s.temperature, s.top_k, s.top_p, s.seed),
            n_candidates=n_candidates,
            reuse=reuse,
            anchor_policy=s.anchor,
            budgets=Budgets(s.n_neighbour_tokens, s.n_prefix_tokens, s.n_suffix_tokens),
            # Our own settings are nobody else's business either.
            secret_patterns=(*s.secret_patterns, glob.escape(str(default_file().resolve()))),
        )
