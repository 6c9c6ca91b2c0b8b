"""Files gathered from places: each once, in an order that a seed decides, without what nobody wrote."""

from pathlib import Path

import pytest
from treefill.errors import BadInput
from treefill.evaluation import real_files
from treefill.evaluation.real_files import MAX_BYTES, Gathering, Place, anywhere, gather, names_of, places
from treefill.syntax.languages import language_by_id

CODE = "".join(f"value_{number} = {number}\n" for number in range(20))


def write(folder: Path, name: str, text: str = "") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or f"# {name}\n{CODE}")


def names(gathering: Gathering, folder: Path) -> list[str]:
    return [Path(document.path).relative_to(folder).as_posix() for document in gathering.documents()]


def python(folder: Path, seed: int = 0) -> Gathering:
    return Gathering("python", [Place(folder, ("*.py",), ("skipped",))], seed)


def test_files_of_the_right_name_are_found_at_any_depth(tmp_path: Path) -> None:
    for name in ("a.py", "b/c/d.py", "e.txt", "skipped/f.py"):
        write(tmp_path, name)
    gathering = python(tmp_path)

    assert sorted(names(gathering, tmp_path)) == ["a.py", "b/c/d.py"]
    assert gathering.n_found == 2
    assert {document.language for document in gathering.documents()} == {"python"}


def test_the_order_comes_from_the_seed_and_one_file_more_leaves_the_others_where_they_were(
    tmp_path: Path,
) -> None:
    for number in range(20):
        write(tmp_path, f"{number}.py")
    first = names(python(tmp_path, seed=1), tmp_path)
    other = names(python(tmp_path, seed=2), tmp_path)
    write(tmp_path, "new.py")
    longer = names(python(tmp_path, seed=1), tmp_path)

    assert first != sorted(first)
    assert first != other
    assert sorted(first) == sorted(other)
    assert [name for name in longer if name != "new.py"] == first


def test_a_large_place_does_not_crowd_the_others_out(tmp_path: Path) -> None:
    for number in range(20):
        write(tmp_path, f"large/{number}.py")
    write(tmp_path, "small/a.py")
    write(tmp_path, "small/b.py")
    gathering = Gathering("python", [Place(tmp_path / name, ("*.py",)) for name in ("large", "small")])

    assert sum(name.startswith("small/") for name in names(gathering, tmp_path)[:4]) == 2


def test_a_file_that_cannot_be_used_is_counted_and_never_stops_the_others(tmp_path: Path) -> None:
    write(tmp_path, "good.py")
    write(tmp_path, "short.py", "x = 1\n")
    write(tmp_path, "long.py", "x = 1\n" * MAX_BYTES)
    write(tmp_path, "data.py", f"x = {list(range(1000))}\n")
    (tmp_path / "latin.py").write_bytes(b"# caf\xe9\n" + CODE.encode())
    (tmp_path / "binary.py").write_bytes(b"\0" * 500)
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "folder.py").mkdir()
    gathering = python(tmp_path)

    assert names(gathering, tmp_path) == ["good.py"]
    assert gathering.left_out == {
        "too short": 1,
        "too long": 1,
        "data or minified": 1,
        "not readable as text": 3,
    }


def test_the_same_text_is_given_once(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "c.py"):
        write(tmp_path, name, CODE)
    gathering = python(tmp_path)

    assert len(names(gathering, tmp_path)) == 1
    assert gathering.left_out == {"twice": 2}


def test_a_header_that_is_cpp_is_no_c(tmp_path: Path) -> None:
    write(tmp_path, "plain.h", "int add(int a, int b);\n" * 20)
    write(tmp_path, "class.h", "class Adder { int a; };\n" * 20)
    gathering = Gathering("c", [Place(tmp_path, ("*.h",))])

    assert names(gathering, tmp_path) == ["plain.h"]


def test_a_file_that_a_scanner_would_not_survive_is_left_out(tmp_path: Path) -> None:
    deep = "".join(f"{' ' * depth}if x:\n" for depth in range(400))
    write(tmp_path, "deep.py", deep + "x = 1\n" * 1_000)
    gathering = python(tmp_path)

    assert names(gathering, tmp_path) == []
    assert gathering.left_out == {"not to be parsed": 1}


def test_a_place_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    assert list(python(tmp_path / "missing").documents()) == []


def test_a_named_folder_is_looked_through_for_the_names_that_the_language_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_files, "anywhere", lambda names: ())
    write(tmp_path, "a.toml")
    write(tmp_path, "b.py")
    gathering = gather("toml", [tmp_path])

    assert names(gathering, tmp_path) == ["a.toml"]


def test_a_language_without_places_of_its_own_is_looked_for_anywhere() -> None:
    patterns = names_of(language_by_id("makefile"))

    assert {"*.mk", "*.MK", "makefile", "Makefile"} <= set(patterns)
    assert all(place.names == patterns for place in anywhere(patterns))
    assert gather("makefile").places == anywhere(patterns)


def test_a_folder_that_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a folder"):
        gather("python", [tmp_path / "missing"])


def test_every_machine_has_python_that_nobody_here_wrote() -> None:
    document = next(gather("python").documents())

    assert document.text
    assert {"python", "cpp", "c", "json", "javascript", "typescript", "typescriptreact", "sql"} == set(
        places()
    )
