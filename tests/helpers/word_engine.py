"""An engine that has second thoughts and writes word by word, as models do: what is taken back is a word."""

import re

from treefill.engine.api import TokenId
from treefill.engine.generate import Generator
from treefill.engine.session import Session

from tests.helpers.choosing_engine import ChoosingEngine
from tests.helpers.scripted_backend import ScriptedBackend
from tests.helpers.scripted_engine import ByteVocabulary

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class WordVocabulary(ByteVocabulary):
    """Bytes, control tokens, and the words of some texts; prompts are bytes."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self.first_word = self.n_tokens
        self.words = sorted({word for text in texts for word in _WORD.findall(text)})
        self.n_tokens += len(self.words)

    def decode(self, ids: list[TokenId] | tuple[TokenId, ...]) -> str:
        """Text of bytes and words, control tokens left out."""
        return b"".join(map(self.token_bytes, ids)).decode(errors="replace")

    def token_bytes(self, token_id: TokenId) -> bytes:
        """Of a byte or a word; nothing for a control token."""
        if token_id >= self.first_word:
            return self.words[token_id - self.first_word].encode()
        return super().token_bytes(token_id)


class WordEngine(ChoosingEngine):
    """A `ChoosingEngine` whose tokens are words."""

    def __init__(self, *texts: str) -> None:
        words = WordVocabulary(*texts)
        super().__init__(*texts, vocabulary=words)
        self.words = words
        backend = ScriptedBackend(self._wanted, words.n_tokens, self.n_context, is_narrow=True)
        control = frozenset(range(256, words.first_word))
        self._generator = Generator(Session(backend), words, self.n_context, control)

    def _wanted(self, ids: tuple[TokenId, ...]) -> list[TokenId]:
        """The next word of each text that goes on from what is written, the end where one is written out."""
        written = b"".join(map(self.words.token_bytes, ids[self._begins_at :]))
        texts = [self._forced + text for text in self._texts]
        rests = [text[len(written) :] for text in texts if text.startswith(written)]
        return [self._next(rest, len(written) < len(self._forced)) for rest in rests] or [self._end]

    def _next(self, rest: bytes, is_forced: bool) -> TokenId:
        if not rest:
            return self._end
        word = _WORD.match(rest.decode())
        assert word is not None
        return rest[0] if is_forced else self.words.first_word + self.words.words.index(word[0])
