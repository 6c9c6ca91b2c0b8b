"""How each family of models wants a hole in a text to be written: a table, and the choice of its row.

The row is chosen by the control tokens that a vocabulary has, never by the model's name.
"""

from dataclasses import dataclass

from treefill.engine.api import TokenId, Vocabulary


@dataclass(frozen=True, slots=True)
class FimLayout:
    """One family's way to write prefix, suffix and middle."""

    family: str
    prefix: str
    """Stands before the text above the hole."""
    suffix: str
    """Stands before the text below the hole."""
    middle: str | None
    """Stands before the text in the hole; None where the middle simply continues the prefix."""
    suffix_first: bool = False
    """True where the model was trained to read the suffix before the prefix."""
    begin: str | None = None
    """Begins every prompt."""
    repo_name: str | None = None
    """Stands before the repository's name."""
    file_separator: str | None = None
    """Stands before each file's path."""
    requires: tuple[str, ...] = ()
    """Further control tokens that tell this family from its namesakes."""
    end: tuple[str, ...] = ()
    """Control tokens that end a middle, besides the vocabulary's own end tokens."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every control token that the layout may use or meet."""
        used = (self.begin, self.prefix, self.suffix, self.middle, self.repo_name, self.file_separator)
        return tuple(name for name in (*used, *self.requires, *self.end) if name)


LAYOUTS: tuple[FimLayout, ...] = (
    FimLayout(
        "qwen2.5-coder",
        prefix="<|fim_prefix|>",
        suffix="<|fim_suffix|>",
        middle="<|fim_middle|>",
        repo_name="<|repo_name|>",
        file_separator="<|file_sep|>",
        requires=("<|file_sep|>",),
        end=("<|endoftext|>", "<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<|im_end|>"),
    ),
    FimLayout(
        "codegemma",
        prefix="<|fim_prefix|>",
        suffix="<|fim_suffix|>",
        middle="<|fim_middle|>",
        begin="<bos>",
        file_separator="<|file_separator|>",
        requires=("<|file_separator|>",),
        end=("<|file_separator|>",),
    ),
    FimLayout(
        "granite-4",
        prefix="<|fim_prefix|>",
        suffix="<|fim_suffix|>",
        middle="<|fim_middle|>",
        end=("<|end_of_text|>", "<|fim_pad|>"),
    ),
    FimLayout(
        "starcoder2",
        prefix="<fim_prefix>",
        suffix="<fim_suffix>",
        middle="<fim_middle>",
        repo_name="<repo_name>",
        file_separator="<file_sep>",
        requires=("<file_sep>",),
        end=("<|endoftext|>", "<file_sep>", "<fim_pad>"),
    ),
    FimLayout(
        "starcoder",  # Granite's first code models took this vocabulary over.
        prefix="<fim_prefix>",
        suffix="<fim_suffix>",
        middle="<fim_middle>",
        repo_name="<reponame>",
        file_separator="<filename>",
        end=("<|endoftext|>", "<fim_pad>"),
    ),
    FimLayout(
        "santacoder",
        prefix="<fim-prefix>",
        suffix="<fim-suffix>",
        middle="<fim-middle>",
        end=("<|endoftext|>", "<fim-pad>"),
    ),
    FimLayout(
        "codellama",
        prefix="▁<PRE>",
        suffix="▁<SUF>",
        middle="▁<MID>",
        begin="<s>",
        end=("▁<EOT>",),
    ),
    FimLayout(
        "deepseek-coder",  # The hole's own token stands where the suffix begins.
        prefix="<｜fim▁begin｜>",
        suffix="<｜fim▁hole｜>",
        middle="<｜fim▁end｜>",
        begin="<｜begin▁of▁sentence｜>",
        end=("<｜end▁of▁sentence｜>",),
    ),
    FimLayout(
        "codestral",
        prefix="[PREFIX]",
        suffix="[SUFFIX]",
        middle=None,
        suffix_first=True,
        begin="<s>",
    ),
)

BEGIN_TOKENS = ("<s>", "<bos>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>")
"""What models without a layout of their own want at the start; those that want nothing have none of them."""


def choose_layout(vocabulary: Vocabulary) -> FimLayout | None:
    """The first row whose control tokens the vocabulary has; None: only a prefix can be continued."""
    return next((layout for layout in LAYOUTS if not missing_tokens(layout, vocabulary)), None)


def missing_tokens(layout: FimLayout, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The control tokens that a vocabulary lacks for a layout."""
    return tuple(name for name in _needed(layout) if vocabulary.control_id(name) is None)


def nearest_missing(vocabulary: Vocabulary) -> tuple[str, ...]:
    """What a vocabulary lacks for the layout that it has most of; nothing where it has a whole one."""
    if choose_layout(vocabulary) is not None:
        return ()
    missing = [(len(_needed(layout)), missing_tokens(layout, vocabulary)) for layout in LAYOUTS]
    _, names = max(missing, key=lambda counted: counted[0] - len(counted[1]))
    return names


def begin_token(layout: FimLayout | None, vocabulary: Vocabulary) -> str | None:
    """The control token that begins a prompt: the layout's, or any usual one where there is no layout."""
    names = BEGIN_TOKENS if layout is None else (layout.begin,)
    return next((name for name in names if name and vocabulary.control_id(name) is not None), None)


def control_ids(name: str | None, vocabulary: Vocabulary) -> tuple[TokenId, ...]:
    """The control token's id, or nothing where there is no such token."""
    token_id = vocabulary.control_id(name) if name else None
    return () if token_id is None else (token_id,)


def _needed(layout: FimLayout) -> tuple[str, ...]:
    return (layout.prefix, layout.suffix, *([layout.middle] if layout.middle else []), *layout.requires)
