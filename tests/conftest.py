"""What every test starts from: no setting or statistics of the user's, and warnings as errors (pyproject.toml)."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from treefill.syntax.grammars import load
from treefill.syntax.rules import kinds

KEPT = {"TREEFILL_CACHE_DIR", "TREEFILL_MODEL_SOURCES"}
"""Where the real model lies and comes from is the caller's to say."""

# GPU kernels are tested without a GPU. Triton reads this when it is imported, so before anything can.
os.environ["TRITON_INTERPRET"] = "1"

# A busy machine makes an example slow, not wrong.
hypothesis.settings.register_profile("treefill", deadline=None)
hypothesis.settings.load_profile("treefill")


@pytest.fixture(autouse=True, scope="session")
def _no_settings_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in [name for name in os.environ if name.startswith("TREEFILL_") and name not in KEPT]:
        del os.environ[name]
    os.environ["TREEFILL_SETTINGS"] = str(Path(tmp_path_factory.mktemp("settings")) / "none.toml")
    os.environ["TREEFILL_STATE_DIR"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture
def without_wheel(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes as if a grammar's wheel were not installed, by the name of its module, also where it is loaded already."""

    def remove(module: str) -> None:
        monkeypatch.setitem(sys.modules, module, None)
        for name in ("baseline", "check", "dialect", "matcher", "rules.kinds", "rules.ruling"):
            monkeypatch.setattr(f"treefill.syntax.{name}.load", load.__wrapped__)  # type: ignore[attr-defined]
        kinds.kinds_in.cache_clear()

    return remove
