"""pygls's protocol, made to answer every request exactly once, whatever comes in.

pygls keeps documents by Python's line rules and refuses messages that miss its types by a little; here documents are
the front's, and the messages of `TOLERATED` reach their handlers as plain data, for `convert` to make the best of.
"""

import json
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage
from pygls.protocol.language_server import lsp_method

log = logging.getLogger(__name__)

TOLERATED = frozenset(
    {
        types.TEXT_DOCUMENT_INLINE_COMPLETION,
        types.TEXT_DOCUMENT_COMPLETION,
        types.TEXT_DOCUMENT_DID_OPEN,
        types.TEXT_DOCUMENT_DID_CHANGE,
        types.TEXT_DOCUMENT_DID_CLOSE,
        types.NOTEBOOK_DOCUMENT_DID_OPEN,
        types.NOTEBOOK_DOCUMENT_DID_CHANGE,
        types.NOTEBOOK_DOCUMENT_DID_CLOSE,
        types.WORKSPACE_DID_CHANGE_CONFIGURATION,
        types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
    }
)
_INVALID_REQUEST = -32600
_INVALID_PARAMS = -32602
_NOT_INITIALIZED = -32002


class TolerantServer(LanguageServer):
    """A language server that never puts an error into the user's way."""

    def __init__(self, *args: Any, on_exit: Callable[[int], None], **kwargs: Any) -> None:
        super().__init__(*args, protocol_cls=TolerantProtocol, **kwargs)
        self.on_exit = on_exit

    def report_server_error(self, error: Exception, source: Any) -> None:
        """One line in the log, without the message: it may quote what the user wrote."""
        log.error("A message could not be handled: %s.", type(error).__name__)


class TolerantProtocol(LanguageServerProtocol):
    """See the module."""

    on_arrival: Mapping[str, Callable[[Any], Any]] = MappingProxyType({})
    """What a request's parameters become as soon as they are there; its handler runs later, and is given that."""
    _server: TolerantServer
    _is_initialized = False

    def receive(self, body: bytes) -> None:
        """Handle one message's body."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            log.warning("A message that is not JSON was ignored.")
            return
        if not isinstance(data, dict):
            log.warning("A message that is not a JSON object was ignored.")
            return
        method, message_id = data.get("method"), data.get("id")
        if "id" in data and not isinstance(message_id, int | str):
            log.warning("A message whose id is neither a number nor a text was ignored.")
            return
        is_request = isinstance(method, str) and "id" in data
        if is_request and self._shutdown:
            self._refuse(message_id, _INVALID_REQUEST, "The server is shutting down.")
            return
        if is_request and not self._is_initialized and method != types.INITIALIZE:
            self._refuse(message_id, _NOT_INITIALIZED, "The server is not initialized yet.")
            return
        try:
            message = self._structured(data)
        except Exception:
            log.warning("A message with malformed contents was ignored (%s).", _shown(method))
            if is_request:
                self._refuse(message_id, _INVALID_PARAMS, "The parameters are malformed.")
            return
        if isinstance(message, dict):
            log.warning("A message of no known form was ignored.")
            return
        self._is_initialized |= method == types.INITIALIZE
        self.handle_message(message)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_args: Any) -> None:  # type: ignore[override]
        """End the process: 0 after a shutdown, else 1."""
        self._server.on_exit(0 if self._shutdown else 1)

    # The front keeps the documents: pygls's own handlers, which would keep them once more, are not registered.
    lsp_text_document__did_open = None  # type: ignore[assignment]
    lsp_text_document__did_change = None  # type: ignore[assignment]
    lsp_text_document__did_close = None  # type: ignore[assignment]
    lsp_notebook_document__did_open = None  # type: ignore[assignment]
    lsp_notebook_document__did_change = None  # type: ignore[assignment]
    lsp_notebook_document__did_close = None  # type: ignore[assignment]
    lsp_workspace__did_change_workspace_folders = None  # type: ignore[assignment]

    def _structured(self, data: dict[str, Any]) -> Any:
        """The message in pygls's types; what is tolerated keeps its parameters as they came."""
        data = {"jsonrpc": self.VERSION, "params": None, **data}
        if data.get("method") not in TOLERATED:
            return self.structure_message(data)
        if "id" in data:
            params = data["params"]
            read = self.on_arrival.get(data["method"])
            return JsonRPCRequestMessage(
                data["id"], data["method"], self.VERSION, read(params) if read else params
            )
        return JsonRPCNotification(data["method"], self.VERSION, data["params"])

    def _refuse(self, message_id: Any, code: int, sentence: str) -> None:
        self._send_response(message_id, None, types.ResponseError(code=code, message=sentence))


def _shown(method: object) -> str:
    return method if isinstance(method, str) and len(method) < 80 else "no method"
