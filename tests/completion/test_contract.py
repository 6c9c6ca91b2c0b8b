"""Whatever the model writes, wherever the cursor stands: the contract is kept, or there is a reason."""

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from treefill.completion import CompletionRequest, Declined, Mode, complete
from treefill.completion.scan import OPENERS, scan
from treefill.engine.api import CancelFlag
from treefill.syntax.languages import language_by_id
from treefill.text import Document

from tests.helpers.contract import assert_sound
from tests.helpers.scripted_engine import ScriptedEngine

PIECES = (
    *("\n", "\n\n", "\r\n", "\r", "\t", " ", "    ", "\x0c", "\u2028", "\ufeff"),
    *("(", ")", "[", "]", "{", "}", "))", "});", '"', "'", '"""', "`", "\\", "#", "//", "/*", "*/", "--"),
    *(
        ";",
        ",",
        ":",
        ".",
        "+",
        "=",
        "x",
        "foo",
        "return x",
        "def f(a):",
        "class B:",
        "if x:",
        "else:",
        "SELECT",
        "é",
    ),
    *(
        "🙂",
        "\ud83d",
        "\ude42",
        "\0",
        "\ufffd",
        "<|fim_middle|>",
        "<|endoftext|>",
        "```",
        "```python",
        "Here is",
    ),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
LANGUAGES = st.sampled_from(
    ["python", "cpp", "sql", "javascript", "rust", "json", "html", "yaml", "markdown", "unknown"]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(left="(", right="", said="\ud83d\n", language="python", mode=Mode.AUTO, n_step=1)
@example(left="```python\n(", right="", said="\ud83d\n", language="markdown", mode=Mode.AUTO, n_step=1)
@given(
    left=TEXTS,
    right=TEXTS,
    said=TEXTS,
    language=LANGUAGES,
    mode=st.sampled_from(Mode),
    n_step=st.integers(1, 9),
)
def test_a_suggestion_keeps_the_contract(
    left: str, right: str, said: str, language: str, mode: Mode, n_step: int
) -> None:
    document = Document("some/file.txt", left + right, language)
    request = CompletionRequest(document, len(left), mode=mode, max_new_tokens=30)

    answer = complete(request, ScriptedEngine(said, n_step=n_step), CancelFlag())

    if isinstance(answer, Declined):
        assert answer.sentence
    else:
        assert_sound(document, answer.start, answer)


NESTS = st.lists(st.sampled_from("([{"), min_size=1, max_size=4).map("".join)
WRITTEN = st.lists(
    st.sampled_from(["x", "a, b", " + 1", "g(1)", "d[i]", " ", ";", ")", "]", "}", "))", ")]"]), max_size=8
).map("".join)


@settings(max_examples=400, deadline=None)
@given(
    nest=NESTS,
    tail=st.sampled_from(["", ";", " {", " + d[0]", ", y", ")"]),
    said=WRITTEN,
    language=st.sampled_from(["python", "cpp", "javascript", "rust"]),
    mode=st.sampled_from(Mode),
)
def test_brackets_that_an_editor_has_closed_stay_closed_whatever_closers_the_model_writes(
    nest: str, tail: str, said: str, language: str, mode: Mode
) -> None:
    left = "".join(f"f{bracket}" for bracket in nest)
    right = "".join(OPENERS[bracket] for bracket in reversed(nest)) + tail
    document = Document("some/file.txt", left + right, language)

    answer = complete(CompletionRequest(document, len(left), mode=mode), ScriptedEngine(said), CancelFlag())

    if not isinstance(answer, Declined):
        assert_sound(document, answer.start, answer)
        before, after = (
            scan(text, language_by_id(language)) for text in (document.text, answer.applied_to(document))
        )
        assert (after.state, len(after.unmatched)) == (before.state, len(before.unmatched))


@settings(max_examples=300, deadline=None)
@given(
    nest=st.lists(st.sampled_from("([{"), max_size=3).map("".join),
    quote=st.sampled_from(["'", '"', "`", '"""']),
    behind=st.sampled_from(["", "'", '"', "''", '"")', ", 'y'", " + x"]),
    said=st.lists(
        st.sampled_from(["b", " ", "x", "'", '"', "`", '"""', ")", "]", "}", "')", '")]', ", "]), max_size=8
    ).map("".join),
    language=st.sampled_from(["python", "cpp", "javascript", "rust", "sql"]),
)
def test_a_string_that_an_editor_has_closed_loses_neither_quote_nor_bracket(
    nest: str, quote: str, behind: str, said: str, language: str
) -> None:
    left = "".join(f"f{bracket}" for bracket in nest) + quote + "a"
    right = quote + "".join(OPENERS[bracket] for bracket in reversed(nest)) + behind
    document = Document("some/file.txt", left + right, language)

    answer = complete(CompletionRequest(document, len(left)), ScriptedEngine(said), CancelFlag())

    if not isinstance(answer, Declined):
        assert_sound(document, answer.start, answer)


@settings(max_examples=100, deadline=None)
@given(left=TEXTS, right=TEXTS, language=LANGUAGES)
def test_a_prompt_holds_no_carriage_return_and_the_layouts_control_tokens_only(
    left: str, right: str, language: str
) -> None:
    engine = ScriptedEngine("")
    document = Document("some/file.txt", left + right, language)

    complete(CompletionRequest(document, len(left)), engine, CancelFlag())

    (request,) = engine.requests
    names = [
        engine.byte_vocabulary.control_tokens[token - 256] for token in request.prompt_ids if token >= 256
    ]
    assert names == ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    assert ord("\r") not in request.prompt_ids
