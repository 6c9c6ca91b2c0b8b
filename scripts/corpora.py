"""Fetch real files in languages of which a machine has few: `make corpora`. All of it goes into `build/corpora`.

    sql/           scripts of PostgreSQL and of extensions to it, from Debian's packages
    typescript/    sources of well-known packages from npm, TSX among them
    more/          Go, Rust, Java, C#, PHP, Ruby, Lua, Kotlin, CSS, XML, TOML, Terraform and others, from both

Nothing is installed and nothing of it is run. Debian's packages come by apt, which checks them, in the version that
this release of Debian has; npm's are pinned by version and hash. The second time only what is missing is done.
"""

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPORA = ROOT / "build" / "corpora"

DEBIAN = {
    "sql": (
        "postgresql-15",
        "postgresql-15-londiste-sql",
        "postgresql-15-mimeo",
        "postgresql-15-orafce",
        "postgresql-15-partman",
        "postgresql-15-periods",
        "postgresql-15-pglogical",
        "postgresql-15-pgq3",
        "postgresql-15-pgrouting-scripts",
        "postgresql-15-pgtap",
    ),
    "more": (
        *("golang-1.19-src", "openjdk-17-source", "libruby3.1", "ruby-activesupport", "ruby-activerecord"),
        *(
            "librust-serde-dev",
            "librust-tokio-dev",
            "librust-regex-dev",
            "librust-clap-dev",
            "librust-syn-dev",
        ),
        *(
            "librust-hyper-dev",
            "librust-rayon-dev",
            "librust-rand-dev",
            "librust-chrono-dev",
            "librust-url-dev",
        ),
        *("php-symfony-console", "php-symfony-http-kernel", "php-doctrine-orm", "php-twig", "phpunit"),
        *("lua-penlight", "lua-busted", "lua-argparse", "lua-cqueues", "neovim-runtime"),
        *("docbook-xsl", "cmake-data", "dracut-core", "initramfs-tools"),
        "r-cran-dplyr",
        *(
            "golang-github-hashicorp-hcl-dev",
            "golang-github-hashicorp-hcl-v2-dev",
            "golang-github-hashicorp-terraform-json-dev",
        ),
    ),
}
"""Folder → packages."""
ENDINGS = {
    "sql": (".sql", ".sql.in"),
    "typescript": (".ts", ".mts", ".cts", ".tsx"),
    "more": (
        *(
            ".go",
            ".rs",
            ".java",
            ".cs",
            ".php",
            ".rb",
            ".lua",
            ".kt",
            ".swift",
            ".css",
            ".html",
            ".xml",
            ".svg",
        ),
        *(
            ".toml",
            ".cmake",
            ".sh",
            ".r",
            ".R",
            ".scala",
            ".ex",
            ".exs",
            ".tex",
            ".tf",
            ".hcl",
            ".yml",
            "Makefile",
            "Dockerfile",
        ),
    ),
}
"""What is kept of a folder's packages."""
NPM_SHA512 = {
    "typescript": {
        "@react-spectrum/s2@1.7.1": (
            "MMuEtebNabzzglLiGGSyXkg/yEig1cLqmq/JSKlYS+9cKzQoxwUIWtbdZLFFE9Ju0MPH9zNfpHXma1q9+hC+Yg=="
        ),
        "@tanstack/query-core@5.108.4": (
            "2Ks5dlLWz4eXJrthOyG0qW3SLt3xx0RrQmAmN0rnmogiaaOYuWiAe6HAm9KE2b2v8nig+vraNz8fsfZ6fF6zFg=="
        ),
        "@tanstack/react-query@5.108.4": (
            "GlTa94kfEKTVsbzXe58rFA3GZ0ZE7N1aFtbZAfOS3XxMv8YNn4C+8rsz40LorHLazdm5PsqCroWaYAR+ZkMXMQ=="
        ),
        "rxjs@7.8.2": (
            "dhKf903U/PQZY6boNNtAGdWbG85WAbjT/1xYoZIC7FAY0yWapOBQVsVrDl58W86//e1VpMNBtRV4MaXfdMySFA=="
        ),
        "zod@4.6.7": (
            "g8W2D2kU6a8untc053fX1uVBKzM7yqAxW/3zwk83+6RyF2+SKOuV+c0wBDhUwzV1PaGapmZH+rmcUzPf+3CGwg=="
        ),
    },
    "more": {
        "@capacitor/ios@8.5.2": (
            "eOT2S67AfTFG7KN0T3oxwAajrJz4rSye+ODfvChiwrk0F/+kWufFM1qU6cDjGJUOfwdAoeuEpZyWHSwZlu4GFg=="
        ),
        "@picocss/pico@2.1.1": (
            "kIDugA7Ps4U+2BHxiNHmvgPIQDWPDU4IeU6TNRdvXQM1uZX+FibqDQT2xUOnnO2yq/LUHcwnGlu1hvf4KfXnMg=="
        ),
        "bootstrap@5.3.9": (
            "20cU0rcfw8WdxtVbmfU+xT2EjvVTw9Ror/h1Qvd7DXCujRg8OO9mdBCsmTHdJFf3BuadmBNJtgIuUXsBqSkk/w=="
        ),
        "com.neuecc.unirx@7.1.0": (
            "UpgdeFz60ZvD8jR1slG4X+Yuym8gP3FHWXczJbnXYJzSjr57X1Tz6dZee8twU+Qk4ld8QeFjdhj8PlCBsgHx1g=="
        ),
        "react-native@0.76.5": (
            "op2p2kB+lqMF1D7AdX4+wvaR0OPFbvWYs+VBE7bwsb99Cn9xISrLRLAgFflZedQsa5HvnOGrULhtnmItbIKVVw=="
        ),
    },
}
"""Folder → packages, each with its hash."""


def main() -> None:
    """Do what is missing, a line a step; a source that this machine can't ask is told and passed over."""
    (CORPORA / "download").mkdir(parents=True, exist_ok=True)
    if has("apt-get", "dpkg-deb"):
        for kind, names in DEBIAN.items():
            for name in names:
                fetch_debian(kind, name)
    if has("npm"):
        for kind, packages in NPM_SHA512.items():
            for name, sha512 in packages.items():
                fetch_npm(kind, name, sha512)
    say("Ready. treefill eval validity finds it by itself.")


def has(*programs: str) -> bool:
    """True where all of them are there; otherwise a line on what is left out."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        say(f"No {' and no '.join(missing)} here: what comes by it is left out.")
    return not missing


def fetch_debian(kind: str, name: str) -> None:
    """The sources in a package, those in an archive within it, too."""
    folder = CORPORA / kind / name
    if folder.exists():
        return
    say(f"Fetching {name}")
    download = CORPORA / "download"
    if not is_done("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", name):
        say(f"This system's sources have no {name}: left out.")
        return
    archive = max(download.glob(f"{name}_*.deb"))
    whole = download / name
    run("dpkg-deb", "--extract", str(archive), str(whole))
    archive.unlink()
    for sources in sorted(whole.rglob("src.zip")):
        if not sources.is_symlink():
            with zipfile.ZipFile(sources) as within:
                within.extractall(sources.parent / "src")  # nothing outside the folder
    keep(whole, folder, ENDINGS[kind])


def fetch_npm(kind: str, name: str, sha512: str) -> None:
    """The sources of a package, of the pinned version and hash."""
    plain, _, version = name.strip("@").replace("/", "-").rpartition("@")
    folder = CORPORA / kind / plain
    if folder.exists():
        return
    say(f"Fetching {name}")
    run("npm", "pack", "--silent", name)
    archive = CORPORA / "download" / f"{plain}-{version}.tgz"
    if base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() != sha512:
        archive.unlink()
        sys.exit(f"corpora: {name} has another hash than the pinned one; it was deleted.")
    whole = CORPORA / "download" / plain
    with tarfile.open(archive) as tar:
        tar.extractall(whole, filter="data")  # nothing outside the folder, no device, no link out of it
    archive.unlink()
    keep(whole, folder, ENDINGS[kind])


def keep(whole: Path, folder: Path, endings: tuple[str, ...]) -> None:
    """Move the files with these endings; the folder is there as soon as all of them are."""
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for path in sorted(whole.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name.endswith(endings):
            target = partial / path.relative_to(whole)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target.with_name(target.name.removesuffix(".in")))
    shutil.rmtree(whole)
    partial.mkdir(parents=True, exist_ok=True)
    partial.rename(folder)


def run(*command: str) -> None:
    """A program, in the folder of downloads; where it fails, an end."""
    if not is_done(*command):
        sys.exit(f"corpora: {command[0]} failed (its message stands above). Mend that and try again.")


def is_done(*command: str) -> bool:
    """True where the program came to a good end."""
    done = subprocess.run(command, cwd=CORPORA / "download", stdout=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def say(line: str) -> None:
    """Progress, at once also in a log."""
    print(f"corpora: {line}", flush=True)


if __name__ == "__main__":
    main()
