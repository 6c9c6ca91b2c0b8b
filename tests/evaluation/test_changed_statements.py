"""Both verdicts on a changed statement: of who has read the whole file, and of who begins at a place in it."""

import json
from random import Random

from treefill.evaluation.built_in import BuiltIn
from treefill.evaluation.changed_statements import ChangedStatements, examine_changed_statements
from treefill.evaluation.faults import count_faults
from treefill.evaluation.grammar_exam import GrammarMarks
from treefill.evaluation.report import grammar_json, grammar_markdown
from treefill.text import Document

from tests.helpers.scripted_engine import ByteVocabulary

FILES = [
    Document("a.json", '{"name": "value",\n "list": [1, 2, 3]}\n', "json"),
    Document("b.json", '[true, null,\n {"é": 1}]\n', "json"),
]
N = 400


class Reader:
    """The acceptor and the matcher in one: refuses what holds `refused`, and asks tree-sitter for the end."""

    def __init__(self, before: bytes, after: bytes, language: str, refused: bytes, gave_up: str = "") -> None:
        self._pieces = [before]
        self._n_before = 1
        self._after = after
        self._language = language
        self._refused = refused
        self.gave_up = gave_up

    def allows(self, data: bytes) -> bool:
        return self._refused not in data

    def accept(self, data: bytes) -> bool:
        if self.allows(data):
            self._pieces.append(data)
        return self.allows(data)

    def rollback(self, n: int) -> None:
        assert n == len(self._pieces) - self._n_before

    def accepts_whole(self, rest: bytes) -> bool:
        return count_faults(b"".join(self._pieces) + rest, self._language) == 0

    def can_stop(self) -> bool:
        return self.accepts_whole(self._after)


class Scripted:
    """`of_file` is what the acceptor refuses, `of_place` what the matcher does."""

    def __init__(
        self, of_file: bytes = b"\0", of_place: bytes = b"\0", works: bool = True, gave_up: str = ""
    ) -> None:
        self._of_file = of_file
        self._of_place = of_place
        self._works = works
        self._gave_up = gave_up

    def acceptor(self, language: str, with_policies: bool = False) -> Reader:
        assert with_policies
        return Reader(b"", b"", language, self._of_file, self._gave_up)

    def matcher(self, text: str, byte_offset: int, language: str) -> Reader | None:
        data = text.encode()
        before, after = data[:byte_offset], data[byte_offset:]
        return Reader(before, after, language, self._of_place) if self._works else None


def exam(examinee: Scripted) -> tuple[ChangedStatements, GrammarMarks]:
    marks = GrammarMarks("json")
    marks.changed = examine_changed_statements(FILES, N, examinee, ByteVocabulary(), Random(0), marks)
    return marks.changed, marks


def test_two_that_know_the_same_differ_nowhere() -> None:
    changed, marks = exam(Scripted())

    assert (changed.n, changed.n_at_work, changed.n_file_refuses, changed.n_skeleton_refuses) == (N, N, 0, 0)
    assert 0 < changed.n_file_whole == changed.n_may_stop < N
    assert marks.mistakes == []


def test_what_one_of_the_two_refuses_is_told_with_the_shortest_text_that_shows_it() -> None:
    alone, marks = exam(Scripted(of_place=b"0"))

    assert alone.n_skeleton_refuses == alone.n_skeleton_alone_refuses > 0
    assert (alone.n_file_refuses, alone.n_file_alone_refuses) == (0, 0)
    assert {(each.part, each.text) for each in marks.mistakes} == {("refused from the skeleton alone", "0")}

    # What is refused of the file stands in the change: the files themselves have no such character.
    alone, marks = exam(Scripted(of_file=b"0"))

    assert alone.n_file_refuses == alone.n_file_alone_refuses > 0
    assert (alone.n_skeleton_refuses, alone.n_skeleton_alone_refuses) == (0, 0)
    assert {(each.part, each.text) for each in marks.mistakes} == {("refused by the file alone", "0")}


def test_where_one_of_the_two_says_nothing_they_do_not_differ() -> None:
    away, _ = exam(Scripted(works=False))
    tired, _ = exam(Scripted(of_place=b"0", gave_up="It takes too long."))

    assert (away.n, away.n_at_work) == (N, 0)
    assert (tired.n, tired.n_at_work, tired.n_skeleton_alone_refuses) == (N, 0, 0)


class Hopeful(Scripted):
    """Its matcher may stop anywhere, or nowhere."""

    def __init__(self, may_stop: bool) -> None:
        super().__init__()
        self._may_stop = may_stop

    def matcher(self, text: str, byte_offset: int, language: str) -> Reader | None:
        reader = super().matcher(text, byte_offset, language)
        assert reader is not None
        reader.can_stop = lambda: self._may_stop  # type: ignore[method-assign]
        return reader


def test_an_end_that_one_of_the_two_sees_is_told() -> None:
    anywhere, _ = exam(Hopeful(True))
    nowhere, _ = exam(Hopeful(False))

    assert anywhere.n_may_stop == N
    assert anywhere.n_may_stop_alone == N - anywhere.n_file_whole > 0
    assert (nowhere.n_may_stop, nowhere.n_file_alone_whole) == (0, nowhere.n_file_whole)


def test_the_tables_and_the_numbers_for_programs() -> None:
    _, marks = exam(Scripted(of_place=b"0"))
    (found,) = json.loads(json.dumps(grammar_json([marks])))

    assert found["changed"]["n_skeleton_alone_refuses"] > 0
    assert "| json     |                400 |     400 |" in grammar_markdown([marks])


def test_this_versions_matcher_judges_a_statement_of_a_small_file_as_who_has_read_it() -> None:
    marks = GrammarMarks("json")
    changed = examine_changed_statements(FILES, N, BuiltIn(), ByteVocabulary(), Random(1), marks)

    assert 0 < changed.n_file_refuses == changed.n_skeleton_refuses < N
    assert (changed.n_file_alone_refuses, changed.n_skeleton_alone_refuses) == (0, 0)
