"""Which core a front means: where it listens, who it is, how one is started."""

from dataclasses import dataclass
from pathlib import Path

from treefill.core.messages import Hello


@dataclass(frozen=True, slots=True)
class CorePlace:
    """Which core, and how one is started."""

    folder: Path
    identity: Hello
    command: tuple[str, ...]
    """Starts a core; the address follows as the last argument."""
    settings: str
    """What the core reads from its standard input: a command line is there for every user to see."""

    @property
    def address(self) -> Path:
        """The socket of the core with this version and settings."""
        return self.folder / f"core-{self.identity.version}-{self.identity.settings_hash[:8]}.sock"

    @property
    def lock(self) -> Path:
        """Held by the front that starts this core."""
        return self.address.with_suffix(".lock")

    @property
    def log(self) -> Path:
        """What the core prints."""
        return log_of(self.address)


def log_of(address: Path) -> Path:
    """The log beside a core's address; a core that ends in peace takes it away."""
    return address.with_suffix(".log")
