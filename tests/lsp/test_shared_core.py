"""Editor windows share a core process; a core that dies, hangs or can't be started costs a suggestion and no more."""

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lsp.editor import Editor, position_of

pytestmark = [pytest.mark.lsp, pytest.mark.timeout(300)]

URI = "file:///w/a.py"
LIMIT_S = 60.0
"""Nothing here takes so long, whatever else the machine does."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds every folder of this module, so that what is left of it can be found."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def folder(base: Path) -> Iterator[Path]:
    folder = base / str(len(list(base.iterdir())))
    folder.mkdir()
    yield folder
    until(lambda: not processes(folder))


def until(condition: Callable[[], Any], limit_s: float = LIMIT_S) -> None:
    """Wait for something that other processes bring about."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def processes(folder: Path) -> list[psutil.Process]:
    """Fronts and cores of a folder that are alive."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            record = process.environ().get("TREEFILL_TEST_RECORD", "")
            is_ours = process.pid != os.getpid() and Path(record).is_relative_to(folder)
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def cores(folder: Path) -> list[int]:
    """Pids of the cores of a folder."""
    pids = []
    for process in processes(folder):
        with contextlib.suppress(psutil.Error):
            if "core" in process.cmdline():
                pids.append(process.pid)
    return pids


def kill_core(editor: Editor) -> None:
    """Kill the core as the system does when memory is short."""
    (pid,) = cores(editor.folder)
    os.kill(pid, signal.SIGKILL)


def is_ready(editor: Editor) -> bool:
    """True where the last thing told is that the model is there."""
    return bool(editor.statuses) and editor.statuses[-1]["message"] == "ready"


@contextlib.contextmanager
def another_core(*editors: Editor) -> Iterator[None]:
    """While this lasts the core dies; afterwards each editor has the next one."""
    for editor in editors:
        while editor.take_message(0.01):
            pass
    n_told = [len(editor.statuses) for editor in editors]
    yield
    for editor, n_before in zip(editors, n_told, strict=True):
        editor.wait_until(lambda editor, n=n_before: has_found_another(editor.statuses[n:]), LIMIT_S)


def has_found_another(statuses: list[dict[str, Any]]) -> bool:
    """True where a core was lost and a model is there again."""
    lost = [number for number, status in enumerate(statuses) if status["kind"] == "Warning"]
    return bool(lost) and any(status["message"] == "ready" for status in statuses[lost[-1] :])


def reason(editor: Editor, uri: str = URI) -> str:
    told: str = editor.explain(uri)["reason"]
    return told


# Sharing.


def test_two_windows_share_one_core(folder: Path) -> None:
    with Editor(folder, {"texts": ["1 + 2"]}) as one, Editor(folder) as other:
        assert one.complete("x = ‸\n") == "x = 1 + 2\n"
        assert other.complete("y = ‸\n") == "y = 1 + 2\n"

        assert {call["pid"] for call in one.calls} == set(cores(folder))
        assert len(cores(folder)) == 1


def test_windows_that_open_at_the_same_instant_start_one_core(folder: Path) -> None:
    Editor(folder, {"texts": ["1 + 2"]}, is_initialized=False).__exit__()
    editors: list[Editor] = []
    with contextlib.ExitStack() as stack:
        threads = [threading.Thread(target=lambda: editors.append(Editor(folder))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for editor in editors:
            stack.enter_context(editor)

        assert [editor.complete("x = ‸\n") for editor in editors] == ["x = 1 + 2\n"] * 3
        assert len({call["pid"] for call in editors[0].calls}) == 1
        assert len(cores(folder)) == 1


def test_other_engine_settings_have_a_core_of_their_own(folder: Path) -> None:
    with (
        Editor(folder, {"texts": ["1 + 2"]}) as one,
        Editor(folder, options={"treefill": {"model": "another"}}) as other,
        Editor(folder, options={"treefill": {"max_lines": 3}}) as third,
    ):
        for editor in (one, other, third):
            assert editor.complete("x = ‸\n") == "x = 1 + 2\n"

        pids = [call["pid"] for call in one.calls]
        assert len(set(pids)) == len(cores(folder)) == 2
        assert pids[0] == pids[2], "what goes with each request needs no other core"


def test_a_window_that_closes_leaves_the_other_one_working(folder: Path) -> None:
    with Editor(folder, {"texts": ["1 + 2"]}) as one, Editor(folder) as other:
        assert one.complete("x = ‸\n")
        assert one.shut_down() == 0

        assert other.complete("y = ‸\n") == "y = 1 + 2\n"
        assert len({call["pid"] for call in other.calls}) == 1
        assert other.messages == []


def test_after_the_last_window_the_core_ends_and_nothing_is_left(folder: Path) -> None:
    with Editor(folder, {"texts": ["1 + 2"]}) as one, Editor(folder) as other:
        assert one.complete("x = ‸\n")
        assert other.complete("x = ‸\n")
        assert [path.suffix for path in sorted((folder / "run").iterdir())] == [".log", ".sock"]
        assert one.shut_down() == other.shut_down() == 0

    until(lambda: not processes(folder))
    assert list((folder / "run").iterdir()) == []


def test_after_an_editor_that_was_killed_nothing_is_left(folder: Path) -> None:
    with Editor(folder, {"texts": ["x" * 60], "ms_per_token": 20}) as editor:
        editor.wait_ready()
        editor.open(URI, "x = ‸\n")
        editor.begin_ask(URI, position_of(editor.texts[URI], 4))
        until(lambda: editor.calls)

    until(lambda: not processes(folder))
    assert list((folder / "run").iterdir()) == []


def test_a_window_that_reloads_finds_the_same_core(folder: Path) -> None:
    patient = {"TREEFILL_CORE_LINGER_S": "4"}
    with Editor(folder, {"texts": ["1 + 2"]}, environment=patient) as editor:
        assert editor.complete("x = ‸\n")
        assert editor.shut_down() == 0
    with Editor(folder, environment=patient) as editor:
        assert editor.complete("x = ‸\n") == "x = 1 + 2\n"

        assert len({call["pid"] for call in editor.calls}) == 1


# A core that dies.

SLOW_AND_FAST = {"by_end": {"slow = ": "x" * 60, "fast = ": "1 + 2"}, "ms_per_token": 30}


def test_a_core_killed_while_idle_is_replaced_and_told_of_once(folder: Path) -> None:
    with Editor(folder, SLOW_AND_FAST) as editor:
        assert editor.complete("fast = ‸\n")
        with another_core(editor):
            kill_core(editor)

        editor.replace(URI, 0, 0, "# again\n")
        assert editor.ask_at(URI, len("# again\nfast = "), kind=1)
        assert [message for message in editor.messages if "ended unexpectedly" in message] == editor.messages
        assert len(editor.messages) == 1


def test_a_core_killed_while_it_writes_answers_with_nothing_and_the_next_one_works(folder: Path) -> None:
    with Editor(folder, SLOW_AND_FAST) as editor:
        editor.wait_ready()
        editor.open(URI, "slow = \nfast = \n")
        asked = editor.begin_ask(URI, {"line": 0, "character": 7})
        until(lambda: editor.calls)
        with another_core(editor):
            kill_core(editor)
            assert editor.wait_for(asked)["result"] == {"items": []}
            assert reason(editor) == "core-lost"

        assert editor.ask(URI, {"line": 1, "character": 7})[0]["insertText"] == "1 + 2"
        assert len(editor.messages) == 1
        assert editor.n_answers[asked] == 1


def test_a_core_killed_while_it_loads_answers_with_nothing_and_the_next_one_works(folder: Path) -> None:
    with Editor(folder, {"texts": ["1 + 2"], "load_ms": 1500}) as editor:
        editor.wait_until(lambda editor: editor.statuses)
        assert editor.statuses[-1]["message"] == "loading the model"
        editor.open(URI, "x = ‸\n")
        asked = editor.begin_ask(URI, {"line": 0, "character": 4})
        time.sleep(0.2)
        with another_core(editor):
            kill_core(editor)
            assert editor.wait_for(asked)["result"] == {"items": []}
            assert editor.calls == []

        assert editor.ask(URI, {"line": 0, "character": 4})[0]["insertText"] == "1 + 2"
        assert len(editor.messages) == 1


def test_windows_that_shared_a_core_that_was_killed_share_the_next_one(folder: Path) -> None:
    with Editor(folder, SLOW_AND_FAST) as one, Editor(folder) as other:
        for editor in (one, other):
            assert editor.complete("fast = ‸\n")
        with another_core(one, other):
            kill_core(one)
        for editor in (one, other):
            assert editor.ask_at(URI, len("fast = "), kind=1)
            assert len(editor.messages) == 1

        assert len(cores(folder)) == 1


def test_a_core_killed_thirty_times_while_somebody_types_loses_no_key_and_no_answer(folder: Path) -> None:
    chance = random.Random(7)
    with Editor(
        folder,
        {"texts": ["1 + 2", "f(x)"], "ms_per_token": 3},
        environment={"TREEFILL_TEST_BACK_OFF_S": "0.02"},
    ) as editor:
        editor.wait_ready()
        editor.open(URI, "x = \n")
        asked: list[int] = []

        def type_one() -> None:
            text = editor.texts[URI]
            place = chance.randint(0, len(text))
            if chance.random() < 0.2 and place < len(text):
                editor.replace(URI, place, place + 1, "")
            else:
                editor.replace(URI, place, place, chance.choice(["y", " ", "\n", "🙂", "(", ")", "é"]))

        def ask() -> int:
            text = editor.texts[URI]
            place = chance.randint(0, len(text))
            asked.append(editor.begin_ask(URI, position_of(text, place), kind=chance.choice([1, 2])))
            return asked[-1]

        for number in range(30):
            for _ in range(chance.randint(1, 6)):
                type_one()
                ask()
            time.sleep(chance.random() * 0.05)
            for pid in cores(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            type_one()
            editor.wait_for(ask())
            if number % 3 == 0:  # the others die young
                assert_suggests_again(editor, number)

        assert_suggests_again(editor, 30)
        for request_id in asked:
            editor.wait_for(request_id)
        assert {editor.n_answers[request_id] for request_id in asked} == {1}
        assert [editor.answers[number] for number in asked if "error" in editor.answers[number]] == []
        assert editor.mirror(URI) == editor.texts[URI]
        assert len(editor.messages) == len(set(editor.messages)), "nothing is told twice"
        assert len({call["pid"] for call in editor.calls}) > 5, "cores did die between answers"


def assert_suggests_again(editor: Editor, number: int) -> None:
    """At a new line's end something is suggested as soon as there is a core."""
    end = len(editor.texts[URI])
    editor.replace(URI, end, end, f"\nz{number} = ")
    deadline = time.monotonic() + LIMIT_S
    while not editor.ask_at(URI, len(editor.texts[URI]), kind=1):
        assert time.monotonic() < deadline, editor.explain(URI)
        time.sleep(0.05)


def test_a_document_that_kills_the_core_twice_is_left_alone_and_others_work(folder: Path) -> None:
    with Editor(folder, {"texts": ["1 + 2"], "dies_on": "BOOM"}) as editor:
        assert editor.complete("y = ‸\n", uri="file:///w/b.py")
        editor.open(URI, "BOOM = 1\nx = \n")
        for _ in range(2):
            with another_core(editor):
                assert editor.ask(URI, {"line": 1, "character": 4}) == []
                assert reason(editor) == "core-lost"

        (pid,) = cores(folder)
        assert editor.ask(URI, {"line": 1, "character": 4}) == []
        assert editor.explain(URI)["sentence"] == (
            "The core has died twice over this document: it is left alone until it is edited."
        )
        editor.replace("file:///w/b.py", 0, 0, "other = 1\n")
        assert editor.ask("file:///w/b.py", {"line": 1, "character": 4}, kind=1)

        editor.replace(URI, 0, 4, "calm")
        assert editor.ask(URI, {"line": 1, "character": 4})[0]["insertText"] == "1 + 2"
        assert cores(folder) == [pid]
        assert len(editor.messages) == 1


# What it costs.


def test_five_hundred_documents_later_neither_process_has_grown(folder: Path) -> None:
    with Editor(folder, {"texts": ["1 + 2", "f(x)", "y"]}) as editor:
        editor.wait_ready()

        def rounds(first: int, last: int) -> tuple[dict[str, int], dict[str, int]]:
            for number in range(first, last):
                uri = f"file:///w/{number}.py"
                editor.open(uri, f"# document {number}\n" * 20 + "x = \n")
                end = len(editor.texts[uri]) - 1
                editor.replace(uri, 0, 0, "# edited\n")
                assert editor.ask_at(uri, end + len("# edited\n"))
                editor.close_document(uri)
            (core,) = cores(folder)
            pids = {"front": editor.process.pid, "core": core}
            memory = {name: psutil.Process(pid).memory_info().rss for name, pid in pids.items()}
            return memory, {name: psutil.Process(pid).num_fds() for name, pid in pids.items()}

        memory, descriptors = rounds(0, 100)
        memory_later, descriptors_later = rounds(100, 500)

        for name, n_bytes in memory.items():
            assert memory_later[name] <= 1.1 * n_bytes, name
        assert descriptors_later == descriptors


# What can't be.


def test_a_runtime_folder_that_cannot_be_written_is_told_once_and_found_later(folder: Path) -> None:
    (folder / "run").write_text("a file in the way")
    with Editor(folder, {"texts": ["1 + 2"]}) as editor:
        editor.open(URI, "x = \n")
        editor.wait_until(lambda editor: editor.messages)
        for _ in range(3):
            assert editor.ask(URI, {"line": 0, "character": 4}) == []
        sentence = f"The folder {folder / 'run'} cannot be made (File exists): set runtime_dir to another."
        assert editor.explain(URI)["sentence"] == sentence
        status = editor.statuses[-1]
        assert (status["busy"], status["message"], status["kind"]) == (False, sentence, "Warning")

        (folder / "run").unlink()
        editor.wait_until(is_ready)
        assert editor.ask(URI, {"line": 0, "character": 4})[0]["insertText"] == "1 + 2"
        assert editor.messages == [f"treefill: {sentence}"]


def test_a_log_that_cannot_be_written_is_told_once_and_the_server_lives(folder: Path) -> None:
    with Editor(folder, {"texts": ["1 + 2"]}) as editor:
        assert editor.complete("x = ‸\n")
        assert editor.shut_down() == 0
        (log,) = (folder / "run").glob("*.log")
    until(lambda: not processes(folder))
    log.mkdir()
    with Editor(folder) as editor:
        editor.open(URI, "x = \n")
        editor.wait_until(lambda editor: editor.messages)
        assert editor.ask(URI, {"line": 0, "character": 4}) == []
        assert "Is a directory" in editor.explain(URI)["sentence"]

        log.rmdir()
        editor.wait_until(is_ready)
        assert editor.ask(URI, {"line": 0, "character": 4})[0]["insertText"] == "1 + 2"
        assert len(editor.messages) == 1


def test_a_model_that_disappears_declines_with_its_sentence_and_works_once_it_is_back(folder: Path) -> None:
    script: dict[str, Any] = {"texts": ["1 + 2"]}
    with Editor(folder, script, environment={"TREEFILL_UNLOAD_AFTER_MINUTES": "0.002"}) as editor:
        assert editor.complete("x = ‸\n")
        until(lambda: "closed" in editor.notes[-1])
        gone = {**script, "fails_to_load": "The model is gone: pull it again."}
        (folder / "script.json").write_text(json.dumps(gone), encoding="utf-8")
        assert editor.ask(URI, {"line": 0, "character": 4}, kind=1) == []
        told = editor.explain(URI)
        assert (told["reason"], told["sentence"]) == ("no-model", "The model is gone: pull it again.")
        assert editor.statuses[-1]["kind"] == "Error"
        assert editor.messages == ["treefill: The model is gone: pull it again."]

        (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
        deadline = time.monotonic() + LIMIT_S
        while not (items := editor.ask(URI, {"line": 0, "character": 4}, kind=1)):
            assert time.monotonic() < deadline, editor.explain(URI)
            time.sleep(0.2)
        assert items[0]["insertText"] == "1 + 2"
        assert editor.statuses[-1]["kind"] == "Normal"
        assert len(editor.messages) == 1


def test_at_the_end_no_process_of_ours_is_left(base: Path) -> None:
    until(lambda: not processes(base))

    assert list(base.glob("*/run/*")) == []
