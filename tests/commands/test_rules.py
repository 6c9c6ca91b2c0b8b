"""`treefill rules check` says what a file's rules are, or what is wrong with it and where."""

import json
import sys
from pathlib import Path

import pytest
from treefill.__main__ import main

RULES = r"""
[[rule]]
name = "no eval"
because = "it runs any text"
languages = ["python"]
calls.forbid = ['eval', 'exec']
kinds.forbid = ["global"]

[[rule]]
name = "house"
languages = ["python", "sql"]
names.allow = ['[a-z_]+']
docs.begins = ['[A-Z]']
header.lines = ['# Copyright \d{4} Acme', '# MIT']

[[rule]]
name = "read only"
sql = "read-only"
"""


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["treefill", "rules", "check", *arguments])
    with pytest.raises(SystemExit) as exit_info:
        main()
    return int(exit_info.value.code or 0)


def test_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.toml").write_text(RULES)

    assert run(monkeypatch, "r.toml") == 0
    assert capsys.readouterr().out == (
        "no eval (it runs any text)\n"
        "  in python\n"
        "  no calls that are `eval` or `exec`\n"
        "  no global\n"
        "house\n"
        "  in python, sql\n"
        "  names must be one of `[a-z_]+`\n"
        "  what documents code begins with `[A-Z]`\n"
        "  line 1 of a new file is `# Copyright \\d{4} Acme`\n"
        "  line 2 of a new file is `# MIT`\n"
        "read only\n"
        "  in every language\n"
        "  SQL only reads\n"
        "r.toml: 3 rules, nothing wrong with them\n"
    )


def test_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.toml"
    file.write_text(RULES)

    assert run(monkeypatch, str(file), "--json") == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert [rule["name"] for rule in rules] == ["no eval", "house", "read only"]
    assert rules[0]["calls"] == {"allow": [], "forbid": ["eval", "exec"]}
    assert rules[2]["is_read_only"] is True


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[[rule]]\nname = 'x'\nnames.forbid = ['(']\n",
            ":3:17: expected a regular expression of RE2 (missing ): ()",
        ),
        ("[[rule]\n", ":1:7: "),
    ],
)
def test_what_is_wrong_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    file = tmp_path / "r.toml"
    file.write_text(text)

    assert run(monkeypatch, str(file)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{file}{told}" in captured.err


def test_a_file_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "/no/such/rules.toml") == 2
    assert "cannot be read (No such file or directory)" in capsys.readouterr().err
