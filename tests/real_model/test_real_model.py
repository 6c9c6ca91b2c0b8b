"""The default model on real files: what it suggests, and that its cache never changes an answer."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from treefill.__main__ import main
from treefill.app import App
from treefill.completion import Declined, Suggestion, complete, plan_completion
from treefill.completion.plan import Plan
from treefill.engine.api import CancelFlag, Engine, Finish, GenerateRequest
from treefill.generation import DocumentRequest, Masks, write
from treefill.generation.masks import MaskTokens
from treefill.generation.validity import complaint_of
from treefill.settings import load_settings
from treefill.syntax.languages import language_by_id
from treefill.syntax.schema import schema_of
from treefill.text import Document

pytestmark = pytest.mark.real_model
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture(scope="module")
def app() -> App:
    return App(load_settings({"model": "qwen2.5-coder-0.5b"}).settings)


@pytest.fixture(scope="module")
def engine(app: App) -> Iterator[Engine]:
    engine = app.open_engine()
    yield engine
    engine.close()


def answer(app: App, engine: Engine, name: str, code: str) -> Suggestion | Declined:
    """Complete `code` at its cursor mark."""
    offset = code.index("‸")
    language = {"py": "python", "cpp": "cpp", "sql": "sql"}[name.rsplit(".", 1)[1]]
    document = Document(name, code.replace("‸", ""), language)
    return complete(app.completion_request(document, offset), engine, CancelFlag())


def completed(app: App, engine: Engine, name: str, code: str) -> str:
    result = answer(app, engine, name, code)
    assert isinstance(result, Suggestion), result
    return result.applied_to(Document(name, code.replace("‸", "")))


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("inventory.py", "sum(item.price * ", "item.quantity"),
        ("matrix.cpp", "result.at(column, row) = ", "row, column"),
        ("shop.sql", "JOIN orders ON ", "orders.customer_id = customers.id"),
    ],
)
def test_completes_what_a_programmer_would_take(
    app: App, engine: Engine, name: str, place: str, expected: str
) -> None:
    code = (EXAMPLES / name).read_text(encoding="utf-8").replace(place, place + "‸", 1)
    result = answer(app, engine, name, code)

    assert isinstance(result, Suggestion), result
    assert expected in result.text


def test_a_word_half_typed_is_finished(app: App, engine: Engine) -> None:
    code = "def fibonacci(n):\n    if n < 2:\n        return n\n    ret‸\n"

    assert "\n    return fibonacci(n" in completed(app, engine, "fib.py", code)


def test_g06_a_closed_brace_after_the_cursor_does_not_silence_the_model(app: App, engine: Engine) -> None:
    text = completed(app, engine, "q.cpp", "int square(int n) {‸}\n")

    assert text.count("}") == 1
    assert "return" in text


def test_g14_control_tokens_in_the_file_are_ordinary_text(app: App, engine: Engine) -> None:
    code = 'END = "<|fim_middle|>"  # marker\nEOS = "<|endoftext|>"\nprint(\n'
    document = Document("tok.py", code, "python")
    plan = plan_completion(
        app.completion_request(document, len(code) - 1), engine.vocabulary, engine.n_context
    )
    assert isinstance(plan, Plan)
    control = [engine.vocabulary.control_id(f"<|fim_{part}|>") for part in ("prefix", "suffix", "middle")]

    assert [plan.prompt.ids.count(token) for token in control if token is not None] == [1, 1, 1]
    assert plan.prompt.ids.count(engine.vocabulary.control_id("<|endoftext|>") or 0) == 0


def test_typing_reuses_all_but_what_was_typed(app: App, engine: Engine) -> None:
    """Ten characters typed one by one, one request each, the anchor handed on as a server does."""
    code = (EXAMPLES / "inventory.py").read_text(encoding="utf-8")
    start = code.index("sum(item.price * ")
    anchor = None
    for typed in range(11):
        text = code[: start + typed] + code[start + len("sum(item.price * ") :]
        document = Document("inventory.py", text, "python")
        result = complete(app.completion_request(document, start + typed), engine, CancelFlag(), anchor)
        generation = result.generation
        assert generation is not None
        if anchor is not None:
            n_evaluated = generation.n_prompt_tokens - generation.n_reused_tokens
            assert n_evaluated <= 3, (typed, generation)
        anchor = result.anchor


def test_reused_equals_cold(app: App, engine: Engine) -> None:
    code = (EXAMPLES / "inventory.py").read_text(encoding="utf-8")
    ids = tuple(engine.vocabulary.encode(code))
    for end in (90, 40, 41, 120, 7):
        request = GenerateRequest(ids[:end], max_new_tokens=12)
        warm = engine.generate(request, CancelFlag())
        cold = engine.generate(replace(request, reuse=False), CancelFlag())

        assert warm.token_ids == cold.token_ids
        assert cold.n_reused_tokens == 0


@pytest.mark.parametrize("n_shared", [0, 1, 5, 9, 10])
def test_g11_a_cut_cache_answers_as_a_fresh_one(engine: Engine, n_shared: int) -> None:
    ids = tuple(
        engine.vocabulary.encode("def area(width, height):\n    return width * height\n\n\nprint(area(2, 3))")
    )
    first, second = ids[:10], ids[:n_shared] + tuple(reversed(ids[n_shared:10]))
    fresh = engine.generate(GenerateRequest(second, max_new_tokens=8, reuse=False), CancelFlag())
    engine.generate(GenerateRequest(first, max_new_tokens=8, reuse=False), CancelFlag())

    assert (
        engine.generate(GenerateRequest(second, max_new_tokens=8), CancelFlag()).token_ids == fresh.token_ids
    )


def test_a_cancelled_prefill_stops_and_leaves_a_usable_cache(engine: Engine) -> None:
    ids = tuple(engine.vocabulary.encode((EXAMPLES / "matrix.cpp").read_text(encoding="utf-8")))
    request = GenerateRequest(ids, max_new_tokens=8)
    expected = engine.generate(replace(request, reuse=False), CancelFlag()).token_ids
    flag = CancelFlag()
    flag.cancel()

    assert engine.generate(replace(request, reuse=False), flag).finish is Finish.CANCELLED
    assert engine.generate(request, CancelFlag()).token_ids == expected


def test_the_same_seed_draws_the_same_candidates(app: App, engine: Engine) -> None:
    document = Document("a.py", "def is_even(n):\n    return \n", "python")
    request = app.completion_request(document, len("def is_even(n):\n    return "), n_candidates=3)
    from treefill.completion import complete_many

    def texts() -> list[str]:
        answers = complete_many(request, engine, CancelFlag())
        return [result.text for result in answers if isinstance(result, Suggestion)]

    first = texts()

    assert first == texts()
    assert len(set(first)) == len(first) >= 1


def test_complete_as_json_says_all_that_was_promised(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = EXAMPLES / "inventory.py"
    arguments = ["complete", str(file), "27:33", "--typed-from", "27:23", "--json"]
    monkeypatch.setattr(sys, "argv", ["treefill", *arguments])
    with pytest.raises(SystemExit) as exit_info:
        main()
    result = json.loads(capsys.readouterr().out)

    assert exit_info.value.code in (0, None)
    assert list(result) == [
        "text", "range", "source", "declined", "n_prompt_tokens", "n_reused_tokens", "n_new_tokens",
        "n_guarded", "n_refused_first", "n_undone", "n_forced", "ttft_ms", "total_ms", "model",
    ]  # fmt: skip
    assert result["range"]["start"] == {"line": 27, "column": 33}
    assert result["source"] == "decoded"
    assert result["declined"] is None
    assert "item.quantity" in result["text"]
    assert 0 < result["n_prompt_tokens"] - result["n_reused_tokens"] <= 8


def test_nothing_asks_the_network_once_the_model_is_there() -> None:
    """A fresh process whose sockets refuse to connect completes all the same."""
    script = (
        "import socket, sys\n"
        "def refuse(*arguments, **options): sys.exit('the network was asked')\n"
        "socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse\n"
        "from treefill.__main__ import main; main()"
    )
    arguments = ["complete", str(EXAMPLES / "shop.sql"), "19:16", "--max-tokens", "4", "--json"]
    run = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["n_new_tokens"] == 4


def test_a_model_without_fim_tokens_completes_from_what_stands_before(app: App) -> None:
    """SmolLM2 has no fill-in-the-middle tokens: the prompt is the text before the cursor, and nothing is invented."""
    engine = app.open_engine("smollm2-135m")
    code = "def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n    return ‸\n"
    result = answer(app, engine, "m.py", code)
    engine.close()

    assert result.explanation.layout == "prefix-only"
    assert not any(part.name.startswith("<") for part in result.explanation.parts)
    assert isinstance(result, Suggestion), result
    assert result.text.startswith("a - b")


DDL = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(80) NOT NULL, born DATE);"
COLUMNS = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "type"],
        "properties": {"name": {"type": "string"}, "type": {"enum": ["integer", "text", "date"]}},
    },
}


def test_a_document_is_whole_and_as_its_schema_says_and_masks_change_no_token(engine: Engine) -> None:
    """Every type is one that the schema has, where the request has others."""
    wish = f"The columns of this table, with their names and types:\n{DDL}"
    request = DocumentRequest(wish, language_by_id("json"), schema_of(COLUMNS, "columns"), max_new_tokens=200)
    check = write(request, engine, CancelFlag())
    columns = json.loads(check.text)
    each = write(replace(request, masks=Masks.EACH), engine, CancelFlag(), MaskTokens.of(engine.vocabulary))

    assert columns
    assert all([*column] == ["name", "type"] for column in columns)
    assert {column["type"] for column in columns} <= {"integer", "text", "date"}
    assert check.generation.finish in (Finish.STOPPED, Finish.END)
    assert each.generation.token_ids == check.generation.token_ids
    assert each.generation.n_masked > 0


@pytest.mark.parametrize("language", ["xml", "python", "yaml"])
def test_a_document_that_the_limit_cuts_is_whole_all_the_same(engine: Engine, language: str) -> None:
    """At each of these limits the model is somewhere else in the document."""
    for n_tokens in (20, 33, 42):
        request = DocumentRequest(DDL, language_by_id(language), max_new_tokens=n_tokens)
        written = write(request, engine, CancelFlag())

        assert complaint_of(written.text, request.language) == ""
        assert written.generation.n_new_tokens <= n_tokens
