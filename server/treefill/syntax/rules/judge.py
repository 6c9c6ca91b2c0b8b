"""The last word of rules: what in a text that was put into a document is against one of them.

It is told by a tree of the document with the text in it. Where the tree has a fault, or where there is no tree, it is
told by words, and more strictly: what might be against a rule is. Where not even that can be told, `CannotTell` is
raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from treefill.errors import GrammarError
from treefill.syntax.languages import Language
from treefill.syntax.parse import Parsed
from treefill.syntax.rules.form import Breach, CannotTell, Rule
from treefill.syntax.rules.kinds import KindsOfNodes, kinds_in
from treefill.syntax.rules.lexemes import Call, Kind, Lexeme, calls_in, lead_start, lexemes

if TYPE_CHECKING:
    import tree_sitter

MAX_NODES = 50_000
LEAD_CHARS = 8_000
"""So much before the cursor is read for words."""
_ARGUMENTS = frozenset({
    "arguments", "argument_list", "call_suffix", "token_tree", "function_arguments", "value_arguments",
    "template_string", "(",
})  # fmt: skip
_NEW = re.compile(r"new\b")
_STRINGS = (
    re.compile(r"""\A\w*R"(?P<tag>[^(]*)\((?P<inside>.*)\)(?P=tag)"\Z""", re.DOTALL),  # C++
    re.compile(r"""\A\w*(?P<tag>#*)"(?P<inside>.*)"(?P=tag)\Z""", re.DOTALL),  # Rust, Swift
    re.compile(r"""\A[A-Za-z@$]*(?P<tag>\"{3}|'{3}|["'`])(?P<inside>.*)(?P=tag)\Z""", re.DOTALL),
)
_DOC_MARKS = re.compile(r"\A[/*!#\-'\s]*")
_WORD = re.compile(r"[^\W\d]\w*")
_LOOSE_CALL = re.compile(r"([^\W\d]\w*(?:(?:\.|::|->)[^\W\d]\w*)*)\s*\(")


@dataclass(frozen=True, slots=True)
class Placed:
    """A document with something put in, in bytes of its tree."""

    parsed: Parsed
    start: int
    end: int
    before: Parsed | None = None
    """The document without it."""

    def text(self, start: int, end: int) -> str:
        """A part of it."""
        return self.parsed.data[start:end].decode(errors="replace")

    def of(self, node: tree_sitter.Node) -> str:
        """What a node spans."""
        return self.text(node.start_byte, node.end_byte)

    def touches(self, node: tree_sitter.Node) -> bool:
        """Whether some of the node was put in."""
        return node.start_byte < self.end and node.end_byte > self.start


def breach_in_tree(placed: Placed, language: Language, rules: Sequence[Rule]) -> Breach | None:
    """The first thing that is against a rule; what is in faults of the tree is told by words.

    Raises `CannotTell`.
    """
    for node in _touched(placed):
        for rule in rules:
            what = _against(rule, node, placed, language)
            if what:
                return rule.breach(what, len(placed.text(placed.start, node.start_byte)))
    if (
        language.kinds.identifiers
        and not language.kinds.calls
        and (found := _called(placed, language, rules))
    ):
        return found
    faults = [each for each in placed.parsed.faults if not each.is_missing]
    spans = [(max(each.start_byte, placed.start), min(each.end_byte, placed.end)) for each in faults]
    return next(
        filter(None, (_in_fault(placed, span, language, rules) for span in spans if span[0] < span[1])), None
    )


def breach_in_words(
    before: str, text: str, after: str, language: Language, rules: Sequence[Rule], kinds: KindsOfNodes | None
) -> Breach | None:
    """The same where there is no tree. `before` and `after` are what is left and right of the text.

    `kinds` are the language's; None where they are not known. Raises `CannotTell`.
    """
    keywords = kinds.keywords if kinds else frozenset()
    lead = before[-LEAD_CHARS:]
    lead = lead[lead_start(lead, language) :]
    tail = re.match(r"\w*\s*\(?", after)
    found = lexemes(lead + text + (tail[0] if tail else ""), language)
    start, end = len(lead), len(lead) + len(text)
    touched = [each for each in found if each.start < end and each.end > start]
    calls = [call for call in calls_in(found, language) if call.start < end and call.bracket >= start]
    for rule in rules:
        seen = _calls_against(rule, calls, keywords) or _words_against(rule, touched, keywords)
        if seen := seen or _loose_words_against(rule, touched, kinds):
            return rule.breach(seen[0], seen[1] - start)
    return None


def quoted(text: str) -> str:
    """A piece of the text, short enough for a sentence."""
    shown = " ".join(text.split())
    return f"`{shown if len(shown) <= 40 else shown[:40] + '…'}`"


def string_inside(text: str) -> str:
    """What is between the quotes; all of it where there are none that we know."""
    if text.endswith('"""'):
        return next((found["inside"] for found in [_STRINGS[-1].match(text)] if found), text)
    return next((found["inside"] for pattern in _STRINGS if (found := pattern.match(text))), text)


def doc_inside(text: str) -> str:
    """What a comment that documents says, without its marks."""
    return _DOC_MARKS.sub("", text).removesuffix("*/")


def is_doc(comment: str, language: Language) -> bool:
    """Whether a comment documents what is below it."""
    return comment != "/**/" and any(comment.startswith(mark) for mark in language.kinds.docs)


# By the tree.


def _touched(placed: Placed) -> Iterator[tree_sitter.Node]:
    """All nodes of which some was put in, in the order of the text."""
    cursor = placed.parsed.tree.walk()
    for _ in range(MAX_NODES):
        node = cursor.node
        assert node is not None
        if placed.touches(node):
            yield node
            if cursor.goto_first_child():
                continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
    raise CannotTell("there is too much of it")


def _against(rule: Rule, node: tree_sitter.Node, placed: Placed, language: Language) -> str:
    kinds = language.kinds
    if node.type in rule.kinds and _is_new(node, placed):
        return quoted(node.type) if node.is_named else quoted(placed.of(node))
    if rule.names and node.type in kinds.identifiers and not _is_inside_identifier(node, language):
        name = placed.of(node).strip('"`')
        return f"the name {quoted(name)}" if rule.names.refuses(name) else ""
    if rule.calls and node.type in kinds.fields_of_calls:
        callee = _callee(node, placed, kinds.fields_of_calls[node.type])
        return f"a call of {quoted(callee)}" if callee and rule.calls.refuses(callee) else ""
    is_documenting = node.type in kinds.strings and _is_docstring(node, language)
    if rule.docs and is_documenting:
        inside = string_inside(placed.of(node)).lstrip()
        return "" if _begins(rule, inside) else f"a docstring that begins with {quoted(inside[:20])}"
    if rule.docs and node.type in kinds.comments and is_doc(comment := placed.of(node), language):
        inside = doc_inside(comment)
        is_first = not _goes_on(node, placed, language)
        return (
            ""
            if not is_first or _begins(rule, inside)
            else f"a comment that begins with {quoted(inside[:20])}"
        )
    if rule.strings and node.type in kinds.strings and not is_documenting:
        inside = string_inside(placed.of(node))
        return f"the string {quoted(inside)}" if rule.strings.refuses(inside) else ""
    return ""


def _begins(rule: Rule, inside: str) -> bool:
    return any(pattern.fits(inside) for pattern in rule.docs)


def _is_new(node: tree_sitter.Node, placed: Placed) -> bool:
    """Whether it has come with what was put in: it begins in it, or on the same line, where none was before."""
    if node.start_byte >= placed.start:
        return True
    if b"\n" in placed.parsed.data[node.start_byte : placed.start]:
        return False
    return placed.before is None or not _was_there(node, placed.before)


def _was_there(node: tree_sitter.Node, before: Parsed) -> bool:
    found = before.tree.root_node.descendant_for_byte_range(node.start_byte, node.start_byte)
    while found is not None and found.start_byte == node.start_byte:
        if found.type == node.type:
            return True
        found = found.parent
    return False


def _is_inside_identifier(node: tree_sitter.Node, language: Language) -> bool:
    """Some grammars have one in the other."""
    return node.parent is not None and node.parent.type in language.kinds.identifiers


def _callee(node: tree_sitter.Node, placed: Placed, field: str) -> str:
    """What is called, without white space; nothing where the call was there before."""
    if field:
        named = node.child_by_field_name(field)
        start, end = (named.start_byte, named.end_byte) if named else (node.start_byte, node.start_byte)
        rest = end
    else:
        others = node.children[1:]
        arguments = next((each for each in others if each.type in _ARGUMENTS), None)
        if arguments is None:  # as in `puts "x"`
            arguments = node.child_by_field_name("arguments") or (others[0] if others else node)
        start, end = node.start_byte, arguments.start_byte
        rest = arguments.start_byte
    is_called_here = start < placed.end and (end > placed.start or placed.start <= rest < placed.end)
    callee = "".join(_NEW.sub("", placed.text(start, end).strip(), count=1).split())
    return callee if is_called_here else ""


def _is_docstring(node: tree_sitter.Node, language: Language) -> bool:
    """A string that is the first statement of what it documents."""
    statement = node.parent
    if not language.kinds.docstrings or statement is None or statement.type != "expression_statement":
        return False
    block = statement.parent
    if (
        block is None
        or next((each for each in block.named_children if each.type != "comment"), None) != statement
    ):
        return False
    owner = block if block.type in language.kinds.docstrings else block.parent
    return owner is not None and owner.type in language.kinds.docstrings


def _goes_on(node: tree_sitter.Node, placed: Placed, language: Language) -> bool:
    """Whether the comment goes on from one of its kind on the line above."""
    line_start = placed.parsed.data.rfind(b"\n", 0, node.start_byte) + 1
    above = (
        placed.parsed.data[:line_start].decode(errors="replace").rstrip("\r\n").rpartition("\n")[2].strip()
    )
    is_line = not placed.of(node).startswith("/*")
    return is_line and is_doc(above, language)


# By words.


def _called(placed: Placed, language: Language, rules: Sequence[Rule]) -> Breach | None:
    """What is called against a rule, where the grammar has no kind of node for it."""
    lead = placed.text(max(0, placed.start - LEAD_CHARS), placed.start)
    lead = lead[lead_start(lead, language) :]
    text = placed.text(placed.start, placed.end)
    found = lexemes(lead + text + placed.text(placed.end, placed.end + 20), language)
    start, end = len(lead), len(lead) + len(text)
    calls = [call for call in calls_in(found, language) if call.start < end and call.bracket >= start]
    keywords = kinds_in(language).keywords
    seen = ((rule, _calls_against(rule, calls, keywords)) for rule in rules)
    return next((rule.breach(what[0], what[1] - start) for rule, what in seen if what), None)


def _in_fault(
    placed: Placed, span: tuple[int, int], language: Language, rules: Sequence[Rule]
) -> Breach | None:
    before, after = (
        placed.text(max(0, span[0] - 4 * LEAD_CHARS), span[0]),
        placed.text(span[1], span[1] + 200),
    )
    try:
        kinds = kinds_in(language)
    except GrammarError:  # one of several
        kinds = None
    found = breach_in_words(before, placed.text(*span), after, language, rules, kinds)
    return found and replace(found, at=found.at + len(placed.text(placed.start, span[0])))


Seen = tuple[str, int] | None
"""What is against a rule, and where it begins."""


def _calls_against(rule: Rule, calls: Sequence[Call], keywords: frozenset[str]) -> Seen:
    for call in calls:
        if rule.calls and call.callee not in keywords and rule.calls.refuses(call.callee):
            return f"a call of {quoted(call.callee)}", call.start
    return None


def _words_against(rule: Rule, touched: Sequence[Lexeme], keywords: frozenset[str]) -> Seen:
    """By what the lexemes seem to be."""
    for each in touched:
        is_name = each.kind is Kind.WORD and each.text not in keywords
        if rule.names and is_name and rule.names.refuses(each.text):
            return f"the name {quoted(each.text)}", each.start
        if rule.strings and each.kind is Kind.STRING and rule.strings.refuses(each.inside):
            return f"the string {quoted(each.inside)}", each.start
    return None


def _loose_words_against(rule: Rule, touched: Sequence[Lexeme], kinds: KindsOfNodes | None) -> Seen:
    """What may hide anywhere, in what seems to be a string too; kinds of nodes, by their words."""
    words = {word[0]: each.start for each in reversed(touched) for word in _WORD.finditer(each.text)}
    for word, at in words.items():
        if rule.names and any(pattern.fits(word) for pattern in rule.names.forbid):
            return f"the name {quoted(word)}", at
    for call, at in ((found[1], each.start) for each in touched for found in _LOOSE_CALL.finditer(each.text)):
        if rule.calls and any(pattern.fits(call) for pattern in rule.calls.forbid):
            return f"a call of {quoted(call)}", at
    for kind in rule.kinds:
        if kinds is None:
            raise CannotTell("there is no grammar that knows kinds of nodes")
        told_by = kinds.words_of(kind)
        if not told_by:
            raise CannotTell(f"it has a fault, in which no {kind} can be told")
        if seen := [at for word, at in words.items() if word in told_by]:
            return quoted(kind), min(seen)
    return None
