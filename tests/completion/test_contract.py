"""Whatever the model writes, wherever the cursor stands: the contract is kept, or there is a reason."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from treefill.completion import CompletionRequest, Declined, Mode, complete
from treefill.engine.api import CancelFlag
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
LANGUAGES = st.sampled_from(["python", "cpp", "sql", "javascript", "rust", "json", "html", "yaml", "unknown"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
