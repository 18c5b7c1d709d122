"""pygls' JSON-RPC protocol, changed so that every request is answered, even a malformed or untimely one."""

from __future__ import annotations

import asyncio
import hmac
import json
import traceback
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import RPCMessage, RPCRequest

from completion.errors import DraftlineError
from completion.nesting import check_nesting
from lsp_server.wire.document_uri import Spellings

if TYPE_CHECKING:
    from cattrs import Converter
    from pygls.lsp.server import LanguageServer
    from pygls.protocol.json_rpc import MessageCallback, MessageHandler, MsgId

_MAX_DIGITS = 20  # more than any number of the protocol has


class UnknownClientError(DraftlineError):
    """A client on TCP did not send the server's token."""

    code = "unknown_client"


class AnsweringProtocol(LanguageServerProtocol):
    """pygls' protocol with an error response where pygls gives none.

    Attributes:
        token: Secret that `initialize` must contain in `initializationOptions.token`; "" if none is required.
        is_introduced: Whether a client's `initialize` was accepted.
    """

    token = ""
    is_introduced = False
    _is_closing = False

    def __init__(self, server: LanguageServer, converter: Converter) -> None:
        super().__init__(server, converter)
        self._spellings = Spellings()

    def receive(self, body: bytes) -> None:
        """Handle one message. Answer a request that cannot be read with an error.

        Raises:
            UnknownClientError: The client sent a wrong token and must be disconnected.
        """
        data: Any = None
        try:
            data = self._read(body)
            message = self.structure_message(data)
        except JsonRpcException as error:
            self._server.report_server_error(error, JsonRpcException)
            if data is None or ("method" in data and "id" in data):
                self._send_error((data or {}).get("id"), error)
        else:
            self._handle(message)

    def structure_message(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - one of the protocol's message types
        """Read a message's fields.

        Raises:
            JsonRpcInvalidParams: They are not what the method takes; pygls calls that an internal error.
        """
        try:
            return super().structure_message(data)
        except JsonRpcInternalError as error:
            raise JsonRpcInvalidParams from error

    def handle_message(self, message: RPCMessage) -> None:
        """Handle a message that is allowed in the current state; else answer a request with an error."""
        refusal = self._refusal(message)
        if refusal is None:
            super().handle_message(message)
        elif isinstance(message, RPCRequest):
            self._send_error(message.id, refusal)

    def cancel_requests(self) -> None:
        """Cancel all requests in progress, except the one that calls this.

        pygls does the same at the end of `shutdown`, but fails when a request ends during its loop.
        """
        own = (self._request_futures.get(self.msg_id or ""), asyncio.current_task())
        for future in [one for one in self._request_futures.values() if one not in own]:
            future.cancel()

    def _handle(self, message: RPCMessage) -> None:
        try:
            self.handle_message(message)
        except UnknownClientError:
            raise
        except Exception as error:  # noqa: BLE001 - the protocol boundary: no message may end the server
            frames = {"traceback": traceback.format_tb(error.__traceback__)}
            self._server.report_server_error(JsonRpcInternalError(type(error).__name__, data=frames), JsonRpcException)

    def _refusal(self, message: RPCMessage) -> JsonRpcException | None:
        method = getattr(message, "method", types.EXIT)
        if method == types.EXIT:
            return None
        if isinstance(message, types.InitializeRequest):
            if self.is_introduced:
                return JsonRpcInvalidRequest("The server is already initialized.")
            self._check_token(message)
            self.is_introduced = True
        if not self.is_introduced:
            return JsonRpcServerNotInitialized("The first request must be initialize.")
        if self._is_closing:
            return JsonRpcInvalidRequest("The server is shutting down.")
        self._is_closing = method == types.SHUTDOWN
        return None

    def _check_token(self, message: types.InitializeRequest) -> None:
        """Compare the client's token, and remove it from the options, which are read as settings later."""
        options = message.params.initialization_options
        shown = options.pop("token", "") if isinstance(options, dict) else ""
        if self.token and not hmac.compare_digest(str(shown).encode("utf-8", "replace"), self.token.encode()):
            error = UnknownClientError("initializationOptions.token is not the server's token.")
            self._send_error(message.id, JsonRpcInvalidRequest(str(error)))
            raise error

    def _read(self, body: bytes) -> dict[str, Any]:
        """Return a message as plain JSON, with the server's spelling of its URIs.

        Bytes that are not UTF-8 become lone surrogates, so that no message is lost. The thousands of files that change
        on disk with one command are left as they are: they are read on a thread.
        """
        try:
            check_nesting(body)
            data = json.loads(body.decode("utf-8", "surrogateescape"), parse_int=_bounded_integer)
            if isinstance(data, dict) and data.get("method") != types.WORKSPACE_DID_CHANGE_WATCHED_FILES:
                data = self._spellings.inward(data)
        except ValueError as error:
            raise JsonRpcParseError(f"The message is not readable JSON ({type(error).__name__}).") from error
        if not isinstance(data, dict) or "jsonrpc" not in data or not isinstance(data.get("method", ""), str):
            raise JsonRpcInvalidRequest("The message is not a JSON-RPC 2.0 message.")
        return data

    def _send_data(self, data: Any) -> None:  # noqa: ANN401 - any of the protocol's messages
        """Send a message, with the client's spelling of its URIs."""
        for part in ("params", "result"):
            if isinstance(content := getattr(data, part, None), dict):
                setattr(data, part, self._spellings.outward(content))
        super()._send_data(data)

    def _send_error(self, id_: object, error: JsonRpcException) -> None:
        self._send_data(
            {
                "jsonrpc": self.VERSION,
                "id": id_ if isinstance(id_, str | int) else None,
                "error": {"code": error.code, "message": error.message},
            }
        )

    def _execute_handler(
        self,
        msg_id: MsgId,
        handler: MessageHandler,
        callback: MessageCallback,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Run a handler and drop its future when it is done. pygls never drops those of notifications and commands."""
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.add_done_callback(lambda _future: self._request_futures.pop(msg_id, None))

    def _handle_response(self, msg_id: MsgId, result: object = None, error: types.ResponseError | None = None) -> None:
        """Handle a client's response; ignore it if the server has cancelled the request."""
        future: Future[Any] | None = self._request_futures.get(msg_id)
        if future is not None and future.done():
            del self._request_futures[msg_id]
        else:
            super()._handle_response(msg_id, result, error)


def _bounded_integer(digits: str) -> int:
    """Return the integer of the first `_MAX_DIGITS` characters: Python raises on numbers of thousands of digits."""
    return int(digits[:_MAX_DIGITS])
