"""What a language needs is made ready while its document is only looked at: beside the event loop, once a language."""

import logging
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from treefill.syntax.languages import language_in_editor

log = logging.getLogger(__name__)


class Preparer:
    """Calls `prepare` with each language, one after the other, on a thread of its own."""

    def __init__(self, prepare: Callable[[str], None]) -> None:
        self._prepare = prepare
        self._begun: set[str] = set()
        self._queue: SimpleQueue[tuple[str, str] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._is_closing = False

    def want(self, language: str, path: str) -> None:
        """Have a document's language prepared, if it is not yet, by its editor's name for it. Returns at once."""
        if self._is_closing:
            return
        self._queue.put((language, path))
        if self._thread is None:
            self._thread = Thread(target=self._work_off, name="treefill-prepare", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Prepare nothing more. Waits for what is under way: native code does not outlive its interpreter well."""
        self._is_closing = True
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work_off(self) -> None:
        while (document := self._queue.get()) is not None and not self._is_closing:
            try:
                language_id = language_in_editor(*document).id  # the first time it reads files
                if language_id in self._begun:
                    continue
                self._begun.add(language_id)
                self._prepare(language_id)
            except Exception as error:  # a completion that needs it will say so itself
                log.info("Nothing was prepared for %s (%s).", document[0], type(error).__name__)
