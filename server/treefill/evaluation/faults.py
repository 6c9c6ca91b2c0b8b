"""What a whole file's parse finds fault with: the measure that completions are judged by.

On purpose a page of its own over the parser library, with nothing of what checks completions while they are made:
the judge must not share a mistake with the judged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from treefill.errors import BadInput
from treefill.syntax.grammars import load
from treefill.syntax.hazards import hazard
from treefill.syntax.languages import language_by_id

if TYPE_CHECKING:
    from tree_sitter import Node


def count_faults(text: str | bytes, language: str) -> int:
    """How many nodes of the file's tree stand for text that fits nowhere, or for text that is missing.

    >>> count_faults("x = 1", "python"), count_faults("x = = 1", "python"), count_faults("f(1", "python")
    (0, 1, 1)
    """
    return len(find_faults(text, language))


def is_sound(text: str | bytes, language: str) -> bool:
    """True where there is no fault, which is told without counting them. Raises as `count_faults` does.

    >>> is_sound("x = 1", "python"), is_sound("f(1", "python")
    (True, False)
    """
    return not _root(text, language).has_error


def find_faults(text: str | bytes, language: str) -> list[int]:
    """At which byte each fault begins, in their order.

    What a grammar hides is no node that can be walked to, also where it is missing: the line end between two statements
    of Python is hidden. It is told by the tree's own notation alone.

    >>> find_faults("call()call()", "python")
    [6]
    """
    found: list[int] = []
    waiting = [_root(text, language)]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            found.append(node.start_byte)
        if node.has_error and not node.is_missing:
            faulty = [child for child in node.children if child.has_error or child.is_missing]
            waiting += faulty
            n_seen = node.is_error + sum(_n_noted(child) for child in faulty)
            found += _hidden(node, _n_noted(node) - n_seen)
    return sorted(found)


def statement_at(text: str | bytes, byte_offset: int, language: str) -> tuple[int, int, bool]:
    r"""Where the innermost statement around a byte begins and ends, and True where it has no fault.

    >>> statement_at("if x:\n    y = f(1)\n", 14, "python")
    (10, 18, True)
    """
    root = _root(text, language)
    node = root.descendant_for_byte_range(byte_offset, min(byte_offset + 1, root.end_byte))
    while node is not None and node.parent is not None:
        if _STATEMENT.search(node.type) or node.parent.parent is None:
            return node.start_byte, node.end_byte, not node.has_error
        node = node.parent
    return root.start_byte, root.end_byte, not root.has_error


_STATEMENT = re.compile(r"(?:statement|declaration|definition|[sS]tmt|^pair)$")
"""How grammars name what stands for itself."""


def _n_noted(node: Node) -> int:
    """How many faults the node's notation tells of, its own and those below it."""
    if node.is_missing:
        return 1  # a sign alone is noted without the word
    return len(_FAULT.findall(str(node)))


_FAULT = re.compile(r"\((?:ERROR|MISSING)\b")


def _hidden(node: Node, n: int) -> list[int]:
    """Where the `n` hidden tokens are missing between the node's children: behind the named one before them."""
    if n <= 0:
        return []
    found: list[int] = []
    depth = n_children = 0
    named = node.named_children
    for piece in _PIECE.finditer(str(node)):
        if piece[0].startswith("(MISSING _") and depth == 1:
            found.append(named[min(n_children, len(named)) - 1].end_byte if n_children else node.start_byte)
        elif piece[0] == "(":
            n_children += depth == 1
            depth += 1
        elif piece[0] == ")":
            depth -= 1
    return (found + [node.start_byte] * n)[:n]


_PIECE = re.compile(r"""\(MISSING _\w*\)|\((?:UNEXPECTED|MISSING) (?:'.+?'|".+?")\)|[()]""", re.DOTALL)
"""Of a tree's notation: a hidden token, a sign that may itself be a bracket, and brackets."""


def _root(text: str | bytes, language: str) -> Node:
    from tree_sitter import Parser

    grammars = language_by_id(language).grammars
    if not grammars:
        raise BadInput(f"There is no grammar for {language}: measure another language.")
    data = text.encode() if isinstance(text, str) else text
    why_not = hazard(data.decode(errors="replace"), grammars[0])
    if why_not:
        raise BadInput(f"A text in {language} can't be judged. {why_not}")
    return Parser(load(grammars[0]).language).parse(data).root_node
