"""What a user asks for, as one of three kinds of target, and the hashes that its name stands for.

A name means one set of hashes: the catalogue's for its own names, and for every other name those of the first
time. Getting the bytes is `acquire`'s business.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from treefill.errors import BadInput, UnknownModel, WrongHash
from treefill.models.catalogue import Catalogue, CatalogueModel
from treefill.models.fetch import hub, local
from treefill.models.stored import FileRecord, StoredManifest


@dataclass(frozen=True, slots=True)
class Named:
    """A model of the catalogue."""

    name: str
    model: CatalogueModel
    origin: str = "manifest"


@dataclass(frozen=True, slots=True)
class OnHub:
    """A repository of a hub, or one file of it."""

    name: str
    """The hub id as the user wrote it."""
    repository: str
    file: str | None

    @property
    def origin(self) -> str:
        """The hub id."""
        return self.name


@dataclass(frozen=True, slots=True)
class Local:
    """Files on this machine."""

    name: str
    files: tuple[Path, ...]
    origin: str
    """The path, absolute, that the files were found by."""


Target = Named | OnHub | Local


@dataclass(frozen=True, slots=True)
class Source:
    """Files that are ready to be converted, and what they are."""

    files: tuple[Path, ...]
    records: Mapping[str, FileRecord]

    @property
    def hashes(self) -> tuple[str, ...]:
        """What decides whether two sources are the same model; file names do not."""
        return hashes(self.records)


def find_target(
    wanted: str, catalogue: Catalogue, recorded: Callable[[str], StoredManifest | None]
) -> Target:
    """Understand a known name, a path, a hub id, or the name of a stored model, which `recorded` finds."""
    if wanted in catalogue.models:
        return Named(wanted, catalogue.models[wanted])
    if local.looks_like_path(wanted):
        return _at_path(local.name_of(absolute(wanted)), absolute(wanted))
    hub_id = hub.parse_hub_id(wanted)
    if hub_id is not None:
        return OnHub(wanted, *hub_id)
    manifest = recorded(wanted)
    if manifest is not None and Path(manifest.origin).is_absolute():
        return _at_path(wanted, Path(manifest.origin))
    if manifest is not None:
        raise UnknownModel(
            f"{wanted} was brought by 'treefill model import' and has no other source; import it again."
        )
    known = ", ".join(catalogue.models)
    raise UnknownModel(
        f"{wanted!r} is no model that is known ({known}), no path, and no hub id like ORG/NAME."
    )


def expected_records(
    name: str, catalogue: Catalogue, recorded: StoredManifest | None
) -> Mapping[str, FileRecord] | None:
    """The source files that `name` stands for; None when the name is new."""
    model = catalogue.models.get(name)
    if model is not None:
        return {model.file: FileRecord(model.size_bytes, model.sha256)}
    return recorded.source if recorded is not None else None


def check_hashes(
    name: str, where: Path, got: tuple[str, ...], expected: Mapping[str, FileRecord] | None, remedy: str
) -> None:
    """Raise `WrongHash` unless what was found at `where` is what `name` stands for."""
    wanted = got if expected is None else hashes(expected)
    if got != wanted:
        raise WrongHash(
            f"{where} is not what {name} means "
            f"(SHA-256 {got[0][:12]}…, expected {wanted[0][:12]}…); {remedy}."
        )


def hashes(records: Mapping[str, FileRecord]) -> tuple[str, ...]:
    """The hashes of some files, in an order of their own."""
    return tuple(sorted(record.sha256 for record in records.values()))


def absolute(wanted: str) -> Path:
    """A path as the user wrote it, from the root."""
    try:
        return Path(wanted).expanduser().resolve()
    except (RuntimeError, ValueError) as error:  # no such user, links in a circle, a NUL
        raise BadInput(f"{wanted[:80]!r} cannot be a path: {error}.") from None


def _at_path(name: str, path: Path) -> Local:
    return Local(name, tuple(local.find_files(path)), str(path))
