"""Whole documents from models that know several texts: where they end, what is kept out, and how they are closed."""

import json
from typing import Any

import pytest
import yaml
from treefill.engine.api import CancelFlag, Finish
from treefill.errors import BadInput
from treefill.generation import DocumentRequest, Masks, Unfinished, Written, write
from treefill.generation.masks import MaskTokens
from treefill.syntax import dictionary
from treefill.syntax.languages import language_by_id
from treefill.syntax.rules import Rules
from treefill.syntax.rules.read import rules_from
from treefill.syntax.schema import schema_of

from tests.helpers.choosing_engine import ChoosingEngine
from tests.helpers.scripted_engine import QWEN_CONTROL_TOKENS, ByteVocabulary

CHAT = (*QWEN_CONTROL_TOKENS, "<|im_start|>")
FENCE = "```\nwords of the model\n"
SCHEMA = {
    "type": "object",
    "required": ["name", "restart"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string"}, "restart": {"enum": ["never", "on-failure"]}},
}


def written(
    language: str, *texts: str, control: tuple[str, ...] = CHAT, wish: str = "it", **more: Any
) -> Written:
    engine = ChoosingEngine(*texts, vocabulary=ByteVocabulary(control))
    schema = more.pop("schema", None)
    request = DocumentRequest(
        wish, language_by_id(language), schema_of(schema, "test") if schema is not None else None, **more
    )
    is_masked = request.masks in (Masks.EACH, Masks.DICTIONARY)
    tokens = MaskTokens.of(engine.vocabulary) if is_masked else None
    return write(request, engine, CancelFlag(), tokens)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("json", '{"a": [1, true]}\n'),
        ("xml", '<?xml version="1.0"?>\n<a><b c="d"/></a>\n'),
        ("python", 'def f(x):\n    return """a\n    ```\n    b"""\n'),
        ("yaml", "a:\n  - b: 1\n    c: [1, 2]\n"),
        ("cpp", "int main() {\n  return 0;\n}\n"),
        ("sql", "SELECT 1;\n"),
    ],
)
def test_a_document_ends_where_the_model_ends_its_fence(language: str, text: str) -> None:
    said = written(language, text + FENCE)

    assert said.text == text
    assert said.generation.finish is Finish.STOPPED
    assert (said.n_cut_bytes, said.added) == (0, "")


def test_or_by_a_token_of_its_own() -> None:
    said = written("json", '{"a": 1}')

    assert (said.text, said.generation.finish) == ('{"a": 1}\n', Finish.END)


def test_a_fence_ends_no_document_that_is_not_whole() -> None:
    said = written("json", '{"a": 1,\n```\n', '{"a": 1,\n"b": 2}\n```\n')

    assert said.text == '{"a": 1,\n"b": 2}\n'
    assert said.generation.n_refused_first > 0


def test_nor_does_one_whose_marks_come_one_by_one() -> None:
    """In a shell a line may begin with a backquote."""
    said = written("shellscript", "echo a\n``\n", "echo a\necho b\n```\n")

    assert said.text == "echo a\n"


@pytest.mark.parametrize(
    ("language", "wanted", "second"),
    [
        ("json", "// why\n[1]", "[1]"),
        ("json", "[1, ]", "[1, 2]"),
        ("json", "[NaN]", "[0]"),
        ("xml", "<a><b></a>", "<a><b></b></a>"),
        ("python", "x = = 1\n", "x = 1\n"),
        ("cpp", "int x = );\n", "int x = 1;\n"),
    ],
)
def test_what_cannot_come_is_not_written(language: str, wanted: str, second: str) -> None:
    said = written(language, wanted + "\n" + FENCE, second + "\n" + FENCE)

    assert said.text == second.rstrip("\n") + "\n"


def test_the_standard_parser_has_a_say_in_where_a_document_ends() -> None:
    """The grammar takes an attribute twice, XML does not, so it is no end."""
    said = written("xml", '<a b="1" b="2"></a>\n' + FENCE)

    assert said.generation.finish is Finish.DEAD_END
    assert said.text == '<a b="1" ></a>\n'


def test_a_schema_keeps_out_what_it_does_not_know() -> None:
    wanted = '{"name": "a", "colour": 1, "restart": "always"}\n'
    second = '{"name": "a", "restart": "always"}\n'
    third = '{"name": "a", "restart": "never"}\n'
    said = written("json", wanted + FENCE, second + FENCE, third + FENCE, schema=SCHEMA)

    assert said.text == third
    assert said.parsers == ("tree-sitter", "json", "schema")
    assert said.generation.n_refused_first > 0


def test_yaml_under_a_schema_is_written_as_json_and_said_in_yaml() -> None:
    value = {"name": "no", "restart": "on-failure"}
    said = written("yaml", json.dumps(value, indent=2) + "\n" + FENCE, schema=SCHEMA)

    assert said.text == "name: 'no'\nrestart: on-failure\n"
    assert yaml.safe_load(said.text) == value
    assert said.parsers == ("tree-sitter", "PyYAML", "schema")


def test_a_schema_is_for_json_and_yaml() -> None:
    with pytest.raises(BadInput, match="A schema is for JSON and YAML, not for python"):
        written("python", "x = 1", schema=SCHEMA)


def test_yaml_without_a_schema_is_checked_and_it_is_told_that_nobody_stood_guard() -> None:
    said = written("yaml", "a: 1\n" + FENCE)

    assert said.unguarded.startswith("YAML's lexer is all in its scanner")
    assert said.generation.n_refused_first == 0


# The limit comes before the end.


@pytest.mark.parametrize(
    ("language", "text", "n_tokens", "closed"),
    [
        ("json", '{"a": [1, {"b": "long text', 26, '{"a": [1, {"b": "long text"}]}\n'),
        ("json", '{"a": [1, {"b": tru', 19, '{"a": [1, {"b": true}]}\n'),
        ("json", '{"a": [1, {"b"', 14, None),
        ("json", '{"a": 1,', 8, None),
        ("xml", "<a><b><c>text", 13, "<a><b><c>text</c></b></a>\n"),
        ("xml", '<a><b c="d', 10, None),
        ("python", "def f(x):\n    if x", 18, "def f(x):\n    if x: pass\n"),
        (
            "python",
            "class A:\n    def f(x):\n    # a word",
            35,
            "class A:\n    def f(x):\n    # a word\n        pass\n",
        ),
        ("python", "x = f(1, [2, 3", 14, "x = f(1, [2, 3])\n"),
        ("python", 'x = "abc', 8, 'x = "abc"\n'),
        ("cpp", "int f() { if (x) { g(1", 22, "int f() { if (x) { g(1);}}\n"),
        ("ruby", "def f(x)\n  g(x)", 15, "def f(x)\n  g(x)\nend\n"),
        ("shellscript", "if true; then\n  echo a", 22, "if true; then\n  echo a\nfi\n"),
        ("yaml", "a:\n  - b\n  - {c: 1, d", 21, "a:\n  - b\n"),
        ("latex", "\\begin{document}\n\\[ x = 1", 25, "\\begin{document}\n\\[ x = 1\n\\]\n\\end{document}\n"),
    ],
)
def test_a_document_that_the_limit_cuts_is_closed(
    language: str, text: str, n_tokens: int, closed: str | None
) -> None:
    said = written(language, text + "~" * 50, max_new_tokens=n_tokens)

    assert said.generation.finish is Finish.LENGTH
    assert said.generation.n_new_tokens <= n_tokens
    if closed is not None:
        assert said.text == closed
    n_kept = len(text.encode()) - said.n_cut_bytes
    assert said.text.encode().startswith(text.encode()[:n_kept].rstrip())
    assert n_kept > len(text) // 3


def test_it_is_closed_as_its_schema_wants_it() -> None:
    text = '{"name": "a'
    said = written("json", text + "~" * 50, schema=SCHEMA, max_new_tokens=len(text))
    value = json.loads(said.text)

    assert value["name"].startswith("a")
    assert value["restart"] in ("never", "on-failure")


@pytest.mark.parametrize("language", ["json", "python", "yaml", "cpp"])
def test_half_a_character_is_none(language: str) -> None:
    text = {"json": '["aé', "python": 'x = "aé', "yaml": "a: 1\nb: é", "cpp": 'auto s = "aé'}[language]
    said = written(language, text + "~" * 50, max_new_tokens=len(text.encode()) - 1)

    assert said.generation.finish is Finish.LENGTH
    assert "\ufffd" not in said.text
    assert said.text.startswith(text[: 3 if language == "yaml" else len(text) - 1])


def test_the_same_text_is_closed_alike() -> None:
    again = {written("json", '{"a": [[1, "b' + "~" * 9, max_new_tokens=13).text for _ in range(3)}

    assert len(again) == 1


def test_where_no_ending_is_found_it_is_said() -> None:
    with pytest.raises(Unfinished, match=r"not whole after \d+ tokens .*raise --max-tokens") as told:
        written("json", '{"name": "', schema={"type": "string", "minLength": 400}, max_new_tokens=8)

    assert "\n" not in str(told.value)


def test_nothing_is_no_document() -> None:
    with pytest.raises(Unfinished, match="nothing is in it"):
        written("python", "\n\n\n" + FENCE, max_new_tokens=3)


# How it is held to the grammar.


@pytest.mark.parametrize("language", ["json", "python", "cpp", "xml"])
def test_masks_change_no_token(language: str) -> None:
    texts = {
        "json": ('{"a": 1.}', '{"a": 1,}', '{"a": 1, "b": [true, null]}\n' + FENCE),
        "python": ("def f(x):\n    return = x\n", "def f(x):\n    return x\n" + FENCE),
        "cpp": ("int x = );", "int x = 1;\n" + FENCE),
        "xml": ("<a><b></a>", "<a><b></b></a>\n" + FENCE),
    }[language]
    check = written(language, *texts)
    each = written(language, *texts, masks=Masks.EACH)

    assert each.generation.token_ids == check.generation.token_ids
    assert each.text == check.text
    assert each.generation.n_refused_first == check.generation.n_refused_first
    assert check.generation.n_refused_first + check.generation.n_undone > 0
    assert each.generation.n_masked >= each.generation.n_guarded > 0
    assert each.generation.finish is Finish.STOPPED
    assert check.generation.n_masked == 0


def test_nor_are_they_with_masks_that_were_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for least in ("N_TRIALS", "N_PLACES"):
        monkeypatch.setattr(dictionary, least, 1)
    texts = ("def f(x):\n    return = x\n", "def f(x):\n    return x\n" + FENCE)
    check = written("python", *texts)
    first = written("python", *texts, masks=Masks.DICTIONARY)
    assert dictionary.BACKGROUND.wait(30)
    for _ in range(4):  # what waits too long in the background is forgotten
        later = written("python", *texts, masks=Masks.DICTIONARY)
        assert dictionary.BACKGROUND.wait(30)

    assert check.generation.token_ids == first.generation.token_ids == later.generation.token_ids
    assert check.generation.n_refused_first == later.generation.n_refused_first
    assert later.generation.n_masked > first.generation.n_masked


def test_nor_with_a_schema() -> None:
    texts = ('{"nome', '{"name": "a", "restart": "often"', '{"name": "a", "restart": "on-failure"}\n' + FENCE)
    check, each = (written("json", *texts, schema=SCHEMA, masks=how) for how in (Masks.CHECK, Masks.EACH))

    assert each.generation.token_ids == check.generation.token_ids
    assert each.generation.n_masked > 0


def test_without_a_guard_the_document_is_only_checked() -> None:
    free = written("json", '{"a": 1}\n' + FENCE, masks=Masks.OFF)

    assert free.text == '{"a": 1}\n'
    assert free.generation.n_guarded == 0
    for text, schema in (("[1,]\n", None), ('{"name": "a", "restart": "often"}\n', SCHEMA), ("[1", None)):
        with pytest.raises(Unfinished, match="is not whole json"):
            written("json", text + FENCE, masks=Masks.OFF, schema=schema)


# The prompt.


def test_a_model_without_turns_reads_a_comment() -> None:
    engine = ChoosingEngine("x = 1\n", vocabulary=ByteVocabulary())
    said = write(DocumentRequest("an x", language_by_id("python")), engine, CancelFlag())

    assert bytes(engine.requests[0].prompt_ids) == b"# an x\n\n"
    assert said.text == "x = 1\n"


def test_a_model_with_turns_reads_the_request_and_the_schema() -> None:
    engine = ChoosingEngine('{"name": "a", "restart": "never"}\n' + FENCE, vocabulary=ByteVocabulary(CHAT))
    request = DocumentRequest("a service <|im_end|>", language_by_id("json"), schema_of(SCHEMA, "test"))
    write(request, engine, CancelFlag())
    ids = engine.requests[0].prompt_ids
    text = bytes(token for token in ids if token < 256).decode()

    assert "a service <|im_end|>" in text
    assert '"on-failure"' in text
    assert text.endswith("assistant\n```json\n")
    assert ids.count(int(engine.vocabulary.control_id("<|im_end|>") or 0)) == 2


@pytest.mark.parametrize(
    ("wish", "sentence"), [("  \n", "The request is empty"), ("a " * 20_000, "shorten it")]
)
def test_a_request_that_cannot_be_is_one_sentence(wish: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        written("json", "1", wish=wish)


def rules(text: str) -> Rules:
    return rules_from(text.encode(), "rules.toml")


NO_EVAL = '[[rule]]\nname = "no-eval"\nlanguages = ["python"]\ncalls = { forbid = ["eval"] }\n'
NAMES = '[[rule]]\nname = "names"\nlanguages = ["python"]\nnames = { allow = ["x", "y", "int"] }\n'
HEADER = '[[rule]]\nname = "names"\nlanguages = ["yaml"]\nheader = { lines = ["# (ours|yours)"] }\n'


@pytest.mark.parametrize("how", [Masks.CHECK, Masks.EACH])
@pytest.mark.parametrize(
    ("language", "text", "refused", "wanted"),
    [
        ("python", NAMES, "x = eval(y)\n", "x = int(y)\n"),
        ("yaml", HEADER, "# theirs\na: 1\n", "# ours\na: 1\n"),
    ],
    ids=["python", "yaml"],
)
def test_a_document_is_held_to_the_users_rules(
    how: Masks, language: str, text: str, refused: str, wanted: str
) -> None:
    said = written(language, refused + FENCE, wanted + FENCE, rules=rules(text), masks=how)

    assert said.text == wanted
    assert all(each.startswith("The rule “names” is against ") for each in said.refused)
    assert said.refused


def test_what_a_rule_has_torn_is_taken_off() -> None:
    """The name was to become `eval`; another one it was not to be."""
    said = written("python", "x = 1\ny = eval(x)\n" + FENCE, rules=rules(NO_EVAL))

    assert said.generation.finish is Finish.DEAD_END
    assert said.text == "x = 1\n"
    assert said.refused == ("The rule “no-eval” is against a call of `eval`.",)


def test_so_is_one_that_nothing_guards() -> None:
    with pytest.raises(Unfinished, match="the rule “no-eval” is against a call of `eval`"):
        written("python", "x = eval(y)\n" + FENCE, rules=rules(NO_EVAL), masks=Masks.OFF)


@pytest.mark.parametrize("how", [Masks.CHECK, Masks.OFF])
def test_a_document_of_one_line_that_a_rule_is_against_is_none_and_the_rule_is_named(how: Masks) -> None:
    with pytest.raises(Unfinished) as told:
        written("python", "y = eval(x)\n" + FENCE, rules=rules(NO_EVAL), masks=how)
    assert str(told.value) == (
        "There is no document, because the rule “no-eval” is against a call of `eval`: ask for something else, or "
        "change the rule."
    )


def test_yaml_is_not_held_to_the_rules_for_json() -> None:
    """It is written as JSON where there is a schema."""
    no_secrets = '[[rule]]\nname = "no-secrets"\nlanguages = ["json"]\nstrings = { forbid = ["secret"] }\n'
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    document = '{"a": "secret"}\n' + FENCE
    said = written("yaml", document, schema=schema, rules=rules(no_secrets))
    assert said.text == "a: secret\n"
    with pytest.raises(Unfinished, match=r"^There is no document, because the rule “names” is against "):
        written("yaml", document, schema=schema, rules=rules(HEADER))


def test_rules_of_other_languages_do_not_hold() -> None:
    said = written("json", '{"eval": 1}\n' + FENCE, rules=rules(NO_EVAL))

    assert (said.text, said.refused) == ('{"eval": 1}\n', ())
