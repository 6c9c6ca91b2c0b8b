"""The exam of masks, taken by one that knows everything and by some that do not."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from treefill import _kernels
from treefill.evaluation.continuations import closers, snippets
from treefill.evaluation.mask_exam import MaskAcceptor, MaskMarks, MaskSizes, examine_masks
from treefill.evaluation.report import masks_json, masks_markdown
from treefill.syntax.check import grammar_alone
from treefill.syntax.grammars import load
from treefill.syntax.languages import language_by_id, languages
from treefill.text import Document

from tests.helpers.scripted_engine import ByteVocabulary

FILES = [
    Document("a.json", '{"name": "value",\n "list": [1, 2, 3]}\n', "json"),
    Document("b.json", '[true, null,\n {"é": 1}]\n', "json"),
    Document("broken.json", '{"name": \n', "json"),
]
VOCABULARY = ByteVocabulary()
SIZES = MaskSizes(n_positions=12, n_judged=60)
QUOTE = ord('"')


class Asking:
    """Makes its mask of the answers for each token alone, so that it never differs, but for these."""

    def __init__(
        self, allowed: tuple[int, ...] = (), refused: tuple[int, ...] = (), warm: tuple[int, ...] = ()
    ) -> None:
        self._allowed, self._refused, self._warm = list(allowed), list(refused), list(warm)

    def acceptor(self, language: str) -> MaskAcceptor:
        return AskingAcceptor(self._allowed, self._refused, self._warm)


class AskingAcceptor:
    def __init__(self, allowed: list[int], refused: list[int], warm: list[int]) -> None:
        acceptor = _kernels.Acceptor(grammar_alone(load(language_by_id("json").grammars[0])))
        self.allows = acceptor.allows
        self.accepts_whole = acceptor.accepts_whole
        self._acceptor = acceptor
        self._always, self._never, self._warm = allowed, refused, warm
        self._n_masks = 0

    @property
    def gave_up(self) -> str:
        return str(self._acceptor.gave_up)

    def accept(self, more: bytes) -> bool:
        return bool(self._acceptor.accept(more))

    def fill_mask(self) -> NDArray[np.bool_]:
        mask = np.array([bool(token) and self.allows(token) for token in _tokens()])
        mask[self._always] = True
        mask[self._never] = False
        if self._n_masks:
            mask[self._warm] ^= True
        self._n_masks += 1
        return mask


def _tokens() -> list[bytes]:
    return [VOCABULARY.token_bytes(number) for number in range(VOCABULARY.n_tokens)]


def exam(examinee: Asking, sizes: MaskSizes = SIZES) -> MaskMarks:
    return examine_masks("json", FILES, examinee, VOCABULARY, sizes)


def test_who_knows_everything_makes_no_mistake() -> None:
    marks = exam(Asking())

    assert (marks.n_looked_at, marks.n_files, marks.n_positions, marks.n_out_of_reach) == (3, 2, 12, 0)
    assert (marks.n_tokens, marks.n_compared) == (256, 12 * 256)
    assert 0 < marks.n_allowed < marks.n_compared
    assert (marks.n_over, marks.n_under, marks.n_own_refused, marks.n_warm_different) == (0, 0, 0, 0)
    assert marks.n_walked == len(marks.warm_ms) > 0
    assert len(marks.cold_ms) == 12


def test_tree_sitter_agrees_with_who_knows_everything() -> None:
    marks = exam(Asking())

    assert marks.n_judged_allowed == marks.n_completed == 60
    assert 30 < marks.n_judged_refused <= 60
    assert marks.n_tried > marks.n_judged_refused
    assert (marks.n_wrong_wholes, marks.n_wrongly_refused) == (0, 0)
    assert marks.mistakes == []


def test_a_token_too_many_is_over() -> None:
    marks = exam(Asking(allowed=(ord("}"),)))

    assert 0 < marks.n_over <= 12
    assert marks.n_under == 0
    assert {each.token for each in marks.mistakes if each.part == "over"} == {b"}"}


def test_a_token_too_few_is_under_and_missed_by_the_file_and_by_tree_sitter() -> None:
    marks = exam(Asking(refused=tuple(range(256))), replace(SIZES, n_judged=600))

    assert marks.n_under > 0
    assert marks.n_over == marks.n_judged_allowed == 0
    assert marks.n_wrongly_refused > 0
    wrong = next(each for each in marks.mistakes if each.part == "wrongly refused")
    assert wrong.path.endswith(".json")


def test_the_files_own_token_must_be_in_the_mask_before_it() -> None:
    marks = exam(Asking(refused=(QUOTE,)))

    assert marks.n_own_refused > 0
    assert {each.token for each in marks.mistakes if each.part == "own"} == {b'"'}


def test_a_mask_after_a_walk_that_is_another_than_a_fresh_one_is_caught() -> None:
    marks = exam(Asking(warm=(0,)))

    assert (marks.n_over, marks.n_under) == (0, 0)
    assert 0 < marks.n_warm_different <= 12


def test_nothing_is_judged_of_refused_tokens_where_the_language_refuses_more_than_tree_sitter() -> None:
    marks = exam(Asking(refused=tuple(range(200))), replace(SIZES, are_refused_judged=False))

    assert (marks.n_judged_refused, marks.n_wrongly_refused) == (0, 0)


def test_a_language_is_left_when_its_time_is_over() -> None:
    assert exam(Asking(), replace(SIZES, seconds=0.0)).n_positions == 0


def test_the_numbers_as_tables_and_for_programs() -> None:
    marks = exam(Asking(allowed=(ord("}"),)))
    text = masks_markdown([marks, MaskMarks("sql")])
    rows = json.loads(json.dumps(masks_json([marks, MaskMarks("sql")])))

    assert "| json " in text
    assert "| sql " in text
    assert "json, over: " in text
    assert rows[0]["n_over"] == marks.n_over
    assert rows[0]["cold_ms_p90"] >= rows[0]["cold_ms_p50"] > 0
    assert "cold_ms" not in rows[0]
    assert rows[0]["mistakes"][0]["token"]
    assert rows[1]["warm_ms_p99"] is None


@pytest.mark.parametrize("language", sorted(languages()))
def test_there_are_some_fifty_pieces_for_every_language_the_empty_one_first(language: str) -> None:
    pieces = snippets(language)

    assert pieces[0] == b""
    assert len(pieces) == len(set(pieces)) > 45


def test_what_is_open_is_closed_from_the_innermost_on() -> None:
    assert closers(b"int f() { g(a[") == (b"", b"])};", b"]);};", b"])}")
    assert closers(b"x = 1") == (b"", b";")
