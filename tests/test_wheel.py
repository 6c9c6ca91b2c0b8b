"""The wheel, installed in a fresh environment outside the checkout, completes a file."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True)
    return next(folder.glob("treefill-*.whl"))


def test_the_wheel_holds_what_the_package_reads(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    for wanted in (
        "treefill/grammars/python/language.toml",
        "treefill/grammars/python/templates.toml",
        "treefill/gpu/apply_mask.py",
        "treefill/models/manifest.toml",
        "treefill/_kernels.pyi",
        "treefill/py.typed",
    ):
        assert wanted in names
    assert any(name.startswith("treefill/_kernels.") and name.endswith(".so") for name in names)
    assert not any(name.startswith(("tests/", "kernels/", "server/")) for name in names)


def test_the_installed_wheel_completes_a_file(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False)
    site = next((environment / "lib").glob("python*/site-packages"))
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)],
        check=True,
    )
    # The dependencies are this environment's: downloading them again would prove nothing about our wheel.
    (site / "dependencies.pth").write_text(str(Path(pytest.__file__).parent.parent) + "\n")
    file = tmp_path / "fib.py"
    file.write_text("def fibonacci(n):\n    if n < 2:\n        return n\n    ret\n")
    script = "import treefill, sys; print(treefill.__path__, file=sys.stderr); "
    script += "from treefill.__main__ import main; main()"
    run = subprocess.run(
        [
            str(environment / "bin" / "python"),
            "-S",
            "-c",
            _without_editable_hook(site) + script,
            "complete",
            str(file),
            "4:8",
            "--json",
        ],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert str(ROOT) not in run.stderr
    assert json.loads(run.stdout)["text"].startswith("urn fibonacci(n")


def _without_editable_hook(site: Path) -> str:
    """Start without site's hooks: the development environment has one that imports treefill from the checkout."""
    dependencies = (site / "dependencies.pth").read_text().strip()
    return f"import sys; sys.path[:0] = [{str(site)!r}, {dependencies!r}]; "
