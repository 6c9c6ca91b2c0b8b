"""Files of a repository on a model hub, through `huggingface_hub`.

That library reads the usual variables itself: HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, proxies, certificates.
A hub that has not answered within three seconds is given up.
"""

import errno
import importlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from treefill.errors import BadInput, UnsupportedModel
from treefill.models.fetch import SourceUnavailable
from treefill.models.fetch.watched import FolderWatch, in_thread
from treefill.models.progress import Progress

ANSWER_WITHIN_S = 3.0
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}
_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
# A string, compiled when it is first needed: that takes longer than all other imports here together.
_HUB_ID = rf"({_PART}/{_PART})(?::([A-Za-z0-9][A-Za-z0-9._-]{{0,127}}\.(?:gguf|GGUF)))?"


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a repository as the hub describes it."""

    repository: str
    name: str
    n_bytes: int
    sha256: str | None
    """Known beforehand for large files only."""


def parse_hub_id(text: str) -> tuple[str, str | None] | None:
    """`org/name` or `org/name:file.gguf` as repository and file; None for anything else."""
    match = re.fullmatch(_HUB_ID, text)
    return (match[1], match[2]) if match and ".." not in text else None


def describe(repository: str, names: list[str]) -> list[HubFile]:
    """What the hub knows of some files. `SourceUnavailable` after three seconds without an answer."""
    sizes = _listing(repository)
    missing = [name for name in names if name not in sizes]
    if missing:
        raise SourceUnavailable(f"{repository} has no file {missing[0]}")
    return [HubFile(repository, name, *sizes[name]) for name in names]


def choose_files(repository: str, file: str | None) -> list[HubFile]:
    """The files of a model: the named GGUF, or safetensors with their tokenizer, or the only GGUF."""
    sizes = _listing(repository)
    if file is not None:
        return describe(repository, [file])
    weights = sorted(name for name in sizes if re.fullmatch(r"model[A-Za-z0-9_.-]*\.safetensors", name))
    if weights and {"config.json", "tokenizer.json"} <= sizes.keys():
        return [
            HubFile(repository, name, *sizes[name]) for name in ["config.json", "tokenizer.json", *weights]
        ]
    ggufs = sorted(name for name in sizes if name.lower().endswith(".gguf") and "/" not in name)
    if len(ggufs) == 1:
        return [HubFile(repository, ggufs[0], *sizes[ggufs[0]])]
    if ggufs:
        some = ", ".join(ggufs[:8])
        raise BadInput(f"{repository} has several models; name one of them as {repository}:FILE ({some}).")
    raise UnsupportedModel(
        f"{repository} has neither a GGUF file nor safetensors with config.json and tokenizer.json; "
        "other forms are not read, because pickle files can run code."
    )


def n_kept_bytes(file: HubFile, folder: Path) -> int:
    """How much of an earlier, broken-off download of `file` can be gone on from."""
    path = folder / file.name
    have = path.stat().st_size if path.exists() else 0
    return have if have <= file.n_bytes else 0


def download(file: HubFile, folder: Path, progress: Progress) -> Path:
    """Fetch one file into `folder`, going on where an earlier try broke off; the caller shows the bar.

    `hf_hub_download` begins again in every call, so the step below it is used, which goes on.
    """
    hub = _hub()
    from huggingface_hub.file_download import http_get

    path = folder / file.name
    kept = n_kept_bytes(file, folder)
    watch = FolderWatch(folder, file.n_bytes - kept, progress)

    with path.open("ab") as out:
        out.truncate(kept)

        def work() -> None:
            url, headers = _location(hub, file)
            http_get(url, out, resume_size=kept, headers=headers, expected_size=file.n_bytes)

        # Where this is interrupted, closing the file ends the thread at its next write.
        _mapped(file.repository, hub, lambda: in_thread(work, limit_s=None, look=watch.look))
    watch.complete()
    return path


def _location(hub: ModuleType, file: HubFile) -> tuple[str, dict[str, str]]:
    """Where the bytes really lie, and the headers to ask for them with: no token goes to another host."""
    endpoint = os.environ.get("HF_ENDPOINT")
    url = hub.hf_hub_url(file.repository, file.name, endpoint=endpoint)
    metadata = hub.get_hf_file_metadata(url, timeout=ANSWER_WITHIN_S, endpoint=endpoint)
    headers: dict[str, str] = dict(_utils().build_hf_headers())
    if urlsplit(metadata.location).netloc != urlsplit(url).netloc:
        headers.pop("authorization", None)
    return metadata.location, headers


def _listing(repository: str) -> Mapping[str, tuple[int, str | None]]:
    """Size and hash of every file of the repository."""
    hub = _hub()

    def work() -> Any:
        api = hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
        return api.model_info(repository, files_metadata=True, timeout=ANSWER_WITHIN_S)

    info = _mapped(repository, hub, lambda: in_thread(work, limit_s=ANSWER_WITHIN_S))
    return {
        sibling.rfilename: (sibling.size or 0, sibling.lfs.sha256 if sibling.lfs else None)
        for sibling in info.siblings or []
    }


def _hub() -> ModuleType:
    # Asked here because the library reads it only once, when it is first imported.
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise SourceUnavailable("HF_HUB_OFFLINE is set")
    # Nothing that a user did not ask for is told to anybody. The library reads this when first imported.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import huggingface_hub  # slow to import, and only needed for a download
    import huggingface_hub.errors

    _utils().disable_progress_bars()  # the bar is ours
    return huggingface_hub


def _utils() -> Any:
    return importlib.import_module("huggingface_hub.utils")


def _mapped(repository: str, hub: ModuleType, call: Any) -> Any:
    """Turn what the library and its HTTP client raise into `SourceUnavailable`.

    The HTTP client's own exceptions have changed with its versions and share no root that could be named
    here, so everything is caught but our own and what the disk says: a full disk is not an absent hub.
    """
    errors = hub.errors
    try:
        return call()
    except (SourceUnavailable, MemoryError):
        raise
    except errors.OfflineModeIsEnabled:
        raise SourceUnavailable("HF_HUB_OFFLINE is set") from None
    except errors.GatedRepoError:
        raise SourceUnavailable(
            f"{repository} wants its licence accepted on the hub, and HF_TOKEN set"
        ) from None
    except errors.RepositoryNotFoundError:
        raise SourceUnavailable(f"the hub has no repository {repository}") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
            raise
        raise SourceUnavailable(f"the hub failed ({type(error).__name__})") from None
