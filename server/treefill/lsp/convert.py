"""Between the protocol's data and the front's values. What a client sends is taken as well as it can be meant.

Raw data comes in, since clients differ from the specification by a little: version 9 of VS Code's client sends trigger
kinds counted from 0 and ranges as pairs. A function returns None where nothing can be made of its input.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from lsprotocol import types
from pygls.uris import to_fs_path

from treefill.lsp.front import FrontAnswer, FrontItem
from treefill.lsp.status import Status
from treefill.text import Change, Position

ACCEPTED_COMMAND = "treefill.accepted"
_MAX_NUMBER = 2**31


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for an inline completion."""

    uri: str
    position: Position
    is_automatic: bool
    selected: tuple[Position, Position, str] | None = None
    """What the editor's own completion list has selected: the range that it replaces, and its text."""
    version: int | None = None
    """The document's version, where the client tells it (as Copilot's clients do)."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A document that an editor opens."""

    uri: str
    language: str
    version: int
    text: str

    @property
    def is_cell(self) -> bool:
        """True for a notebook's cell, however it was opened."""
        return self.uri.startswith("vscode-notebook-cell:")


@dataclass(frozen=True, slots=True)
class Changed:
    """Changes of one document."""

    uri: str
    version: int | None
    changes: tuple[Change, ...]


def asked_from(params: Any, counts_from_zero: bool) -> Asked | None:
    """An inline completion's parameters; `counts_from_zero` where this client is known to count trigger kinds so."""
    uri, position = uri_from(params), position_from(get(params, "position"))
    if uri is None or position is None:
        return None
    context = get(params, "context")
    kind = get(context, "triggerKind")
    invoked = 0 if counts_from_zero else 1
    selected = _selected_from(get(context, "selectedCompletionInfo"))
    version = number_from(get(get(params, "textDocument"), "version"))
    return Asked(uri, position, kind != invoked, selected, version)


def listed_from(params: Any) -> Asked | None:
    """A completion list's parameters: an editor asks for one by itself."""
    uri, position = uri_from(params), position_from(get(params, "position"))
    return Asked(uri, position, is_automatic=True) if uri is not None and position is not None else None


def counts_trigger_kinds_from_zero(params: Any) -> bool:
    """True where a request shows that its client is VS Code's version 9: its numbers alone tell it only at times."""
    context = get(params, "context")
    selected_range = get(get(context, "selectedCompletionInfo"), "range")
    is_pair = isinstance(selected_range, list) and _bounds_from(selected_range) is not None
    return get(context, "triggerKind") == 0 or is_pair


def accepted_from(argument: Any) -> tuple[str, int] | None:
    """The document and the length of a suggestion that was accepted: `_inline_item` has put them into its command."""
    uri, length = get(argument, "uri"), number_from(get(argument, "n_characters"))
    return (uri, length) if isinstance(uri, str) and length is not None else None


def opened_from(item: Any) -> Opened | None:
    """A text document item."""
    uri, language, text = get(item, "uri"), get(item, "languageId"), get(item, "text")
    if not isinstance(uri, str) or not isinstance(text, str):
        return None
    version = get(item, "version")
    return Opened(
        uri, language if isinstance(language, str) else "plaintext", number_from(version) or 0, text
    )


def changed_from(document: Any, changes: Any) -> Changed | None:
    """A versioned document's identifier and its content changes; None where one of them can't be followed."""
    uri = get(document, "uri")
    if not isinstance(uri, str) or not isinstance(changes, list):
        return None
    read = tuple(_change_from(change) for change in changes)
    if not all(read):
        return None
    return Changed(uri, number_from(get(document, "version")), tuple(change for change in read if change))


def uri_from(params: Any) -> str | None:
    """The URI of `textDocument`."""
    uri = get(get(params, "textDocument"), "uri")
    return uri if isinstance(uri, str) else None


def position_from(value: Any) -> Position | None:
    """A position; numbers out of all bounds are taken as far away, which the text brings back to its end."""
    line, character = number_from(get(value, "line")), number_from(get(value, "character"))
    if line is None or character is None:
        return None
    return Position(line, character)


def number_from(value: Any) -> int | None:
    """A whole number within bounds, however it is written; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return int(min(max(value, -_MAX_NUMBER), _MAX_NUMBER))


def get(value: Any, name: str) -> Any:
    """What an object has under a name; None where it is no object."""
    return value.get(name) if isinstance(value, dict) else None


def path_of(uri: str) -> str:
    """The path that rules about folders and secrets apply to; the URI itself where it names no file.

    A notebook's cell has its notebook's path and its own fragment, so that it lies in the same folder.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if parts.scheme == "file":
        return to_fs_path(uri) or uri
    if parts.scheme == "vscode-notebook-cell":
        return f"{unquote(parts.path)}#{parts.fragment}"
    return uri


def inline_list(answer: FrontAnswer, uri: str) -> dict[str, Any]:
    """The result of an inline completion: always a list, since an empty one clears what is shown and null does not."""
    return {"items": [_inline_item(item, uri) for item in answer.items]}


def status_of(status: Status) -> dict[str, Any]:
    """The parameters of `didChangeStatus`."""
    return {
        "busy": status.is_busy,
        "message": status.message,
        "kind": status.kind,
        "state": status.state,
        "percent": status.percent,
        "model": status.model,
        "tokensPerSecond": status.tokens_per_s,
    }


def completion_list(answer: FrontAnswer) -> dict[str, Any]:
    """The same for a client that knows completion lists only: asked again at each key, and shown first."""
    items = [
        {
            "label": item.text.strip().split("\n", 1)[0].strip()[:120],
            "kind": types.CompletionItemKind.Snippet.value,
            "detail": "treefill",
            "sortText": f"\0{number}",
            "filterText": item.text,
            "insertTextFormat": types.InsertTextFormat.PlainText.value,
            "textEdit": {"range": _range(item), "newText": item.text},
        }
        for number, item in enumerate(answer.items)
    ]
    return {"isIncomplete": True, "items": items}


def _inline_item(item: FrontItem, uri: str) -> dict[str, Any]:
    return {
        "insertText": item.text.replace("\r\n", "\n").replace("\r", "\n"),
        "range": _range(item),
        "command": {
            "title": "treefill: accepted",
            "command": ACCEPTED_COMMAND,
            "arguments": [{"uri": uri, "source": item.source, "n_characters": len(item.text)}],
        },
    }


def _range(item: FrontItem) -> dict[str, Any]:
    return {"start": _position(item.start), "end": _position(item.end)}


def _position(position: Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}


def _selected_from(value: Any) -> tuple[Position, Position, str] | None:
    text = get(value, "text")
    bounds = _bounds_from(get(value, "range"))
    return (*bounds, text) if bounds and isinstance(text, str) else None


def _bounds_from(value: Any) -> tuple[Position, Position] | None:
    if isinstance(value, list) and len(value) == 2:  # version 9 of VS Code's client
        value = {"start": value[0], "end": value[1]}
    start, end = position_from(get(value, "start")), position_from(get(value, "end"))
    return (start, end) if start and end else None


def _change_from(value: Any) -> Change | None:
    text = get(value, "text")
    if not isinstance(text, str):
        return None
    if get(value, "range") is None:
        return Change(text)
    bounds = _bounds_from(get(value, "range"))
    return Change(text, *bounds) if bounds else None
