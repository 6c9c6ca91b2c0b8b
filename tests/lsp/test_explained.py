"""The page that tells how a completion came about."""

from typing import Any

import pytest
from treefill.lsp.explained import as_markdown

TOLD: dict[str, Any] = {
    "reason": "",
    "sentence": "",
    "source": "decoded",
    "layout": "fim",
    "mode": "line",
    "parts": [["<|fim_prefix|>", "", 1], ["prefix", "def add(a, b):\n", 7], ["suffix", "", 0]],
    "forced": "    return ",
    "refusals": [["/w/.env", "a secrets file"]],
    "raw_text": "a + b\n",
    "steps": [["trailing", "a + b\n", "a + b"], ["overlap", "a + b", "a + b"]],
    "timings_ms": {"prompt": 0.4},
    "n_prompt_tokens": 12,
    "n_reused_tokens": 10,
    "n_evaluated": 2,
    "n_new_tokens": 4,
    "ttft_ms": 31.0,
    "total_ms": 95.0,
    "finish": "stopped",
}


def test_a_suggestion_is_told_from_its_prompt_to_its_filters() -> None:
    page = as_markdown("file:///w/calc.py", TOLD)

    assert page.startswith("# The last completion in calc.py\n\nSuggested; where it came from: **decoded**.")
    assert "### <|fim_prefix|> (1 token)\n\n### prefix (7 tokens)\n\n```\ndef add(a, b):\n\n```" in page
    assert "| of these, reused from before | 10 |" in page
    assert "### after trailing\n\n```\na + b\n```" in page
    assert "Changed nothing: overlap." in page
    assert "- /w/.env: a secrets file" in page


def test_a_template_is_told_by_its_name() -> None:
    told = {
        "source": "template",
        "template": "main guard",
        "raw_text": "x",
        "steps": [["trim_end", "x ", "x"]],
    }

    page = as_markdown("a.py", told)

    assert "where it came from: **template** (main guard)." in page
    assert "## The text\n" in page
    assert "model" not in page


def test_what_the_grammar_found_is_told() -> None:
    finding = {
        "grammar": "python", "n_faults_before": 0, "n_faults_after": 1, "complaint": "')' has no place there",
        "cut": ")", "unchecked": "", "note": "", "unguarded": "",
    }  # fmt: skip

    page = as_markdown("a.py", {**TOLD, "syntax": finding})

    assert "## Syntax\n\nBy the grammar python: 0 faults before, 1 after.\n" in page
    assert (
        "What was wrong with the whole of it: ')' has no place there.\n\n### cut off\n\n```\n)\n```" in page
    )
    assert "Not checked: No time." in as_markdown("a.py", {"syntax": finding | {"unchecked": "No time."}})


FINE = {
    "grammar": "cpp", "n_faults_before": 0, "n_faults_after": 0, "complaint": "", "cut": "", "unchecked": "",
    "note": "", "unguarded": "",
}  # fmt: skip
ASKED = "Tokens that the grammar was asked about while the model wrote: {}; first choices refused: {}; taken back: {}."
SILENT = "The grammar cannot read the statement that the cursor is in."


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        (
            {"syntax": FINE, "n_guarded": 12, "n_refused_first": 2, "n_undone": 1},
            [ASKED.format(12, 2, 1)],
        ),
        (
            {"syntax": FINE, "n_guarded": 12, "n_refused_first": 2, "n_undone": 1, "n_forced": 3},
            [ASKED.format(12, 2, "1; written without the model: 3")],
        ),
        (
            {"syntax": FINE | {"unguarded": SILENT}, "n_guarded": 3, "n_refused_first": 0, "n_undone": 0},
            [
                ASKED.format(3, 0, 0),
                f"From somewhere on it did not decide: {SILENT}",
            ],
        ),
        (
            {"syntax": FINE | {"unguarded": SILENT}},
            [f"While the model wrote, the grammar was not asked: {SILENT}"],
        ),
        (
            {"syntax": FINE | {"unchecked": "No time.", "unguarded": SILENT}, "n_guarded": 0},
            [f"While the model wrote, the grammar was not asked: {SILENT}", "", "Not checked: No time."],
        ),
        ({"syntax": FINE, "n_guarded": 0}, ["By the grammar cpp: 0 faults before, 0 after."]),
        (
            {"syntax": None, "n_guarded": 1, "n_refused_first": 1, "n_undone": 0},
            [ASKED.format(1, 1, 0)],
        ),
    ],
)
def test_how_the_grammar_stood_guard_is_told_and_why_it_did_not(
    told: dict[str, Any], lines: list[str]
) -> None:
    page = as_markdown("a.cpp", told)

    assert "\n".join(["## Syntax", "", *lines, ""]) in page


def test_where_nobody_asked_the_grammar_nothing_is_said_of_it() -> None:
    assert "Syntax" not in as_markdown("a.cpp", {**TOLD, "syntax": None, "n_guarded": 0})


def test_nothing_says_why() -> None:
    page = as_markdown("file:///w/a.py", {"reason": "comment", "sentence": "The cursor is in a comment."})

    assert page.rstrip().endswith("**Nothing was suggested:** The cursor is in a comment. (`comment`)")


def test_where_nothing_was_asked_only_that_is_said() -> None:
    page = as_markdown("untitled:Untitled-1", {"sentence": "Nothing has been asked in this document yet."})

    assert page == (
        "# The last completion in untitled:Untitled-1\n\nNothing has been asked in this document yet.\n"
    )


def test_no_text_of_the_document_ends_its_fence() -> None:
    page = as_markdown("a.md", {**TOLD, "parts": [["prefix", "  ````\n# not a heading\n```", 5]]})

    assert "`````\n  ````\n# not a heading\n```\n`````" in page


def test_of_a_long_text_the_last_lines_are_shown() -> None:
    text = "\n".join(f"line {n}" for n in range(100))
    page = as_markdown("a.py", {**TOLD, "parts": [["prefix", text, 300]]})

    assert "… 60 lines before\nline 60\n" in page
    assert "line 59\n" not in page


def test_a_files_name_stays_in_its_line() -> None:
    page = as_markdown("file:///w/my%20file%0A%23x.py", {**TOLD, "refusals": [["/w/a\n# b", "outside"]]})

    assert page.startswith("# The last completion in my file #x.py\n")
    assert "- /w/a # b: outside\n" in page


def test_what_the_rules_said_is_told() -> None:
    rules = {
        "rules": ["no eval", "snake\ncase"], "refused": ["The rule “no eval” is against a call of `eval`."],
        "complaint": "", "cut": "", "note": "",
    }  # fmt: skip

    page = as_markdown("a.py", {**TOLD, "syntax": {**FINE, "rules": rules}})

    assert "## Rules\n\nHeld to: no eval, snake case.\n\nRefused while the model wrote:\n\n- The rule" in page
    cut = {**rules, "complaint": "The rule is against it.", "cut": "eval(x)", "note": "r is not read: why."}
    page = as_markdown("a.py", {**TOLD, "syntax": {**FINE, "rules": cut}})
    assert (
        "Against the whole of it: The rule is against it.\n\n### cut off for a rule\n\n```\neval(x)\n```"
        in page
    )
    assert "r is not read: why." in page
    assert "## Rules" not in as_markdown("a.py", {**TOLD, "syntax": {**FINE, "rules": None}})
