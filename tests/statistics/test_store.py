"""The file of numbers: several writers, broken files, old days, and nobody else may read it."""

import asyncio
import logging
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from treefill.errors import StatisticsError
from treefill.statistics import Keeper, Shown, StatisticsStore, keeper, state_file, store
from treefill.text import Buffer, Text

DAY = "2026-11-30"
OFFERED = (DAY, "python", "offered")
BUFFER = Buffer("file:///w/a.py", "python", 1, Text.of("x = \n"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return state_file(tmp_path / "state" / "treefill")


def test_sums_are_added_to(file: Path) -> None:
    for n in (1, 2):
        StatisticsStore(file).add({OFFERED: n, (DAY, "rust", "offered"): 1}, DAY)

    assert StatisticsStore(file).read() == {OFFERED: 3, (DAY, "rust", "offered"): 2}


def test_the_file_is_its_owners_alone(file: Path) -> None:
    StatisticsStore(file).add({OFFERED: 1}, DAY)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["statistics.sqlite"]


def test_writers_in_several_processes_lose_nothing(file: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from treefill.statistics import StatisticsStore\n"
        "for _ in range(30):\n"
        f"    StatisticsStore(Path(sys.argv[1])).add({{{OFFERED!r}: 1}}, {DAY!r})"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(file)]) for _ in range(3)]

    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert StatisticsStore(file).read() == {OFFERED: 90}


def test_days_of_long_ago_go(file: Path) -> None:
    kept = StatisticsStore(file)
    kept.add({("2026-09-01", "python", "offered"): 1, ("2026-09-02", "python", "offered"): 1}, "2026-09-02")
    kept.add({OFFERED: 1}, DAY)

    assert sorted(day for day, _, _ in kept.read()) == ["2026-09-02", DAY]


@pytest.mark.parametrize(
    "content", [b"this is no table at all, " * 100, b"SQLite format 3\0" + b"\xff" * 4000]
)
def test_a_broken_file_is_put_aside(file: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    kept = StatisticsStore(file)
    with pytest.raises(StatisticsError, match="holds no statistics"):
        kept.read()

    for _ in range(2):
        kept.add({OFFERED: 1}, DAY)

    assert kept.read() == {OFFERED: 2}
    assert (file.parent / "statistics.broken.sqlite").read_bytes() == content
    assert len(caplog.records) == 1


def test_no_file_is_no_numbers(file: Path) -> None:
    assert StatisticsStore(file).read() == {}
    assert not StatisticsStore(file).forget()
    assert not file.parent.exists()


def test_what_is_forgotten_is_gone(file: Path) -> None:
    StatisticsStore(file).add({OFFERED: 1}, DAY)

    assert StatisticsStore(file).forget()
    assert list(file.parent.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder would be")

    with pytest.raises(StatisticsError, match=r"statistics\.sqlite cannot be used"):
        StatisticsStore(tmp_path / "state" / "statistics.sqlite").add({OFFERED: 1}, DAY)


def test_a_file_that_is_locked_for_long_is_one_sentence(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "BUSY_LIMIT_S", 0.05)
    kept = StatisticsStore(file)
    kept.add({OFFERED: 1}, DAY)
    other = sqlite3.connect(file)
    other.execute("BEGIN EXCLUSIVE")

    with pytest.raises(StatisticsError, match="locked"):
        kept.add({OFFERED: 1}, DAY)

    other.close()
    kept.add({OFFERED: 1}, DAY)
    assert kept.read() == {OFFERED: 2}


# The keeper: when it writes.


def in_a_session(story: Callable[[Keeper], Coroutine[Any, Any, None]]) -> None:
    """Run a story with one document open."""

    async def work() -> None:
        session = Keeper(lambda uri: BUFFER if uri == BUFFER.uri else None)
        await story(session)
        await session.close()
        assert all(task is asyncio.current_task() for task in asyncio.all_tasks())

    asyncio.run(work())


def offer(session: Keeper, text: str = "1") -> None:
    session.answered(BUFFER, [Shown(4, 4, text, "decoded")], "", {}, 10)


def n_offered(file: Path) -> int:
    return sum(n for (_, _, name), n in StatisticsStore(file).read().items() if name == "offered")


def test_a_session_writes_now_and_then_and_at_its_end(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "WRITE_EVERY_S", 0.02)

    async def story(session: Keeper) -> None:
        offer(session)
        session.keep_in(file)
        while n_offered(file) < 1:
            await asyncio.sleep(0.01)
        offer(session, "2")
        assert (await session.report())["total"]["offered"] == 2

    in_a_session(story)
    assert n_offered(file) == 2


def test_between_two_writes_numbers_are_told_and_not_stored(file: Path) -> None:
    async def story(session: Keeper) -> None:
        session.keep_in(file)
        offer(session)
        assert not file.exists()
        assert (await session.report())["total"]["offered"] == 1

    StatisticsStore(file.with_name("other.sqlite")).add({OFFERED: 1}, DAY)
    in_a_session(story)
    assert n_offered(file) == 1


def test_who_does_not_want_it_is_not_counted(file: Path) -> None:
    async def story(session: Keeper) -> None:
        offer(session)
        session.keep_in(None)
        offer(session, "2")
        assert (await session.report())["total"]["offered"] == 0

    in_a_session(story)
    assert not file.exists()


def test_what_could_not_be_written_is_written_later_and_told_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeper, "WRITE_EVERY_S", 0.01)
    caplog.set_level(logging.WARNING)
    obstacle = file.parent.parent
    obstacle.write_text("a file where the folder would be")

    async def story(session: Keeper) -> None:
        session.keep_in(file)
        for number in range(5):
            offer(session, str(number))
            await asyncio.sleep(0.05)
        obstacle.unlink()

    in_a_session(story)
    assert n_offered(file) == 5
    assert len(caplog.records) == 1
