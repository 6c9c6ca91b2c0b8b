"""What every test starts from: no setting or statistics of the user's, and warnings as errors (pyproject.toml)."""

import os
from pathlib import Path

import hypothesis
import pytest

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
