"""A core in the front's own process: for tests, and for whoever wants one process (`treefill serve --no-core`)."""

import asyncio
from collections.abc import Callable

from treefill.core.link import LinkEvents
from treefill.core.messages import Message
from treefill.core.peer import Peer
from treefill.core.service import Service


class InProcessCore:
    """`core.link.Link` without a socket."""

    def __init__(self, make_service: Callable[[Callable[[], None]], Service]) -> None:
        """`make_service` is given what the service calls when its model hangs."""
        self._make_service = make_service
        self._service: Service | None = None
        self._peer: Peer | None = None

    def start(self, events: LinkEvents) -> None:
        """Make the service."""
        loop = asyncio.get_running_loop()
        self._service = self._make_service(lambda: self._give_up(events))

        def send(message: Message) -> None:
            # Later, as from a socket: an answer never comes before the request has returned.
            loop.call_soon(events.on_message, message)

        self._peer = self._service.connect(send)
        for document in events.documents():
            self._peer.handle(document)

    @property
    def is_up(self) -> bool:
        """True once started."""
        return self._peer is not None

    def send(self, message: Message) -> None:
        """Hand the message over."""
        if self._peer is not None:
            self._peer.handle(message)

    async def close(self) -> None:
        """End the service."""
        if self._peer is not None and self._service is not None:
            self._peer.leave()
            self._peer = None
            await self._service.close()

    def _give_up(self, events: LinkEvents) -> None:
        """The model's thread can't be ended alone, and the editor keeps its server."""
        self._peer = None
        events.on_lost("The model does not stop: nothing is suggested until the server is started anew.")
