"""Which pieces of other files the model may see, and which files it never sees.

Chosen by similarity to the lines near the cursor, shown in the order of path and line: similarity decides
membership only, and the lines compared change at every eighth line, so that a keystroke changes no prompt
token. A secrets file is known by its name and by what a symbolic link leads to; a hard link under a harmless
name cannot be told from an ordinary file.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from treefill.completion.request import CompletionRequest, Refusal
from treefill.engine.api import TokenId, Vocabulary
from treefill.syntax.languages import Language
from treefill.text import Document, count_lines, line_bounds, to_lf, without_surrogates

CHUNK_LINES = 32
QUERY_LINES_ABOVE = 32
QUERY_LINES_BELOW = 16
QUERY_STEP = 8
"""The compared lines above the cursor end at a multiple of this."""
MAX_NEIGHBOUR_CHARS = 400_000
"""Of a larger neighbour only the beginning is looked at."""
MAX_CHUNK_CHARS = 6_000
"""Chunks of longer lines are data, not code."""
MAX_MISFITS = 3
"""The search ends when so many chunks did not fit what is left of the budget."""

_DATA_ENDINGS = ("cfg", "conf", "ini", "properties", "toml", "txt", "xml", "yaml", "yml")
"""Code in a file called `secrets.py` is code; data in a file called `secrets.yaml` is secrets."""

SECRET_PATTERNS: tuple[str, ...] = (
    ".env",
    ".env.*",
    ".env-*",
    ".env_*",
    ".env[0-9]*",
    "*.env",
    ".envrc",
    ".flaskenv",
    ".dev.vars",
    ".dev.vars.*",
    ".secret",
    ".secrets",
    "*.pem",
    "*.key",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.asc",
    "*.gpg",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".npmrc",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    ".dockerconfigjson",
    "credentials",
    "*credentials.json",
    "*secret.json",
    "*secrets.json",
    "client_secret*.json",
    *(f"*[-_.]{stem}.{ending}" for stem in ("secrets", "secret") for ending in _DATA_ENDINGS),
    *(f"{stem}.{ending}" for stem in ("credentials", "secrets", "secret") for ending in _DATA_ENDINGS),
    *(f"*{stem}*.json" for stem in ("service-account", "service_account", "serviceaccount")),
    "*.tfvars",
    "*.tfvars.json",
    "*.tfstate",
    "*.tfstate.*",
    "*.tfrc.json",
    ".terraformrc",
    "kubeconfig",
    "auth.json",
    "rclone.conf",
    "pip.conf",
    ".databrickscfg",
    ".smbcredentials",
    ".vault-token",
    ".vault_pass*",
    ".s3cfg",
    ".boto",
    "local.settings.json",
    "wp-config.php",
    ".*_history",
    "fish_history",
    ".docker/config.json",
    "gh/hosts.yml",
    ".m2/settings*.xml",
    ".gradle/gradle.properties",
    ".git/config",
    ".config/gcloud/*",
)
"""Names of files that hold secrets by custom, with their folder where the name alone says nothing.

Plain `config.json` and `settings.json` hold none. What shells and consoles remember holds passwords.
"""

SECRET_FOLDERS = frozenset(
    {
        ".aws",
        ".ssh",
        ".kube",
        ".gnupg",
        ".azure",
        ".gcloud",
        ".secrets",
        ".password-store",
        "legacy_credentials",
    }
)
_HARMLESS_ENDINGS = tuple(
    f".env{mark}{word}" for mark in ".-_" for word in ("example", "sample", "template", "dist")
)
_BACKUP_ENDING = re.compile(r"(?:~|\.(?:bak|backup|copy|old|orig|save|sw[a-p]|~\d+~)\d*|\.\d+)+\Z")
"""What editors, tools and people append to the name of a file whose earlier state they keep."""
_URI = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
"""How a URI begins; a single letter is a drive."""

_IDENTIFIER = re.compile(r"[^\W\d]\w{2,}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some neighbouring lines of one file."""

    path: str
    """As the model sees it: relative to the workspace."""
    first_line: int
    """Counted from 1."""
    last_line: int
    text: str

    @property
    def label(self) -> str:
        """`a.py:1-32`, for an explanation."""
        return f"{self.path}:{self.first_line}-{self.last_line}"


def gather_neighbours(
    request: CompletionRequest, vocabulary: Vocabulary, n_budget: int
) -> tuple[tuple[Chunk, ...], tuple[Refusal, ...]]:
    """The chunks to show, in the order of path and line, and the files that were refused."""
    allowed, refusals = _sort_out(request)
    if not allowed or n_budget <= 0:
        return (), tuple(refusals)
    chunks = [chunk for path, document in allowed for chunk in _cut(path, document)]
    chosen = _take(
        _by_similarity(chunks, query_words(request.document, request.offset)), vocabulary, n_budget
    )
    return tuple(_joined(sorted(chosen, key=_place))), tuple(refusals)


def texts_in(language: Language, request: CompletionRequest) -> tuple[str, ...]:
    """The other files in a language that has several grammars, to tell which of them is meant. No secrets files."""
    if len(language.grammars) < 2:
        return ()
    return tuple(
        document.text[:MAX_NEIGHBOUR_CHARS]
        for document in request.neighbours
        if document.language == language.id and not is_secret(document.path, request.secret_patterns)
    )


def secret_pattern(path: str, own_patterns: tuple[str, ...] = ()) -> str | None:
    """The pattern that makes `path` a secrets file, or None.

    It may be a path of any system or a URI. A name that holds a percent sign or a query mark is judged as it
    stands and as a URI would mean it.
    """
    found = (_pattern_of(each, own_patterns) for each in _readings(path))
    return next((pattern for pattern in found if pattern), None)


def _readings(path: str) -> tuple[str, ...]:
    """What the path may mean, with slashes, and no blanks or dots behind the names: Windows drops them."""
    forms = [_meant(path)] if _URI.match(path) else [path, _meant(path)]
    slashed = ("/".join(_bare(part) for part in re.split(r"[\\/]", form)) for form in forms)
    return tuple(dict.fromkeys(slashed))


def _bare(part: str) -> str:
    return part.strip().rstrip(". ") or part.strip()


def _pattern_of(path: str, own_patterns: tuple[str, ...]) -> str | None:
    *folders, name = [part.lower() for part in PurePosixPath(path).parts] or [""]
    for folder in folders:
        if folder in SECRET_FOLDERS:
            return f"{folder}/"
    if not _without_backup_ending(name).endswith(_HARMLESS_ENDINGS):
        for pattern in SECRET_PATTERNS:
            if _is_named_by(pattern, [*folders, name]):
                return pattern
    places = {path, _without_backup_ending(path)}
    for pattern in own_patterns:
        is_name = _is_named_by(pattern.lower(), [name])
        if is_name or any(fnmatchcase(f"/{place}", f"*/{pattern}") for place in places):
            return pattern
    return None


def is_secret(path: str, own_patterns: tuple[str, ...] = ()) -> str | None:
    """The pattern that makes a file secret by its name or by the name of what it links to, or None."""
    if found := secret_pattern(path, own_patterns):
        return found
    if not _URI.match(path):
        return secret_pattern(str(_resolved(path)), own_patterns)
    is_file = path.lower().startswith("file:///")
    return secret_pattern(str(_resolved(_meant(path)[len("file://") :])), own_patterns) if is_file else None


def _meant(uri: str) -> str:
    """Without query and fragment, and percent signs decoded."""
    return unquote(re.split(r"[?#]", uri, maxsplit=1)[0])


def _is_named_by(pattern: str, parts: list[str]) -> bool:
    """True where the last of `parts`, as many as the pattern has, are what it names or a backup of that."""
    *folders, name = parts[-1 - pattern.count("/") :]
    bare = _without_backup_ending(name)
    # Vim calls the swap file of `key.pem` `.key.pem.swp`.
    names = {name, bare, bare.removeprefix(".")}
    return any(fnmatchcase("/".join((*folders, each)), pattern) for each in names)


def _without_backup_ending(name: str) -> str:
    return _BACKUP_ENDING.sub("", name)


def query_words(document: Document, offset: int) -> frozenset[str]:
    """Identifiers near the cursor, those of the lines being typed left out."""
    line_start, line_end = line_bounds(document.text, offset)
    n_skipped = (count_lines(document.text, line_start) - 1) % QUERY_STEP
    near = document.text[max(0, line_start - 2 * MAX_CHUNK_CHARS) : line_start]
    above = _last_lines(near, QUERY_LINES_ABOVE + n_skipped)
    below = to_lf(document.text[line_end : line_end + MAX_CHUNK_CHARS]).split("\n")[1 : QUERY_LINES_BELOW + 1]
    return identifiers("\n".join((*above[: len(above) - n_skipped], *below)))


def identifiers(text: str) -> frozenset[str]:
    """The words of three letters and more that a programmer could have named."""
    return frozenset(_IDENTIFIER.findall(text))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Shared words by all words, 0 where there are none."""
    n_shared = len(left & right)
    n_all = len(left) + len(right) - n_shared
    return n_shared / n_all if n_all else 0.0


def _last_lines(text: str, count: int) -> list[str]:
    """The last whole lines of a text that ends with a line ending, or all there are."""
    return to_lf(text).split("\n")[:-1][-count:]


def _sort_out(request: CompletionRequest) -> tuple[list[tuple[str, Document]], list[Refusal]]:
    own = _resolved(request.document.path)
    root = _resolved(str(request.workspace_root)) if request.workspace_root else own.parent
    allowed: dict[Path, tuple[str, Document]] = {}
    refusals: list[Refusal] = []
    for document in request.neighbours:
        place = _resolved(document.path)
        pattern = is_secret(document.path, request.secret_patterns)
        if pattern:
            refusals.append(Refusal(document.path, f"secrets file (matches {pattern})"))
        elif place == own:
            refusals.append(Refusal(document.path, "the document itself"))
        elif not place.is_relative_to(root):
            refusals.append(Refusal(document.path, f"outside the workspace {root}"))
        elif place in allowed:
            refusals.append(Refusal(document.path, "given twice"))
        else:
            allowed[place] = (place.relative_to(root).as_posix(), document)
    return list(allowed.values()), refusals


def _resolved(path: str) -> Path:
    try:
        return Path(path).resolve()
    except (OSError, ValueError, RuntimeError):
        return Path(path).absolute()


def _cut(path: str, document: Document) -> Iterator[Chunk]:
    lines = to_lf(document.text[:MAX_NEIGHBOUR_CHARS].removeprefix("\ufeff")).split("\n")
    for first in range(0, len(lines), CHUNK_LINES):
        part = lines[first : first + CHUNK_LINES]
        text = "\n".join(part) + "\n"
        if text.strip() and len(text) <= MAX_CHUNK_CHARS:
            yield Chunk(path, first + 1, first + len(part), text)


def _by_similarity(chunks: list[Chunk], query: frozenset[str]) -> list[Chunk]:
    return sorted(chunks, key=lambda chunk: (-jaccard(_identifiers_of(chunk.text), query), *_place(chunk)))


def _take(chunks: list[Chunk], vocabulary: Vocabulary, n_budget: int) -> Iterator[Chunk]:
    n_left, n_misfits = n_budget, 0
    for chunk in chunks:
        n_tokens = _count_tokens(chunk.path + chunk.text, vocabulary.encode) + 2
        if n_tokens <= n_left:
            n_left -= n_tokens
            yield chunk
        else:
            n_misfits += 1
            if n_misfits == MAX_MISFITS:
                return


# Both are asked again at each keystroke, of texts that seldom change; the bounds hold several large files.
@lru_cache(maxsize=4096)
def _identifiers_of(text: str) -> frozenset[str]:
    return identifiers(text)


@lru_cache(maxsize=256)
def _count_tokens(text: str, encode: Callable[[str], list[TokenId]]) -> int:
    return len(encode(without_surrogates(text)))


def _joined(chunks: list[Chunk]) -> Iterator[Chunk]:
    """Chunks that follow each other in one file become one."""
    current: Chunk | None = None
    for chunk in chunks:
        if current and current.path == chunk.path and current.last_line + 1 == chunk.first_line:
            current = Chunk(current.path, current.first_line, chunk.last_line, current.text + chunk.text)
            continue
        if current:
            yield current
        current = chunk
    if current:
        yield current


def _place(chunk: Chunk) -> tuple[str, int]:
    return chunk.path, chunk.first_line
