"""Settings: which source wins, and what a wrong value is told."""

from pathlib import Path

import pytest
from treefill.errors import BadSetting
from treefill.settings import (
    ENGINE_SETTINGS,
    PROTECTED_SETTINGS,
    Settings,
    load_settings,
    without_protected,
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"TREEFILL_{name.upper()}", raising=False)
    monkeypatch.setenv("TREEFILL_SETTINGS", str(tmp_path / "settings.toml"))


def test_later_sources_overrule_earlier_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("max_lines = 3\nseed = 4\ntop_k = 5\n")
    monkeypatch.setenv("TREEFILL_SEED", "6")
    monkeypatch.setenv("TREEFILL_TOP_K", "7")

    loaded = load_settings({"top_k": 8, "top_p": None})

    assert (loaded.settings.max_lines, loaded.settings.seed, loaded.settings.top_k) == (3, 6, 8)
    assert loaded.origins["max_lines"] == str(file)
    assert loaded.origins["seed"] == "TREEFILL_SEED"
    assert loaded.origins["top_k"] == "editor"
    assert loaded.origins["top_p"] == "default"


def test_lists_are_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREEFILL_SECRET_PATTERNS", '["*.secret", "vault/*"]')

    assert load_settings().settings.secret_patterns == ["*.secret", "vault/*"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"max_lines": 0},
            r"The setting max_lines is 0 \(editor\): input should be greater than or equal to 1",
        ),
        (
            {"engine": "cuda"},
            r"The setting engine is 'cuda' \(editor\): input should be 'int8' or 'bitsandbytes'",
        ),
        ({"top_p": "lots"}, r"The setting top_p is 'lots' \(editor\): input should be a valid number"),
        ({"max_line": 3}, r"There is no setting max_line \(editor\): did you mean max_lines\?"),
        ({"zzz": 3}, r"There is no setting zzz \(editor\): `treefill settings` lists them all"),
    ],
)
def test_a_wrong_value_is_told_what_is_allowed(given: dict[str, object], expected: str) -> None:
    with pytest.raises(BadSetting, match=expected):
        load_settings(given)


def test_a_wrong_value_in_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREEFILL_MAX_LINES", "many")

    with pytest.raises(BadSetting, match=r"max_lines is 'many' \(TREEFILL_MAX_LINES\)"):
        load_settings()


@pytest.mark.parametrize("content", ["max_lines = ", "= 3", "\x00"])
def test_a_malformed_file_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "settings.toml").write_text(content)

    with pytest.raises(BadSetting, match=r"settings\.toml is not TOML"):
        load_settings()


def test_a_list_in_the_environment_that_is_not_json_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREEFILL_SECRET_PATTERNS", "*.secret")

    with pytest.raises(BadSetting, match="lists are written as JSON"):
        load_settings()


def test_every_setting_has_a_sentence() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("name", [*PROTECTED_SETTINGS])
def test_an_editor_does_not_set_what_a_workspace_must_not(name: str) -> None:
    allowed, (sentence,) = without_protected({name: 5, "max_lines": 3, "model": None})

    assert allowed == {"max_lines": 3, "model": None}
    assert sentence.startswith(f"The setting {name} is not taken from an editor")
    assert f"TREEFILL_{name.upper()}" in sentence


def test_an_editor_cannot_make_cores_of_its_own_but_by_another_model() -> None:
    assert set(ENGINE_SETTINGS) - set(PROTECTED_SETTINGS) == {"model", "engine"}


@pytest.mark.parametrize(
    "model",
    ["/etc/passwd", "./m", "../m", "~/m", "a/../../m", "m.gguf", "a/m.safetensors", "C:/m", "\\\\host\\m"],
)
def test_a_model_that_an_editor_names_is_no_path(model: str) -> None:
    allowed, (sentence,) = without_protected({"model": model})

    assert allowed == {}
    assert "treefill model list" in sentence


@pytest.mark.parametrize("model", ["", "qwen2.5-coder-0.5b", "Qwen/Qwen2.5-Coder-0.5B", "my..finetune"])
def test_a_model_that_an_editor_names_is_taken(model: str) -> None:
    assert without_protected({"model": model}) == ({"model": model}, ())
