"""Writes the server's settings into the extension's package.json, where an editor looks for them.

What names a path, takes memory or chooses the model is of scope `machine`: a workspace cannot set it.
"""

import json
from pathlib import Path
from typing import Any

from treefill.settings import ENGINE_SETTINGS, PROTECTED_SETTINGS, Settings

PACKAGE = Path(__file__).parent.parent / "extension" / "package.json"
_OF_THE_MACHINE = {*ENGINE_SETTINGS, *PROTECTED_SETTINGS, "statistics"}
_TAKEN_OVER = ("type", "enum", "minimum", "maximum", "exclusiveMinimum", "multipleOf", "items")


def main() -> None:
    """Rewrite package.json where it differs."""
    text = PACKAGE.read_text()
    if (wanted := with_settings(text)) != text:
        PACKAGE.write_text(wanted)


def with_settings(package: str) -> str:
    """The text of package.json with the settings that there are now."""
    contents = json.loads(package)
    contents["contributes"]["configuration"][0]["properties"] = properties()
    return json.dumps(contents, indent=2, ensure_ascii=False) + "\n"


def properties() -> dict[str, dict[str, Any]]:
    """VS Code's form of each setting."""
    fields = Settings.model_json_schema()["properties"]
    return {
        f"treefill.{camel_case(name)}": _property(name, schema, order)
        for order, (name, schema) in enumerate(fields.items())
    }


def camel_case(name: str) -> str:
    """`max_lines` → `maxLines`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _property(name: str, schema: dict[str, Any], order: int) -> dict[str, Any]:
    is_path = "anyOf" in schema  # a path or nothing: an empty text is nothing
    default = schema["default"]
    return {
        **({"type": "string"} if is_path else {key: schema[key] for key in _TAKEN_OVER if key in schema}),
        "default": "" if default is None else default,
        "description": schema["description"],
        "scope": "machine" if name in _OF_THE_MACHINE else "window",
        "order": order,
    }


if __name__ == "__main__":
    main()
