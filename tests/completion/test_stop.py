"""The rule that ends a suggestion: what it costs, and that asking it seldom ends nothing late."""

import pytest
from treefill.completion import Mode, stop
from treefill.completion.scan import Scan, ScanState, scan
from treefill.completion.situation import Situation, look_around
from treefill.completion.stop import LOOK_EVERY_CHARS, find_stop, stop_rule
from treefill.syntax.languages import Language, language_by_id
from treefill.text import Document


def situation_at(marked: str, language: str) -> Situation:
    document = Document("a.txt", marked.replace("‸", ""), language)
    return look_around(document, marked.index("‸"), language_by_id(language))


def asked_until(text: str, n_step: int, situation: Situation, mode: Mode, max_lines: int) -> int:
    """How much of `text` the rule lets a model write that writes `n_step` characters a token."""
    should_stop = stop_rule(mode, situation, max_lines)
    return next(
        (end for end in range(n_step, len(text), n_step) if should_stop(text[:end])),
        len(text),
    )


@pytest.mark.parametrize("language", ["python", "cpp", "rust", "toml"])
@pytest.mark.parametrize("mode", [Mode.LINE, Mode.BLOCK])
@pytest.mark.parametrize(
    ("text", "n_step"),
    [
        ("(" * 1024, 1),
        ('"```"' * 512, 5),
        ("```" * 512, 3),
        ("x = [" + "'a', " * 200, 1),
        ("ab" * 20 + "c d", 1),
    ],
)
def test_a_long_line_costs_no_square_of_its_length(
    text: str, n_step: int, mode: Mode, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_scanned = 0

    def counting(text: str, language: Language, start: ScanState) -> Scan:
        nonlocal n_scanned
        n_scanned += len(text)
        return scan(text, language, start)

    monkeypatch.setattr(stop, "scan", counting)

    asked_until(text, n_step, situation_at("    ‸\n", language), mode, max_lines=12)

    assert n_scanned <= 64 * len(text)


@pytest.mark.parametrize("n_step", [1, 2, 5])
@pytest.mark.parametrize(
    ("marked", "language", "mode", "text"),
    [
        ("x = ‸\n", "python", Mode.LINE, "1\ny = 2\n"),
        ("def f():\n    ‸\n", "python", Mode.BLOCK, "return 1\n\n\nclass B:\n"),
        ("def f():\n    ‸\n", "python", Mode.BLOCK, "    " * 30 + "x\ny = 1\n"),
        ("def f():\n    ‸\n", "python", Mode.BLOCK, f"x = {' + '.join(map(str, range(60)))}\nz = 2\n"),
        ("int f() {‸}\n", "cpp", Mode.BLOCK, "\n    return g(1);\n}\n\nint g() {\n"),
        ("    if (x) {\n        ‸\n    }\n", "cpp", Mode.BLOCK, "f();\n    }\n    g();\n    h();\n"),
        ("SELECT ‸\n", "sql", Mode.BLOCK, "a\nFROM b;\nSELECT c\n"),
    ],
)
def test_the_model_stops_as_early_as_if_the_rule_were_asked_after_each_token(
    marked: str, language: str, mode: Mode, text: str, n_step: int
) -> None:
    situation = situation_at(marked, language)
    earliest = next(
        end
        for end in range(n_step, len(text) + n_step, n_step)
        if find_stop(text[:end], mode, situation, 12) is not None
    )

    assert asked_until(text, n_step, situation, mode, 12) == min(earliest, len(text))


def test_a_loop_within_a_line_is_seen_soon() -> None:
    situation = situation_at("x = ‸\n", "python")
    text = "1 + " * 300

    assert asked_until(text, 1, situation, Mode.LINE, 12) <= 40 + LOOK_EVERY_CHARS
