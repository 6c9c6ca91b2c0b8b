r"""The text of an open file, never changed in place: in chunks, so that a keystroke in 30 MB touches one of them.

Offsets count code points. Lines end at `\n`, `\r\n` and `\r`. Half a surrogate pair is kept as it comes, and
two halves that come to stand together become one character, as JavaScript's strings do by themselves.
Which file it is and what the editor says of it is not known here (`store`).

Everything asked of a text adds up along it: line endings, bytes, UTF-16 units, the checksum. Each chunk knows its
own sums; running sums over the chunks find the right one, and a halving search ends inside it. With n characters
and chunks of c, an edit copies n / c references and reads 2 c characters: 900 and 64 thousand in a file of 30 MB.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Self

from treefill.text.positions import Position, PositionEncoding

_CHUNK_CHARS = 32_768
"""Characters of a full chunk, measured (`bench/text.py`); one is half full unless it is the only one. At least 4."""
_PRIME = 2**61 - 31
"""Not the nearer 2**61 - 1: there the powers of 256 repeat after 61, and an edit one line off in FASTA goes unseen."""
_PRIME_BITS = 61


class Text:
    """An immutable text; `Text.of` makes one, `replace` the next one, and they share what they have in common."""

    def __init__(self, chunks: tuple["_Chunk", ...]) -> None:
        self._chunks = chunks
        self._sums: dict[_Measure, list[int]] = {}

    @classmethod
    def of(cls, text: str) -> Self:
        """The text with these characters."""
        return cls(_cut(join_surrogates(text)))

    def __len__(self) -> int:
        return self._sums_of(_CHARACTERS)[-1]

    def __str__(self) -> str:
        return self._joined

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self.checksum == other.checksum and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self.checksum)

    def slice(self, start: int, end: int) -> str:
        """The characters from `start` to `end`; what would lie outside the text is left out."""
        start = self._within(start)
        end = max(self._within(end), start)
        first, last = self._chunk_at(start), self._chunk_at(end)
        offsets = self._sums_of(_CHARACTERS)
        parts = [chunk.text for chunk in self._chunks[first : last + 1]]
        parts[-1] = parts[-1][: end - offsets[last]]
        parts[0] = parts[0][start - offsets[first] :]
        return "".join(parts)

    def replace(self, start: int, end: int, new: str) -> "Text":
        """The text with `new` in place of the characters from `start` to `end`."""
        if not 0 <= start <= end <= len(self):
            raise IndexError(f"{start} to {end} is not within a text of {len(self)} characters")
        offsets = self._sums_of(_CHARACTERS)
        # The characters before and after take part: they may be half of a `\r\n` or of a surrogate pair.
        first, last = max(bisect_left(offsets, start) - 1, 0), self._chunk_at(end)
        head = self._chunks[first].text[: start - offsets[first]]
        tail = self._chunks[last].text[end - offsets[last] :]
        middle = join_surrogates(head + new + tail)
        if len(middle) < _CHUNK_CHARS // 2:  # so that small chunks never pile up
            if last + 1 < len(self._chunks):
                last += 1
                middle += self._chunks[last].text
            elif first > 0:
                first -= 1
                middle = self._chunks[first].text + middle
        return Text(self._chunks[:first] + _cut(middle) + self._chunks[last + 1 :])

    @property
    def n_lines(self) -> int:
        """How many lines an editor shows: one more than there are line endings."""
        return 1 + self._sums_of(_LINE_ENDS)[-1]

    def line_bounds(self, offset: int) -> tuple[int, int]:
        r"""Start and end of the line that holds `offset`, its line ending left out.

        Between `\r` and `\n` it is still the line that they end.
        """
        return self._line(self._count_before(offset, _LINE_ENDS))

    def offset_at(self, position: Position, encoding: PositionEncoding) -> int:
        """The offset of a position; the start of the character where the position is inside one.

        Past the line's end means the line's end, past the last line the text's end, and a negative number 0.
        """
        if position.line >= self.n_lines:
            return len(self)
        start, end = self._line(max(position.line, 0))
        measure = _UNITS[encoding]
        n_units = self._count_before(start, measure) + max(position.character, 0)
        return min(self._reach(n_units, measure), end)

    def position_at(self, offset: int, encoding: PositionEncoding) -> Position:
        """The position of an offset; inside a line's ending it is the line's end."""
        line = self._count_before(offset, _LINE_ENDS)
        start, end = self._line(line)
        measure = _UNITS[encoding]
        n_units = self._count_before(min(offset, end), measure) - self._count_before(start, measure)
        return Position(line, n_units)

    @cached_property
    def checksum(self) -> int:
        """A number that depends on the characters alone: two mirrors of one text compare it after each edit.

        The UTF-8 bytes read as one big-endian number modulo a prime, below the count of characters.
        """
        remainder = 0
        for chunk in self._chunks:
            remainder = (remainder * chunk.weight + chunk.remainder) % _PRIME
        return len(self) << _PRIME_BITS | remainder

    @cached_property
    def _joined(self) -> str:
        return "".join(chunk.text for chunk in self._chunks)

    def _line(self, number: int) -> tuple[int, int]:
        start = self._line_start(number)
        if number + 1 == self.n_lines:
            return start, len(self)
        next_start = self._line_start(number + 1)
        ending = self.slice(next_start - 2, next_start)
        return start, next_start - (2 if ending == "\r\n" else 1)

    def _line_start(self, number: int) -> int:
        return 1 + self._reach(number - 1, _LINE_ENDS) if number else 0

    def _count_before(self, offset: int, measure: "_Measure") -> int:
        offset = self._within(offset)
        index = self._chunk_at(offset)
        within = offset - self._sums_of(_CHARACTERS)[index]
        return self._sums_of(measure)[index] + measure.of_part(self._chunks[index].text, 0, within)

    def _reach(self, count: int, measure: "_Measure") -> int:
        """The largest offset that has no more than `count` before it."""
        sums = self._sums_of(measure)
        index = min(bisect_right(sums, count), len(self._chunks)) - 1
        within = _reach(self._chunks[index].text, count - sums[index], measure)
        return self._sums_of(_CHARACTERS)[index] + within

    def _chunk_at(self, offset: int) -> int:
        return min(bisect_right(self._sums_of(_CHARACTERS), offset), len(self._chunks)) - 1

    def _within(self, offset: int) -> int:
        return min(max(offset, 0), len(self))

    def _sums_of(self, measure: "_Measure") -> list[int]:
        """What each chunk has before it, and at last the whole."""
        sums = self._sums.get(measure)
        if sums is None:
            sums = list(accumulate(map(measure.of_chunk, self._chunks), initial=0))
            self._sums[measure] = sums
        return sums


def join_surrogates(text: str) -> str:
    """The text with each high surrogate directly before a low one joined with it to one character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some characters and what they add to each sum."""

    text: str
    n_line_ends: int
    n_utf8_bytes: int
    n_utf16_units: int
    remainder: int
    """The UTF-8 bytes as a big-endian number, modulo the prime."""
    weight: int
    """256 to the power of the bytes, modulo the prime: what the remainder of all before is multiplied by."""

    @classmethod
    def of(cls, text: str) -> Self:
        data = text.encode("utf-8", "surrogatepass")
        return cls(
            text,
            _count_line_ends(text, 0, len(text)),
            len(data),
            _count_utf16(text, 0, len(text)),
            int.from_bytes(data, "big") % _PRIME,
            pow(256, len(data), _PRIME),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Measure:
    """Something that adds up along a text."""

    of_chunk: Callable[[_Chunk], int]
    of_part: Callable[[str, int, int], int]
    """The same of the characters between two offsets of a chunk's text."""


def _cut(text: str) -> tuple[_Chunk, ...]:
    r"""Chunks of even size, none over a full one but for the `\n` of a `\r\n`; an empty text has an empty one."""
    n_chunks = max(1, -(-len(text) // _CHUNK_CHARS))
    bounds = [len(text) * i // n_chunks for i in range(n_chunks + 1)]
    bounds = [bound + (text[bound - 1 : bound + 1] == "\r\n") for bound in bounds]
    return tuple(_Chunk.of(text[i:j]) for i, j in pairwise(bounds))


def _reach(text: str, count: int, measure: _Measure) -> int:
    """The largest offset that has no more than `count` before it, by halving: each character is read twice."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        part = measure.of_part(text, low, middle)
        if part <= count:
            low, count = middle, count - part
        else:
            high = middle - 1
    return low


def _count_line_ends(text: str, start: int, end: int) -> int:
    r"""Line endings whose last character lies between the offsets: of `\r\n` it is the `\n`."""
    n_carriage_returns = text.count("\r", start, end)
    if not n_carriage_returns:
        return text.count("\n", start, end)
    return text.count("\n", start, end) + n_carriage_returns - text.count("\r\n", start, end + 1)


def _count_utf8(text: str, start: int, end: int) -> int:
    return end - start if text.isascii() else len(text[start:end].encode("utf-8", "surrogatepass"))


def _count_utf16(text: str, start: int, end: int) -> int:
    return end - start if text.isascii() else len(text[start:end].encode("utf-16-le", "surrogatepass")) // 2


def _count_characters(_text: str, start: int, end: int) -> int:
    return end - start


_CHARACTERS = _Measure(lambda chunk: len(chunk.text), _count_characters)
_LINE_ENDS = _Measure(lambda chunk: chunk.n_line_ends, _count_line_ends)
_UNITS = {
    PositionEncoding.UTF_8: _Measure(lambda chunk: chunk.n_utf8_bytes, _count_utf8),
    PositionEncoding.UTF_16: _Measure(lambda chunk: chunk.n_utf16_units, _count_utf16),
    PositionEncoding.UTF_32: _CHARACTERS,
}
