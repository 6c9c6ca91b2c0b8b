"""The progress bar: begun at most once, and ended only where it was begun."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from treefill.lsp.progress import LoadingProgress


class Bar:
    """An editor that makes bars when the test lets it, and keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.is_made = asyncio.Event()
        self.refuses = False
        self.progress = LoadingProgress(SimpleNamespace(work_done_progress=self))  # type: ignore[arg-type]
        self.progress.is_supported = True

    async def create_async(self, token: str) -> None:
        self.told.append("create")
        await self.is_made.wait()
        if self.refuses:
            raise ValueError("no bars here")

    def begin(self, token: str, _value: object) -> None:
        self.told.append("begin")

    def end(self, token: str, _value: object) -> None:
        self.told.append("end")


def at_a_bar(story: Callable[[Bar], Coroutine[Any, Any, None]]) -> None:
    async def work() -> None:
        await story(Bar())

    asyncio.run(work())


def test_a_bar_is_begun_and_ended_once() -> None:
    async def story(bar: Bar) -> None:
        bar.is_made.set()
        for is_loading in (False, True, True, False, False, True, False):
            await bar.progress.follow(is_loading)

        assert bar.told == ["create", "begin", "end"] * 2

    at_a_bar(story)


def test_a_model_that_is_loaded_before_there_is_a_bar_needs_none() -> None:
    async def story(bar: Bar) -> None:
        beginning = asyncio.create_task(bar.progress.follow(True))
        await asyncio.sleep(0)
        await bar.progress.follow(False)
        bar.is_made.set()
        await beginning
        assert bar.told == ["create"]

        await bar.progress.follow(True)
        await bar.progress.follow(False)
        assert bar.told == ["create", "create", "begin", "end"]

    at_a_bar(story)


def test_a_bar_that_the_editor_refuses_is_not_ended() -> None:
    async def story(bar: Bar) -> None:
        bar.refuses = True
        bar.is_made.set()
        with pytest.raises(ValueError, match="no bars"):
            await bar.progress.follow(True)
        await bar.progress.follow(False)

        assert bar.told == ["create"]

    at_a_bar(story)
