"""Source text cut into windows, languages in turn."""

from pathlib import Path

import pytest
from treefill.errors import BadInput
from treefill.evaluation.texts import MIN_WINDOW, WINDOW, choose_windows, installed_documents, windows_of
from treefill.text import Document

from tests.helpers.scripted_engine import ByteVocabulary


def a_file(folder: Path, name: str, n_tokens: int) -> Path:
    path = folder / name
    path.write_text("x" * n_tokens)
    return path


def test_a_file_is_cut_into_windows_and_a_short_rest_left_out() -> None:
    document = Document("a.py", "x" * (2 * WINDOW + MIN_WINDOW - 1), "python")
    longer = Document("a.py", "x" * (2 * WINDOW + MIN_WINDOW), "python")

    assert [len(w.ids) for w in windows_of(document, ByteVocabulary(), 0.0)] == [WINDOW, WINDOW]
    assert [len(w.ids) for w in windows_of(longer, ByteVocabulary(), 0.0)] == [WINDOW, WINDOW, MIN_WINDOW]


def test_the_beginning_can_be_skipped() -> None:
    document = Document("a.py", "l" * WINDOW + "x" * 3 * WINDOW, "python")
    windows = list(windows_of(document, ByteVocabulary(), 0.25))

    assert len(windows) == 3
    assert all(set(window.ids) == {ord("x")} for window in windows)


def test_languages_take_turns_until_there_are_enough_tokens(tmp_path: Path) -> None:
    files = [a_file(tmp_path, "a.py", 4 * WINDOW), a_file(tmp_path, "b.cpp", 4 * WINDOW)]
    windows = choose_windows(ByteVocabulary(), files, 3 * (WINDOW - 1))

    assert [window.language for window in windows] == ["python", "python", "cpp"]


def test_where_there_is_less_text_all_of_it_is_taken(tmp_path: Path) -> None:
    windows = choose_windows(ByteVocabulary(), [a_file(tmp_path, "a.py", WINDOW + 100)], 5_000)

    assert sum(window.n_predicted for window in windows) == WINDOW - 1 + 99


def test_files_without_enough_text_are_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="name longer ones"):
        choose_windows(ByteVocabulary(), [a_file(tmp_path, "a.py", 10)], 5_000)


def test_every_installation_has_enough_text_in_several_languages() -> None:
    documents = list(installed_documents())

    assert len({document.language for document in documents}) >= 3
    assert sum(len(document.text) for document in documents) > 60_000
