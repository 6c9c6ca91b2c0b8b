"""What a key costs: real files typed again, one request a key, the next key pressed when the first line is there.

Each key is asked of ours and then of the peers, in the same state of the text. Ours goes through the whole server, a
front and a core, and shows nothing before its answer is whole; a peer streams, is listened to up to the end of its
first line, and its request is then cancelled. Counts of tokens do not depend on the machine; times do.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from treefill.benchmarks.rounds import percentile
from treefill.errors import BadInput
from treefill.evaluation.keystrokes import Typing, choose_typings
from treefill.evaluation.texts import installed_documents
from treefill.evaluation.typist import Edit, Typist
from treefill.text import Document, read_document

DECODED = "decoded"
"""The source of what a model wrote for this very key."""
DEFAULT_NAMES = ("textwrap.py", "fractions.py", "stl_vector.h", "shop.sql")
"""Of the files that installations have: what is typed where none is named."""
SECOND_HEADER = "stl_tree.h"
N_SPARE = 2
"""So many characters for each key: the editor writes some of them, indentation above all."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one request."""

    source: str
    """`decoded`, `typed through` and such, or the reason for nothing."""
    line_ms: float
    """From the key to its first whole line; where there is none, to the answer that says so."""
    ttft_ms: float | None = None
    """From the key to the first token; None where the model wasn't asked."""
    n_evaluated: int = 0
    """Tokens that were evaluated before the first new one."""
    n_tokens: int = 0
    """Tokens that were decoded up to the end of the first line, or all where it has none."""
    same_tokens_ms: float | None = None
    """From the key to as many tokens as ours decoded; None where there were not so many."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key, asked of one contender."""

    contender: str
    language: str
    is_new_line: bool
    is_bracket: bool
    answer: Answer


class Typed(Protocol):
    """Something that an editor asks after every key."""

    name: str

    def open(self, document: Document, typist: Typist) -> None:
        """A document as it stands before the first key."""
        ...

    def ask(self, edit: Edit, typist: Typist, n_tokens: int) -> Answer:
        """The text after an edit; `n_tokens` is what ours has decoded for it."""
        ...

    def close_document(self) -> None:
        """The last one that was opened."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


def default_documents() -> list[Document]:
    """Two Python modules, two C++ headers and an SQL script, as far as they are here."""
    found = [each for each in installed_documents() if Path(each.path).name in DEFAULT_NAMES]
    beside = [Path(each.path).with_name(SECOND_HEADER) for each in found if each.language == "cpp"]
    return found + [read_document(path, "cpp") for path in beside if path.is_file()]


def choose_places(documents: Sequence[Document], n_keys: int) -> list[Typing]:
    """One place in the middle of each file. Raises `BadInput` for one that is too short."""
    found: list[Typing] = []
    for document in documents:
        typings = choose_typings([document], 1, N_SPARE * n_keys)
        if not typings:
            raise BadInput(f"{document.path} is too short to type {n_keys} keys again: name a longer file.")
        found += typings
    return found


def type_all(
    typings: Sequence[Typing], contenders: Sequence[Typed], n_keys: int, progress: Callable[[str], None]
) -> Iterator[Key]:
    """Type every place into all contenders, the first of which is ours."""
    for typing in typings:
        progress(f"Typing {typing.document.path}")
        typist = typing.typist(helps=True)
        for contender in contenders:
            contender.open(typing.document, typist)
        for _ in range(n_keys):
            edit = typist.press()
            if edit is None:
                break
            n_tokens = 0
            for contender in contenders:
                answer = contender.ask(edit, typist, n_tokens)
                n_tokens = answer.n_tokens if contender is contenders[0] else n_tokens
                language = typing.document.language
                yield Key(contender.name, language, edit.is_new_line, edit.is_bracket, answer)
        for contender in contenders:
            contender.close_document()


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of some keys; all 0 where there are none."""

    n: int
    p50: float
    p95: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Percentiles":
        """Rounded to a tenth."""
        if not values:
            return cls(0, 0.0, 0.0, 0.0)
        found = (percentile(values, 50), percentile(values, 95), max(values))
        return cls(len(values), *(round(value, 1) for value in found))


@dataclass(frozen=True, slots=True)
class KeysSummary:
    """One contender's keys, of one language or all."""

    contender: str
    language: str
    n_keys: int
    n_new_lines: int
    n_bracket_edits: int
    line_ms: Percentiles
    """To the first whole line, all keys."""
    line_steps: Percentiles
    """The same in steps of our own decoding."""
    asked_line_ms: Percentiles
    """The same of the keys for which the model was asked."""
    ttft_ms: Percentiles
    """To the first token, of the same keys."""
    asked_evaluated: Percentiles
    evaluated: Percentiles
    """Tokens evaluated, all keys: those that asked nothing of the model evaluated none."""
    new_line_ms: Percentiles
    """To the first whole line, of keys that begin a line."""
    new_line_evaluated: Percentiles
    sources: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SameTokens:
    """Ours and a peer on the keys for which both decoded, up to the same number of tokens."""

    peer: str
    ours_ms: Percentiles
    peer_ms: Percentiles


ALL = "all"


def summarise(keys: Sequence[Key], step_ms: float) -> list[KeysSummary]:
    """Each contender, over all files and by language."""
    contenders = dict.fromkeys(key.contender for key in keys)
    languages = [ALL, *dict.fromkeys(key.language for key in keys)]
    return [
        _summary(contender, language, found, step_ms)
        for contender in contenders
        for language in languages
        if (found := [key for key in keys if key.contender == contender and language in (key.language, ALL)])
    ]


def same_tokens(keys: Sequence[Key]) -> list[SameTokens]:
    """Each peer beside ours; the keys come in the contenders' order, ours first."""
    contenders = list(dict.fromkeys(key.contender for key in keys))
    by_contender = {name: [key.answer for key in keys if key.contender == name] for name in contenders}
    ours = by_contender.pop(contenders[0], []) if contenders else []
    found: list[SameTokens] = []
    for name, theirs in by_contender.items():
        pairs = [
            (mine.line_ms, other.same_tokens_ms)
            for mine, other in zip(ours, theirs, strict=True)
            if mine.ttft_ms is not None and other.same_tokens_ms is not None
        ]
        mine_ms, their_ms = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        found.append(SameTokens(name, Percentiles.of(mine_ms), Percentiles.of(their_ms)))
    return found


def _summary(contender: str, language: str, keys: Sequence[Key], step_ms: float) -> KeysSummary:
    answers = [key.answer for key in keys]
    asked = [answer for answer in answers if answer.ttft_ms is not None]
    lines = [key.answer for key in keys if key.is_new_line]
    sources: dict[str, int] = {}
    for answer in answers:
        sources[answer.source] = sources.get(answer.source, 0) + 1
    return KeysSummary(
        contender=contender,
        language=language,
        n_keys=len(keys),
        n_new_lines=len(lines),
        n_bracket_edits=sum(key.is_bracket for key in keys),
        line_ms=Percentiles.of([answer.line_ms for answer in answers]),
        line_steps=Percentiles.of([answer.line_ms / step_ms for answer in answers]),
        asked_line_ms=Percentiles.of([answer.line_ms for answer in asked]),
        ttft_ms=Percentiles.of([answer.ttft_ms for answer in asked if answer.ttft_ms is not None]),
        asked_evaluated=Percentiles.of([answer.n_evaluated for answer in asked]),
        evaluated=Percentiles.of([answer.n_evaluated for answer in answers]),
        new_line_ms=Percentiles.of([answer.line_ms for answer in lines]),
        new_line_evaluated=Percentiles.of([answer.n_evaluated for answer in lines]),
        sources=dict(sorted(sources.items(), key=lambda item: -item[1])),
    )
