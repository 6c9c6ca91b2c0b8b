"""The exam, taken by an acceptor that knows everything and by some that do not."""

import json
from dataclasses import replace
from random import Random

from treefill.evaluation.built_in import BuiltIn
from treefill.evaluation.examinee import Matcher
from treefill.evaluation.faults import count_faults
from treefill.evaluation.grammar_exam import GrammarMarks, Sizes, examine
from treefill.evaluation.mutants import mutate
from treefill.evaluation.report import grammar_json, grammar_markdown
from treefill.text import Document

from tests.helpers.scripted_engine import ByteVocabulary

FILES = [
    Document("a.json", '{"name": "value",\n "list": [1, 2, 3]}\n', "json"),
    Document("b.json", '[true, null,\n {"é": 1}]\n', "json"),
    Document("broken.json", '{"name": \n', "json"),
]
SIZES = Sizes(n_files=5, n_positions=12, n_mutants=40, n_statements=0)


class Knowing:
    """Asks tree-sitter, so that it never differs; text that holds `refused` is refused."""

    def __init__(self, refused: bytes = b"\0", works: bool = True) -> None:
        self._refused = refused
        self._works = works

    def acceptor(self, language: str, with_policies: bool = False) -> "KnowingAcceptor":
        return KnowingAcceptor(language, self._refused)

    def matcher(self, text: str, byte_offset: int, language: str) -> Matcher | None:
        return KnowingMatcher(self._refused) if self._works else None


class KnowingAcceptor:
    gave_up = ""

    def __init__(self, language: str, refused: bytes) -> None:
        self._language = language
        self._refused = refused
        self._data = b""

    def accept(self, more: bytes) -> bool:
        self._data += more
        return self._refused not in more

    def accepts_whole(self, rest: bytes) -> bool:
        return self._refused not in rest and count_faults(self._data + rest, self._language) == 0


class KnowingMatcher:
    gave_up = ""

    def __init__(self, refused: bytes) -> None:
        self._refused = refused
        self._accepted: list[bytes] = []

    def allows(self, data: bytes) -> bool:
        return self._refused not in data

    def accept(self, data: bytes) -> bool:
        if self.allows(data):
            self._accepted.append(data)
        return self.allows(data)

    def rollback(self, n: int) -> None:
        assert n == len(self._accepted)

    def can_stop(self) -> bool:
        return True


def exam(examinee: Knowing, files: list[Document] = FILES) -> GrammarMarks:
    return examine("json", files, examinee, ByteVocabulary(), SIZES)


def test_who_knows_everything_makes_no_mistake() -> None:
    marks = exam(Knowing())

    assert (marks.n_looked_at, marks.n_files) == (3, 2)
    assert marks.n_boundaries == sum(len(document.text.encode()) for document in FILES[:2])
    assert (marks.n_boundaries_refused, marks.n_skeletons_refused, marks.n_statements_refused) == (0, 0, 0)
    assert (marks.n_mutants, marks.n_wrongly_accepted, marks.n_wrongly_refused) == (40, 0, 0)
    assert 0 < marks.n_mutants_clean < 40
    assert (marks.reach, marks.own_refused, marks.mistakes) == (1.0, 0.0, [])


def test_who_refuses_what_real_files_have_is_caught_in_every_part() -> None:
    marks = exam(Knowing(refused=b'"'))

    assert marks.n_boundaries_refused == 2
    assert marks.n_skeletons_refused > 0
    assert marks.n_statements_refused > 0
    assert marks.n_wrongly_refused > 0
    assert marks.n_wrongly_accepted == 0
    assert ("boundaries", "a.json", 1, '"') in {
        (each.part, each.path, each.byte_offset, each.text) for each in marks.mistakes
    }


class Lenient(Knowing):
    """Accepts whatever comes."""

    def acceptor(self, language: str, with_policies: bool = False) -> KnowingAcceptor:
        acceptor = KnowingAcceptor(language, b"\0")
        acceptor.accepts_whole = lambda rest: True  # type: ignore[method-assign]
        return acceptor


def test_who_accepts_everything_is_caught_by_the_changed_files() -> None:
    marks = exam(Lenient())

    assert (marks.n_boundaries_refused, marks.n_wrongly_refused) == (0, 0)
    assert marks.n_wrongly_accepted == marks.n_mutants - marks.n_mutants_clean > 0


def test_who_is_not_at_work_reaches_nothing_and_refuses_nothing() -> None:
    marks = exam(Knowing(works=False))

    assert (marks.n_positions, marks.reach, marks.own_refused) == (12, 0.0, None)
    assert (marks.n_skeletons, marks.n_skeletons_at_work) == (12, 0)


def test_a_file_that_the_vocabulary_spells_otherwise_is_left_out() -> None:
    class Composing(ByteVocabulary):
        def encode(self, text: str) -> list[int]:
            return super().encode(text.replace("é", "e"))

    marks = examine("json", FILES, Knowing(), Composing(), SIZES)

    assert (marks.n_files, marks.n_respelt) == (1, 1)


def test_without_a_clean_file_there_are_no_marks_but_for_reach() -> None:
    marks = exam(Knowing(), files=[FILES[2]])

    assert (marks.n_files, marks.n_boundaries, marks.n_skeletons, marks.n_mutants) == (0, 0, 0, 0)
    assert marks.n_positions > 0


def test_the_tables_and_the_numbers_for_programs() -> None:
    marks = exam(Knowing(refused=b'"'))
    text = grammar_markdown([marks])
    (found,) = json.loads(json.dumps(grammar_json([marks])))

    assert "| json     |           2 |" in text
    assert "- json, boundaries: a.json, byte 1: `'\"'`" in text
    assert (found["reach"], found["n_files"], len(found["mistakes"]) > 0) == (1.0, 2, True)
    assert found["setup_ms_p99"] >= found["setup_ms_p50"] >= 0
    assert grammar_markdown([GrammarMarks("sql")]).count("–") >= 6


def test_a_mutant_is_another_text_and_the_same_one_every_time() -> None:
    text = FILES[0].text
    mutants = [mutate(text, Random(seed)) for seed in range(200)]

    assert text not in mutants
    assert mutants == [mutate(text, Random(seed)) for seed in range(200)]
    assert len(set(mutants)) > 150
    assert all(abs(len(mutant) - len(text)) < 40 for mutant in mutants)
    assert mutate("", Random(0)) != ""


def test_the_acceptor_of_this_version_passes() -> None:
    marks = examine("json", FILES, BuiltIn(), ByteVocabulary(), replace(SIZES, n_statements=60))

    assert (marks.n_boundaries_refused, marks.n_wrongly_accepted, marks.n_wrongly_refused) == (0, 0, 0)
    assert marks.n_at_work > 0
    assert (marks.changed.n, marks.changed.n_file_alone_refuses) == (60, 0)
