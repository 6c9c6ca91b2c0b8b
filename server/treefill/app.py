"""Builds everything once and connects it.

Nothing waits at module level: a process makes what it needs, and what it does not use is not loaded. A front must not
load what only a core needs, so each function imports its own.
"""

from __future__ import annotations

import glob
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treefill import __version__
from treefill.errors import BadSetting
from treefill.settings import Settings, default_file, load_settings, settings_from, without_protected

if TYPE_CHECKING:
    from treefill.completion import CompletionRequest
    from treefill.core.link import Connection, Link
    from treefill.core.messages import Hello
    from treefill.core.place import CorePlace
    from treefill.core.service import Service
    from treefill.engine.api import Engine
    from treefill.engine.backend import Backend
    from treefill.models import ModelFiles, ModelStore, Progress
    from treefill.text import Document


def _nobody(_share: float) -> None:
    """Hears how far a model has been read, where nobody waits for it."""


class App:
    """Settings, the model store and engines made from them."""

    def __init__(self, settings: Settings, progress: Progress | None = None) -> None:
        from treefill.models import ModelStore, silent

        self.settings = settings
        self.store: ModelStore = ModelStore(
            settings.cache_dir, progress=progress or silent, sources=settings.model_sources
        )

    def open_engine(self, model: str | None = None, tell_share: Callable[[float], None] = _nobody) -> Engine:
        """Load a model that is in the store: the one named, else the setting's, else the one in use.

        `tell_share` is told now and then which share of the weights has been read, from 0 to 1.

        Raises `UnknownModel`, with the command that pulls it, when it is not there, and `BadSetting` when
        TREEFILL_ISA names an instruction set that this machine lacks.
        """
        files = self.store.open(model or self.settings.model or None)
        from treefill import _kernels
        from treefill.engine.local import LocalEngine
        from treefill.engine.tokenizer import TokenizerVocabulary

        try:
            _kernels.instruction_set()
        except ValueError as error:
            raise BadSetting(f"TREEFILL_ISA: {error}") from None
        _kernels.set_threads(self.settings.threads)
        backend = _load_backend(files, self.settings, tell_share)
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
        return make_request(
            self.settings.request_options,
            document,
            offset,
            neighbours=neighbours,
            workspace_root=workspace_root,
            n_candidates=n_candidates,
            reuse=reuse,
        )


def _load_backend(files: ModelFiles, settings: Settings, tell_share: Callable[[float], None]) -> Backend:
    if settings.engine == "int8":
        from treefill.engine import native

        backend = native.load_backend(files, **settings.cache_options)
        native.read_weights(files.weights, tell_share)
        return backend
    # Only here: torch costs seconds and hundreds of megabytes.
    from treefill.engine import torch_backend

    return torch_backend.load_backend(files, settings.n_context)


def make_request(
    options: Mapping[str, Any],
    document: Document,
    offset: int,
    *,
    neighbours: tuple[Document, ...] = (),
    workspace_root: Path | None = None,
    n_candidates: int = 1,
    is_automatic: bool = False,
    reuse: bool = True,
) -> CompletionRequest:
    """A request with `options` as in `Settings.request_options`. Raises `BadInput` where they can't be."""
    from treefill.completion import Budgets, Check, CompletionRequest, Mode
    from treefill.engine.api import Sampling
    from treefill.syntax.masks import Masks
    from treefill.syntax.rules.read import rules_in_force

    s = settings_from(options)
    rules = s.rules if s.rules != Path("") else None  # an empty text is no path
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
        is_automatic=is_automatic,
        reuse=reuse,
        anchor_policy=s.anchor,
        budgets=Budgets(s.n_neighbour_tokens, s.n_prefix_tokens, s.n_suffix_tokens),
        # Our own settings are nobody else's business either.
        secret_patterns=(*s.secret_patterns, glob.escape(str(default_file().resolve()))),
        check=Check(s.syntax),
        masks=Masks(s.masks),
        grammars=tuple(sorted(s.grammars.items())),
        schemas=tuple(s.schemas.items()),
        rules=rules_in_force(rules, [Path(folder) for folder in s.trusted_workspaces], workspace_root),
        templates=s.templates,
        habits=s.habits,
    )


def make_service(
    settings: Settings,
    open_engine: Callable[[], Engine] | None = None,
    on_hang: Callable[[], None] | None = None,
) -> Service:
    """The core's work, ready for fronts; `open_engine` stands in for the model in tests.

    `on_hang` is called when the model does not stop; without it the process ends.
    """
    from treefill.completion import prepare
    from treefill.core.habit_file import HabitFile
    from treefill.core.service import Service
    from treefill.statistics import state_folder
    from treefill.syntax.lexers import LEXERS
    from treefill.syntax.masks import put_away

    LEXERS.folder = App(settings).store.grammars_dir
    return Service(
        (lambda _tell: open_engine())
        if open_engine
        else (lambda tell: App(settings).open_engine(tell_share=tell)),
        make_request,
        request_limit_s=settings.request_limit_s,
        unload_after_s=60 * settings.unload_after_minutes,
        on_hang=on_hang or (lambda: os._exit(70)),
        prepare=prepare if settings.syntax == "full" else lambda _language: None,
        habit_file=HabitFile(state_folder(settings.state_dir)) if settings.keep_habits else None,
        put_away=put_away,
    )


def connection_for(
    given: Mapping[str, Any],
    no_core: bool,
    program: tuple[str, ...] = (),
    open_engine: Callable[[], Engine] | None = None,
) -> Connection:
    """The way to a core that an editor's settings lead to. Settings that can't be are complained of, not obeyed.

    `program` is what is started as `PROGRAM core …`, this one by default; both it and `open_engine` are for tests.
    """
    from treefill.core.link import Connection
    from treefill.statistics import state_file

    allowed, complaints = without_protected(given)
    try:
        settings = load_settings(allowed).settings
    except BadSetting as error:
        complaints = (*complaints, str(error))
        settings = _settings_without_editor()

    def make_link() -> Link:
        if no_core:
            from treefill.core.in_process import InProcessCore

            return InProcessCore(lambda on_hang: make_service(settings, open_engine, on_hang))
        from treefill.core.client import CoreClient

        return CoreClient(core_place(settings, program))

    return Connection(
        make_link,
        settings.engine_hash,
        settings.request_options,
        settings.request_limit_s,
        settings.enabled,
        frozenset(settings.disabled_languages),
        settings.habits,
        complaints,
        state_file(settings.state_dir) if settings.statistics else None,
    )


def _settings_without_editor() -> Settings:
    """What file and environment say, or the defaults where that can't be read either."""
    try:
        return load_settings().settings
    except BadSetting:
        return Settings.model_validate({})


def core_place(settings: Settings, program: tuple[str, ...] = ()) -> CorePlace:
    """Where the core of these settings is met, and what starts it."""
    from treefill.core import platform
    from treefill.core.place import CorePlace

    own = json.dumps(settings.model_dump(mode="json", exclude_unset=True))
    command = (*(program or (sys.executable, "-P", "-m", "treefill")), "core", "--address")
    folder = settings.runtime_dir or platform.default_folder()
    return CorePlace(folder, core_identity(settings), command, own)


def core_identity(settings: Settings) -> Hello:
    """What front and core must agree on."""
    from treefill.core.messages import Hello

    return Hello(__version__, settings.engine_hash)
