"""A JSON Schema as a guard: which bytes may come next so that a JSON document is one that the schema describes.

llguidance does the work. It reads tokens, and gets 256 tokens of one byte each: a guard is asked of bytes that need not
be whole tokens of any model (what healing or a jump leaves, the text before a cursor), such a tokenizer is made in no
time, and it serves every model. Where a mask of a model's vocabulary is wanted, the tokenizer has that vocabulary, and
behind it the 256 bytes, which the matcher is still led by.

Schemas are files of this machine. Nothing is fetched: what refers to another file or address is refused.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treefill.errors import SchemaError
from treefill.syntax.parse import common_length

if TYPE_CHECKING:
    import numpy as np
    from llguidance import LLMatcher, LLTokenizer
    from numpy.typing import NDArray

MAX_SCHEMA_BYTES = 2_000_000
MAX_PREFIX_BYTES = 50_000
"""So much before a cursor is read, at two microseconds a byte; from keystroke to keystroke only what has changed."""
MAX_OTHER_KEYS = 64
"""So many keys of a document that its schema does not name may stand before those that it names."""
N_KEPT = 8
"""Compiled schemas that are kept: the next keystroke has the same."""
_GRAMMAR = "start: WS? document WS?\nWS: /[ \\t\\r\\n]+/\ndocument: %json "
_OPTIONS = {
    # What llguidance does not know is left out, and told; it would refuse nearly every schema that people write.
    "lenient": True,
    "coerce_one_of": True,
    "json_allow_general_unicode_escapes": True,
}
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_VALUES = ("enum", "const", "default", "examples")
_COUNTS = ("required", "minProperties", "minItems")
_KEY = re.compile(r'"((?:[^"\\]|\\.)*+)"\s*+:')
_BYTES = tuple(bytes([number]) for number in range(256))


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema that can be followed."""

    name: str
    """Where it is from, for people."""
    source: str
    """The schema itself, as JSON."""
    notes: tuple[str, ...] = ()
    """What of it is not held to, a sentence each."""


ANY_JSON = Schema("JSON", "{}")
"""What every JSON document is: no comments, no commas too many, numbers as JSON has them."""


def read_schema(path: Path) -> Schema:
    """The schema in a file. Raises `SchemaError` with the file and what was expected."""
    try:
        data = path.read_bytes() if path.stat().st_size <= MAX_SCHEMA_BYTES else None
    except OSError as error:
        raise SchemaError(
            f"The schema {path} cannot be read ({error.strerror}): name a file with a JSON Schema."
        ) from None
    if data is None:
        raise SchemaError(f"The schema {path} has more than {MAX_SCHEMA_BYTES:,} bytes: take a part of it.")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"The schema {path} is not JSON ({error}): mend it.") from None
    return schema_of(value, str(path))


def schema_of(value: Any, name: str) -> Schema:
    """A schema that was read already. Raises `SchemaError`."""
    own = {each["$id"].partition("#")[0] for each in _tables(value) if isinstance(each.get("$id"), str)}
    for table in _tables(value):
        for key in _REFERENCES:
            target = table.get(key)
            if isinstance(target, str) and target.partition("#")[0] not in {"", *own}:
                raise SchemaError(
                    f"The schema {name} refers to {target!r}, which is not in it: nothing is fetched, so put that "
                    "under $defs of the same file."
                )
    source = json.dumps(value)
    matcher = _compiled(source, name, BYTES)
    return Schema(name, source, tuple(_notes(matcher.get_grammar_warnings())))


def schema_guard(schema: Schema, tokens: SchemaTokens | None = None) -> SchemaGuard:
    """Over a document from its beginning. Raises `SchemaError` where the schema cannot be followed."""
    tokens = tokens or BYTES
    return SchemaGuard(_compiled(schema.source, schema.name, tokens).deep_copy(), tokens)


def schema_guard_after(schema: Schema, prefix: str) -> SchemaGuard | str:
    """Over what is written at a cursor after `prefix`, or why the schema does not decide there, as one sentence.

    What must still come may stand right of the cursor, so nothing is asked for: only what may not come is told.
    Raises `SchemaError` where the schema cannot be followed.
    """
    data = prefix.encode(errors="replace")
    if len(data) > MAX_PREFIX_BYTES:
        return f"The schema {schema.name} does not decide: there is too much text before the cursor."
    keys = list(dict.fromkeys(_KEY.findall(prefix)))
    source = json.dumps(_with_address(_in_order(json.loads(schema.source), keys), keys))
    matcher, n_read = LATEST.after(data, source, _compiled(source, schema.name, BYTES))
    if n_read < len(data):
        line = data[:n_read].count(b"\n") + 1
        return f"The schema {schema.name} does not decide: what is before the cursor is not as it says (line {line})."
    return SchemaGuard(matcher, BYTES, at_cursor=True)


def complaint_by(schema: Schema, text: str) -> str:
    """What a whole document, which is JSON, has that the schema does not, in a few words; empty where nothing.

    Raises `SchemaError` where the schema cannot be followed.
    """
    keys = list(dict.fromkeys(_KEY.findall(text)))
    source = json.dumps(_with_address(_in_order(json.loads(schema.source), keys, is_whole=True), keys))
    matcher = _compiled(source, schema.name, BYTES).deep_copy()
    data = text.encode(errors="replace")
    n_read = matcher.try_consume_tokens(list(data))
    if n_read == len(data) and matcher.is_accepting():
        return ""
    line = data[:n_read].count(b"\n") + 1
    return f"line {line}: it is not as the schema {schema.name} says"


class LatestText:
    """A matcher that has read the text before the latest cursor: the next one has most of it in common."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._source, self._data = "", b""
        self._matcher: LLMatcher | None = None

    def after(self, data: bytes, source: str, beginning: LLMatcher) -> tuple[LLMatcher, int]:
        """One that has read the text, and how many of its bytes it took."""
        with self._lock:
            kept = self._matcher if source == self._source else None
            n_common = common_length(self._data, data) if kept is not None else 0
            matcher = (kept or beginning).deep_copy()
            if kept is not None and n_common < len(self._data):
                matcher.rollback(len(self._data) - n_common)
            n_read = n_common + (
                matcher.try_consume_tokens(list(data[n_common:])) if n_common < len(data) else 0
            )
            if n_read == len(data):
                self._source, self._data, self._matcher = source, data, matcher.deep_copy()
            return matcher, n_read


LATEST = LatestText()


class SchemaGuard:
    """`engine.api.Guard` over one document. One thread at a time."""

    def __init__(self, matcher: LLMatcher, tokens: SchemaTokens, at_cursor: bool = False) -> None:
        """`at_cursor`: what is written is no whole document, so where it ends is for others to say."""
        self._matcher = matcher
        self._tokens = tokens
        self._at_cursor = at_cursor
        self._n_bytes: list[int] = []
        """Of each piece that was accepted."""

    def allows(self, more: bytes) -> bool:
        """Whether the schema describes a document that goes on with `more`."""
        return bool(self.gave_up) or self._matcher.validate_tokens(self._tokens.of(more)) == len(more)

    def accept(self, more: bytes) -> bool:
        """Take `more`; False, and nothing taken, where it may not come next."""
        if not self.allows(more):
            return False
        if not self.gave_up:
            self._matcher.consume_tokens(self._tokens.of(more))
        self._n_bytes.append(len(more))
        return True

    def rollback(self, n: int) -> None:
        """Take the last `n` accepted pieces back."""
        n = min(n, len(self._n_bytes))
        n_bytes = sum(self._n_bytes[len(self._n_bytes) - n :])
        del self._n_bytes[len(self._n_bytes) - n :]
        if n_bytes and not self.gave_up:
            self._matcher.rollback(n_bytes)

    def can_stop(self) -> bool:
        """Whether the document is whole."""
        return self._at_cursor or bool(self.gave_up) or bool(self._matcher.is_accepting())

    def forced(self) -> bytes:
        """What must come next; nothing where there is a choice, or what is right of a cursor may go on with it."""
        if self._at_cursor or self.gave_up or self._matcher.is_accepting():
            return b""
        return bytes(self._matcher.compute_ff_bytes())

    def fill_mask(self) -> NDArray[np.uint32] | None:
        """The tokens that may come next, `[n_words]`, where there is a vocabulary; None where nothing is known."""
        import numpy as np

        if self.gave_up or not self._tokens.n_words:
            return None
        if self._matcher.compute_ff_bytes():
            return None  # llguidance allows but one spelling of what must come
        words = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)
        return words[: self._tokens.n_words].copy()

    @property
    def gave_up(self) -> str:
        """Why everything is allowed from here on, in llguidance's words; empty while the schema decides."""
        return _first_line(self._matcher.get_error()) if self._matcher.is_error() else ""


@dataclass(frozen=True, slots=True, eq=False)
class SchemaTokens:
    """What llguidance reads: bytes, and before them the tokens of a vocabulary that masks are wanted of."""

    tokenizer: LLTokenizer | None = field(default=None, repr=False)
    first_byte: int = 0
    """The number of the token that is byte 0."""
    n_words: int = 0
    """Words of a mask of the vocabulary; 0 where there is none."""

    def of(self, data: bytes) -> list[int]:
        """The tokens of bytes."""
        return [self.first_byte + byte for byte in data] if self.first_byte else list(data)

    def made(self) -> LLTokenizer:
        """The tokenizer of llguidance: of the bytes alone it is made when it is first asked for."""
        return self.tokenizer or _bytes_tokenizer()


BYTES = SchemaTokens()


def tokens_of(spelled: Sequence[bytes]) -> SchemaTokens:
    """Of a vocabulary whose tokens have these bytes, by id; empty for those that are never written."""
    # What is never written gets a name that no JSON has.
    named = [token or b"\xff<%d>" % number for number, token in enumerate(spelled)]
    silent = [number for number, token in enumerate(spelled) if not token]
    made = _tokenizer([*named, *_BYTES], silent)
    # A mask ends with the vocabulary, within a word: the bits of single bytes behind it name no token of a model.
    return SchemaTokens(made, len(named), (len(named) + 31) // 32)


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    """Every table of a schema that may be a schema itself."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting += [inner for key, inner in each.items() if key not in _VALUES]
        elif isinstance(each, list):
            waiting += each


def _in_order(value: Any, keys: Sequence[str], is_whole: bool = False) -> Any:
    """The schema with properties in the order of `keys`; for a document in the works with nothing required.

    llguidance takes properties in the schema's own order alone, and others behind them; JSON has no order.
    """
    if isinstance(value, list):
        return [_in_order(each, keys, is_whole) for each in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for key, inner in value.items():
        if key in _NAMED_SCHEMAS and isinstance(inner, dict):
            made[key] = {name: _in_order(each, keys, is_whole) for name, each in inner.items()}
        elif key in _VALUES:
            made[key] = inner
        elif is_whole or key not in _COUNTS:
            made[key] = _in_order(inner, keys, is_whole)
    if isinstance(made.get("properties"), dict):
        made["properties"] = _sorted(_with_others(made, keys), keys)
    return made


def _with_address(schema: Any, keys: Sequence[str]) -> Any:
    """The schema with a place for the address of a schema where a document has one: editors never mind it."""
    if (
        not isinstance(schema, dict)
        or "$schema" not in keys
        or not isinstance(schema.get("properties"), dict)
    ):
        return schema
    return schema | {"properties": _sorted({"$schema": {"type": "string"}, **schema["properties"]}, keys)}


def _with_others(table: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The properties, and those of `keys` that fall under what all others are."""
    others = table.get("additionalProperties", {})
    if others is False or "patternProperties" in table or "unevaluatedProperties" in table:
        return dict(table["properties"])
    unnamed = [key for key in keys if key not in table["properties"]][:MAX_OTHER_KEYS]
    return {**table["properties"], **dict.fromkeys(unnamed, others)}


def _sorted(properties: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    ranks = {key: rank for rank, key in enumerate(keys)}
    return dict(sorted(properties.items(), key=lambda item: ranks.get(item[0], len(ranks))))


@lru_cache(maxsize=N_KEPT)
def _compiled(source: str, name: str, tokens: SchemaTokens) -> LLMatcher:
    """A matcher at a document's beginning, never to be used but to be copied. Raises `SchemaError`."""
    from llguidance import LLMatcher

    value = json.loads(source)
    if isinstance(value, dict):
        value = value | {"x-guidance": _OPTIONS}
    grammar = LLMatcher.grammar_from_lark(_GRAMMAR + json.dumps(value) + "\n")
    matcher = LLMatcher(tokens.made(), grammar, log_level=0)
    if matcher.is_error():
        raise SchemaError(f"The schema {name} cannot be followed ({_cleaned(matcher.get_error())}): mend it.")
    return matcher


@lru_cache(maxsize=1)
def _bytes_tokenizer() -> LLTokenizer:
    return _tokenizer(_BYTES, [])


def _tokenizer(spelled: Sequence[bytes], silent: Sequence[int]) -> LLTokenizer:
    """A tokenizer of these tokens, and one behind them that ends a text."""
    from llguidance import LLTokenizer, TokenizerWrapper

    end = len(spelled)
    made = _Tokens([*spelled, b"\xff<end>"], [*silent, end], end)
    return LLTokenizer(TokenizerWrapper(made), n_vocab=end + 1, eos_token=end, slices=[])


@dataclass(frozen=True, slots=True)
class _Tokens:
    """What llguidance asks of a tokenizer."""

    tokens: list[bytes]
    special_token_ids: list[int]
    eos_token_id: int
    bos_token_id: None = None

    def __call__(self, text: str | bytes) -> list[int]:
        """The bytes, which are the last tokens but one. It is not asked for while a document is written."""
        data = text if isinstance(text, bytes) else text.encode()
        return [self.eos_token_id - 256 + byte for byte in data]


def _notes(warnings: Sequence[str]) -> Iterator[str]:
    """What llguidance says that it leaves out, in our words; other words of its as they are."""
    left_out: dict[str, None] = {}
    others: dict[str, None] = {}
    for warning in warnings:
        told = re.sub(r" \(\d+ times\)$", "", _first_line(warning))
        if told.startswith("Unimplemented keys: "):
            left_out.update(dict.fromkeys(re.findall(r'"([^"]+)"', told)))
        elif told.startswith("Unknown format: "):
            left_out[f"format {told.partition(': ')[2]}"] = None
        elif told.startswith("oneOf not fully supported"):
            others["The keyword oneOf is taken as anyOf."] = None
        else:
            others[told.rstrip(".") + "."] = None
    if left_out:
        yield f"Not held to: {', '.join(sorted(left_out))}."
    yield from others


def _cleaned(error: str) -> str:
    """What llguidance says of a schema, without the grammar that we have put it into."""
    told = error.partition("failed to compile JSON schema: ")[2] or error
    return " ".join(re.split(r"\n +1 \| ", told)[0].split())[:300]


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
