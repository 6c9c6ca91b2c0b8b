"""A llama-server asked as llama.vim asks it, the plugin that llama.cpp's makers recommend.

Of the plugin is kept what decides how much is evaluated: the lines around the cursor and where each part goes, which
keys are not asked about, and its memory of earlier answers. Left out are pieces of other files, as ours has none here
either; its time limits, because we listen up to the end of the first line and no further; and chance: the likeliest
token is taken, as ours does.
"""

from dataclasses import dataclass

from treefill.benchmarks.keystrokes import DECODED, Answer
from treefill.benchmarks.llama_server import LlamaServer, Piece
from treefill.evaluation.typist import Edit, Typist
from treefill.text import Document

N_LINES_BEFORE = 256
N_LINES_AFTER = 64
MAX_LINE_SUFFIX = 8
"""With more characters right of the cursor nobody is asked."""
N_LOOK_BACK = 128
"""An answer for a place so many characters back is gone on with, where they were typed as it says."""
N_KEPT = 250
N_PREDICT = 64
"""As many as ours writes at most."""
TYPED_THROUGH = "typed through"
HELD_BACK = "held back"


@dataclass(frozen=True, slots=True)
class Around:
    """The text around a cursor, as the request wants it."""

    prefix: str
    """Whole lines before the cursor's."""
    middle: str
    """The cursor's line up to it; nothing where the line is blank."""
    suffix: str
    """The rest of the line, and lines below."""
    line_suffix: str

    def body(self, n_tokens: int) -> dict[str, object]:
        """The request, for at least `n_tokens`."""
        return {
            "input_prefix": self.prefix,
            "input_suffix": self.suffix,
            "input_extra": [],
            "prompt": self.middle,
            "n_predict": max(N_PREDICT, n_tokens),
            "samplers": ["top_k"],
            "top_k": 1,
            "cache_prompt": True,
        }


def around(text: str, cursor: int) -> Around:
    """Cut the lines that the plugin sends."""
    lines = text.split("\n")
    number = text.count("\n", 0, cursor)
    column = cursor - (text.rfind("\n", 0, cursor) + 1)
    line = lines[number]
    before, after = (line[:column], line[column:]) if line.strip() else ("", "")
    above = lines[max(0, number - N_LINES_BEFORE) : number]
    below = lines[number + 1 : number + 1 + N_LINES_AFTER]
    suffix = after + "\n" + "\n".join(below) + "\n"
    return Around("\n".join(above) + "\n", before, suffix, after)


class LlamaVim:
    """A `Typed` over a running llama-server."""

    def __init__(self, server: LlamaServer) -> None:
        self.name = server.name
        self._server = server
        self._kept: dict[tuple[str, str], str] = {}

    def open(self, document: Document, typist: Typist) -> None:
        """Ask once, so that the first key finds the file in the server's cache, as ours does."""
        self._kept.clear()
        self._asked(around(typist.text, typist.cursor), 0)

    def ask(self, edit: Edit, typist: Typist, n_tokens: int) -> Answer:
        """What the plugin does after a key."""
        place = around(typist.text, typist.cursor)
        if self._remembered(place):
            return Answer(TYPED_THROUGH, 0.0)
        if len(place.line_suffix) > MAX_LINE_SUFFIX:
            return Answer(HELD_BACK, 0.0)
        return self._asked(place, n_tokens)

    def close_document(self) -> None:
        """The server knows of no documents."""

    def close(self) -> None:
        """The server is not ours to end."""
        self._server.close()

    def _asked(self, place: Around, n_tokens: int) -> Answer:
        first: Piece | None = None
        whole: Piece | None = None
        same: Piece | None = None
        last: Piece | None = None
        pieces = self._server.infill(place.body(n_tokens))
        for last in pieces:
            first = first or last
            whole = whole or (last if has_whole_line(last.text) else None)
            same = same or (last if n_tokens and last.n_tokens >= n_tokens else None)
            if whole and (same or not n_tokens):
                break
        pieces.close()
        self._server.wait_idle()
        if first is None or last is None:
            return Answer("nothing", 0.0)
        whole = whole or last
        self._keep(place, whole.text)
        return Answer(
            DECODED,
            whole.ms,
            ttft_ms=first.ms,
            n_evaluated=first.n_evaluated,
            n_tokens=whole.n_tokens,
            same_tokens_ms=same.ms if same else None,
        )

    def _keep(self, place: Around, text: str) -> None:
        """Remember an answer, and for when up to three lines have left the window above."""
        if len(self._kept) >= N_KEPT:
            del self._kept[next(iter(self._kept))]
        prefix = place.prefix
        for _ in range(4):
            self._kept[prefix + place.middle, place.suffix] = text
            prefix = prefix.partition("\n")[2]
            if not prefix:
                return

    def _remembered(self, place: Around) -> bool:
        """Whether an earlier answer leads here and has more to say."""
        written = place.prefix + place.middle
        for n_back in range(min(N_LOOK_BACK, len(written)) + 1):
            start = len(written) - n_back
            answer = self._kept.get((written[:start], place.suffix))
            if answer and answer.startswith(written[start:]) and answer[n_back:].strip():
                return True
        return False


def has_whole_line(text: str) -> bool:
    """Whether a line with something in it has come to its end."""
    return "\n" in text.lstrip("\n")
