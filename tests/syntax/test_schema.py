"""A JSON Schema as a guard: what may come next, what not, and what of a schema is told in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.errors import SchemaError
from treefill.syntax.schema import (
    ANY_JSON,
    MAX_PREFIX_BYTES,
    SchemaGuard,
    complaint_by,
    read_schema,
    schema_guard,
    schema_guard_after,
    schema_of,
    tokens_of,
)
from treefill.syntax.vocabulary import to_bools

SERVICE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "port"],
    "properties": {
        "name": {"type": "string"},
        "port": {"type": "integer", "minimum": 1, "maximum": 999},
        "restart": {"enum": ["never", "always"]},
        "limits": {"$ref": "#/$defs/limits"},
    },
    "$defs": {
        "limits": {"type": "object", "properties": {"cpu": {"type": "number"}, "memory": {"type": "string"}}}
    },
}


def guard(schema: Any) -> SchemaGuard:
    return schema_guard(schema_of(schema, "test"))


def is_taken(schema: Any, text: str) -> bool:
    """Whole, and no byte of it refused."""
    following = guard(schema)
    return following.accept(text.encode()) and following.can_stop()


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ('{"name": "a", "port": 80}', True),
        (' {\n  "name" : "a",\n  "port" : 80\n}\n', True),
        ('{"name": "é", "port": 80, "restart": "never"}', True),
        ('{"name": "\\u00e9", "port": 80}', True),
        ('{"name": "a", "port": 80, "limits": {"cpu": 0.5}}', True),
        ('{"name": "a"}', False),  # the port is due
        ('{"name": "a", "port": 1000}', False),
        ('{"name": "a", "port": "80"}', False),
        ('{"name": "a", "port": 80, "restart": "often"}', False),
        ('{"name": "a", "port": 80, "colour": 1}', False),
        ('{"name": "a", "port": 80} // more', False),
        ('{"name": "a", "port": 80,}', False),
    ],
)
def test_what_a_schema_takes(text: str, is_whole: bool) -> None:
    assert is_taken(SERVICE, text) is is_whole


@pytest.mark.parametrize("text", ['{"a": 1.}', '{"a": 01}', "[1,]", "// a\n1", '"\t"', "NaN", "{'a': 1}", ""])
def test_what_is_no_json_is_refused_without_a_schema_too(text: str) -> None:
    following = schema_guard(ANY_JSON)

    assert not (following.accept(text.encode()) and following.can_stop())


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.booleans(), st.sampled_from([None, 1]), st.integers(1, 7))
def test_every_json_document_is_taken_in_any_pieces(
    value: Any, ascii_only: bool, indent: int | None, n: int
) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode(errors="replace")
    if b"\\ud" in data or b"\x7f" in data:
        return  # half an emoji is refused, and so is a deleting character that is not escaped
    following = schema_guard(ANY_JSON)

    assert all(following.accept(data[at : at + n]) for at in range(0, len(data), n)), data
    assert following.can_stop()


def test_a_piece_that_may_not_come_is_not_taken_and_the_next_one_may() -> None:
    following = guard(SERVICE)

    assert following.accept(b'{"name": "a", "port": ')
    assert not following.accept(b'"80')
    assert following.allows(b"80")
    assert not following.can_stop()
    assert following.accept(b"80}")
    assert following.can_stop()


def test_what_is_taken_back_was_never_there() -> None:
    following = guard(SERVICE)
    for piece in (b'{"na', b'me": "a", "po', b'rt": 8', b"0}"):
        assert following.accept(piece)

    following.rollback(2)
    assert not following.can_stop()
    assert not following.allows(b'"x')
    assert following.accept(b'rt": 9}')
    assert following.can_stop()
    following.rollback(9)
    assert following.accept(b'{"name"')


def test_what_must_come_is_told() -> None:
    following = guard({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"],
                       "additionalProperties": False})  # fmt: skip

    assert following.accept(b'{"c')
    assert following.forced() == b'olour"'
    assert following.accept(b'olour": "red"}')
    assert following.forced() == b""


def test_a_mask_of_a_vocabulary_is_what_the_bytes_say() -> None:
    spelled = [
        b"",
        b"{",
        b'{"',
        b'"name',
        b'name"',
        b"x",
        b" \n",
        b"}",
        b"8",
        b"0}",
        b'": ',
        b"\xc3",
        b"\xa9",
        b'"port":',
    ]
    tokens = tokens_of(spelled)
    schema = schema_of(SERVICE, "test")
    masked, plain = schema_guard(schema, tokens), schema_guard(schema)
    n_known = 0
    for piece in (b"", b'{"', b'name"', b': "', b"\xc3", b'\xa9", ', b'"port":', b"8", b"0}", b" \n"):
        assert masked.accept(piece)
        assert plain.accept(piece)
        words = masked.fill_mask()
        assert (words is None) == bool(plain.forced())
        if words is not None:
            expected = [bool(token) and plain.allows(token) for token in spelled]
            assert to_bools(words, len(spelled)).tolist() == expected, piece
            n_known += 1
    assert n_known == 9
    assert plain.fill_mask() is None


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"type": "strin"}, "The schema test cannot be followed (Invalid type: strin): mend it."),
        ({"$ref": "#/definitions/q"}, "(Pointer '/definitions/q' does not exist)"),
        ({"properties": []}, "(properties must be an object)"),
        (
            {"type": "string", "pattern": "(?=a)b"},
            "look-around, including look-ahead and look-behind, is not supported)",
        ),
        ([], "(schema must be an object or boolean)"),
        (3, "(schema must be an object or boolean)"),
        (False, "(Unsatisfiable schema: schema is false)"),
        (
            {"$ref": "https://example.com/a.json"},
            "refers to 'https://example.com/a.json', which is not in it: nothing is",
        ),
        ({"properties": {"a": {"$ref": "other.json#/b"}}}, "refers to 'other.json#/b', which is not in it"),
        ({"items": {"anyOf": [{"$dynamicRef": "file:///etc/passwd"}]}}, "refers to 'file:///etc/passwd'"),
    ],
)
def test_a_schema_that_cannot_be_followed_is_one_sentence(schema: Any, sentence: str) -> None:
    with pytest.raises(SchemaError) as told:
        schema_of(schema, "test")

    assert sentence in str(told.value)
    assert "\n" not in str(told.value)


def test_a_schema_may_call_itself_by_its_own_name() -> None:
    own = {
        "$id": "https://example.com/a",
        "$ref": "https://example.com/a#/$defs/b",
        "$defs": {"b": {"type": "null"}},
    }

    assert is_taken(own, "null")
    assert not is_taken(own, "1")


def test_a_value_that_looks_like_a_reference_is_none() -> None:
    assert schema_of({"enum": [{"$ref": "https://example.com"}]}, "test").source
    assert schema_of({"properties": {"$ref": {"type": "string"}}}, "test").source


def test_what_is_not_held_to_is_told_once() -> None:
    schema = {
        "not": {"type": "null"}, "if": {}, "then": {},
        "properties": {"a": {"not": {}}, "b": {"type": "string", "format": "colour"},
                       "c": {"oneOf": [{"type": "null"}]},
                       "d": {"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]}},
    }  # fmt: skip

    assert schema_of(schema, "test").notes == (
        "Not held to: format colour, if, not, then.",
        "The keyword oneOf is taken as anyOf.",
    )
    assert schema_of(SERVICE, "test").notes == ()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'{"type": ', "is not JSON (Expecting value"),
        (b"\xff\xfe\xfd", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_a_file_that_is_no_schema_is_one_sentence(tmp_path: Path, data: bytes, sentence: str) -> None:
    (tmp_path / "s.json").write_bytes(data)

    with pytest.raises(SchemaError, match="mend it") as told:
        read_schema(tmp_path / "s.json")
    assert str(told.value).startswith(f"The schema {tmp_path / 's.json'} {sentence}")


def test_a_file_that_is_not_there_and_one_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="No such file"):
        read_schema(tmp_path / "s.json")
    (tmp_path / "s.json").write_bytes(b" " * 2_000_001)
    with pytest.raises(SchemaError, match="more than 2,000,000 bytes"):
        read_schema(tmp_path / "s.json")


# At a cursor: what is before it is read first, in whatever order its keys stand, and nothing is due.


@pytest.mark.parametrize(
    ("prefix", "may_come", "may_not"),
    [
        ('{"name": "a", "restart": "', b"never", b"often"),
        ('{"restart": "never", "port": ', b"80", b'"80'),  # not the schema's order
        ('{"restart": "never", "port": 80, ', b'"name', b'"nome'),
        ('{"restart": "never"', b"}", b"]"),  # what is due may stand right of the cursor
        ('{"limits": {"memory": "1G", "cpu": ', b"0.5", b'"'),
        ('{"limits": {"swap": 3, "cpu": ', b"0.5", b'"'),  # a key that the schema has no word on
        ('{\n  "$schema": "https://example.com/s",\n  "port": ', b"1", b"null"),
        ("", b' {"name"', b"["),
        ('{"na', b"me", b"mo"),
    ],
)
def test_at_a_cursor(prefix: str, may_come: bytes, may_not: bytes) -> None:
    found = schema_guard_after(schema_of(SERVICE, "test"), prefix)

    assert isinstance(found, SchemaGuard), found
    assert found.allows(may_come)
    assert not found.allows(may_not)
    assert found.can_stop()
    assert found.forced() == b""


@pytest.mark.parametrize(
    ("prefix", "line"),
    [('{\n  "colour": 1,\n  "', 2), ("{\n // words\n", 2), ('{"port": "a", ', 1), ("[", 1)],
)
def test_where_the_text_before_the_cursor_is_not_as_the_schema_says_it_does_not_decide(
    prefix: str, line: int
) -> None:
    assert schema_guard_after(schema_of(SERVICE, "test"), prefix) == (
        f"The schema test does not decide: what is before the cursor is not as it says (line {line})."
    )


def test_too_much_before_the_cursor_is_not_read() -> None:
    found = schema_guard_after(schema_of(SERVICE, "test"), '{"name": "' + "a" * MAX_PREFIX_BYTES)

    assert found == "The schema test does not decide: there is too much text before the cursor."


@given(st.permutations(["name", "port", "restart", "limits"]), st.integers(0, 4))
def test_keys_may_stand_in_any_order_before_the_cursor(order: list[str], n_keys: int) -> None:
    values = {"name": "a", "port": 8, "restart": "always", "limits": {"cpu": 1.5}}
    prefix = json.dumps({key: values[key] for key in order[:n_keys]}).removesuffix("}")

    assert isinstance(schema_guard_after(schema_of(SERVICE, "test"), prefix), SchemaGuard)


def test_a_whole_document_may_have_its_keys_in_any_order_and_must_have_those_that_are_due() -> None:
    schema = schema_of(SERVICE, "test")

    assert complaint_by(schema, '{"port": 80, "restart": "never", "name": "a"}\n') == ""
    assert (
        complaint_by(schema, '{"port": 80,\n "restart": "often"}')
        == "line 2: it is not as the schema test says"
    )
    assert complaint_by(schema, '{"port": 80}') == "line 1: it is not as the schema test says"
    assert complaint_by(schema, '{"port": 80') == "line 1: it is not as the schema test says"


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), min_size=1, max_size=6), st.booleans())
def test_what_was_read_before_another_cursor_changes_no_answer(
    places: list[tuple[int, int]], is_odd: bool
) -> None:
    """The text grows, shrinks and is another one from keystroke to keystroke."""
    schema = schema_of({"type": "array", "items": SERVICE} | {"$defs": SERVICE["$defs"]}, "test")
    services = [{"name": f"n{number}", "port": number + 1, "restart": "never"} for number in range(5)]
    texts = [json.dumps(services, indent=1), json.dumps(services[::-1]).replace("never", "always")]
    for end, n_wrong in places:
        text = texts[n_wrong % 2][:end] + "x" * (is_odd and n_wrong == 7)
        found = schema_guard_after(schema, text)
        alone = schema_guard(
            schema_of({"type": "array", "items": SERVICE, "$defs": SERVICE["$defs"]}, "test")
        )

        is_viable = alone.accept(text.encode())
        assert isinstance(found, SchemaGuard) == is_viable, text
        if isinstance(found, SchemaGuard):
            for more in (b'"', b"}", b"]", b",", b"1", b"n", b" ", b"x"):
                if not alone.allows(more):
                    continue
                assert found.allows(more), (text, more)
