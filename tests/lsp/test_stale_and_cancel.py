"""Typing goes on while the model writes: what nobody waits for any more is dropped, and nothing comes twice."""

import time

import psutil
import pytest

from tests.lsp.conftest import SLOW, StartServer
from tests.lsp.editor import Editor, applied, framed, position_of

pytestmark = pytest.mark.lsp

FILE = "file:///w/x.py"
CANCELLED = -32800
STUB_S = 2.0
SUM = "alpha + beta + gamma + delta + epsilon + zeta + eta + theta"


def slow_script() -> dict[str, object]:
    """One answer takes two seconds."""
    return {"texts": [SUM], "ms_per_token": 1000 * STUB_S / len(SUM)}


def storm(editor: Editor, n_requests: int) -> list[int]:
    """Write that many requests, each cancelled at once, without waiting for anything."""
    params = {
        "textDocument": {"uri": FILE},
        "position": position_of(editor.texts[FILE], 4),
        "context": {"triggerKind": 2},
    }
    ids = list(range(1001, 1001 + n_requests))
    messages = []
    for request_id in ids:
        messages.append({"id": request_id, "method": "textDocument/inlineCompletion", "params": params})
        messages.append({"method": "$/cancelRequest", "params": {"id": request_id}})
    editor.send_bytes(b"".join(framed({"jsonrpc": "2.0", **message}) for message in messages))
    return ids


def assert_cancelled(editor: Editor, ids: list[int]) -> None:
    """Each got one answer: the protocol's error or nothing."""
    for request_id in ids:
        answer = editor.wait_for(request_id)
        assert editor.n_answers[request_id] == 1
        if "error" in answer:
            assert answer["error"]["code"] == CANCELLED
        else:
            assert answer["result"] == {"items": []}


def test_g09_cancelled_requests_are_not_computed(start: StartServer) -> None:
    editor = start(slow_script())
    editor.wait_ready()
    editor.open(FILE, "x = ")
    began = time.monotonic()

    ids = storm(editor, 30)
    editor.replace(FILE, 0, 0, "y")
    (item,) = editor.ask_at(FILE, 5)

    assert time.monotonic() - began < STUB_S + 0.2 * SLOW + 1
    assert applied(editor.texts[FILE], item) == f"yx = {SUM}"
    assert_cancelled(editor, ids)
    assert len(editor.calls) <= 2
    assert editor.prompt.before == "yx = "
    assert editor.messages == []
    assert "unknown message id" not in editor.stderr.lower()


def test_g09_another_file_is_answered_as_fast_meanwhile(start: StartServer) -> None:
    editor = start(slow_script())
    editor.wait_ready()
    editor.open(FILE, "x = ")
    began = time.monotonic()

    ids = storm(editor, 30)
    editor.open("file:///w/other.py", "z = ")
    assert editor.mirror("file:///w/other.py") == "z = "
    assert time.monotonic() - began < STUB_S, "reading goes on while the model writes"
    assert editor.ask_at("file:///w/other.py", 4)

    assert time.monotonic() - began < STUB_S + 0.2 * SLOW + 1
    assert_cancelled(editor, ids)
    assert len(editor.calls) <= 2


def test_g09_the_model_stops_writing_for_a_request_that_is_cancelled(start: StartServer) -> None:
    editor = start(slow_script())
    editor.wait_ready()
    editor.open(FILE, "x = ")

    request_id = editor.begin_ask(FILE, {"line": 0, "character": 4})
    editor.wait_until(lambda editor: editor.calls)
    editor.notify("$/cancelRequest", {"id": request_id})

    editor.wait_until(lambda editor: any("done" in note for note in editor.notes))
    (end,) = (note for note in editor.notes if "done" in note)
    assert end["finish"] == "cancelled"
    assert end["n_generated"] < len(SUM)
    assert_cancelled(editor, [request_id])
    assert editor.statuses[-1]["message"] == "ready"


def test_g10_the_letter_typed_meanwhile_does_not_come_twice(start: StartServer) -> None:
    script = {"by_end": {"xs.co": "unt(1)", "xs.cou": "nt(1)"}, "ms_per_token": 50}
    editor = start(script)
    editor.wait_ready()
    n_declined = 0
    for delay_ms in range(0, 401, 20):
        uri = f"file:///w/{delay_ms}.py"
        editor.open(uri, "xs.co")
        asked_at = time.monotonic()
        first_id = editor.begin_ask(uri, {"line": 0, "character": 5})
        time.sleep(delay_ms / 1000)
        editor.replace(uri, 5, 5, "u")
        is_before_the_end = time.monotonic() - asked_at < 0.28
        time.sleep(0.01)
        (item,) = editor.ask_at(uri, 6)

        assert applied("xs.cou", item) == "xs.count(1)"
        first = editor.wait_for(first_id)["result"]["items"]
        assert all(applied("xs.co", early) == "xs.count(1)" for early in first)
        if is_before_the_end:
            assert first == []
            n_declined += 1
        editor.close_document(uri)
    assert n_declined > 0, "some edits came while the model was writing"


def test_g10_an_answer_for_a_text_that_has_changed_meanwhile_is_not_given(start: StartServer) -> None:
    editor = start({"by_end": {"xs.co": "unt(1)"}, "ms_per_token": 50})
    editor.wait_ready()
    editor.open(FILE, "xs.co")

    first_id = editor.begin_ask(FILE, {"line": 0, "character": 5})
    editor.wait_until(lambda editor: editor.calls)
    editor.replace(FILE, 5, 5, "u")

    assert editor.wait_for(first_id)["result"] == {"items": []}


def test_g10_a_finished_suggestion_is_served_as_its_rest_only(start: StartServer) -> None:
    editor = start({"by_end": {"xs.co": "unt(1)", "xs.cou": "WRONG"}})
    assert editor.complete("xs.co‸", uri=FILE) == "xs.count(1)"

    editor.replace(FILE, 5, 5, "u")
    (item,) = editor.ask_at(FILE, 6)

    assert item["insertText"] == "nt(1)"
    assert len(editor.calls) == 1


def burst(editor: Editor, offset: int, gap_s: float) -> float:
    """Type 20 characters, asking at each and cancelling the one before; the seconds that the last answer took."""
    request_id = None
    for number in range(20):
        editor.replace(FILE, offset + number, offset + number, "xy"[number % 2])
        if request_id is not None:
            editor.notify("$/cancelRequest", {"id": request_id})
        request_id = editor.begin_ask(FILE, position_of(editor.texts[FILE], offset + number + 1))
        asked_at = time.monotonic()
        if number < 19:
            time.sleep(gap_s)
    assert editor.wait_for(request_id)["result"]["items"]
    return time.monotonic() - asked_at


def processes(editor: Editor) -> list[psutil.Process]:
    """Front and core."""
    return [psutil.Process(editor.process.pid), psutil.Process(editor.calls[-1]["pid"])]


def cpu_s(editor: Editor) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes(editor))


def test_g18_old_generations_do_not_keep_the_machine_busy(start: StartServer) -> None:
    editor = start({"texts": [SUM], "ms_per_token": 50})
    editor.wait_ready()
    editor.open(FILE, "x = ")
    lone_began = time.monotonic()
    assert editor.ask_at(FILE, 4)
    lone_s = time.monotonic() - lone_began
    n_before = n_generated(editor)

    typing_began = time.monotonic()
    last_s = burst(editor, 4, 0.06)
    typed_s = time.monotonic() - typing_began - last_s

    assert last_s <= 1.5 * lone_s
    # At 50 ms a token nothing but the running generation can write; one more token a request is under way.
    assert n_generated(editor) - n_before <= typed_s / 0.05 + 20 + 60
    idle_from = cpu_s(editor)
    time.sleep(1)
    assert cpu_s(editor) - idle_from < 0.05 * SLOW


def n_generated(editor: Editor) -> int:
    """Tokens that the stub has written in all."""
    time.sleep(0.1)  # the last note is written after the answer
    return sum(entry["n_generated"] for entry in editor.notes if "done" in entry)


def test_g18_bursts_of_typing_leave_no_memory_behind(start: StartServer) -> None:
    editor = start({"texts": [SUM], "ms_per_token": 1})
    editor.wait_ready()
    editor.open(FILE, "x = ")
    resident = []
    for number in range(12):
        burst(editor, 4 + 20 * number, 0.01)
        resident.append(sum(process.memory_info().rss for process in processes(editor)))

    assert resident[-1] <= 1.05 * resident[1], "the first two warm up"


def test_a_request_and_the_edit_behind_it_in_one_piece_are_not_mixed_up(start_alone: StartServer) -> None:
    """The request is about the text before the edit, also where both arrive together."""
    editor = start_alone({"texts": ["1"]})
    editor.wait_ready()
    editor.open(FILE, "x = \n")
    place = position_of("x = \n", 4)
    ask = {
        "id": 2001,
        "method": "textDocument/inlineCompletion",
        "params": {"textDocument": {"uri": FILE}, "position": place, "context": {"triggerKind": 2}},
    }
    edit = {
        "method": "textDocument/didChange",
        "params": {
            "textDocument": {"uri": FILE, "version": 2},
            "contentChanges": [
                {
                    "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
                    "text": "long_",
                }
            ],
        },
    }
    editor.send_bytes(b"".join(framed({"jsonrpc": "2.0", **message}) for message in (ask, edit)))

    assert editor.wait_for(2001)["result"]["items"] == []
    editor.wait_until(lambda editor: editor.explain(FILE)["version"] == 2)
