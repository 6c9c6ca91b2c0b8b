"""The progress bar that an editor shows while the model loads."""

from lsprotocol import types
from pygls.lsp.server import LanguageServer


class LoadingProgress:
    """One bar at a time."""

    def __init__(self, server: LanguageServer) -> None:
        self.is_supported = False
        self._server = server
        self._token: str | None = None
        """The bar that is wanted; the editor may not have made it yet."""
        self._begun: str | None = None
        self._n_shown = 0

    async def follow(self, is_loading: bool) -> None:
        """Show the bar while the model is loading, and take it away afterwards."""
        if is_loading and self._token is None and self.is_supported:
            self._n_shown += 1
            token = self._token = f"treefill-loading-{self._n_shown}"
            await self._server.work_done_progress.create_async(token)
            if self._token == token:  # it may be loaded by now
                begin = types.WorkDoneProgressBegin(title="treefill", message="loading the model")
                self._server.work_done_progress.begin(token, begin)
                self._begun = token
        elif not is_loading and self._token is not None:
            shown, self._token = self._token, None
            if self._begun == shown:
                self._server.work_done_progress.end(shown, types.WorkDoneProgressEnd(message="ready"))
