"""Where in the cache folder everything of a model lies."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from treefill.models.disk import safe_name


@dataclass(frozen=True, slots=True)
class Places:
    """Paths below one cache folder; `store` says what each is for."""

    cache_dir: Path

    def model(self, name: str) -> Path:
        """The converted model."""
        return self.cache_dir / "models" / safe_name(name)

    def kept(self, name: str) -> Path:
        """The source files that were kept."""
        return self.cache_dir / "sources" / safe_name(name)

    def partial(self, name: str) -> Path:
        """A download under way."""
        return self.cache_dir / "partial" / safe_name(name)

    @property
    def grammars(self) -> Path:
        """What was found out about grammars, kept there by others (`syntax/lexers.py`)."""
        return self.cache_dir / "grammars"

    @property
    def tmp(self) -> Path:
        """Work under way, rubbish to the next who holds the lock."""
        return self.cache_dir / "tmp"

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.cache_dir / "lock"

    @property
    def current(self) -> Path:
        """The name of the model in use."""
        return self.cache_dir / "current"

    def forget_partial(self, name: str) -> None:
        """Delete what a download left."""
        shutil.rmtree(self.partial(name), ignore_errors=True)
