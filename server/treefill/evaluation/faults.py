"""What a whole file's parse finds fault with: the measure that completions are judged by.

On purpose a page of its own over the parser library, with nothing of what checks completions while they are made:
the judge must not share a mistake with the judged.
"""

from treefill.errors import BadInput
from treefill.syntax.grammars import load
from treefill.syntax.languages import language_by_id


def count_faults(text: str | bytes, language: str) -> int:
    """How many nodes of the file's tree stand for text that fits nowhere, or for text that is missing.

    >>> count_faults("x = 1", "python"), count_faults("x = = 1", "python"), count_faults("f(1", "python")
    (0, 1, 1)
    """
    from tree_sitter import Node, Parser

    grammars = language_by_id(language).grammars
    if not grammars:
        raise BadInput(f"There is no grammar for {language}: measure another language.")
    data = text.encode() if isinstance(text, str) else text
    n_faults = 0
    waiting: list[Node] = [Parser(load(grammars[0]).language).parse(data).root_node]
    while waiting:
        node = waiting.pop()
        n_faults += node.is_error or node.is_missing
        waiting += (child for child in node.children if child.has_error or child.is_missing)
    return n_faults
