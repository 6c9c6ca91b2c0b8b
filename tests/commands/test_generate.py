"""`treefill generate`: the document on standard output, what there is to say of it on standard error, exit status."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from treefill.__main__ import main
from treefill.app import App

from tests.helpers.choosing_engine import ChoosingEngine
from tests.helpers.scripted_engine import QWEN_CONTROL_TOKENS, ByteVocabulary

DOCS = Path(__file__).parents[2] / "docs" / "generate.md"
SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "not": {"type": "null"}}


@dataclass(frozen=True)
class Run:
    status: int
    stdout: str
    stderr: str


Generate = Callable[..., Run]


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Generate:
    def run(*arguments: str, texts: tuple[str, ...] = (), wish: bytes = b"a document") -> Run:
        vocabulary = ByteVocabulary((*QWEN_CONTROL_TOKENS, "<|im_start|>"))
        if texts:
            monkeypatch.setattr(App, "open_engine", lambda _: ChoosingEngine(*texts, vocabulary=vocabulary))
        monkeypatch.setenv("TREEFILL_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setattr(sys, "argv", ["treefill", "generate", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(wish)))
        with pytest.raises(SystemExit) as told:
            main()
        captured = capsys.readouterr()
        return Run(int(told.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def schema(tmp_path: Path) -> str:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    return str(tmp_path / "s.json")


def test_the_document_and_nothing_else_is_on_standard_output(generate: Generate) -> None:
    run = generate("--language", "json", texts=('{"a": [1]}\n```\nwords',))

    assert run == Run(0, '{"a": [1]}\n', "")


def test_the_report_is_one_object_on_standard_error(generate: Generate) -> None:
    run = generate("--language", "python", "--json", texts=("x = = 1\n", "x = 1\n```\n"))
    report = json.loads(run.stderr)
    times = {name: report.pop(name) for name in ("seconds", "ttft_s", "guard_s")}

    assert run.stdout == "x = 1\n"
    assert all(isinstance(each, float) and each >= 0 for each in times.values())
    assert report.pop("n_prompt_tokens") > 50
    assert report == {
        "language": "python", "model": "script", "masks": "check", "valid_by": ["tree-sitter", "ast"],
        "n_new_tokens": 7, "finish": "stopped", "n_guarded": 7, "n_refused_first": 1, "n_undone": 0, "n_forced": 0,
        "n_masked": 0, "n_cut_bytes": 0, "added": "", "unguarded": "", "schema_notes": [], "rules": [],
        "refused_by_rules": [],
    }  # fmt: skip


def test_what_of_a_schema_is_not_held_to_is_told(generate: Generate, schema: str) -> None:
    run = generate("--schema", schema, texts=('{"a": 3}', '{"a": 2}\n```\n'))

    assert run == Run(0, '{"a": 2}\n', f"treefill: {schema}: Not held to: not.\n")


def test_a_document_that_was_closed_is_told_of(generate: Generate) -> None:
    run = generate("--language", "json", "--max-tokens", "4", texts=("[[1, 2]]",))

    assert run.status == 0
    assert run.stdout == "[[1]]\n"
    assert run.stderr == (
        "treefill: The document was brought to an end with ']]' after 4 tokens, without its last byte: "
        "--max-tokens may be raised.\n"
    )


def test_a_document_that_is_not_whole_is_none(generate: Generate) -> None:
    run = generate("--language", "json", "--masks", "off", texts=("[1, ]\n```\n",))

    assert (run.status, run.stdout) == (1, "")
    assert run.stderr.startswith("treefill: What was written is not whole json (")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(("language", "text"), [("json", '{"a": 1}\n```\n'), ("cpp", "int x = 1;\n```\n")])
def test_both_ways_side_by_side(generate: Generate, language: str, text: str) -> None:
    table = generate("--language", language, "--compare", texts=(text,)).stderr.splitlines()
    run = generate("--language", language, "--compare", "--json", texts=(text,))
    report = json.loads(run.stderr)
    check, each = report["check"], report["each"]

    assert run.stdout == text.removesuffix("```\n")
    assert check["n_new_tokens"] == each["n_new_tokens"] > 0
    assert (check["n_masked"], each["n_masked"] > 0) == (0, True)
    assert report["saved_s"] == pytest.approx(each["guard_s"] - check["guard_s"], abs=1e-3)
    assert report["dictionary"]["n_new_tokens"] == check["n_new_tokens"]
    assert [line.split()[0] for line in table[1:4]] == ["check", "dictionary", "each"]
    assert table[4].startswith(
        f"The same {check['n_new_tokens']} tokens. Checking each token as it is proposed took "
    )


def test_where_there_are_no_masks_a_comparison_says_so(generate: Generate) -> None:
    run = generate("--language", "yaml", "--compare", texts=("a: 1\n```\n",))

    assert "No masks were made: YAML's lexer is all in its scanner" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "wish", "sentence"),
    [
        ([], b"x", "Name what is to be written with --language, as in --language json, or a --schema."),
        (["--language", "klingon"], b"x", "language 'klingon' is not known"),
        (
            ["--language", "json", "--masks", "some"],
            b"x",
            "--masks is 'some': use one of off, check, each, dictionary.",
        ),
        (["--language", "json", "--max-tokens", "0"], b"x", "--max-tokens"),
        (["--language", "json"], b" \n", "The request is empty"),
        (["--language", "json"], b"\xff\xfe", "is not UTF-8 text"),
        (["--language", "json"], b"a" * 1_000_001, "more than 1,000,000 bytes"),
        (["--language", "json"], b"word " * 10_000, "shorten it"),
        (
            ["--schema", "nowhere.json"],
            b"x",
            "The schema nowhere.json cannot be read (No such file or directory)",
        ),
        (
            ["--language", "python", "--schema", "SCHEMA"],
            b"x",
            "A schema is for JSON and YAML, not for python",
        ),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    generate: Generate, schema: str, arguments: list[str], wish: bytes, sentence: str
) -> None:
    given = [schema if each == "SCHEMA" else each for each in arguments]
    run = generate(*given, texts=("1",), wish=wish)

    assert (run.status, run.stdout) == (2, "")
    assert sentence in " ".join(run.stderr.split())


def test_without_a_model_it_is_said_how_to_get_one(generate: Generate) -> None:
    run = generate("--language", "json", wish=b"x")

    assert run.status == 2
    assert "treefill model pull" in run.stderr


def test_the_docs_name_every_option() -> None:
    text = DOCS.read_text("utf-8")

    options: list[Any] = [
        "--language",
        "--schema",
        "--max-tokens",
        "--masks",
        "--compare",
        "--temperature",
        "--seed",
        "--json",
    ]
    assert [option for option in options if option not in text] == []
