"""Typing into several servers at once, and what is said of it."""

import json

import pytest
from treefill.benchmarks.editor import answer_of
from treefill.benchmarks.keystrokes import (
    Answer,
    Key,
    Percentiles,
    choose_places,
    default_documents,
    same_tokens,
    summarise,
    type_all,
)
from treefill.benchmarks.report import keys_json, keys_report, keys_text
from treefill.benchmarks.speed import Conditions
from treefill.errors import BadInput
from treefill.evaluation.typist import Edit, Typist
from treefill.text import Document

DOCUMENT = Document("a.py", "".join(f"def f{n}(x):\n    return [x, {n}]\n\n" for n in range(40)), "python")
CONDITIONS = Conditions("tiny", "a processor", 2, "avx2", 0.1, 0.2)


class FakeTyped:
    """Answers as it is told, and remembers what it saw."""

    def __init__(self, name: str, answer: Answer) -> None:
        self.name = name
        self.texts: list[str] = []
        self.n_tokens: list[int] = []
        self.opened: list[str] = []
        self._answer = answer

    def open(self, document: Document, typist: Typist) -> None:
        self.opened.append(document.path)

    def ask(self, edit: Edit, typist: Typist, n_tokens: int) -> Answer:
        self.texts.append(typist.text)
        self.n_tokens.append(n_tokens)
        return self._answer

    def close_document(self) -> None:
        self.opened.append("")

    def close(self) -> None:
        """Nothing to end."""


def test_every_key_is_asked_of_all_in_the_same_text_and_peers_know_how_many_tokens_ours_wrote() -> None:
    ours = FakeTyped("treefill", Answer("decoded", 90.0, 30.0, 2, 7, 90.0))
    peer = FakeTyped("peer", Answer("decoded", 200.0, 150.0, 500, 6, 210.0))
    keys = list(type_all(choose_places([DOCUMENT], 60), [ours, peer], 60, lambda what: None))

    assert len(keys) == 120
    assert ours.texts == peer.texts
    assert set(peer.n_tokens) == {7}
    assert ours.opened == ["a.py", ""]
    assert sum(key.is_new_line for key in keys) > 2
    assert sum(key.is_bracket for key in keys) > 2


def test_a_file_that_is_too_short_is_said() -> None:
    with pytest.raises(BadInput, match=r"b.py is too short to type 60 keys again"):
        choose_places([Document("b.py", "x = 1\n")], 60)


def test_the_default_files_are_of_three_languages() -> None:
    found = {document.language for document in default_documents()}

    assert {"python", "sql"} <= found <= {"python", "cpp", "sql"}


def key(contender: str, answer: Answer, *, is_new_line: bool = False) -> Key:
    return Key(contender, "python", is_new_line, False, answer)


KEYS = [
    key("treefill", Answer("decoded", 90.0, 30.0, 2, 7, 90.0)),
    key("treefill", Answer("typed through", 3.0), is_new_line=True),
    key("treefill", Answer("decoded", 60.0, 25.0, 1, 3, 60.0)),
    key("peer", Answer("decoded", 900.0, 600.0, 500, 7, 880.0)),
    key("peer", Answer("decoded", 700.0, 500.0, 400, 6, None), is_new_line=True),
    key("peer", Answer("decoded", 800.0, 550.0, 450, 2, None)),
]


def test_keys_are_summed_up_in_milliseconds_and_in_our_own_steps() -> None:
    ours = summarise(KEYS, step_ms=30.0)[0]

    assert (ours.contender, ours.language, ours.n_keys, ours.n_new_lines) == ("treefill", "all", 3, 1)
    assert ours.line_ms == Percentiles(3, 60.0, 90.0, 90.0)
    assert ours.line_steps == Percentiles(3, 2.0, 3.0, 3.0)
    assert ours.asked_line_ms == Percentiles(2, 60.0, 90.0, 90.0)
    assert ours.ttft_ms.p95 == 30.0
    assert ours.evaluated == Percentiles(3, 1, 2, 2)
    assert ours.sources == {"decoded": 2, "typed through": 1}


def test_equal_counts_of_tokens_are_compared_where_both_decoded_so_many() -> None:
    (found,) = same_tokens(KEYS)

    assert found.ours_ms == Percentiles(1, 90.0, 90.0, 90.0)
    assert found.peer_ms == Percentiles(1, 880.0, 880.0, 880.0)


def test_the_report_can_be_read_by_programs_and_people() -> None:
    report = keys_report(KEYS, 30.0, CONDITIONS)
    found = json.loads(json.dumps(keys_json(report)))
    text = keys_text(report)

    assert set(found) == {"bench", "conditions", "step_ms", "summaries", "same_tokens"}
    assert [(each["contender"], each["language"]) for each in found["summaries"]] == [
        ("treefill", "all"), ("treefill", "python"), ("peer", "all"), ("peer", "python"),
    ]  # fmt: skip
    assert "60.0 / 90.0 / 90.0 ms, or 2.0 / 3.0 / 3.0 of our steps" in text
    assert "the 1 keys for which ours and peer both decoded" in text


def test_no_keys_at_all_are_summed_up_as_nothing() -> None:
    assert summarise([], 30.0) == []
    assert Percentiles.of([]) == Percentiles(0, 0.0, 0.0, 0.0)


def test_our_server_explains_where_its_answer_came_from() -> None:
    told = {"n_decoded_tokens": 9, "n_new_tokens": 7, "n_evaluated": 2, "ttft_ms": 20.0, "total_ms": 80.0}

    assert answer_of({"reason": "", **told}, 100.0) == Answer("decoded", 100.0, 40.0, 2, 7, 100.0)
    assert answer_of({"source": "typed through"}, 3.0) == Answer("typed through", 3.0)
    assert answer_of({"reason": "no-point"}, 4.0) == Answer("no-point", 4.0)
