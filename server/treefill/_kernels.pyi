"""The native module (kernels/bindings.cc): int8 products and more on the CPU's best instruction set."""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

def instruction_sets() -> list[str]:
    """What this machine runs, the quickest first: some of amx, avx512vnni, avxvnni, avx2, neon, and always scalar."""

def instruction_set() -> str:
    """The one in use. Raises `ValueError` when TREEFILL_ISA names one that is not available."""

def use_instruction_set(name: str) -> None:
    """Use another from now on; an empty name goes back to the default. Raises `ValueError`."""

def threads() -> int:
    """How many threads share a product, the calling one included."""

def set_threads(n_threads: int) -> None:
    """Share products among this many threads; 0 chooses. Raises `ValueError`."""

def read_through(arrays: list[NDArray[np.uint8]]) -> int:
    """Read the bytes [n] of all arrays once, as quickly as the machine can: what decoding is measured against.

    Returns the exclusive or of their 64-bit words. The GIL is released.
    """

def masked_argmax(logits: NDArray[np.float32], masks: NDArray[np.uint32 | np.int32]) -> NDArray[np.int32]:
    """The token of the highest logit that its mask allows, a row; of equals the first, -1 where none may be taken.

    `logits` is one row [V] or rows [n, V], `masks` one for all [W] or one a row [n, W], W = ceil(V / 32): token t has
    bit t % 32 of word t // 32, which allows it when it is set. Bits after the last token are of no meaning. Both are
    read where they lie (contiguous, in the processor's memory, numpy's or torch's). What is minus infinite or not a
    number may not be taken. Returns [n], for one row [1]. Raises `ValueError` for arrays of another type, shape or
    order. The GIL is released. Rows are shared among threads where they are many, and no decoder is at work.
    """

def masked_top_k(
    logits: NDArray[np.float32], masks: NDArray[np.uint32 | np.int32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The `k` tokens of the highest logits that may be taken and those logits, [n, k], the highest first, as above.

    Of equals the first comes first. Where fewer than `k` may be taken, -1 and minus infinity follow.
    """

def masked_log_sum_exp(
    logits: NDArray[np.float32], masks: NDArray[np.uint32 | np.int32]
) -> NDArray[np.float32]:
    """The logarithm of the sum of exp(logit) of what may be taken, [n], as above; minus infinity where nothing may.

    It is off by 1.5e-6, beside its own rounding, at most.
    """

class Int8Linear:
    """One int8 matrix, multiplied where it lies (it may be a mapped file)."""

    def __init__(
        self,
        q: NDArray[np.int8],  # [N/16, K/64, 16, 16, 4]
        scale: NDArray[np.uint16],  # [N/16, K/64, 16], the bits of float16
        sum: NDArray[np.int16],  # [N/16, K/64, 16]
        bias: NDArray[np.float32] | None,  # [N]
        n_inputs: int,
        n_outputs: int,
    ) -> None:
        """Raises `ValueError` when the shapes do not belong together."""

    def forward(self, x: int, n_rows: int, y: int) -> None:
        """Multiply float32 [n_rows, n_inputs] at address `x` into float32 [n_rows, n_outputs] at address `y`.

        The caller checks both arrays (contiguous, of these shapes and of float32). The GIL is released.
        """

    @property
    def n_inputs(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...

class KvBlocks:
    """Blocks of cached keys and values of one model; which token lies where is the caller's."""

    def __init__(
        self, n_layers: int, n_kv_heads: int, head_dim: int, block_tokens: int, n_blocks: int, type: str
    ) -> None:
        """`type` is float32, bfloat16 or int8; `block_tokens` a multiple of 32. Memory is taken as it is written.

        Raises `ValueError` for other numbers and `MemoryError`.
        """

    def copy(self, source: int, target: int, n_tokens: int) -> None:
        """Copy the first `n_tokens` of a block to another. Raises `ValueError`."""

    @staticmethod
    def bytes_a_block(n_layers: int, n_kv_heads: int, head_dim: int, block_tokens: int, type: str) -> int:
        """What one block takes."""

class Decoder:
    """A decoder of the Llama family over cached blocks. Calls from several threads run one after the other."""

    def __init__(
        self,
        n_heads: int,
        n_kv_heads: int,
        head_dim: int,
        n_ffn: int,
        norm_epsilon: float,
        embedding: NDArray[np.uint16],  # [V, H], the bits of float16
        layers: list[dict[str, NDArray[np.float32] | Int8Linear]],
        norm: NDArray[np.float32],  # [H]
        head: Int8Linear,  # [V, H]
        cos: NDArray[np.float32],  # [n_context, head_dim / 2]
        sin: NDArray[np.float32],
        cache: KvBlocks,
    ) -> None:
        """A layer has input_norm, query, key, value, output, post_norm, gate, up and down.

        Raises `ValueError` when the shapes do not belong together.
        """

    def evaluate(
        self,
        ids: NDArray[np.int32],
        sequences: list[tuple[NDArray[np.int32], int, int, int]],
        cancel: memoryview,
        logits: NDArray[np.float32] | None,
    ) -> bool:
        """Append `ids`, 1 to 64, to sequences, and write the logits [sum of n_logits, V] that are wanted.

        A sequence is its blocks (room for the new tokens included), n_before (tokens that are there), n_rows (of `ids`,
        how many are its) and n_logits (of the last so many, logits are wanted). Two sequences must not write to one
        block. The GIL is released. The first byte of `cancel` is read before each layer: when it is not 0, returns
        False, and nothing was appended. Raises `ValueError` for what does not fit together.
        """

class Policy:
    """What a language refuses and its grammar takes, symbols by their names in the grammar."""

    refused_pairs: list[tuple[str, str]]
    needed_parts: list[tuple[str, list[str]]]
    needs_enclosing: list[tuple[str, str]]
    json_numbers: list[str]
    is_strict: bool

class Grammar:
    """A compiled tree-sitter grammar and what was recovered of its lexers. Any thread may use it."""

    def __init__(
        self, capsule: object, policy: Policy = ..., scanner_model: str = "", kept: bytes = b""
    ) -> None:
        """`capsule` holds the tables' address, `kept` what `keep` gave for them before.

        Raises `ValueError` for tables or names that are not known, `RuntimeError` where `kept` is another grammar's.
        """
    def keep(self) -> bytes:
        """All that was found out about the grammar's lexers, for the next process."""
    def forget(self) -> None:
        """Let go of what acceptors have found out for the next ones; it takes some megabytes."""
    @property
    def abi_version(self) -> int: ...
    @property
    def n_lexer_states(self) -> int: ...
    @property
    def n_keyword_states(self) -> int: ...
    @property
    def external_states(self) -> list[list[bool]]:
        """The sets of external tokens that its scanner is asked for, a flag a token."""
    @property
    def keywords(self) -> list[str]:
        """Names of the words that it tells from names; none where it has no automaton of its own for them."""
    @property
    def word(self) -> str:
        """The name of the token that keywords are told from; empty where there is none."""

class Vocabulary:
    """A model's tokens as bytes, by id; empty for those that are never written."""

    def __init__(self, tokens: list[bytes], n_logits: int) -> None:
        """Raises `ValueError` for more tokens than logits, and for a token of more than 255 bytes."""
    @property
    def n_logits(self) -> int: ...
    @property
    def n_words(self) -> int:
        """Of 32 bits each, so that there is one for every logit."""

class GrammarVocabulary:
    """A vocabulary spelled for one grammar: characters that its lexers do not tell apart are one letter.

    Takes 0.2 to 2 s to make, and 6 MB. May be shared by threads.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None: ...
    @property
    def n_letters(self) -> int: ...
    @property
    def n_nodes(self) -> int:
        """Of the tries."""

class MaskOutcome(Enum):
    """What came of asking for a mask."""

    DECIDED = 0
    UNKNOWN = 1
    """The dictionary has it not, and nothing was to be walked."""
    GAVE_UP = 2
    """The grammar decides no longer."""

class MaskDictionary:
    """Masks by all that they depend on, the least recently used dropped first. Any thread may use it."""

    def __init__(self, environment: bytes, max_bytes: int, n_words: int) -> None:
        """`environment` tells the engine, the grammar and the vocabulary that its masks belong to."""
    def hash(self, key: bytes) -> bytes:
        """XXH3-128 of the environment and the key, the highest byte first."""
    def evict(self, key: bytes) -> bool:
        """Drop what is kept at a key, and the file with it; False where nothing was."""
    def dump(self, limit: int) -> bytes:
        """What a file is to hold: all that has nothing of a user's, the most recently used, in so many bytes."""
    def open_file(self, path: str) -> None:
        """Look there, too, for what is not in memory. Raises `RuntimeError`, with the reason, where it is no use."""
    @property
    def hashes(self) -> list[bytes]: ...
    @property
    def counts(self) -> dict[str, int]: ...

class Acceptor:
    """Tells whether a text that grows is the beginning of something that a grammar accepts. One thread at a time."""

    def __init__(self, grammar: Grammar) -> None: ...
    def allows(self, more: bytes, n_back: int = 0) -> bool:
        """Whether the text, its last `n_back` pieces left out, is a beginning with `more` after it; it stays."""
    def accept(self, more: bytes) -> bool:
        """The same, and `more` becomes part of the text, whatever the answer."""
    def rollback(self, n: int) -> None:
        """Take the last `n` accepted pieces off again."""
    def accepts_whole(self, rest: bytes, n_back: int = 0) -> bool:
        """Whether the text is whole with `rest` after it, the last `n_back` accepted pieces left out."""
    def expected(self) -> list[str]:
        """Names of the tokens that may come next, where one has just ended."""
    def situation(self) -> tuple[bool, str, list[str]]:
        """What the text's end is about: whether layout may come of a line feed that was read there, the innermost
        bracket that is open (`(`, `[`, `{`, `<` or none), and the names of the tokens that the open lexeme may
        become, or that may come where none is begun.
        """
    def forced(self, limit: int) -> bytes:
        """The bytes that must come next, as far as there is but one way on, and at most so many."""
    def fill_mask(
        self,
        vocabulary: GrammarVocabulary,
        words: NDArray[np.uint32],
        dictionary: MaskDictionary | None = None,
        is_walked: bool = True,
    ) -> MaskOutcome:
        """Write which tokens may come next: bit t % 32 of word t // 32 is token t's. `words` has [n_words].

        What the dictionary has is taken from there, and what it has not is made and added, unless nothing is to be
        walked. Unless it was decided all tokens are written. Raises `ValueError` for a vocabulary that is spelled for
        another grammar, and for another number of words.
        """
    @property
    def mask_counts(self) -> tuple[int, int, int, int, int, int]:
        """Of the last mask: nodes of the trie that were looked at, steps found out, times that the parser was asked,
        texts that are a scanner's to decide, how many numbers for texts there are by now, and tokens that the
        dictionary left open.
        """
    @property
    def mask_keys(self) -> list[bytes]:
        """What the halves of the last mask are found by in its dictionary."""
    @property
    def text(self) -> bytes:
        """All that was accepted."""
    @property
    def is_alive(self) -> bool: ...
    @property
    def n_accepted(self) -> int: ...
    @property
    def n_versions(self) -> int: ...
    @property
    def refused_at(self) -> int:
        """The byte where the token begins that nothing could take, after something was refused."""
    @property
    def gave_up(self) -> str:
        """Why everything is allowed from here on; empty while the grammar decides."""

class LexicalRules:
    """How a language writes what is not code, and what separates its statements."""

    line_comments: list[str]
    block_comments: list[tuple[str, str]]
    quotes: str
    long_quotes: list[str]
    escape: str
    separator: str
    has_raw_strings: bool
    has_templates: bool
    has_regexes: bool
    has_dollar_quotes: bool
    has_directives: bool
    has_commands: bool
    has_blocks: bool

class LayoutWords:
    """What goes on a statement where layout is grammar."""

    continuations: list[str]
    prefixes: list[str]
    resets: list[str]

class Scope:
    """A bracket that is open at a place, or the file itself; places are bytes."""

    @property
    def opener(self) -> str: ...
    @property
    def opened_at(self) -> int: ...
    @property
    def body(self) -> int: ...
    @property
    def starts(self) -> list[int]:
        """Where statements begin directly in it, ascending; the latest some."""

class LogicalLine:
    """A line of code with those that brackets and strings join to it; places are bytes."""

    @property
    def start(self) -> int: ...
    @property
    def code(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def has_block(self) -> bool: ...

class Layout:
    """The lines that a place hangs on where layout is grammar."""

    @property
    def levels(self) -> list[list[LogicalLine]]: ...
    @property
    def current(self) -> int: ...

def outline(text: bytes, begin: int, at: int, rules: LexicalRules) -> list[Scope]:
    """The scopes round byte `at`, from the file itself to the innermost, read from byte `begin` on.

    Raises `ValueError` for places outside of the text, as its neighbours do.
    """

def statement_end(text: bytes, start: int, at: int, n_scopes: int, rules: LexicalRules) -> int:
    """Where the statement that begins at `start` ends, at `at` or after it, so many closing brackets of scopes on."""

def n_closed_scopes(text: bytes, start: int, rules: LexicalRules, openers: str) -> int:
    """How many scopes that are open at `start` the text closes from there on, brackets of those kinds alone."""

def logical_line_end(text: bytes, at: int, rules: LexicalRules, words: LayoutWords) -> int:
    """The byte after the logical line that `at` is in; 0 where it does not end, as a bracket or string is left open."""

def layout(text: bytes, begin: int, at: int, rules: LexicalRules, words: LayoutWords) -> Layout:
    """The levels that the last whole line before `at` is in, and where the line that `at` is in begins."""

def scan_with_model(
    name: str,
    valid: list[bool],
    memory: bytes,
    text: bytes,
    position: int,
    is_whole: bool,
    is_strict: bool = False,
    is_statement_start: bool = False,
    is_outside_brackets: bool = False,
) -> tuple[bool, int, bool, bool, bool, int, int, bytes]:
    """What a scanner's model says (kernels/syntax/scanner_model.h): undecided, possible, may decline, refused, found,
    token, end, memory. Raises `ValueError` for a name that none has.
    """

def scan_with_grammar(
    grammar: Grammar, valid: list[bool], memory: bytes, text: bytes, position: int, is_whole: bool
) -> tuple[bool, int, bool, bool, bool, int, int, bytes]:
    """What the scanner itself says: the same, but that it knows nothing of what is possible and refuses nothing."""
