"""The request as a model wants to read it: as a turn of a chat where its vocabulary has turns, else as a comment.

Models for code come with instructions in mind or without. The former answer with a block of code in a fence, so their
answer is begun with the fence, and where they end it, they end the document. The latter go on texts: they get the
request as a comment, below which the document begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from treefill.engine.api import TokenId, Vocabulary
from treefill.syntax.languages import Language

FENCE = "```"
MAX_SCHEMA_CHARS = 3_000
"""A longer schema is not shown to the model; it is held to it all the same."""
_TURN, _TURN_END = "<|im_start|>", "<|im_end|>"
_BEGINNINGS = ("<s>", "<bos>", "<|begin_of_text|>")
_SYSTEM = "You write documents. Your answer is one block of code and nothing else."
_SYSTEM_FOR_PROSE = "You write documents. Your answer is the document and nothing else."


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model reads."""

    ids: tuple[TokenId, ...]
    is_fenced: bool
    """True where the document stands in a fence, which the model may end."""


def prompt_for(wish: str, language: Language, vocabulary: Vocabulary, schema: str = "") -> Prompt:
    """The prompt for one document; `schema` is what it is held to, for the model to know."""
    turn, turn_end = vocabulary.control_id(_TURN), vocabulary.control_id(_TURN_END)
    wish = wish.strip()
    if turn is None or turn_end is None:
        begin = next(
            (each for name in _BEGINNINGS if (each := vocabulary.control_id(name)) is not None), None
        )
        text = as_comment(wish, language) + "\n\n"
        return Prompt((*([] if begin is None else [begin]), *vocabulary.encode(text)), False)
    name = language.id
    asked = f"Write one {name} document, and nothing else, for this:\n\n{wish}\n"
    if schema and len(schema) <= MAX_SCHEMA_CHARS:
        asked += f"\nIt must be as this JSON Schema says:\n\n{schema}\n"
    encode, has_fences = vocabulary.encode, bool(language.fences)
    return Prompt(
        (
            turn, *encode(f"system\n{_SYSTEM_FOR_PROSE if has_fences else _SYSTEM}"), turn_end, *encode("\n"),
            turn, *encode(f"user\n{asked}"), turn_end, *encode("\n"),
            turn, *encode("assistant\n" if has_fences else f"assistant\n{FENCE}{name}\n"),
        ),
        not has_fences,
    )  # fmt: skip


def as_comment(text: str, language: Language) -> str:
    r"""The text as a comment of the language; as it is where the language has none.

    >>> from treefill.syntax.languages import language_by_id
    >>> as_comment("two\nlines", language_by_id("python"))
    '# two\n# lines'
    >>> as_comment("words", language_by_id("xml"))
    '<!-- words -->'
    """
    if language.line_comment:
        return "\n".join(f"{language.line_comment[0]} {line}".rstrip() for line in text.split("\n"))
    if language.block_comment:
        begin, end = language.block_comment[0]
        return f"{begin} {text.replace(end, ' ')} {end}"
    return text
