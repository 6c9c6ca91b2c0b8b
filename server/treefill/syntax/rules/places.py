"""Where in a TOML file a value stands: Python's reader tells that of nothing that it has read."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from treefill.errors import GrammarError
from treefill.syntax.grammars import load
from treefill.syntax.languages import languages
from treefill.syntax.parse import encoded, parse

if TYPE_CHECKING:
    import tree_sitter

Path = tuple[str | int, ...]
"""Keys of tables and numbers of lists: `("rule", 0, "name")`."""
_KEYS = ("bare_key", "quoted_key", "dotted_key")


@dataclass(slots=True)
class Places:
    """Byte offsets by path."""

    data: bytes = b""
    keys: dict[Path, int] = field(default_factory=dict)
    """Of the last part of a path where it is a key, or of its table's head."""
    values: dict[Path, int] = field(default_factory=dict)

    def line_and_column(self, path: Path, of_key: bool = False) -> tuple[int, int]:
        """From 1, in characters: the value's place, or else that of the nearest thing round it."""
        known = (self.keys, self.values) if of_key else (self.values, self.keys)
        for n_parts in range(len(path), 0, -1):
            for places in known:
                if (at := places.get(path[:n_parts])) is not None:
                    return line_and_column(self.data, at)
        return 1, 1


def line_and_column(data: bytes, at: int) -> tuple[int, int]:
    """Of a byte, from 1, the column in characters."""
    line_start = data.rfind(b"\n", 0, at) + 1
    return 1 + data.count(b"\n", 0, at), 1 + len(data[line_start:at].decode(errors="replace"))


def places_in(text: str) -> Places:
    """Of all values of a text that Python's reader takes; none where they can't be found."""
    places = Places(encoded(text))
    try:
        parsed = parse(places.data, load(languages()["toml"].grammars[0]))
        if parsed is not None and not parsed.faults:
            _Walk(places).document(parsed.tree.root_node)
    except (GrammarError, RecursionError, ValueError, KeyError):
        pass  # the nearest place that is known is told
    return places


class _Walk:
    def __init__(self, places: Places) -> None:
        self._places = places
        self._n_elements: dict[Path, int] = {}
        """Of each list of tables, how many there were so far."""

    def document(self, root: tree_sitter.Node) -> None:
        for node in root.named_children:
            if node.type == "pair":
                self._pair((), node)
            elif node.type in ("table", "table_array_element"):
                prefix = self._head(node)
                for child in node.named_children:
                    if child.type == "pair":
                        self._pair(prefix, child)

    def _head(self, node: tree_sitter.Node) -> Path:
        path: Path = ()
        key = next(child for child in node.named_children if child.type in _KEYS)
        for name in _names(key):
            path = (*self._newest(path), name)
        if node.type == "table_array_element":
            number = self._n_elements.get(path, 0)
            self._n_elements[path] = number + 1
            self._places.keys.setdefault(path, node.start_byte)
            path = (*path, number)
        self._places.keys.setdefault(path, node.start_byte)
        return path

    def _newest(self, path: Path) -> Path:
        """With the number of its last table where it is a list of them."""
        return (*path, self._n_elements[path] - 1) if path in self._n_elements else path

    def _pair(self, prefix: Path, pair: tree_sitter.Node) -> None:
        key, value = (child for child in pair.named_children if child.type != "comment")
        for name in _names(key):
            prefix = (*prefix, name)
            self._places.keys.setdefault(prefix, key.start_byte)
        self._value(prefix, value)

    def _value(self, path: Path, value: tree_sitter.Node) -> None:
        self._places.values.setdefault(path, value.start_byte)
        inside = [child for child in value.named_children if child.type != "comment"]
        if value.type == "array":
            for number, child in enumerate(inside):
                self._value((*path, number), child)
        elif value.type == "inline_table":
            for child in inside:
                self._pair(path, child)


def _names(key: tree_sitter.Node) -> Iterator[str]:
    text = (key.text or b"").decode()
    table = tomllib.loads(f"{text} = 1")
    while isinstance(table, dict):
        name, table = next(iter(table.items()))
        yield name
