"""A log has one line an event and never what a user wrote."""

import asyncio

import pytest
from treefill.logs import log_kinds_alone


def test_what_fails_on_the_loop_is_logged_by_its_kind_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise ValueError("secret text")

    def breaks(_argument: str) -> None:
        raise KeyError("secret text")

    async def work() -> None:
        loop = asyncio.get_running_loop()
        log_kinds_alone(loop)
        loop.call_soon(breaks, "secret text")
        task = loop.create_task(fails())
        await asyncio.sleep(0.01)
        del task
        loop.call_exception_handler({"message": "secret text"})

    asyncio.run(work())

    assert sorted(caplog.messages) == [
        f"Something on the event loop failed: {kind}." for kind in ("KeyError", "ValueError", "no error")
    ]
