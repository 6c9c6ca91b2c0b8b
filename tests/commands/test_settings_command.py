"""`treefill settings`: every setting and where its value came from."""

import pytest
from treefill.commands.settings import settings_command


def test_in_a_narrow_terminal_names_and_values_are_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns = [f"secret-of-project-{number}" for number in range(3)]
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TREEFILL_SECRET_PATTERNS", str(patterns).replace("'", '"'))

    settings_command()

    rows = [
        line.split("\u2502") for line in capsys.readouterr().out.splitlines() if line.count("\u2502") == 5
    ]
    values, origins = ("".join(row[column].strip() for row in rows) for column in (2, 3))
    assert "TREEFILL_SECRET_PATTERNS" in origins
    assert all(pattern in values for pattern in patterns)
