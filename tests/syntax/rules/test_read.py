"""Files of rules: what they say, and what is told of those that say nothing sensible. Never a traceback."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from treefill.errors import BadRules
from treefill.syntax.languages import grammars_folder, language_by_id
from treefill.syntax.rules.read import MAX_FILE_BYTES, WORKSPACE_FILE, read_rules, rules_from, rules_in_force

GOOD = r"""
[[rule]]
name = "no eval"
because = "it runs any text"
languages = ["py"]
calls.forbid = ['eval', 'os\.system']
kinds = { forbid = ["global", "nonlocal_statement"] }

[[rule]]
name = "names"
[rule.names]
allow = ['[a-z]+']
"""


def test_a_file_is_read() -> None:
    no_eval, names = rules_from(GOOD.encode(), "rules.toml")

    assert (no_eval.name, no_eval.because, no_eval.languages) == ("no eval", "it runs any text", ("python",))
    assert no_eval.calls is not None
    assert [pattern.text for pattern in no_eval.calls.forbid] == ["eval", r"os\.system"]
    assert no_eval.kinds == ("global", "nonlocal_statement")
    assert names.names is not None
    assert names.names.refuses("A")
    assert [names.is_for(language_by_id(name)) for name in ("go", "haskell", "plaintext", "markdown")] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[rule]]\nname = 5\n", "2:8: expected a text of one line, 1 to 80 characters, found a number."),
        ('[[rule]]\nnam = "x"\n', "2:1: expected name, found `nam`."),
        ("[[rule]]\nsql = 'read-only'", '1:1: expected a name, as in name = "no eval".'),
        ("rule = 5", "1:8: expected tables with the head [[rule]], found a number."),
        ("rules = []", "1:1: expected rule, found `rules`."),
        (
            '[[rule]]\nname = "x"\n',
            "1:1: expected something that it says: names, calls, strings, kinds, docs, header or sql.",
        ),
        (
            '[[rule]]\nname = "x"\nlanguages = ["go", "pyhton"]\nsql = "read-only"',
            "3:20: expected a language, found `pyhton`; did you mean python?",
        ),
        (
            '[[rule]]\nname = "x"\nnames.allow = ["a"]\n\n[[rule]]\nname = "ä"\n  names = { forbid = ["ä", "(b"] }',
            "7:28: expected a regular expression of RE2 (missing ): (b), found `(b`.",
        ),
        ('[[rule]]\nname = "x"\nnames.forbid = "a"', "3:16: expected a list of patterns, found `a`."),
        ('[[rule]]\nname = "x"\ncalls = { forbidden = ["a"] }', "3:11: expected forbid, found `forbidden`."),
        ('[[rule]]\nname = "x"\n[rule.calls]\n', "3:1: expected patterns in calls.allow or calls.forbid."),
        (
            '[[rule]]\nname = "x"\nkinds.forbid = ["goto"]',
            "3:1: expected languages beside kinds, which each language has of its own.",
        ),
        (
            '[[rule]]\nname = "x"\nlanguages = ["c"]\nkinds.forbid = ["if", "gotostatement"]',
            "4:23: expected a kind of node that the grammar of c has, found `gotostatement`; did you mean goto_",
        ),
        ('[[rule]]\nname = "x"\nsql = "read"', '3:7: expected "read-only", found `read`.'),
        (
            '[[rule]]\nname = "x"\nlanguages = ["c"]\nsql = "read-only"',
            '3:13: expected ["sql"], or no languages, beside sql = "read-only".',
        ),
        (
            '[[rule]]\nname = "x"\nsql = "read-only"\n[[rule]]\nname = "x"\nsql = "read-only"',
            "5:8: expected a name that no other rule has, found `x`.",
        ),
        ("a = \n", "1:5: invalid value."),
        ("[[rule]\n", "1:7: expected ']]' at the end of an array declaration."),
        ("a = [1,\n", "2:1: "),
        ("x = " + "[" * 5_000, "1:1: expected tables and lists that are not nested so deeply."),
        ("x = " + "1" * 5_000, "1:1: expected rules, found a number of thousands of digits."),
    ],
)
def test_what_is_wrong_is_told_with_line_and_column(text: str, told: str) -> None:
    with pytest.raises(BadRules) as raised:
        rules_from(text.encode(), "rules.toml")

    assert str(raised.value).startswith(f"rules.toml:{told}")


def test_other_bytes_than_utf_8_are_told_with_their_place() -> None:
    with pytest.raises(BadRules, match=r"rules.toml:2:4: expected UTF-8."):
        rules_from("# ok\n# ä".encode() + b"\xff", "rules.toml")
    assert rules_from(b"\xef\xbb\xbf" + GOOD.encode(), "a").each


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.sampled_from(
            [
                "1",
                "-2.5",
                "true",
                "2026-11-30",
                "'eval'",
                '"(a"',
                '""',
                "'read-only'",
                '["python"]',
                '["eval", "("]',
            ]
        ),
        st.text("ab\\(\"'\n[]{}=#ä\x00", max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.tuples(st.sampled_from(["allow", "forbid", "begins", "lines", "x"]), inner).map(
            lambda pair: f"{{ {pair[0]} = {pair[1]} }}"
        ),
    ),
    max_leaves=5,
)
KEYS = st.sampled_from(
    ["name", "because", "languages", "names", "calls", "strings", "kinds", "docs", "header", "sql", "other",
     "names.allow", "calls.forbid"]
)  # fmt: skip
LINES = st.one_of(
    st.sampled_from(
        ["[[rule]]", "[rule]", "[rule.names]", "# note", "", 'name = "a"', 'languages = ["python"]']
    ),
    st.tuples(KEYS, VALUES).map(lambda pair: f"{pair[0]} = {pair[1]}"),
)


@given(st.one_of(st.lists(LINES, max_size=8).map("\n".join), st.text(max_size=40)))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=300)
def test_any_text_is_rules_or_told_with_a_place_in_it(text: str) -> None:
    if told := complaint_of(text.encode(errors="replace")):
        _, line, column, sentence = told.split(":", 3)
        assert 1 <= int(line) <= text.count("\n") + 2
        assert 1 <= int(column) <= len(text) + 1
        assert sentence.strip()


@given(st.binary(max_size=40))
def test_any_bytes_too(data: bytes) -> None:
    assert complaint_of(data).startswith("r:") or not complaint_of(data)


def complaint_of(data: bytes) -> str:
    """What is told of them; empty where they are rules."""
    try:
        rules_from(data, "r")
    except BadRules as error:
        return str(error)
    return ""


def test_a_file_is_read_anew_when_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text(GOOD)
    assert len(read_rules(file).each) == 2

    file.write_text('[[rule]]\nname = "one"\nsql = "read-only"\n')

    assert [rule.name for rule in read_rules(file)] == ["one"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (MAX_FILE_BYTES + 1))

    with pytest.raises(BadRules, match=r"cannot be read \(No such file or directory\)"):
        read_rules(tmp_path / "none.toml")
    with pytest.raises(BadRules, match=r"is no file: name one by the setting rules"):
        read_rules(tmp_path)
    with pytest.raises(BadRules, match=r"has 262145 bytes: rules have at most 262144"):
        read_rules(large)
    with pytest.raises(BadRules, match=r"name that file by its whole path"):
        read_rules(Path("r.toml"))


def test_a_workspaces_rules_are_read_where_the_user_trusts_it(tmp_path: Path) -> None:
    workspace = tmp_path / "work" / "repo"
    workspace.mkdir(parents=True)
    own, users = workspace / WORKSPACE_FILE, tmp_path / "mine.toml"
    users.write_text('[[rule]]\nname = "mine"\nsql = "read-only"\n')

    assert rules_in_force(None, [workspace], workspace).each == ()
    own.write_text('[[rule]]\nname = "theirs"\nsql = "read-only"\n')

    def names(*trusted: Path) -> list[str]:
        return [rule.name for rule in rules_in_force(users, trusted, workspace)]

    assert names() == ["mine"]
    assert names(tmp_path / "other", Path("work"), workspace / "below") == ["mine"]
    assert names(workspace) == ["mine", "theirs"]
    assert names(tmp_path / "work") == ["mine", "theirs"]
    assert rules_in_force(None, [], workspace).note == (
        f"{own} is not read: the setting trusted_workspaces does not name its folder."
    )
    assert rules_in_force(None, [workspace], None).each == ()


def test_a_trusted_folder_is_the_one_that_links_lead_to(tmp_path: Path) -> None:
    real, linked = tmp_path / "real", tmp_path / "trusted" / "link"
    real.mkdir()
    linked.parent.mkdir()
    os.symlink(real, linked)
    (real / WORKSPACE_FILE).write_text('[[rule]]\nname = "theirs"\nsql = "read-only"\n')

    assert rules_in_force(None, [linked.parent], linked).each == ()
    assert rules_in_force(None, [real], linked).each


def test_a_bad_file_of_a_trusted_workspace_is_told(tmp_path: Path) -> None:
    (tmp_path / WORKSPACE_FILE).write_text("[[rule]]\n")

    with pytest.raises(BadRules, match=rf"{WORKSPACE_FILE}:1:1: expected a name"):
        rules_in_force(None, [tmp_path], tmp_path)
    assert rules_in_force(None, [], tmp_path).each == ()


def test_the_examples_of_the_guide_are_rules() -> None:
    guide = (Path(str(grammars_folder())).parent / "docs" / "rules.md").read_text("utf-8")
    examples = re.findall(r"^```toml\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)

    assert [rule.name for example in examples for rule in rules_from(example.encode(), "guide")] == [
        "no eval",
        "read only",
        "names as PEP 8 has them",
        "no jumps",
        "house style of texts",
    ]
