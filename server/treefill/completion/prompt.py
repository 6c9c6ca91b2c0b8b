"""The prompt: which text goes where, how it is cut, and what the model must spell again.

Prefix-suffix-middle with an anchor: the prefix ends at a line start some lines above the cursor, the middle
runs from there to the cursor. What the user types is then appended at the very end, so that the cached keys
and values of everything before stay exact from keystroke to keystroke. The suffix is a snapshot taken with
the anchor.

Token healing: what was typed last is left out of the ids and handed to the engine as `forced` bytes, because
a token boundary at the cursor is one that the model has seldom seen. After `load(` it writes ` f )`: it was
trained on the one token `(f`, so an end at `(` tells it that anything but `f` follows. Healed back to `load`,
it writes `(f)`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from treefill.completion.context import Chunk
from treefill.completion.fim import FimLayout, begin_token, control_ids
from treefill.completion.request import Anchor, Budgets, PromptPart
from treefill.completion.situation import MAX_LINE_CHARS, auto_closed_length, cursor_state
from treefill.engine.api import TokenId, Vocabulary
from treefill.errors import BadInput
from treefill.syntax.languages import Language, language_by_id
from treefill.text import Document, count_lines, line_bounds, to_lf, without_surrogates

SNAPSHOT_CHARS = 6_000
"""How much of the text after the cursor an anchor remembers."""
MAX_MIDDLE_LINES = 12
MAX_MIDDLE_CHARS = 2_000
"""An anchor is left behind when the text between it and the cursor grows longer than this."""
MAX_CHARS_PER_TOKEN = 16
"""No ordinary text needs more; cutting by characters first keeps large files from being tokenised."""
HASHED_CHARS = 64_000
CHARS_STEP = 256
"""Lines too long for a budget are cut at multiples of this."""


class Healing(StrEnum):
    """How far the prompt backs up before the cursor."""

    NONE = "none"
    WORD = "word"
    """Over the word being typed and the blanks before it."""
    TOKEN = "token"
    """Over the word, the punctuation just before it and the blanks before that: what may be one token."""


_TYPED_TAIL = {
    Healing.WORD: re.compile(r"[ \t]{0,64}\w{0,64}\Z"),
    Healing.TOKEN: re.compile(r"[ \t]{0,64}[^\w\s]{0,4}\w{0,64}\Z"),
}
"""No token is longer, and each that is spelled again costs a step: of a file that is one long word, only its end is."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One way to place the anchor: an arm of the evaluation."""

    n_lines_back: int | None
    """Lines from the cursor's line up to the anchor at least; None splits at the cursor."""
    healing: Healing = Healing.TOKEN


POLICIES: dict[str, Policy] = {
    "plain": Policy(None, Healing.NONE),
    "plain-healed": Policy(None),
    "line": Policy(0),
    **{f"lines-{count}": Policy(count) for count in range(1, 9)},
    "lines-3-word": Policy(3, Healing.WORD),
    "lines-3-unhealed": Policy(3, Healing.NONE),
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the engine is asked to continue."""

    ids: tuple[TokenId, ...]
    forced: bytes
    """The healed tail: typed already, not in `ids`."""
    parts: tuple[PromptPart, ...]
    """What `ids` is made of, in order."""
    layout: str


def choose_anchor(document: Document, offset: int, previous: Anchor | None, policy: str) -> Anchor:
    """The previous anchor while it holds, else a new one where the policy wants it."""
    if previous is not None and _still_holds(previous, document, offset, policy):
        return previous
    anchor_offset = _anchor_offset(document.text, offset, policy_named(policy))
    return Anchor(
        path=document.path,
        policy=policy,
        offset=anchor_offset,
        prefix_hash=_hash_before(document, anchor_offset),
        suffix=snapshot_suffix(document, offset),
    )


def build_prompt(
    document: Document,
    offset: int,
    anchor: Anchor,
    layout: FimLayout | None,
    vocabulary: Vocabulary,
    budgets: Budgets,
    neighbours: tuple[Chunk, ...] = (),
    repo_name: str = "",
    healing: Healing | None = None,
) -> Prompt:
    """Lay out one request for a model. `healing` overrules the anchor's policy."""
    heals = policy_named(anchor.policy).healing if healing is None else healing
    middle = shown_middle(document, offset, anchor)
    middle, tail = split_typed_tail(middle, heals)
    prefix = cut_prefix(document.text[: anchor.offset], budgets.n_prefix_tokens, vocabulary)
    suffix = cut_suffix(anchor.suffix, budgets.n_suffix_tokens, vocabulary)
    writer = _Writer(vocabulary)
    writer.control(begin_token(layout, vocabulary))
    if layout is None:
        _write_neighbours_as_comments(writer, neighbours, language_by_id(document.language))
        writer.text("prefix", prefix)
        writer.text("middle", middle)
    else:
        _write_fim(writer, layout, prefix, suffix, middle, neighbours, document.path, repo_name)
    return Prompt(
        tuple(writer.ids), tail.encode(), tuple(writer.parts), layout.family if layout else "prefix-only"
    )


def policy_named(name: str) -> Policy:
    """The policy of that name; `BadInput` lists the names there are."""
    if name not in POLICIES:
        raise BadInput(f"anchor policy {name!r} is not known: use one of {', '.join(POLICIES)}")
    return POLICIES[name]


def split_typed_tail(middle: str, healing: Healing = Healing.TOKEN) -> tuple[str, str]:
    """Split off what healing spells again; never a line ending.

    >>> split_typed_tail("x = fo")
    ('x =', ' fo')
    >>> split_typed_tail("f(x).fo")
    ('f(x', ').fo')
    """
    tail = _TYPED_TAIL[healing].search(middle) if healing is not Healing.NONE else None
    at = tail.start() if tail else len(middle)
    return middle[:at], middle[at:]


def snapshot_suffix(document: Document, offset: int) -> str:
    """The text right of the cursor, without the closers that editors write by themselves."""
    state = cursor_state(document, offset, language_by_id(document.language))
    line_start, line_end = line_bounds(document.text, offset)
    left = document.text[max(line_start, offset - MAX_LINE_CHARS) : offset]
    right = document.text[offset : min(line_end, offset + MAX_LINE_CHARS)]
    start = offset + auto_closed_length(left, right, state)
    return to_lf(document.text[start : start + SNAPSHOT_CHARS])


def shown_middle(document: Document, offset: int, anchor: Anchor) -> str:
    """The text between anchor and cursor, as the model sees it."""
    middle = document.text[anchor.offset : offset]
    return shown(middle.removeprefix("\ufeff") if anchor.offset == 0 else middle)


def cut_prefix(text: str, n_budget: int, vocabulary: Vocabulary) -> str:
    """The end of `text` that fits the budget.

    It begins at a place counted from the file's top (a multiple of 64 lines if that leaves half the budget
    filled, else of 8 lines, else a line, else a multiple of 256 characters in a line), so that it begins at
    the same place while the user types.
    """
    if n_budget <= 0:
        return ""
    first = max(0, len(text) - n_budget * MAX_CHARS_PER_TOKEN) // CHARS_STEP * CHARS_STEP
    window = shown(text[first:] if first else text.removeprefix("\ufeff"))
    ids = vocabulary.encode(window)
    n_over = max(0, len(ids) - n_budget)
    if n_over == 0 and first == 0:
        return window
    earliest = len(vocabulary.decode(ids[:n_over]))
    half_full = earliest + (len(window) - earliest) // 2
    first_line = text.count("\n", 0, first)
    starts = _line_starts(window, earliest, first_line, first == 0 or text[first - 1] == "\n")
    for step in (64, 8, 1):
        for start, line in starts:
            if line % step == 0 and start <= half_full:
                return window[start:]
    return window[-(-earliest // CHARS_STEP) * CHARS_STEP :]


def cut_suffix(text: str, n_budget: int, vocabulary: Vocabulary) -> str:
    """The beginning of `text` that fits the budget, ended at a line's end where there is one."""
    if n_budget <= 0:
        return ""
    text = shown(text)
    head = text[: n_budget * MAX_CHARS_PER_TOKEN]
    ids = vocabulary.encode(head)
    if len(ids) <= n_budget and len(head) == len(text):
        return text
    fitting = head[: len(vocabulary.decode(ids[:n_budget]))]
    line_end = fitting.rfind("\n") + 1
    return (
        fitting[:line_end] if line_end else fitting[: len(fitting) // CHARS_STEP * CHARS_STEP or len(fitting)]
    )


def shown(text: str) -> str:
    """Text as the model sees it: line feeds only, no half surrogate pairs."""
    return without_surrogates(to_lf(text))


def _hash_before(document: Document, offset: int) -> int:
    """Of the text that a prompt could show above `offset`; what lies further up changes no prompt."""
    return hash(document.text[max(0, offset - HASHED_CHARS) : offset])


def _still_holds(anchor: Anchor, document: Document, offset: int, policy: str) -> bool:
    if (anchor.path, anchor.policy) != (document.path, policy) or policy_named(policy).n_lines_back is None:
        return False
    if not anchor.offset <= offset <= anchor.offset + MAX_MIDDLE_CHARS:
        return False
    is_short = to_lf(document.text[anchor.offset : offset]).count("\n") <= MAX_MIDDLE_LINES
    is_prefix_same = _hash_before(document, anchor.offset) == anchor.prefix_hash
    return is_short and is_prefix_same and snapshot_suffix(document, offset) == anchor.suffix


def _anchor_offset(text: str, offset: int, policy: Policy) -> int:
    """Where a new anchor goes.

    A request without a memory must find the anchor of the request before it. So lines are counted from the
    top and the anchor goes to a multiple of N+1 of them: it lies N to 2N lines back and stays while N+1 lines
    are typed.
    """
    if policy.n_lines_back is None:
        start, _ = line_bounds(text, offset)
        return offset - len(split_typed_tail(text[start:offset], policy.healing)[1])
    starts = _line_starts_backwards(text, offset)
    line_start = next(starts)
    if offset - line_start > MAX_MIDDLE_CHARS:
        # Half of a middle's length back, and there it stays while the other half is typed.
        return line_start + (offset - line_start - MAX_MIDDLE_CHARS // 2) // CHARS_STEP * CHARS_STEP
    if policy.n_lines_back == 0:
        return line_start
    period = policy.n_lines_back + 1
    line = count_lines(text, line_start) - 1
    wanted = max(0, line - policy.n_lines_back) // period * period
    for _ in range(line - wanted):
        earlier = next(starts)
        if offset - earlier > MAX_MIDDLE_CHARS:
            break
        line_start = earlier
    return line_start


def _line_starts_backwards(text: str, offset: int) -> Iterator[int]:
    start, _ = line_bounds(text, offset)
    yield start
    while start > 0:
        end = start - 2 if text[start - 2 : start] == "\r\n" else start - 1
        start, _ = line_bounds(text, end)
        yield start


def _line_starts(window: str, earliest: int, first_line: int, begins_line: bool) -> list[tuple[int, int]]:
    """Offset and number of each line that begins in `window` at or after `earliest`.

    `first_line` is the number of the line that the window's first character belongs to.
    """
    starts = [(0, first_line)] if begins_line and earliest == 0 else []
    at = window.find("\n", max(0, earliest - 1)) + 1
    line = first_line + window.count("\n", 0, at)
    while at > 0:
        starts.append((at, line))
        at = window.find("\n", at) + 1
        line += 1
    return starts


class _Writer:
    """Collects ids and says what they are; text goes through `encode`: it never becomes a control token."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.ids: list[TokenId] = []
        self.parts: list[PromptPart] = []

    def control(self, name: str | None) -> None:
        """Write a control token, or nothing where the vocabulary lacks it."""
        ids = control_ids(name, self._vocabulary)
        if name and ids:
            self.ids += ids
            self.parts.append(PromptPart(name, "", len(ids)))

    def text(self, name: str, text: str) -> None:
        """Write ordinary text."""
        ids = self._vocabulary.encode(text) if text else []
        self.ids += ids
        self.parts.append(PromptPart(name, text, len(ids)))


def _write_fim(
    writer: _Writer,
    layout: FimLayout,
    prefix: str,
    suffix: str,
    middle: str,
    neighbours: tuple[Chunk, ...],
    path: str,
    repo_name: str,
) -> None:
    if neighbours and layout.file_separator:
        if layout.repo_name and repo_name:
            writer.control(layout.repo_name)
            writer.text("repository", shown(repo_name) + "\n")
        for chunk in neighbours:
            writer.control(layout.file_separator)
            writer.text(f"neighbour {chunk.label}", f"{shown(chunk.path)}\n{shown(chunk.text)}")
        writer.control(layout.file_separator)
        writer.text("path", shown(path.rsplit("/", 1)[-1]) + "\n")
    if layout.suffix_first:
        writer.control(layout.suffix)
        writer.text("suffix", suffix)
        writer.control(layout.prefix)
        _write_loose_neighbours(writer, layout, neighbours)
        writer.text("prefix", prefix)
    else:
        writer.control(layout.prefix)
        _write_loose_neighbours(writer, layout, neighbours)
        writer.text("prefix", prefix)
        writer.control(layout.suffix)
        writer.text("suffix", suffix)
    writer.control(layout.middle)
    writer.text("middle", middle)


def _write_loose_neighbours(writer: _Writer, layout: FimLayout, neighbours: tuple[Chunk, ...]) -> None:
    """A family without a file separator reads other files as part of this one."""
    if not layout.file_separator:
        for chunk in neighbours:
            writer.text(f"neighbour {chunk.label}", f"{shown(chunk.text)}\n")


def _write_neighbours_as_comments(writer: _Writer, neighbours: tuple[Chunk, ...], language: Language) -> None:
    mark = language.line_comment[0] + " " if language.line_comment else ""
    for chunk in neighbours:
        writer.text(f"neighbour {chunk.label}", f"{mark}{shown(chunk.path)}\n{shown(chunk.text)}\n")
