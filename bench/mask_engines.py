"""The engines that `bench/masks.py` times, behind one seam: begin, fill the mask, accept a token.

Ours drives tree-sitter's grammars. llguidance and xgrammar get their own JSON and grammars in Lark's notation: JSON of
ours, code of SynCode's, with the changes of `CHANGES`. All get the same tokens and write the same bits: one a logit,
in 32-bit words. Each computes a mask on the calling thread alone. Nothing here takes times.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from treefill import _kernels
from treefill.engine.tokenizer import TokenizerVocabulary
from treefill.errors import GrammarError
from treefill.syntax.grammars import load
from treefill.syntax.languages import Grammar, language_by_id
from treefill.syntax.matcher import tables

BENCH = Path(__file__).resolve().parent
OWN_LARK = BENCH / "peers" / "grammars"
LANGUAGES = ("json", "c", "java", "sql", "go", "python", "cpp", "javascript")
SYNCODE = {"c": "c.lark", "java": "java.lark", "sql": "sql.lark", "go": "go.lark", "python": "python.lark"}
"""Languages that SynCode has a grammar of → its file."""
MORE_ITEMS = {"go": 1_000_000}
"""Languages in whose grammar llguidance ends at its limit of 50,000 items a mask → a limit that it gets along with."""
SET_UP = "run make mask-peers"


class CannotLoad(Exception):
    """An engine has no grammar of a language, or refuses it, in its own words."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """One vocabulary for all."""

    spelled: list[bytes]
    """The bytes of each, empty for those that no text has."""
    n_logits: int
    end_ids: frozenset[int]
    encode: Callable[[str], list[int]]

    @classmethod
    def of(cls, vocabulary: TokenizerVocabulary, n_logits: int) -> "Tokens":
        """Of a model's tokenizer, with logits for `n_logits` tokens."""
        spelled = [vocabulary.token_bytes(token_id) for token_id in range(vocabulary.n_tokens)]
        return cls(spelled, n_logits, vocabulary.end_ids, vocabulary.encode)

    def no_mask(self) -> NDArray[np.uint32]:
        """Words [ceil(n_logits / 32)] that allow nothing."""
        return np.zeros(-(-self.n_logits // 32), np.uint32)

    def never(self) -> NDArray[np.uint32]:
        """The mask of what no mask may allow: control tokens but for those that end a text, and what no token has."""
        n_bits = 32 * len(self.no_mask())
        bits = [not self.spells(token_id) and token_id not in self.end_ids for token_id in range(n_bits)]
        return np.packbits(bits, bitorder="little").view(np.uint32)

    def spells(self, token_id: int) -> bool:
        """Whether a logit is that of a token which a text can have."""
        return token_id < len(self.spelled) and bool(self.spelled[token_id])


class Walker(Protocol):
    """One engine in one grammar, at one place of a text."""

    words: NDArray[np.uint32]  # [ceil(n_logits / 32)]
    """Where `fill_mask` writes: bit i % 32 of word i // 32 says whether token i may come next."""

    def begin(self) -> None:
        """Go to the beginning of a text."""

    def fill_mask(self) -> None:
        """Say in `words` which tokens may come next."""

    def accept(self, token_id: int) -> bool:
        """Take a token; False where it may not come next."""

    def is_whole(self) -> bool:
        """Whether the text may end here."""

    def trouble(self) -> str:
        """Why the engine cannot go on, in its own words; empty while it can."""


@dataclass(frozen=True, slots=True)
class Contender:
    """An engine with a grammar."""

    engine: str
    grammar: str
    """Where the grammar comes from."""
    load: Callable[[], Walker]
    """Compiles it. Raises `CannotLoad`."""


class Engine(Protocol):
    """What makes contenders for a language. Its constructor takes the vocabulary in, and raises `ImportError`."""

    name: str
    """With its version."""

    def contenders(self, language_id: str) -> list[Contender]:
        """Every grammar of the language that it might load."""


DICTIONARY_BYTES = 64 << 20


class Ours:
    """The acceptor over tree-sitter's tables, and the vocabulary's masks of it."""

    def __init__(self, tokens: Tokens) -> None:
        self.name = f"treefill {version('treefill')}"
        self._tokens = tokens
        self._vocabulary = _kernels.Vocabulary(tokens.spelled, tokens.n_logits)
        self._spelled: dict[Grammar, _kernels.GrammarVocabulary] = {}
        """One for both contenders: what acceptors have found out is for the vocabulary that they were asked with."""

    def contenders(self, language_id: str) -> list[Contender]:
        """Two for each dialect: every mask made, and those of earlier passes found again."""
        grammars = language_by_id(language_id).grammars
        return [self._contender(grammar, is_kept) for grammar in grammars for is_kept in (False, True)]

    def _contender(self, grammar: Grammar, is_kept: bool) -> Contender:
        def compiled() -> Walker:
            try:
                loaded = tables(load(grammar))
                spelled = _kernels.GrammarVocabulary(loaded, self._vocabulary)
                spelled = self._spelled.setdefault(grammar, spelled)
            except GrammarError as error:
                raise CannotLoad(str(error)) from None
            n_words = self._vocabulary.n_words
            kept = _kernels.MaskDictionary(b"bench", DICTIONARY_BYTES, n_words) if is_kept else None
            return OurWalker(loaded, spelled, self._tokens, kept)

        name = f"{grammar.package} {grammar.version}"
        return Contender(self.name, f"{name}, dictionary" if is_kept else name, compiled)


class OurWalker:
    """`Walker` over an acceptor."""

    def __init__(
        self,
        grammar: _kernels.Grammar,
        vocabulary: _kernels.GrammarVocabulary,
        tokens: Tokens,
        dictionary: _kernels.MaskDictionary | None = None,
    ) -> None:
        self.words = tokens.no_mask()
        self._dictionary = dictionary
        self._grammar, self._vocabulary, self._spelled = grammar, vocabulary, tokens.spelled
        self._acceptor = _kernels.Acceptor(grammar)

    def begin(self) -> None:
        """As the protocol says. What the acceptor before has found out is left to the new one."""
        del self._acceptor
        self._acceptor = _kernels.Acceptor(self._grammar)

    def fill_mask(self) -> None:
        """As the protocol says."""
        self._acceptor.fill_mask(self._vocabulary, self.words, self._dictionary)

    def accept(self, token_id: int) -> bool:
        """As the protocol says."""
        return bool(self._acceptor.accept(self._spelled[token_id]))

    def is_whole(self) -> bool:
        """As the protocol says."""
        return bool(self._acceptor.accepts_whole(b""))

    def trouble(self) -> str:
        """As the protocol says: an acceptor that gives up allows everything, which is no mask."""
        return str(self._acceptor.gave_up)


class Llguidance:
    """llguidance with the slices and limits that it has from its makers; where those end it, also with a higher one."""

    def __init__(self, tokens: Tokens) -> None:
        llguidance: Any = import_module("llguidance")
        self.name = f"llguidance {version('llguidance')}"
        self._tokens = tokens
        self._matcher, self._limits = llguidance.LLMatcher, llguidance.LLParserLimits
        # A mask must be as wide as the tokenizer, so it gets names for logits that no token has.
        named = [data or f"<{token_id}>".encode() for token_id, data in enumerate(tokens.spelled)]
        named += [f"<{token_id}>".encode() for token_id in range(len(named), tokens.n_logits)]
        silent = [token_id for token_id in range(tokens.n_logits) if not tokens.spells(token_id)]
        wrapper = llguidance.TokenizerWrapper(_Tokenizer(named, silent, tokens))
        end_ids = sorted(tokens.end_ids)
        self._tokenizer = llguidance.LLTokenizer(wrapper, n_vocab=tokens.n_logits, eos_token=end_ids)

    def contenders(self, language_id: str) -> list[Contender]:
        """Its own JSON, and Lark."""
        name = lark_name(language_id)
        contenders = [self._contender(name, lambda: self._from_lark(language_id))]
        if language_id == "json":
            contenders.insert(0, self._contender("its own", self._own_json))
        if n_items := MORE_ITEMS.get(language_id):
            limits = self._limits(step_max_items=n_items)
            name = f"{name}, {n_items:,} items"
            contenders.append(self._contender(name, lambda: self._from_lark(language_id), limits))
        return contenders

    def _contender(self, grammar: str, source: Callable[[], str], limits: Any = None) -> Contender:
        def made(text: str) -> Any:
            return self._matcher(self._tokenizer, text, log_level=0, limits=limits)

        return Contender(self.name, grammar, lambda: LlguidanceWalker(made, source(), self._tokens))

    def _own_json(self) -> str:
        return str(self._matcher.grammar_from_json_schema(json.dumps({})))

    def _from_lark(self, language_id: str) -> str:
        return str(self._matcher.grammar_from_lark(lark_text(language_id)))


class _Tokenizer:
    """What llguidance asks of a tokenizer."""

    def __init__(self, named: Sequence[bytes], silent: Sequence[int], tokens: Tokens) -> None:
        self.tokens, self.special_token_ids, self._encode = named, silent, tokens.encode
        self.eos_token_id, self.bos_token_id = min(tokens.end_ids), None

    def __call__(self, text: str | bytes) -> list[int]:
        return self._encode(text if isinstance(text, str) else text.decode("utf-8", "replace"))


class LlguidanceWalker:
    """`Walker` over its matcher, which keeps the lexer that it has built from text to text."""

    def __init__(self, made: Callable[[str], Any], source: str, tokens: Tokens) -> None:
        self.words = tokens.no_mask()
        self._place = (self.words.ctypes.data, self.words.nbytes)
        self._made, self._source = made, source
        self._matcher = made(source)
        if self._matcher.is_error():
            raise CannotLoad(first_line(self._matcher.get_error()))

    def begin(self) -> None:
        """As the protocol says. A matcher that has died stays dead, so then it is made anew."""
        if self._matcher.is_error():
            self._matcher = self._made(self._source)
        self._matcher.reset()

    def fill_mask(self) -> None:
        """As the protocol says, the way with the least Python round it."""
        self._matcher.unsafe_compute_mask_ptr(*self._place)

    def accept(self, token_id: int) -> bool:
        """As the protocol says."""
        return bool(self._matcher.consume_token(token_id))

    def is_whole(self) -> bool:
        """As the protocol says."""
        return bool(self._matcher.is_accepting())

    def trouble(self) -> str:
        """As the protocol says."""
        return first_line(self._matcher.get_error())


class Xgrammar:
    """xgrammar, masks of a grammar made while it is compiled, as is its default; but on one thread."""

    def __init__(self, tokens: Tokens) -> None:
        xgrammar: Any = import_module("xgrammar")
        self.name = f"xgrammar {version('xgrammar')}"
        self._tokens = tokens
        self._library = xgrammar
        self._info = xgrammar.TokenizerInfo(
            tokens.spelled,
            xgrammar.VocabType.RAW,
            vocab_size=tokens.n_logits,
            stop_token_ids=sorted(tokens.end_ids),
        )

    def contenders(self, language_id: str) -> list[Contender]:
        """Its own JSON, and Lark."""
        own = self._contender("its own", lambda compiler: compiler.compile_builtin_json_grammar())
        lark = self._contender(
            lark_name(language_id), lambda compiler: compiler.compile_lark(lark_text(language_id))
        )
        return [own, lark] if language_id == "json" else [lark]

    def _contender(self, grammar: str, compile_with: Callable[[Any], Any]) -> Contender:
        def compiled() -> Walker:
            compiler = self._library.GrammarCompiler(self._info, max_threads=1)
            try:
                matcher = self._library.GrammarMatcher(compile_with(compiler))
            except RuntimeError as error:
                raise CannotLoad(first_line(str(error))) from None
            return XgrammarWalker(matcher, self._tokens)

        return Contender(self.name, grammar, compiled)


class XgrammarWalker:
    """`Walker` over its matcher."""

    def __init__(self, matcher: Any, tokens: Tokens) -> None:
        self._rows = tokens.no_mask().view(np.int32)[None, :]  # [1, ceil(n_logits / 32)]
        self.words = self._rows.view(np.uint32)[0]
        self._matcher = matcher
        self._trouble = ""

    def begin(self) -> None:
        """As the protocol says."""
        self._matcher.reset()
        self._trouble = ""

    def fill_mask(self) -> None:
        """As the protocol says."""
        try:
            self._matcher.fill_next_token_bitmask(self._rows)
        except RuntimeError as error:
            self._trouble = first_line(str(error))

    def accept(self, token_id: int) -> bool:
        """As the protocol says."""
        try:
            return bool(self._matcher.accept_token(token_id))
        except RuntimeError as error:
            self._trouble = first_line(str(error))
            return False

    def is_whole(self) -> bool:
        """As the protocol says."""
        return bool(self._matcher.is_completed())

    def trouble(self) -> str:
        """As the protocol says."""
        return self._trouble


ENGINES: dict[str, Callable[[Tokens], Engine]] = {
    "treefill": Ours,
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
}


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that neither engine reads as Lark does, written another way."""

    pattern: str
    """A regular expression, `^` at every line."""
    replacement: str


NO_PRIORITIES = Change(r"^([!?]*\w+)\.\d+(\s*:)", r"\1\2")
"""Both engines refuse priorities. They follow every reading at once, so that none is needed."""
NO_LAZY_STRINGS = Change(r'/"\.\*\?"/', r'/"[^"\\n]*"/')
"""The same strings without a lazy quantifier, which llguidance reads as a greedy one."""
NO_LAZY_RAW_STRINGS = Change(r"/`\.\*\?`/", r"/`[^`\\n]*`/")
NO_TREE_MARKS = Change(r"^[!?]+(?=\w)", "")
"""`!` and `?` before a rule say how its tree is to look; the two together are an error to xgrammar."""

CHANGES: dict[str, tuple[Change, ...]] = {
    "java": (NO_LAZY_STRINGS,),
    "sql": (NO_PRIORITIES,),
    "go": (NO_PRIORITIES, NO_LAZY_STRINGS, NO_LAZY_RAW_STRINGS),
    "python": (NO_PRIORITIES, NO_TREE_MARKS),
}
"""What is changed of SynCode's grammars before an engine gets them."""


def lark_name(language_id: str) -> str:
    """Where a language's Lark grammar comes from."""
    return "Lark, ours" if language_id == "json" else "Lark, SynCode's"


def lark_text(language_id: str, syncode: Path | None = None) -> str:
    """A language's grammar as both engines get it; `syncode` is the folder of SynCode's grammars.

    Raises `CannotLoad` where there is none, or where it isn't there.
    """
    if language_id == "json":
        return (OWN_LARK / "json.lark").read_text("utf-8")
    if language_id not in SYNCODE:
        raise CannotLoad("SynCode has no grammar of it")
    path = (syncode or _syncode_folder()) / SYNCODE[language_id]
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise CannotLoad(f"{path.name} of SynCode cannot be read ({error.strerror}): {SET_UP}") from None
    return changed(text, CHANGES.get(language_id, ()))


def changed(text: str, changes: Sequence[Change]) -> str:
    """A grammar with all of the changes. Raises `ValueError` for one that finds nothing: the grammar is another."""
    for change in changes:
        text, n_found = re.subn(change.pattern, change.replacement, text, flags=re.MULTILINE)
        if not n_found:
            raise ValueError(f"Nothing in the grammar matches {change.pattern!r}: is it another release?")
    return text


def peers_folder() -> Path:
    """Where `make mask-peers` puts what is measured beside ours."""
    return BENCH.parent / "build" / "peers" / "masks"


def _syncode_folder() -> Path:
    found = sorted(peers_folder().glob("syncode-*/syncode/parsers/grammars"))
    if not found:
        raise CannotLoad(f"SynCode's grammars are missing: {SET_UP}")
    return found[-1]


def first_line(words: str) -> str:
    """What an engine says first."""
    return words.strip().partition("\n")[0].strip()
