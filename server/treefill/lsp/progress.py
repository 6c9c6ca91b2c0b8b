"""The progress bar that an editor shows while the model loads."""

from lsprotocol import types
from pygls.lsp.server import LanguageServer

_LOADING = "loading the model"


class LoadingProgress:
    """One bar at a time."""

    def __init__(self, server: LanguageServer) -> None:
        self.is_supported = False
        self._server = server
        self._token: str | None = None
        self._n_shown = 0

    async def follow(self, activity: str) -> None:
        """Show the bar while the activity is loading, and take it away with any other."""
        if activity == _LOADING and self._token is None and self.is_supported:
            self._n_shown += 1
            self._token = f"treefill-loading-{self._n_shown}"
            await self._server.work_done_progress.create_async(self._token)
            if self._token is not None:
                begin = types.WorkDoneProgressBegin(title="treefill", message=_LOADING)
                self._server.work_done_progress.begin(self._token, begin)
        elif activity != _LOADING and self._token is not None:
            token, self._token = self._token, None
            self._server.work_done_progress.end(token, types.WorkDoneProgressEnd(message="ready"))
