"""Counting and storing, for one editor session: beside the event loop, seldom, and never in anybody's way."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from treefill.errors import StatisticsError
from treefill.statistics.counts import Counts, today
from treefill.statistics.observer import Observer, OnAccepted, Shown
from treefill.statistics.report import report_on
from treefill.statistics.store import StatisticsStore
from treefill.text import Buffer, Edit

log = logging.getLogger(__name__)

WRITE_EVERY_S = 30.0


class Keeper:
    """Where a session says what happens. What happens before it is known whether to count is counted in memory."""

    def __init__(
        self,
        get_buffer: Callable[[str], Buffer | None],
        on_accepted: OnAccepted = lambda _buffer, _accepted, _source: None,
    ) -> None:
        """`on_accepted` is told of each acceptance, the document as it is then, and where the suggestion came from."""
        self._get_buffer = get_buffer
        self._counts = Counts()
        self._observer = Observer(self._counts, on_accepted=on_accepted)
        self._store: StatisticsStore | None = None
        self._is_on = True
        self.is_followed = False
        """True where acceptances are to be told of though nothing is counted."""
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        """Held while a batch is on its way to the disk and neither here nor there."""
        self._has_failed = False

    def keep_in(self, file: Path | None) -> None:
        """Store in this file from now on; None counts nothing and forgets what was not stored yet."""
        self._is_on = file is not None
        if file is None:
            self._store = None
            self._counts.take()
            self._observer.forget()
        elif self._store is None or self._store.path != file:
            self._store = StatisticsStore(file)
            self._write_later()

    def answered(
        self, buffer: Buffer, items: Iterable[Shown], reason: str, explanation: Mapping[str, Any], ms: float
    ) -> None:
        """A request has got its answer."""
        if self._is_on or self.is_followed:
            self._observer.answered(buffer, items, reason, explanation, ms)
            self._settle()

    def edited(self, before: Buffer, after: Buffer, edits: tuple[Edit, ...]) -> None:
        """A document was edited."""
        if self._is_on or self.is_followed:
            self._observer.edited(before, after, edits)
            if self._observer.has_to_judge:
                self._settle()

    def told_accepted(self, uri: str, length: int) -> None:
        """The editor says that a suggestion of this length was accepted."""
        buffer = self._get_buffer(uri)
        if buffer is not None and (self._is_on or self.is_followed):
            self._observer.told_accepted(buffer, length)
            self._settle()

    def closed(self, buffer: Buffer) -> None:
        """A document is about to be closed."""
        self._observer.closed(buffer)
        self._settle()

    async def report(self) -> dict[str, Any]:
        """What is stored, and what is not yet."""
        async with self._lock:
            stored = await asyncio.to_thread(self._read)
        return report_on(chain(stored, self._counts))

    async def close(self) -> None:
        """Judge and store all there is."""
        if self._timer is not None:
            self._timer.cancel()
        self._observer.judge(self._get_buffer, is_the_end=True)
        await self._write()

    def _settle(self) -> None:
        """Store what was counted before long, or forget it where nothing is to be counted."""
        if self._is_on:
            self._write_later()
        else:
            self._counts.take()
            self._observer.judge_nothing()

    def _write_later(self) -> None:
        if self._timer is None and self._store is not None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_EVERY_S, self._begin_to_write)

    def _begin_to_write(self) -> None:
        self._timer = None
        self._observer.judge(self._get_buffer)
        self._writing = asyncio.get_running_loop().create_task(self._write())
        if self._observer.has_to_judge:
            self._write_later()

    async def _write(self) -> None:
        async with self._lock:
            store, taken = self._store, self._counts.take()
            if store is None or not taken:
                return
            try:
                await asyncio.to_thread(store.add, taken, today())
                self._has_failed = False
            except StatisticsError as error:
                self._counts.put_back(taken)
                if not self._has_failed:
                    log.warning("The statistics could not be stored. %s", error)
                self._has_failed = True

    def _read(self) -> Iterable[tuple[tuple[str, str, str], int]]:
        try:
            return self._store.read().items() if self._store is not None else ()
        except StatisticsError as error:
            log.warning("The statistics could not be read. %s", error)
            return ()
