"""The models known by name, read from `manifest.toml` beside this file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class HubSource:
    """One file of a repository on a model hub."""

    repository: str
    file: str


@dataclass(frozen=True, slots=True)
class WheelPart:
    """One data wheel: which package, and which of its members is a part of the file."""

    package: str
    version: str
    member: str
    n_bytes: int


@dataclass(frozen=True, slots=True)
class WheelSource:
    """Data wheels of a package index that, joined in order, are the file."""

    parts: tuple[WheelPart, ...]


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """A model that has a name of its own."""

    name: str
    licence: str
    file: str
    """The name that the source file is kept under."""
    size_bytes: int
    sha256: str
    converted_bytes: int
    """About what the converted model takes, for the check of free space before a download."""
    sources: tuple[HubSource | WheelSource, ...]
    """In the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All models known by name."""

    default: str
    models: Mapping[str, CatalogueModel]


def builtin_catalogue() -> Catalogue:
    """The catalogue that comes with treefill."""
    text = resources.files(__package__).joinpath("manifest.toml").read_text(encoding="utf-8")
    return parse_catalogue(text)


def parse_catalogue(text: str) -> Catalogue:
    """Read a catalogue from TOML."""
    document = tomllib.loads(text)
    models = {name: _model(name, entry) for name, entry in document["models"].items()}
    return Catalogue(document["default"], models)


def _model(name: str, entry: Mapping[str, Any]) -> CatalogueModel:
    return CatalogueModel(
        name=name,
        licence=entry["licence"],
        file=entry["file"],
        size_bytes=entry["size_bytes"],
        sha256=entry["sha256"],
        converted_bytes=entry["converted_bytes"],
        sources=tuple(_source(source, entry["size_bytes"]) for source in entry["sources"]),
    )


def _source(entry: Mapping[str, Any], size_bytes: int) -> HubSource | WheelSource:
    if entry["kind"] == "hub":
        return HubSource(entry["repository"], entry["file"])
    n_part_bytes = entry["part_bytes"]
    starts = range(0, size_bytes, n_part_bytes)
    return WheelSource(
        tuple(
            WheelPart(
                package=entry["package"].format(part=part),
                version=entry["version"],
                member=entry["member"].format(part=part),
                n_bytes=min(n_part_bytes, size_bytes - start),
            )
            for part, start in enumerate(starts, start=1)
        )
    )
