"""Which pieces of other files the model may see, and which never."""

from pathlib import Path

import pytest
from treefill.completion import CompletionRequest, Declined, Reason, complete
from treefill.completion.context import Chunk, gather_neighbours, is_secret
from treefill.completion.request import Refusal
from treefill.engine.api import CancelFlag
from treefill.text import Document

from tests.helpers.scripted_engine import ByteVocabulary, ScriptedEngine

VOCABULARY = ByteVocabulary()


def numbered(word: str, count: int) -> str:
    return "".join(f"{word}_{number} = {word}({number})\n" for number in range(count))


def gather(
    root: Path, text: str, neighbours: dict[str, str], n_budget: int = 5000, **options: object
) -> tuple[tuple[Chunk, ...], tuple[Refusal, ...]]:
    """Neighbours of a document that ends where its cursor stands."""
    document = Document(str(root / "main.py"), text, "python")
    others = tuple(Document(str(root / name), content, "python") for name, content in neighbours.items())
    request = CompletionRequest(
        document,
        len(text),
        others,
        workspace_root=root,
        **options,  # type: ignore[arg-type]
    )
    return gather_neighbours(request, VOCABULARY, n_budget)


def test_the_most_similar_chunks_come_in_the_order_of_path_and_line(tmp_path: Path) -> None:
    chunks, refusals = gather(
        tmp_path,
        numbered("invoice", 8),
        {"z.py": numbered("invoice", 32), "a.py": numbered("invoice", 32), "m.py": numbered("weather", 32)},
        n_budget=2 * (len(numbered("invoice", 32)) + 10),
    )

    assert [chunk.label for chunk in chunks] == ["a.py:1-32", "z.py:1-32"]
    assert not refusals


def test_a_keystroke_changes_no_neighbour(tmp_path: Path) -> None:
    files = {f"{name}.py": numbered(name, 64) for name in ("invoice", "weather", "order", "price")}
    begun = numbered("order", 8)
    expected = gather(tmp_path, begun, files, n_budget=1500)
    typed = "weather = price(invoice)\ninvoice = weather"
    for n_typed in range(len(typed)):
        assert gather(tmp_path, begun + typed[:n_typed], files, n_budget=1500) == expected


def test_the_budget_is_kept_and_each_range_comes_once(tmp_path: Path) -> None:
    chunks, _ = gather(tmp_path, numbered("order", 8), {"a.py": numbered("order", 500)}, n_budget=3000)

    n_tokens = sum(len(VOCABULARY.encode(chunk.path + chunk.text)) for chunk in chunks)
    assert 1500 < n_tokens <= 3000
    lines = [line for chunk in chunks for line in range(chunk.first_line, chunk.last_line + 1)]
    assert len(lines) == len(set(lines))


def test_neighbouring_chunks_are_joined(tmp_path: Path) -> None:
    (chunk,), _ = gather(tmp_path, numbered("order", 8), {"a.py": numbered("order", 64)})

    assert chunk.label == "a.py:1-64"
    assert chunk.text.startswith(numbered("order", 64))


class CountingVocabulary(ByteVocabulary):
    """Notes what is encoded."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.encoded.append(text)
        return super().encode(text)


def test_large_neighbours_are_not_tokenised_as_a_whole(tmp_path: Path) -> None:
    vocabulary = CountingVocabulary()
    text = numbered("order", 8)
    files = tuple(
        Document(str(tmp_path / f"{name}.py"), numbered(f"order_{name}", 3000), "python") for name in "abcde"
    )
    request = CompletionRequest(
        Document(str(tmp_path / "main.py"), text, "python"), len(text), files, workspace_root=tmp_path
    )

    # One chunk fits and leaves room that no other fits into.
    chunks, _ = gather_neighbours(request, vocabulary, 1300)
    n_encoded = len(vocabulary.encoded)
    gather_neighbours(request, vocabulary, 1300)

    assert len(chunks) == 1
    assert sum(map(len, vocabulary.encoded)) < 10_000
    assert len(vocabulary.encoded) == n_encoded, "a keystroke encodes no neighbour again"


def test_without_a_budget_no_neighbour_is_looked_at(tmp_path: Path) -> None:
    chunks, (refusal,) = gather(tmp_path, "x = 1\n", {"a.py": "order = 1\n", ".env": "KEY=1\n"}, n_budget=0)

    assert not chunks
    assert refusal.path.endswith(".env")


def test_the_document_itself_is_never_its_own_neighbour(tmp_path: Path) -> None:
    chunks, (refusal,) = gather(tmp_path, "x = 1\n", {"./main.py": "x = 1\n"})

    assert not chunks
    assert refusal.reason == "the document itself"


def test_a_file_given_twice_is_shown_once(tmp_path: Path) -> None:
    chunks, (refusal,) = gather(tmp_path, "x = 1\n", {"a.py": "order = 1\n", "sub/../a.py": "order = 1\n"})

    assert len(chunks) == 1
    assert refusal.reason == "given twice"


def test_nothing_outside_the_workspace_is_shown_even_through_a_link(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (tmp_path / "outside.py").write_text("order = 1\n")
    (root / "link.py").symlink_to(tmp_path / "outside.py")

    chunks, refusals = gather(root, "x = 1\n", {"link.py": "order = 1\n", "../outside.py": "order = 1\n"})

    assert not chunks
    assert [refusal.reason.split(" the workspace")[0] for refusal in refusals] == ["outside", "outside"]


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".env.local",
        "prod.env",
        "deploy/server.pem",
        "server.KEY",
        "home/.ssh/config",
        ".aws/credentials",
        ".aws/config",
        ".kube/config",
        "id_rsa",
        "id_ed25519.pub",
        ".npmrc",
        ".netrc",
        ".pypirc",
        "credentials.json",
        "gcp_credentials.json",
        "secrets.yaml",
        "prod.tfvars",
        ".env~",
        ".env.bak",
        ".env-prod",
        ".env_staging",
        "app/.docker/config.json",
        "home/.config/gh/hosts.yml",
        "terraform.tfstate.backup",
        "terraform.tfstate.1700000000.backup",
        "server.pem.bak",
        "server.pem.orig.old",
        "key.pem~",
        ".key.pem.swp",
        ".id_rsa.swo",
        "key.pem.~1~",
        "credentials.json.bak2",
        "service-account.json",
        "service_account_prod.json",
        "gcp-service-account.json",
        ".vault-token",
        ".m2/settings.xml",
        ".m2/settings.xml.save",
        ".gradle/gradle.properties",
        ".config/gcloud/access_tokens.json",
        "local.settings.json",
        "wp-config.php",
        "WP-Config.php.BAK",
        ".bash_history",
        ".zsh_history",
        ".python_history",
        ".psql_history",
        "fish/fish_history",
        ".env1",
        ".flaskenv",
        ".dev.vars",
        ".secret",
        "key.pem.1",
        "prod.secrets.yaml",
        "application-secrets.yml",
        "client_secret_123.json",
        "auth.json",
        "rclone.conf",
        "pip.conf",
        ".databrickscfg",
        ".smbcredentials",
        "keystore.p8",
        ".git/config",
        ".password-store/x",
        ".env ",
        "key.pem  ",
        ".env.",
        " .env",
        "C:\\Users\\x\\.aws\\credentials",
        "C:\\Users\\x\\.ENV",
        "file:///home/u/%2Eenv",
        "file:///home/u/.env?x=1",
        "file:///home/u/.env#frag",
        "file:///c%3A/Users/x/.ssh%2Fconfig",
        "vscode-remote://wsl/home/u/.env",
        "untitled:/code/.env?a=/b.py",
        "home/u/%2Eenv",
        "home/u/.env?x=1",
    ],
)
def test_secrets_files_are_known_by_their_names(path: str) -> None:
    assert is_secret(path)


@pytest.mark.parametrize(
    "path",
    [
        "config.json",
        "settings.json",
        "config.yaml",
        "environment.py",
        "env.py",
        "keys.py",
        "keyboard.key.ts",
        "monkey.py",
        "secrets.py",
        "credentials_form.tsx",
        ".env.example",
        ".env-sample",
        ".env.example~",
        "private/a.py",
        "config.json.bak",
        "docker/config.json",
        ".docker/compose.yaml",
        "hosts.yml",
        "src/settings.xml",
        "project/gradle.properties",
        "service_account.py",
        "service-account.yaml",
        "wp-config-sample.php",
        "price_history.sql",
        "history.py",
        "gcloud.py",
        "src/gcloud/client.py",
        "backup.py",
        "notes.1",
        "auth.py",
        "environment1.py",
        "secrets_manager.yaml",
        "file:///home/u/main.py?file=.env",
        "C:\\work\\config.json",
        "100%/main.py",
        "what?/main.py",
        "..",
        "environment.bak.py",
        "~",
        "",
    ],
)
def test_ordinary_files_are_none(path: str) -> None:
    assert is_secret(path) is None


def test_the_users_own_patterns_count(tmp_path: Path) -> None:
    chunks, (refusal,) = gather(
        tmp_path, "x = 1\n", {"internal/plan.py": "order = 1\n"}, secret_patterns=("internal/*",)
    )

    assert not chunks
    assert refusal.reason == "secrets file (matches internal/*)"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("internal/*", "/home/me/internal/plan.py"),
        ("internal/*", "internal/plan.py"),
        ("*.Vault", "prod.vault"),
        ("*.vault", "prod.vault~"),
        ("plans/*.txt", "work/plans/a.txt.bak"),
    ],
)
def test_the_users_own_patterns_take_names_and_paths_and_backups_too(pattern: str, path: str) -> None:
    assert is_secret(path) is None
    assert is_secret(path, (pattern,)) == pattern


def test_a_link_to_a_secrets_file_is_one(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1\n")
    (tmp_path / "harmless.txt").symlink_to(tmp_path / ".env")

    assert is_secret(str(tmp_path / "harmless.txt")) == ".env"
    assert is_secret((tmp_path / "harmless.txt").as_uri() + "?x=1") == ".env"


def test_a_secret_never_reaches_the_prompt_and_the_reason_is_shown(tmp_path: Path) -> None:
    engine = ScriptedEngine('1"')
    request = CompletionRequest(
        Document(str(tmp_path / "main.py"), 'KEY = ""\n', "python"),
        7,
        (Document(str(tmp_path / ".env"), "KEY=sk-TEST-0000-not-real\n"),),
        workspace_root=tmp_path,
    )

    answer = complete(request, engine, CancelFlag())

    assert "sk-TEST" not in engine.vocabulary.decode(engine.requests[0].prompt_ids)
    assert [refusal.reason for refusal in answer.explanation.refusals] == ["secrets file (matches .env)"]


def test_inside_a_secrets_file_nothing_is_suggested(tmp_path: Path) -> None:
    engine = ScriptedEngine("1234")

    answer = complete(CompletionRequest(Document(str(tmp_path / ".env"), "KEY="), 4), engine, CancelFlag())

    assert isinstance(answer, Declined)
    assert answer.reason is Reason.SECRET_FILE
    assert not engine.requests
