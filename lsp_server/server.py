"""The language server's capabilities and message handlers. Each handler only calls the session."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cattrs import Converter
from lsprotocol import converters, types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage

from lsp_server import messages
from lsp_server.settings.client_profile import profile_of
from lsp_server.wire.protocol import AnsweringProtocol

if TYPE_CHECKING:
    from lsp_server.session import Session

_log = logging.getLogger(__name__)

_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")], save=False
)
_NOTIFICATIONS: dict[str, Callable[[Session, Any], object]] = {
    types.TEXT_DOCUMENT_DID_OPEN: lambda session, params: session.document_changes.open(params),
    types.TEXT_DOCUMENT_DID_CHANGE: lambda session, params: session.document_changes.change(params),
    types.TEXT_DOCUMENT_DID_CLOSE: lambda session, params: session.document_changes.close(params.text_document.uri),
    types.NOTEBOOK_DOCUMENT_DID_OPEN: lambda session, params: session.documents.open_notebook(params),
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: lambda session, params: session.document_changes.change_notebook(params),
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: lambda session, params: session.document_changes.close_notebook(params),
    messages.DID_SHOW: lambda session, params: session.client_events.shown(messages.read_shown(params)),
    messages.DID_ACCEPT_PARTLY: lambda session, params: session.client_events.partly_accepted(
        *messages.read_part_accepted(params)
    ),
    messages.DID_REJECT: lambda session, params: session.client_events.rejected(*messages.read_rejected(params)),
    messages.DID_MOVE_CURSOR: lambda session, params: session.move_cursor(*messages.read_cursor(params)),
    messages.DIAGNOSTICS: lambda session, params: session.documents.report(*messages.read_diagnostics(params)),
    messages.NAMES: lambda session, params: session.documents.note_names(*messages.read_names(params)),
    messages.DID_SHOW_NEXT_EDIT: lambda _session, _params: None,  # that a client shows an edit changes nothing
}
_REQUESTS: dict[str, Callable[[Session, Any], Awaitable[object]]] = {
    types.INITIALIZED: lambda session, _params: session.start(),
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: lambda session, params: session.workspace_changes.change_configuration(
        params
    ),
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: lambda session, params: session.workspace_changes.change_folders(
        params
    ),
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: lambda session, params: session.workspace_changes.change_files(params),
    types.TEXT_DOCUMENT_DID_SAVE: lambda session, params: session.workspace_changes.saved(params),
    types.TEXT_DOCUMENT_INLINE_COMPLETION: lambda session, params: session.inline_completion(params),
    messages.EDIT: lambda session, params: session.edit(messages.read_edit(params)),
    messages.NEXT_EDIT: lambda session, params: session.next_edits(
        messages.read_next_edit_query(params), elsewhere=True
    ),
    messages.COPILOT_NEXT_EDIT: lambda session, params: session.next_edits(
        messages.read_next_edit_query(params), elsewhere=False
    ),
}
_COMMANDS: dict[str, Callable[[Session, Sequence[Any]], str | None]] = {
    messages.ACCEPTED_COMMAND: lambda session, arguments: session.accepted(messages.read_item_name(arguments)),
    messages.SNOOZE_COMMAND: lambda session, arguments: session.quiet.snooze(messages.read_minutes(arguments)),
    messages.RESUME_COMMAND: lambda session, _arguments: session.quiet.resume(),
    messages.GET_MODEL_COMMAND: lambda session, _arguments: session.download.begin(),
    messages.SWITCH_COMMAND: lambda session, arguments: session.switch(messages.read_switch(arguments)),
    messages.ACCEPTED_NEXT_EDIT_COMMAND: lambda session, arguments: session.next_editor.accept(
        messages.read_next_edit_id(arguments)
    ),
    messages.REFUSED_NEXT_EDIT_COMMAND: lambda session, arguments: session.next_editor.refuse(
        messages.read_next_edit_id(arguments)
    ),
}


class DraftlineServer(LanguageServer):
    """pygls' server with draftline's session. Errors go to the log, never to a dialog.

    Attributes:
        introduced: Set once the client has sent `initialize`.
    """

    protocol: AnsweringProtocol

    def __init__(self, token: str = "") -> None:
        super().__init__(
            "draftline",
            "",
            notebook_document_sync=_NOTEBOOKS,
            protocol_cls=AnsweringProtocol,
            converter_factory=_converter,
        )
        self.protocol.token = token
        # pygls would keep a second copy of every document. It also splits lines differently than LSP.
        for method in _NOTIFICATIONS:
            self.protocol.fm.builtin_features.pop(method, None)
        self.protocol.server_info = types.ServerInfo("draftline")
        self.introduced = asyncio.Event()
        self._initialize_params: types.InitializeParams | None = None
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The session, created at first use, so that `initialize` does not wait for its imports."""
        if self._session is None:
            from lsp_server.session import Session  # noqa: PLC0415 - imported late, see the docstring

            self._session = Session(self, time.monotonic)
            if self._initialize_params is not None:
                self._session.initialize(self._initialize_params)
        return self._session

    def remember(self, params: types.InitializeParams) -> None:
        """Keep the params of `initialize` for the session."""
        self._initialize_params = params
        self.introduced.set()

    async def close(self) -> None:
        """Close the session, if there is one."""
        if self._session is not None:
            await self._session.close()

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """Log an error and show no dialog. The log gets no text of the error, which may quote a document."""
        kind = str(error).partition(":")[0]
        is_ours = isinstance(error.__cause__, messages.InvalidMessageError)
        if is_ours or kind.endswith(messages.InvalidMessageError.__name__):  # of a request, or of a notification
            _log.warning("%s", error)
            return
        data = error.data if isinstance(error, JsonRpcException) else None
        frames = "".join(data["traceback"]) if isinstance(data, dict) and "traceback" in data else ""
        _log.error("%s: %s\n%s", source.__name__, kind, frames)


def create_server(token: str = "") -> DraftlineServer:
    """Return a server with all handlers. If `token` is not empty, it serves only a client that sends it."""
    server = DraftlineServer(token)
    _register_life(server)
    _register_tables(server)
    return server


def _converter() -> Converter:
    """Return lsprotocol's converter, changed to leave the params of draftline's own methods as plain JSON.

    Without detailed validation it stops at the first fault: a description of 3,000 faults blocks the event loop 0.8 s.
    """
    converter = converters.get_converter(Converter(detailed_validation=False))
    for message in (JsonRPCRequestMessage, JsonRPCResponseMessage, JsonRPCNotification):
        converter.register_structure_hook(message, _plain_message)
    return converter


def _plain_message(message: dict[str, Any], kind: type[Any]) -> Any:  # noqa: ANN401 - one of three message types
    return kind(**({"params": None} if kind is not JsonRPCResponseMessage else {}) | message)


@contextmanager
def _refusing() -> Iterator[None]:
    """Answer a request that has wrong fields with the sentence that says so; pygls would name our class before it."""
    try:
        yield
    except messages.InvalidMessageError as error:
        raise JsonRpcInvalidParams(str(error)) from error


def _register_life(server: DraftlineServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.remember(params)
        if not profile_of(params).has_inline:
            _register_list_completion(server)

    @server.feature(types.SHUTDOWN)
    async def shutdown(*_params: None) -> None:
        server.protocol.cancel_requests()
        await server.close()


def _register_tables(server: DraftlineServer) -> None:
    """Register the handlers that only read a message and call the session."""

    def notified(handler: Callable[[Session, Any], object]) -> Callable[[Any], None]:
        def handle(params: Any) -> None:  # noqa: ANN401 - pygls passes the server to a parameter of type `object`
            handler(server.session, params)

        return handle

    def requested(handler: Callable[[Session, Any], Awaitable[object]]) -> Callable[[Any], Awaitable[object]]:
        async def answer(params: Any) -> object:  # noqa: ANN401 - see above
            with _refusing():
                return await handler(server.session, params)

        return answer

    def commanded(handler: Callable[[Session, Sequence[Any]], str | None]) -> Callable[..., str | None]:
        def run(*arguments: Any) -> str | None:  # noqa: ANN401 - untyped JSON
            with _refusing():
                return handler(server.session, arguments)

        return run

    for method, handler in _NOTIFICATIONS.items():
        server.feature(method)(notified(handler))
    for method, request in _REQUESTS.items():
        # Without explicit options pygls does not advertise the capability.
        is_inline = method == types.TEXT_DOCUMENT_INLINE_COMPLETION
        server.feature(method, types.InlineCompletionOptions() if is_inline else None)(requested(request))
    for name, command in _COMMANDS.items():
        server.command(name)(commanded(command))


def _register_list_completion(server: DraftlineServer) -> None:
    """Register list completion. Only for clients without inline completion: others would show suggestions twice."""

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=list("([{.,:= ")))
    async def completion(params: types.CompletionParams) -> types.CompletionList:
        return await server.session.list_completion(params)
