"""An engine that says what the test tells it to, one piece after the other: no model, no tensor."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from treefill.engine.api import (
    CancelFlag,
    Finish,
    GenerateRequest,
    Generation,
    TokenBytes,
    TokenId,
    Vocabulary,
)

QWEN_CONTROL_TOKENS = (
    "<|endoftext|>",
    "<|im_end|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)


def _never(text: str) -> bool:
    return False


class ByteVocabulary:
    """A vocabulary of the 256 bytes and some control tokens."""

    def __init__(self, control_tokens: Iterable[str] = QWEN_CONTROL_TOKENS) -> None:
        self.control_tokens = tuple(control_tokens)
        self.n_tokens = 256 + len(self.control_tokens)
        self.end_ids = frozenset(
            256 + number
            for number, name in enumerate(self.control_tokens)
            if name in ("<|endoftext|>", "<|im_end|>")
        )

    def encode(self, text: str) -> list[TokenId]:
        """One token a byte; a control token's name is spelt like any other text."""
        return list(text.encode())

    def decode(self, ids: list[TokenId] | tuple[TokenId, ...]) -> str:
        """Text of the bytes, control tokens left out."""
        return bytes(token_id for token_id in ids if token_id < 256).decode(errors="replace")

    def control_id(self, name: str) -> TokenId | None:
        """The control token's id, or None."""
        return 256 + self.control_tokens.index(name) if name in self.control_tokens else None

    def token_bytes(self, token_id: TokenId) -> bytes:
        """The byte itself; nothing for a control token."""
        return bytes([token_id]) if token_id < 256 else b""

    def every_token_bytes(self) -> TokenBytes:
        """All of them, by id."""
        return TokenBytes.of(map(self.token_bytes, range(self.n_tokens)))


class ScriptedEngine:
    """Replays texts as a model would write them: `n_step` characters a token, `should_stop` asked after each.

    A script is a text, or a function of the text that the prompt ends with (its middle, forced bytes
    included).
    """

    name = "scripted"
    model = "script"

    def __init__(
        self,
        *scripts: str | Callable[[str], str],
        n_step: int = 1,
        vocabulary: ByteVocabulary | None = None,
        n_context: int = 32_768,
        is_healing: bool = True,
    ) -> None:
        self.byte_vocabulary = vocabulary or ByteVocabulary()
        self.vocabulary: Vocabulary = self.byte_vocabulary
        self.n_context = n_context
        self.requests: list[GenerateRequest] = []
        """Every request, for a test to look at."""
        self._scripts = scripts
        self._n_step = n_step
        self._is_healing = is_healing
        self._cached: tuple[TokenId, ...] = ()
        self._told: dict[tuple[TokenId, ...], str] = {}
        """Prompt → forced text and script, for a generation that is gone on with."""

    def generate(self, request: GenerateRequest, cancel: CancelFlag) -> Generation:
        """The next script, cut where the request's rule stops it."""
        assert request.prompt_ids, "a prompt has at least one token"
        assert len(request.prompt_ids) + request.max_new_tokens <= self.n_context, "the prompt is too long"
        # Not with what stands guard: its tables would be kept, too.
        self.requests.append(replace(request, guard=None, should_stop=_never))
        n_reused = self._reuse(request)
        if request.forced and not self._is_healing:
            return self._generation("", Finish.UNHEALABLE, request, n_reused, 0)
        text = self._script_for(request)
        said = bytes(request.begun).decode()[len(request.forced.decode()) :]
        n_new = len(said)
        finish = Finish.END
        if said and request.should_stop(said):
            return self._generation(said, Finish.STOPPED, request, n_reused, n_new)
        while said != text and not request.is_begun_whole:
            if cancel.is_cancelled:
                finish = Finish.CANCELLED
                break
            if n_new == request.max_new_tokens:
                finish = Finish.LENGTH
                break
            said = text[: len(said) + self._n_step]
            n_new += 1
            if request.should_stop(said):
                finish = Finish.STOPPED
                break
        return self._generation(said, finish, request, n_reused, n_new)

    def _script_for(self, request: GenerateRequest) -> str:
        forced = request.forced.decode()
        told = self._told.get(request.prompt_ids, "")
        # What was typed since may go beyond what a cut generation wrote: then the rest is written after it anew.
        if request.begun and told.startswith(forced):
            return told[len(forced) :]
        n_scripts = sum(not each.begun for each in self.requests)
        script = self._scripts[(n_scripts - 1) % len(self._scripts)]
        text = script if isinstance(script, str) else script(self.middle_of(request))
        self._told[request.prompt_ids] = forced + text
        return text

    def middle_of(self, request: GenerateRequest) -> str:
        """The text after the last control token, and the forced bytes: what the model must continue."""
        ids = request.prompt_ids
        last = max((number for number, token_id in enumerate(ids) if token_id >= 256), default=-1)
        return self.vocabulary.decode(ids[last + 1 :]) + request.forced.decode()

    def close(self) -> None:
        """Nothing to free."""

    def _reuse(self, request: GenerateRequest) -> int:
        cached = self._cached if request.reuse else ()
        self._cached = request.prompt_ids
        n_same = 0
        for old, new in zip(cached, request.prompt_ids, strict=False):
            if old != new:
                break
            n_same += 1
        return min(n_same, len(request.prompt_ids) - 1)

    def _generation(
        self, text: str, finish: Finish, request: GenerateRequest, n_reused: int, n_new: int
    ) -> Generation:
        return Generation(
            text=text,
            token_ids=tuple(
                self.vocabulary.encode(request.forced.decode() + text.encode(errors="replace").decode())
            ),
            finish=finish,
            n_prompt_tokens=len(request.prompt_ids),
            n_reused_tokens=n_reused,
            n_new_tokens=n_new,
            n_evaluated=len(request.prompt_ids) - n_reused,
            ttft_ms=0.0,
            total_ms=0.0,
        )
