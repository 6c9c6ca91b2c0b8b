"""Code in prose: the fence round the cursor, `‸`, its language, and what of it is code."""

import pytest
from treefill.syntax.baseline import Baseline
from treefill.syntax.fences import Fence, fence_at
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import Matcher, OutOfReach, matcher_at
from treefill.syntax.vocabulary import MaskVocabulary, to_bools

from tests.syntax.test_vocabulary import Words

MARKDOWN = language_by_id("markdown")


def place(buffer: str) -> tuple[str, int]:
    return buffer.replace("‸", ""), buffer.index("‸")


def fence(buffer: str) -> Fence | None:
    return fence_at(*place(buffer), MARKDOWN)


def guard(buffer: str) -> Matcher:
    found = matcher_at(*place(buffer), MARKDOWN)
    assert isinstance(found, Matcher), found
    return found


@pytest.mark.parametrize(
    ("buffer", "language", "code"),
    [
        ("```python\nx = ‸1\n```\n", "python", "x = ‸1\n"),
        ("~~~ js title=a\n‸\n~~~", "javascript", "‸\n"),
        ("````md\n````\n```c++\n‸", "cpp", "‸"),
        ("```rs\nfn f() {\n    ‸\n", "rust", "fn f() {\n    ‸\n"),
        ("1. a\n\n   ```py\n   if x:\n       ‸y\n   ```\n", "python", "if x:\n    ‸y\n"),
        ("  ```py\n  x\n ‸ y\n  ```\n", "python", "x\n‸y\n"),
        ("```py\n‸\n~~~\n```\n", "python", "‸\n~~~\n"),
        ("```{.python}\n‸\n```", "python", "‸\n"),
    ],
)
def test_the_code_round_the_cursor(buffer: str, language: str, code: str) -> None:
    found = fence(buffer)

    assert found is not None
    assert found.language.id == language
    assert found.code[: found.offset] + "‸" + found.code[found.offset :] == code


@pytest.mark.parametrize(
    "buffer",
    [
        "‸",
        "prose ‸\n",
        "```python\nx\n```\nprose‸\n",
        "```pyt‸hon\nx\n```\n",
        "```python\nx\n`‸``\n",
        "```\n‸\n```\n",
        "```klingon\n‸\n```\n",
        "```markdown\n‸\n```\n",
        "a ```python\n‸\n",
        "``python\n‸\n``",
    ],
)
def test_what_is_no_code_that_we_know(buffer: str) -> None:
    assert fence(buffer) is None
    assert isinstance(matcher_at(*place(buffer), MARKDOWN), OutOfReach)


IN_A_LIST = "1. a\n\n   ```python\n   def f(x):\n       return ‸\n   ```\n\nprose )(\n"


@pytest.mark.parametrize(
    ("written", "verdict"),
    [
        ("x", "+"),
        (")", "-"),
        ("f(x", "~"),
        ("x\n   y = 2", "+"),
        ("x\n       y = 2", "+"),
        ("x\n         y = 2", "-"),
        ("x\n   ```\n\nprose )(", "+"),
        ("f(x\n   ```\n", "~"),
    ],
)
def test_the_fences_language_decides(written: str, verdict: str) -> None:
    """`+` it may come and end there, `~` it may come and more must follow, `-` it may not come."""
    found = guard(IN_A_LIST)
    is_allowed = found.allows(written.encode())

    assert ("-" if not is_allowed else "+" if found.may_end(written.encode()) else "~") == verdict


def test_it_is_followed_piece_by_piece_and_back() -> None:
    found = guard(IN_A_LIST)

    assert all(found.accept(piece) for piece in (b"x", b"\n", b"   ", b"y", b" = ", b"1"))
    assert found.can_stop()
    assert not found.accept(b")")
    assert found.accept(b"\n   ```")
    assert found.accept(b")))")
    found.rollback(2)
    assert not found.allows(b")")
    found.rollback(6)
    assert found.allows(b"f(")


def test_half_a_character_may_come() -> None:
    found = guard("```python\n# ‸\n```\n")

    assert found.accept(b"\xc3")
    assert found.accept(b"\xa9")


def test_what_is_forced_ends_with_its_line() -> None:
    assert b"\n" not in guard("  ```json\n  [tru‸\n  ```\n").forced()


@pytest.mark.parametrize(
    ("written", "complaint"),
    [("x + 1", False), ("x +", True), ("x\n   y = (", True), ("x\n   ```\n\nprose )(", False)],
)
def test_the_last_word_is_about_the_fences_code(written: str, complaint: bool) -> None:
    text, offset = place(IN_A_LIST)
    baseline = Baseline.of(text, offset, MARKDOWN, "a.md")

    assert isinstance(baseline, Baseline)
    assert baseline.language.id == "python"
    assert bool(baseline.verdict(offset, offset, written).complaint) == complaint


@pytest.mark.parametrize("written", ["", "x", "x\n", "x\n   ", "x\n   ```\n"])
def test_a_mask_says_the_same(written: str) -> None:
    found = guard(IN_A_LIST)
    assert found.accept(written.encode())
    vocabulary = MaskVocabulary(
        Words(b"\n   ", b"\n   y", b"    y", b"\n   ```", b"```", b" + 1", b"\n\n", b"))")
    )
    mask = to_bools(found.fill_mask(vocabulary), vocabulary.n_logits)

    assert mask.tolist() == [bool(token) and found.allows(token) for token in vocabulary.spelled]


def test_prose_is_not_checked() -> None:
    assert Baseline.of("prose ", 6, MARKDOWN, "a.md") == (
        "Prose is free: the cursor is in no fence of a language that is known."
    )


def test_the_dialect_that_is_wanted_for_a_language_counts_in_fences() -> None:
    text, offset = place("```sql\nSELECT a FROM t ‸;\n```\n")
    found = matcher_at(text, offset, MARKDOWN, None, {"sql": "sql"})

    assert isinstance(found, Matcher)
    assert found.allows(b"WHERE b")
