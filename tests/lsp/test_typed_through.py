"""Typing along a suggestion: its rest is offered as long as it leads to the same document."""

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from treefill.core.messages import AnswerItem
from treefill.lsp import typed_through
from treefill.lsp.typed_through import TypedThrough, remember, rest_of
from treefill.text import Text

from tests.text.utf16_twin import TEXTS, joined


def item_at(buffer: str, suggestion: str, n_replaced: int = 0) -> tuple[str, AnswerItem]:
    """A text and what is suggested at its `‸`."""
    offset = buffer.index("‸")
    return buffer.replace("‸", ""), AnswerItem(offset, offset + n_replaced, suggestion, "decoded")


def offered(buffer: str, suggestion: str, now: str, n_replaced: int = 0) -> str | None:
    """Suggested at the first `‸`, offered at the second: the rest, with what it replaces in `[]`."""
    text, item = item_at(buffer, suggestion, n_replaced)
    later, offset = now.replace("‸", ""), now.index("‸")
    rest = rest_of(remember(Text.of(text), item), Text.of(later), offset)
    if rest is None:
        return None
    accepted = later[: rest.start] + rest.text + later[rest.end :]
    assert accepted == text[: item.start] + suggestion + text[item.end :], "the same document as at first"
    assert (rest.start, rest.source) == (offset, "typed through")
    replaced = later[rest.start : rest.end]
    return f"[{replaced}]{rest.text}" if replaced else rest.text


@pytest.mark.parametrize(
    ("buffer", "suggestion", "now", "rest"),
    [
        # Typing along.
        ("x = ‸\n", "1 + 2", "x = ‸\n", "1 + 2"),
        ("x = ‸\n", "1 + 2", "x = 1‸\n", " + 2"),
        ("x = ‸\n", "1 + 2", "x = 1 + ‸\n", "2"),
        ("xs.co‸", "unt(1)", "xs.cou‸", "nt(1)"),
        ("‸", "import os", "im‸", "port os"),
        ("‸y", "x = ", "x‸y", " = "),
        ("a‸", "bc", "ab‸", "c"),
        ("def f():\n    ‸\n", "x = 1\n    return x", "def f():\n    x = 1\n    re‸\n", "turn x"),
        ("f(‸)\n", "a, b", "f(a, ‸)\n", "b"),
        # Backspace, and typing it again.
        ("x = ‸\n", "1 + 2", "x = 1 ‸\n", "+ 2"),
        ("x = ‸\n", "1 + 2", "x =‸\n", None),
        ("x = a‸\n", "bc", "x = ‸\n", None),
        # Against it.
        ("x = ‸\n", "1 + 2", "x = 2‸\n", None),
        ("x = ‸\n", "1 + 2", "x = 1 +  ‸\n", None),
        ("x = ‸\n", "1 + 2", "x = 1 + 2‸\n", None),
        ("x = ‸\n", "1 + 2", "x = 1 + 23‸\n", None),
        ("x = ‸\n", "1 + 2", "y = 1‸\n", None),
        ("x = ‸\n", "1 + 2", "x = 1‸\nmore\n", None),
        ("x = ‸\n", "1 + 2", "x = 1‸", None),
        ("x = ‸\n", "1 + 2", "x = 1‸;\n", None),
        ("x = ‸\n", "1 + 2", "new\nx = 1‸\n", None),
        # Brackets that the editor closes, and that are typed over.
        ("f‸\n", "(a, b)", "f(‸)\n", "[)]a, b)"),
        ("f‸\n", "(a, b)", "f(a‸)\n", "[)], b)"),
        ("f‸\n", "(a, b)", "f(a, b‸)\n", None),
        ("f‸\n", "(a)[0]", "f(a‸)\n", "[)])[0]"),
        ("f‸\n", "(a)[0]", "f(a)‸\n", "[0]"),
        ("f‸\n", "(a)[0]", "f(a)[‸]\n", "[]]0]"),
        ("f‸\n", "([{1}])", "f([{‸}])\n", "[}])]1}])"),
        ("f(‸)\n", "g(x)", "f(g(‸))\n", "[)]x)"),
        ("s = ‸\n", '"hi"', 's = "‸"\n', '["]hi"'),
        ("f‸\n", "(a, b)", "f(‸]\n", None),
        ("f‸\n", "(a, b)", "f(‸)\n)\n", None),
        ("f‸\n)", "(a, b)", "f(‸)\n)", "[)]a, b)"),
        ("int f() ‸\n", "{\n    return 1;\n}", "int f() {‸}\n", "[}]\n    return 1;\n}"),
        # Line endings.
        ("x = ‸\r\ny\r\n", "[\r\n1]", "x = [‸]\r\ny\r\n", "[]]\r\n1]"),
        ("x = ‸\r\n", "[\r\n1]", "x = [\r\n‸\r\n", "1]"),
        ("x = ‸\r\n", "[\r\n1]", "x = [\n‸\r\n", None),
        ("x = ‸\r\n", "1 + 2", "x = 1‸\n", None),
        # The same text again and again.
        ("a = a + ‸a\n", "a + ", "a = a + a‸a\n", " + "),
        ("((‸))\n", "(x)", "(((‸)))\n", "[)]x)"),
        ("x = 1\nx = ‸\nx = 1\n", "1\nx = 2", "x = 1\nx = 1\nx = ‸\nx = 1\n", "2"),
        # Beyond the first plane.
        ("🙂 = ‸\n", '"🙂🙂"', '🙂 = "🙂‸"\n', '["]🙂"'),
        ("🙂 = ‸\n", '"🙂🙂"', '🙂 = "🙃‸"\n', None),
        # Nothing left but blanks.
        ("x‸\n", " = 1\n    ", "x = 1‸\n", None),
    ],
)
def test_the_rest_of_a_suggestion(buffer: str, suggestion: str, now: str, rest: str | None) -> None:
    assert offered(buffer, suggestion, now) == rest


@pytest.mark.parametrize(
    ("buffer", "suggestion", "n_replaced", "now", "rest"),
    [
        ("f(‸)\n", "a, b)", 1, "f(a‸)\n", "[)], b)"),
        ("f(‸)\n", "a, b)", 1, "f(a, b)‸\n", None),
        ("f(‸)\n", "a, b)", 1, "f(a‸\n", ", b)"),
        ("f(‸)\n", "g(1))", 1, "f(g(‸))\n", "[))]1))"),
        ("f(‸);\n", "a);", 2, "f(a‸);\n", None),
        ("if (‸) {\n", "x) {", 3, "if (‸) {\n", "[) {]x) {"),
    ],
)
def test_the_rest_of_a_suggestion_that_replaces_what_the_editor_has_closed(
    buffer: str, suggestion: str, n_replaced: int, now: str, rest: str | None
) -> None:
    assert offered(buffer, suggestion, now, n_replaced) == rest


PIECES = st.lists(st.sampled_from(["a", "b", "(", ")", "]", '"', " ", "\n", "\r\n", "\r", "🙂"]), max_size=8)


@given(
    before=PIECES.map("".join),
    after=PIECES.map("".join),
    suggestion=PIECES.map("".join),
    n_typed=st.integers(0, 8),
    between=PIECES.map("".join),
    noise=st.sampled_from(["", "a", "\n", ")"]),
)
@example(before="f", after="\n", suggestion="(a)", n_typed=2, between=")", noise="")
def test_what_is_offered_leads_to_the_same_document_and_obeys_the_contract(
    before: str, after: str, suggestion: str, n_typed: int, between: str, noise: str
) -> None:
    text = Text.of(before + after)
    offset = len(before)
    item = AnswerItem(offset, offset, suggestion, "decoded")
    later = before + suggestion[:n_typed] + between + after + noise
    cursor = offset + len(suggestion[:n_typed])

    rest = rest_of(remember(text, item), Text.of(later), cursor)

    if rest is None:
        return
    accepted = later[: rest.start] + rest.text + later[rest.end :]
    assert accepted == before + suggestion + after
    assert accepted != later, "accepting changes the document"
    assert rest.start == cursor <= rest.end
    assert not {"\r", "\n"} & set(later[rest.start : rest.end]), "on the cursor's line only"
    assert later[cursor : rest.end] in rest.text, "what is replaced comes again"
    assert rest.text.strip()


WHOLE = TEXTS.map(lambda text: joined(text).replace("\r", ""))  # nobody types half a line ending


SENDABLE = WHOLE.map(lambda text: re.sub("[\ud800-\udfff]", "", text))  # no suggestion has half a pair


@given(before=WHOLE, after=WHOLE, suggestion=SENDABLE, data=st.data())
def test_whoever_types_along_is_offered_the_rest_at_each_key(
    before: str, after: str, suggestion: str, data: st.DataObject
) -> None:
    text = Text.of(before + after)
    assume(str(text) == before + after and joined(before + suggestion + after) == before + suggestion + after)
    remembered = remember(text, AnswerItem(len(before), len(before), suggestion, "decoded"))
    n_typed = data.draw(st.integers(0, len(suggestion)))

    later = Text.of(before + suggestion[:n_typed] + after)
    rest = rest_of(remembered, later, len(before) + n_typed)

    if suggestion[n_typed:].strip():
        assert rest is not None
        assert rest.text == suggestion[n_typed:]
    else:
        assert rest is None


def test_far_from_the_suggestion_the_document_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed_through, "WINDOW", 10)
    text = "0123456789" * 3
    remembered = remember(Text.of(text), AnswerItem(15, 15, "abc", "decoded"))

    assert rest_of(remembered, Text.of("new" + text[3:15] + "a" + text[15:27] + "new"), 16) == AnswerItem(
        16, 16, "bc", "typed through"
    )
    for near in (text[:6] + "!" + text[7:15] + "a" + text[15:], text[:15] + "a" + text[15:20] + "!"):
        assert rest_of(remembered, Text.of(near), 16) is None


def test_the_newest_suggestion_that_leads_on_is_offered() -> None:
    kept, text = TypedThrough(), Text.of("x = ")
    for suggestion in ("10", "12", "2"):
        kept.keep("a.py", text, AnswerItem(4, 4, suggestion, "decoded"))

    assert kept.find("a.py", Text.of("x = 1"), 5) == AnswerItem(5, 5, "2", "typed through")
    assert kept.find("a.py", Text.of("x = "), 4) == AnswerItem(4, 4, "2", "typed through")
    assert kept.find("a.py", Text.of("x = 3"), 5) is None


def test_documents_are_forgotten_apart() -> None:
    kept, text = TypedThrough(), Text.of("x = ")
    for uri in ("a.py", "b.py"):
        kept.keep(uri, text, AnswerItem(4, 4, uri, "decoded"))

    kept.forget("a.py")
    assert kept.find("a.py", text, 4) is None
    assert kept.find("b.py", text, 4) is not None

    kept.forget()
    assert kept.find("b.py", text, 4) is None


def test_only_so_many_are_kept() -> None:
    kept, text = TypedThrough(), Text.of("x = ")
    for number in range(typed_through.N_KEPT + 1):
        kept.keep(str(number), text, AnswerItem(4, 4, "1", "decoded"))

    assert kept.find("0", text, 4) is None
    assert kept.find("1", text, 4) is not None
