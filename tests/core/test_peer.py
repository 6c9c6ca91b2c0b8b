"""One front as the core sees it: its documents, what is remembered of them, and nothing of any other front."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treefill.completion import Anchor, CompletionRequest, Memory
from treefill.completion.plan import Plan, plan_completion
from treefill.completion.recycle import Decoded
from treefill.core import peer as peer_module
from treefill.core.messages import (
    N_NEIGHBOURS,
    Accepted,
    Answer,
    Ask,
    Cancel,
    Close,
    Edits,
    EngineState,
    Hello,
    Message,
    Open,
    OutOfStep,
    Started,
    Welcome,
)
from treefill.core.peer import Peer
from treefill.engine.api import Finish, Generation
from treefill.text import BufferStore, Change, Document, Edit, PositionEncoding, Text

from tests.core.room import ask
from tests.helpers.scripted_engine import ByteVocabulary
from tests.text.utf16_twin import NEW_TEXTS, POSITIONS, TEXTS

MEMORY = Memory(Anchor("/w/a.py", "line", 0, 0, ""))
GENERATION = Generation(")", (41,), Finish.END, 1, 0, 1, 1, 0.0, 0.0)


@dataclass
class Front:
    """A peer, and what it says to its front and to the service."""

    sent: list[Message] = field(default_factory=list)
    asked: list[Ask] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    prepared: list[str] = field(default_factory=list)
    learned: list[tuple[str, Accepted]] = field(default_factory=list)
    n_left: int = 0

    def __post_init__(self) -> None:
        self.peer = Peer(
            self.sent.append,
            ask=lambda _peer, ask: self.asked.append(ask),
            cancel=lambda _peer, ask_id: self.cancelled.append(ask_id),
            leave=lambda _peer: self._leave(),
            prepare=lambda language, _path: self.prepared.append(language),
            learn=lambda snapshot, accepted: self.learned.append((snapshot.document().text, accepted)),
        )

    def _leave(self) -> None:
        self.n_left += 1

    def open(self, uri: str, text: str = "", version: int = 1) -> None:
        self.peer.handle(Open(uri, f"/w/{uri}", "python", version, text))

    def text(self, uri: str, version: int) -> str | None:
        snapshot = self.peer.snapshot_for(ask(1, uri, version))
        return None if snapshot is None else snapshot.document().text


def test_what_the_front_says_is_done_or_handed_on() -> None:
    front = Front()
    front.open("a.py", "x")
    request = ask(1)

    front.peer.handle(request)
    front.peer.handle(Cancel(1))
    front.peer.leave()

    assert (front.asked, front.cancelled, front.n_left, front.sent) == ([request], [1], 1, [])


def test_what_only_a_core_may_say_is_ignored() -> None:
    front = Front()
    front.open("a.py", "x")

    for message in (
        Hello("1", "a"),
        Welcome("1", "a", 1),
        Started(1, "a.py"),
        Answer(1),
        OutOfStep("a.py"),
        EngineState("x"),
    ):
        front.peer.handle(message)

    assert (front.asked, front.cancelled, front.n_left, front.sent) == ([], [], 0, [])
    assert front.text("a.py", 1) == "x"


@given(
    TEXTS,
    st.lists(
        st.lists(
            st.one_of(st.builds(Change, NEW_TEXTS, POSITIONS, POSITIONS), st.builds(Change, TEXTS)),
            max_size=3,
        ),
        max_size=5,
    ),
)
def test_the_mirror_follows_whatever_an_editor_does(text: str, batches: list[list[Change]]) -> None:
    store, front = BufferStore(), Front()
    store.open("a.py", "python", 1, text)
    front.open("a.py", text)

    for version, changes in enumerate(batches, start=2):
        edits = store.change("a.py", version, changes, PositionEncoding.UTF_16)
        buffer = store.get("a.py")
        assert buffer is not None
        front.peer.handle(Edits("a.py", version, buffer.text.checksum, edits))
        assert front.text("a.py", version) == str(buffer.text)

    assert front.sent == []


def test_a_mirror_that_differs_says_so_and_is_right_once_it_is_opened_anew() -> None:
    front = Front()
    front.open("a.py", "one")

    front.peer.handle(Edits("a.py", 2, Text.of("two").checksum, (Edit(0, 1, "O"),)))
    assert front.sent == [OutOfStep("a.py")]
    assert front.text("a.py", 2) is None

    front.open("a.py", "two", version=2)
    assert front.text("a.py", 2) == "two"


def test_an_edit_outside_the_text_or_of_a_document_that_is_not_open_puts_out_of_step() -> None:
    front = Front()
    front.open("a.py", "one")

    front.peer.handle(Edits("a.py", 2, 0, (Edit(9, 12, "x"),)))
    front.peer.handle(Edits("b.py", 2, 0, ()))

    assert front.sent == [OutOfStep("a.py"), OutOfStep("b.py")]


def test_only_the_version_that_was_asked_about_will_do() -> None:
    front = Front()
    front.open("a.py", "one", version=5)

    assert front.text("a.py", 5) == "one"
    assert (front.text("a.py", 4), front.text("a.py", 6)) == (None, None)
    assert front.sent == [OutOfStep("a.py"), OutOfStep("a.py")]


def test_neighbours_are_those_that_are_here_and_in_step_and_not_too_many() -> None:
    front = Front()
    names = [f"{number}.py" for number in range(N_NEIGHBOURS + 2)]
    for name in names:
        front.open(name, "text")
    front.peer.handle(Edits("1.py", 2, 0, ()))

    found = front.peer.neighbours_for(ask(1, neighbours=("0.py", "1.py", "gone.py", *names[2:])))

    assert [snapshot.buffer.uri for snapshot in found] == ["0.py", *names[2 : N_NEIGHBOURS - 1]]


def test_a_document_has_its_path_where_rules_about_secrets_look() -> None:
    front = Front()
    front.open("file:///w/.env", "KEY=1")
    snapshot = front.peer.snapshot_for(ask(1, "file:///w/.env"))
    assert snapshot is not None

    document = snapshot.document()

    assert (document.path, document.text, document.language) == ("/w/file:///w/.env", "KEY=1", "python")


def test_a_document_that_was_asked_about_stays_as_it_was() -> None:
    front = Front()
    front.peer.handle(Open("a.py", "/w/a.py", "python", 1, "x", is_cell=True))
    snapshot = front.peer.snapshot_for(ask(1))
    (beside,) = front.peer.neighbours_for(ask(1, neighbours=("a.py",)))
    assert snapshot is not None

    front.peer.handle(Open("a.py", "/elsewhere", "sql", 2, "y"))
    front.peer.handle(Close("a.py"))

    assert snapshot.document() == beside.document() == Document("/w/a.py", "x", "python", is_cell=True)


def test_what_is_remembered_goes_with_the_document() -> None:
    front = Front()
    front.open("a.py")
    assert front.peer.memory("a.py") == Memory()
    front.peer.remember("a.py", MEMORY)
    assert front.peer.memory("a.py") == MEMORY
    assert front.peer.memory("b.py") == Memory()

    front.peer.handle(Close("a.py"))
    front.peer.remember("a.py", MEMORY)
    front.open("a.py")
    assert front.peer.memory("a.py") == Memory(), "an answer that comes after the close leaves nothing behind"


def test_beyond_the_limit_what_was_remembered_first_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "MAX_MEMORY_CHARS", 25)
    front = Front()
    plan = plan_completion(
        CompletionRequest(Document("/w/a.py", "x = (1 + 2", "python"), 10), ByteVocabulary(), 4096
    )
    assert isinstance(plan, Plan)
    memory = Memory(plan.anchor, (Decoded(plan, GENERATION),))
    for uri in ("a.py", "b.py", "a.py", "c.py"):
        front.open(uri)
        front.peer.remember(uri, memory)

    assert [front.peer.memory(uri) == memory for uri in ("a.py", "b.py", "c.py")] == [True, False, True]


def test_what_is_remembered_goes_with_the_model() -> None:
    front = Front()
    front.open("a.py", "x")
    front.peer.remember("a.py", MEMORY)

    front.peer.forget()

    assert front.peer.memory("a.py") == Memory()
    assert front.text("a.py", 1) == "x"


def test_two_fronts_know_nothing_of_each_other() -> None:
    one, other = Front(), Front()
    one.open("a.py", "secret")
    one.peer.remember("a.py", MEMORY)

    assert other.text("a.py", 1) is None
    assert other.peer.memory("a.py") == Memory()
    assert other.peer.neighbours_for(ask(1, neighbours=("a.py",))) == ()


def test_what_was_accepted_is_handed_on_with_the_document_as_it_is_then() -> None:
    front = Front()
    front.open("a.py", "x = 1", version=3)
    accepted = Accepted("a.py", 3, 4, 5, None, {})

    front.peer.handle(accepted)
    front.peer.handle(Accepted("a.py", 2, 4, 5, None, {}))
    front.peer.handle(Accepted("b.py", 3, 4, 5, None, {}))

    assert front.learned == [("x = 1", accepted)]
