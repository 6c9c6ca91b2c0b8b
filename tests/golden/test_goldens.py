"""Runs every case of the TOML files beside it; see the README there."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from treefill.completion import CompletionRequest, Declined, Mode, Suggestion, complete
from treefill.engine.api import CancelFlag
from treefill.text import Document

from tests.helpers.choosing_engine import ChoosingEngine
from tests.helpers.contract import assert_sound
from tests.helpers.scripted_engine import ScriptedEngine

FOLDER = Path(__file__).parent
KEYS = frozenset(
    {"id", "description", "language", "buffer", "model", "second", "expect", "declined", "contains", "lacks"}
    | {"mode", "max_lines", "max_tokens", "compiles"}
)
MANY = 100_000


@dataclass(frozen=True, slots=True)
class Golden:
    name: str
    case: dict[str, Any]


def read_goldens() -> list[Golden]:
    goldens = []
    for path in sorted(FOLDER.glob("*.toml")):
        table = tomllib.loads(path.read_text("utf-8"))
        for case in table["case"]:
            case.setdefault("language", table.get("language"))
            goldens.append(Golden(f"{path.stem}-{case['id']}", case))
    return goldens


def marked(text: str) -> str:
    """The buffer's marks as the characters that they stand for."""
    return text.replace("␍\n", "\r\n").replace("␍", "\r").replace("␊", "\n").replace("⇥", "\t")


def run(case: dict[str, Any], n_step: int) -> tuple[Document, int, Suggestion | Declined]:
    text = marked(case["buffer"])
    offset = text.index("‸")
    document = Document("golden.txt", text.replace("‸", ""), case["language"])
    request = CompletionRequest(
        document,
        offset,
        mode=Mode(case.get("mode", "auto")),
        max_lines=case.get("max_lines", 12),
        max_new_tokens=case.get("max_tokens", MANY),
    )
    engine = (
        ChoosingEngine(marked(case["model"]), marked(case["second"]), n_context=2 * MANY)
        if "second" in case
        else ScriptedEngine(marked(case["model"]), n_step=n_step, n_context=2 * MANY)
    )
    answer = complete(request, engine, CancelFlag())
    line_start = 1 + max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset))
    left = text[line_start:offset].removeprefix("\ufeff")
    # What the model reads last, with the bytes it must spell again, is what stands left of the cursor.
    assert engine.middle_of(engine.requests[-1]).endswith(left)
    return document, offset, answer


GOLDENS = read_goldens()


# A token is seldom one character: the rules must give the same whatever pieces the text comes in.
@pytest.mark.parametrize("n_step", [1, 3, 17])
@pytest.mark.parametrize("golden", GOLDENS, ids=[golden.name for golden in GOLDENS])
def test_golden(golden: Golden, n_step: int) -> None:
    case = golden.case
    if n_step != 1 and {"max_tokens", "second"} & set(case):
        pytest.skip("where the text is cut, or another chosen, depends on its pieces")

    document, offset, answer = run(case, n_step)

    if "declined" in case:
        assert isinstance(answer, Declined), f"suggested {getattr(answer, 'text', '')!r}"
        assert answer.reason == case["declined"]
        assert answer.sentence
        return
    assert isinstance(answer, Suggestion), f"declined: {getattr(answer, 'sentence', '')}"
    result = answer.applied_to(document)
    assert_sound(document, offset, answer)
    if "expect" in case:
        assert result == marked(case["expect"])
    for piece in case.get("contains", []):
        assert marked(piece) in result
    for piece in case.get("lacks", []):
        assert marked(piece) not in result
    if case.get("compiles"):
        compile(result.removeprefix("\ufeff"), "golden", "exec")


def test_there_are_goldens_enough_and_each_says_what_it_expects() -> None:
    names = [golden.name for golden in GOLDENS]
    assert len(names) == len(set(names))
    assert len(names) >= 60
    for golden in GOLDENS:
        assert set(golden.case) <= KEYS, golden.name
        assert golden.case["description"]
        assert {"expect", "declined", "contains", "lacks"} & set(golden.case), golden.name
