"""Between the protocol's data and the front's values: what clients send is taken as well as it can be meant."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.lsp import convert
from treefill.lsp.convert import Asked, Changed, Opened
from treefill.lsp.front import FrontAnswer, FrontItem
from treefill.text import Change, Position

URI = "file:///a.py"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("textDocument", "uri", "position", "line", "character", "context", "triggerKind"),
                    *("text", "range", "start", "end", "selectedCompletionInfo", "version", "languageId"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def at(line: Any, character: Any) -> dict[str, Any]:
    return {"line": line, "character": character}


def request(context: Any = None, **more: Any) -> dict[str, Any]:
    return {"textDocument": {"uri": URI}, "position": at(1, 2), "context": context, **more}


@pytest.mark.parametrize(
    ("context", "counts_from_zero", "is_automatic"),
    [
        ({"triggerKind": 1}, False, False),
        ({"triggerKind": 2}, False, True),
        ({"triggerKind": 0}, True, False),
        ({"triggerKind": 1}, True, True),
        ({"triggerKind": 7}, False, True),
        ({}, False, True),
        (None, False, True),
        ("Invoked", False, True),
    ],
)
def test_who_asked(context: Any, counts_from_zero: bool, is_automatic: bool) -> None:
    asked = convert.asked_from(request(context), counts_from_zero)

    assert asked == Asked(URI, Position(1, 2), is_automatic, None)


@pytest.mark.parametrize(
    ("context", "is_known"),
    [
        ({"triggerKind": 0}, True),
        ({"triggerKind": 1}, False),
        ({"triggerKind": 2}, False),
        ({"triggerKind": 1, "selectedCompletionInfo": {"text": "a", "range": [at(0, 0), at(0, 1)]}}, True),
        ({"triggerKind": 1, "selectedCompletionInfo": {"text": "a", "range": {"start": at(0, 0)}}}, False),
        (None, False),
    ],
)
def test_a_client_that_counts_from_zero_is_known_by_what_no_other_sends(context: Any, is_known: bool) -> None:
    assert convert.counts_trigger_kinds_from_zero(request(context)) is is_known


@pytest.mark.parametrize(
    "span", [{"start": at(1, 0), "end": at(1, 2)}, [at(1, 0), at(1, 2)]], ids=["named", "a pair"]
)
def test_what_the_editors_list_has_selected(span: Any) -> None:
    asked = convert.asked_from(
        request({"selectedCompletionInfo": {"text": "count", "range": span}}, version=3), False
    )

    assert asked is not None
    assert asked.selected == (Position(1, 0), Position(1, 2), "count")


@pytest.mark.parametrize(
    "selected",
    [None, {}, {"text": "a"}, {"range": [at(0, 0)], "text": "a"}, {"range": [at(0, 0), at(0, 1)], "text": 5}],
)
def test_a_selection_that_cannot_be_is_none(selected: Any) -> None:
    asked = convert.asked_from(request({"selectedCompletionInfo": selected}), False)

    assert asked is not None
    assert asked.selected is None


def test_the_version_is_read_where_a_client_tells_it() -> None:
    asked = convert.asked_from(request(textDocument={"uri": URI, "version": 4}), False)

    assert asked is not None
    assert asked.version == 4


@pytest.mark.parametrize(
    ("value", "position"),
    [
        (at(0, 0), Position(0, 0)),
        (at(3.0, 2.0), Position(3, 2)),
        (at(-1, -5), Position(-1, -5)),
        (at(10**30, float("inf")), Position(2**31, 2**31)),
        (at(0, -(10**30)), Position(0, -(2**31))),
        (at(0, float("nan")), None),
        (at(0, True), None),
        (at("0", 0), None),
        (at(None, 0), None),
        ([0, 0], None),
        (None, None),
    ],
)
def test_a_position(value: Any, position: Position | None) -> None:
    assert convert.position_from(value) == position


@pytest.mark.parametrize(
    ("item", "opened"),
    [
        (
            {"uri": URI, "languageId": "python", "version": 3, "text": "x"},
            Opened(URI, "python", 3, "x"),
        ),
        ({"uri": URI, "text": ""}, Opened(URI, "plaintext", 0, "")),
        (
            {"uri": URI, "languageId": 5, "version": "1", "text": "\ud83d"},
            Opened(URI, "plaintext", 0, "\ud83d"),
        ),
        ({"uri": URI, "languageId": "python", "version": 3}, None),
        ({"uri": None, "text": "x"}, None),
        (None, None),
    ],
)
def test_a_document_that_is_opened(item: Any, opened: Opened | None) -> None:
    assert convert.opened_from(item) == opened


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ([], ()),
        ([{"text": "a"}], (Change("a"),)),
        ([{"range": None, "text": "a"}], (Change("a"),)),
        (
            [{"range": {"start": at(0, 1), "end": at(2, 3)}, "rangeLength": 9, "text": ""}],
            (Change("", Position(0, 1), Position(2, 3)),),
        ),
        ([{"range": [at(0, 1), at(2, 3)], "text": "b"}], (Change("b", Position(0, 1), Position(2, 3)),)),
        ([{"text": "a"}, {"text": 5}], None),
        ([{"text": "a"}, {"range": {"start": at(0, 1)}, "text": "a"}], None),
        ([None], None),
        ({"text": "a"}, None),
        (None, None),
    ],
)
def test_changes_are_followed_all_or_none(changes: Any, read: tuple[Change, ...] | None) -> None:
    expected = None if read is None else Changed(URI, 2, read)
    assert convert.changed_from({"uri": URI, "version": 2}, changes) == expected


def test_a_change_without_a_version_or_document() -> None:
    assert convert.changed_from({"uri": URI, "version": None}, []) == Changed(URI, None, ())
    assert convert.changed_from({"version": 1}, []) is None
    assert convert.changed_from(None, []) is None


@given(JSON)
def test_whatever_comes_nothing_breaks(value: Any) -> None:
    convert.asked_from(value, False)
    convert.counts_trigger_kinds_from_zero(value)
    convert.opened_from(value)
    convert.changed_from(value, [value])
    convert.uri_from(value)
    convert.position_from(value)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///w/a%20b/%C3%A9.py", "/w/a b/é.py"),
        ("file:///", "/"),
        ("untitled:Untitled-1", "untitled:Untitled-1"),
        ("vscode-notebook-cell:/w/my%20n.ipynb#W1", "/w/my n.ipynb#W1"),
        ("git:/w/a.py?ref", "git:/w/a.py?ref"),
        ("http://[::1", "http://[::1"),
        ("", ""),
    ],
)
def test_the_path_that_rules_about_folders_see(uri: str, path: str) -> None:
    assert convert.path_of(uri) == path


@given(st.text())
def test_every_uri_has_a_path(uri: str) -> None:
    for each in (uri, f"file://{uri}", f"file:///{uri}", f"vscode-notebook-cell:{uri}"):
        assert isinstance(convert.path_of(each), str)


ANSWER = FrontAnswer(
    (
        FrontItem(Position(1, 2), Position(1, 3), "a\r\n  b)", "decoded"),
        FrontItem(Position(1, 2), Position(1, 2), "\n  c", "recycled"),
    )
)


def test_an_inline_item_has_line_feeds_a_range_and_a_command() -> None:
    assert convert.inline_list(ANSWER, URI)["items"][0] == {
        "insertText": "a\n  b)",
        "range": {"start": at(1, 2), "end": at(1, 3)},
        "command": {
            "title": "treefill: accepted",
            "command": "treefill.accepted",
            "arguments": [{"uri": URI, "source": "decoded", "n_characters": 7}],
        },
    }


def test_nothing_is_an_empty_list_and_not_null() -> None:
    nothing = FrontAnswer(reason="empty", sentence="Nothing was written.")

    assert convert.inline_list(nothing, URI) == {"items": []}
    assert convert.completion_list(nothing) == {"isIncomplete": True, "items": []}


def test_a_completion_list_for_clients_that_know_nothing_else() -> None:
    listed = convert.completion_list(ANSWER)

    assert listed["isIncomplete"], "so that it is asked again at each key"
    assert [item["label"] for item in listed["items"]] == ["a", "c"]
    assert [item["textEdit"] for item in listed["items"]] == [
        {"range": {"start": at(1, 2), "end": at(1, 3)}, "newText": "a\r\n  b)"},
        {"range": {"start": at(1, 2), "end": at(1, 2)}, "newText": "\n  c"},
    ]
    assert sorted(item["sortText"] for item in listed["items"]) == [
        item["sortText"] for item in listed["items"]
    ]
    assert all(item["insertTextFormat"] == 1 for item in listed["items"]), "a `$` is a `$`"
    json.dumps(listed)
