from pathlib import Path

import pytest
from treefill.errors import BadInput
from treefill.text import MAX_FILE_BYTES, read_document


def test_a_file_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes("\ufeffa = 1\r\nb = '🙂'\n".encode())

    document = read_document(path, "python")

    assert document.text == "\ufeffa = 1\r\nb = '🙂'\n"
    assert document.language == "python"
    assert document.path == str(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\0b", "binary"),
        (b"\x7fELF\0\0", "binary"),
        (b"caf\xe9", "not UTF-8"),
        (b"\xed\xa0\xbd", "not UTF-8"),
    ],
)
def test_what_is_no_text_is_refused_in_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(content)

    with pytest.raises(BadInput, match=words) as error:
        read_document(path)

    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        read_document(tmp_path / "none.py")
    with pytest.raises(BadInput, match="is a directory"):
        read_document(tmp_path)
    with pytest.raises(BadInput, match="not a path"):
        read_document("a\0b")
    with pytest.raises(BadInput, match="cannot be read"):
        read_document("a" * 5000)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(BadInput, match="not a regular file"):
        read_document(tmp_path / "pipe")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "big.sql"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)

    with pytest.raises(BadInput, match="too large"):
        read_document(path)
