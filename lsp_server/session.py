"""One client's session: its documents, settings, folders and engine, and the response to each message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from completion.language_ids import family_of
from lsp_server.changes import DocumentChanges, WorkspaceChanges, watched
from lsp_server.client_settings import ClientSettings, ask_to_choose, register
from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.documents.position_encoding import PositionEncoding
from lsp_server.documents.text_lines import Place
from lsp_server.documents.workspace_feed import WorkspaceFeed
from lsp_server.documents.workspace_folders import WorkspaceFolders, folders_at_start
from lsp_server.editing.next_edits import MAX_OTHERS, NextEditor, is_wanted
from lsp_server.editing.selection_edit import SelectionEditor
from lsp_server.empty_reason import EmptyReason
from lsp_server.engine.auto_model import ModelDownload
from lsp_server.engine.consent import CONSENT_FILE, Consent, by_rules
from lsp_server.engine.link import EngineLink
from lsp_server.messages import PARTIAL_COMPLETION, PARTIAL_EDIT, EditMessage, ItemName, NextEditQuery, Switch
from lsp_server.sending import Sending
from lsp_server.settings.client_profile import ClientProfile, profile_of
from lsp_server.settings.shared_file import OFF_FILE, HashedAnswers, state_file
from lsp_server.settings.table import Settings
from lsp_server.status import LoadingProgress, StatusKind, StatusReporter
from lsp_server.suggesting import items
from lsp_server.suggesting.inline_completion import InlineCompleter
from lsp_server.suggesting.preparation import Preparer
from lsp_server.suggesting.query import Answer, Query, selected_text, situation_at
from lsp_server.suggesting.quiet_controls import QuietControls
from lsp_server.suggesting.request_builder import RequestBuilder
from lsp_server.suggesting.request_policy import RequestPolicy
from lsp_server.telemetry.client_events import ClientEvents
from lsp_server.telemetry.recorder import SuggestionRecorder

BUSY_AFTER_S = 0.5
"""Time after which a request shows as busy in the status, in seconds. With less, the status would flicker."""


class Session:
    """The state of one client, and a method for each message that the server receives."""

    def __init__(self, server: LanguageServer, clock: Callable[[], float]) -> None:
        self._server = server
        self.documents = DocumentStore()
        self.folders = WorkspaceFolders()
        self._settings = ClientSettings(server, self.folders)
        self._shows_progress = False
        self._profile = ClientProfile()
        self.status = StatusReporter(server.protocol.notify)
        ask = partial(ask_to_choose, server)
        say = lambda sentence: self.status.update(message=sentence)  # noqa: E731
        self.download = ModelDownload(self._new_progress, say, lambda: self.engine.review())  # noqa: PLW0108 - made next
        self.engine = EngineLink(self.status, self._new_progress, self._engine_ready, self.download.note)
        self.consent = Consent(HashedAnswers(state_file(CONSENT_FILE)), lambda: self.settings, ask, self._consent_given)
        self.sending = Sending(lambda: self.settings, self.folders, self.consent)
        self.feed = WorkspaceFeed(
            self.folders,
            self.documents,
            self.engine.send,
            self._settings.of,
            may_send=self.sending.may_feed,
            is_trusted=lambda path: by_rules(self.settings.not_secret, path) is True,
        )
        self._lasting = ""  # why the last refused request was refused, and the next ones in its document will be
        self._background: set[asyncio.Task[None]] = set()
        switched_off = HashedAnswers(state_file(OFF_FILE))
        self.quiet = QuietControls(self.status, self._settings.of, self.folders, switched_off, clock)
        self.policy = RequestPolicy(self._settings.of, self.quiet, self._refusal_of_file, self.feed.consult, clock)
        self._builder = RequestBuilder(self.documents, self.folders, self.sending.may_share)
        self.completer = InlineCompleter(
            source=lambda: self.engine.source,
            policy=self.policy,
            build_request=lambda query: self._builder.build(
                query.document, query.place, query.settings, suggestions=query.wanted, invoked=query.invoked
            ),
            on_partial=self._send_partial,
            on_answer=self._note_answer,
        )
        self.selection_editor = SelectionEditor(
            self.documents,
            self.policy,
            source=lambda: self.engine.source,
            build_request=lambda document, code, instruction: self._builder.build_edit(
                document, code, instruction, self._settings.of(document.home)
            ),
            on_text=lambda id_, text: server.protocol.notify(PARTIAL_EDIT, {"id": id_, "text": text}),
        )
        self.next_editor = NextEditor(self.engine.next_edits, self._builder.path_of)
        self.preparer = Preparer(self._settings.of, self._prepare)
        self.recorder = SuggestionRecorder(lambda: self.status.status.model, clock)
        self.client_events = ClientEvents(self.policy, self.completer, self.recorder)
        self.document_changes = DocumentChanges(
            self.documents, self.policy, self.completer, self.recorder, self.client_events, self.feed, self.preparer
        )
        self.workspace_changes = WorkspaceChanges(
            self._settings, self.folders, self.feed, self.quiet, self.engine, self.recorder
        )

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._settings.now

    def initialize(self, params: types.InitializeParams) -> None:
        """Store the client's folders, position encoding, capabilities and options. Start no engine."""
        self.folders.add(folders_at_start(params))
        self.documents.encoding = PositionEncoding(self._server.workspace.position_encoding or PositionEncoding.UTF16)
        window = params.capabilities.window
        self._shows_progress = bool(window and window.work_done_progress)
        self._profile = profile_of(params)
        self._settings.initialize(params.initialization_options)

    async def start(self) -> None:
        """Handle `initialized`: register for notifications, request the settings, start the engine."""
        self.status.update()
        register(self._server, watched())
        await self.workspace_changes.start()

    async def close(self) -> None:
        """Stop all work, and close the engine client and the telemetry."""
        self.preparer.stop()
        self.quiet.close()
        self.consent.close()
        self.download.close()
        for document in self.documents:
            self.completer.clear(document.uri)
            self.recorder.document_closed(document)
        await self.feed.close()
        await self.workspace_changes.close()

    async def inline_completion(self, params: types.InlineCompletionParams) -> dict[str, Any]:
        """Answer `textDocument/inlineCompletion`."""
        invoked = params.context.trigger_kind is types.InlineCompletionTriggerKind.Invoked
        query = self._query(params.text_document.uri, params.position, invoked=invoked)
        if query is None:
            return {"items": []}
        query = replace(query, selected=selected_text(query, params.context.selected_completion_info))
        answer = await self.completer.answer(query)
        return {"items": items.inline_items(query, answer)}

    async def list_completion(self, params: types.CompletionParams) -> types.CompletionList:
        """Answer `textDocument/completion` for a client without inline completion."""
        context = params.context
        invoked = context is None or context.trigger_kind is types.CompletionTriggerKind.Invoked
        query = self._query(params.text_document.uri, params.position, invoked=invoked)
        if query is None:
            return types.CompletionList(is_incomplete=True, items=[])
        query = replace(query, single=True)
        answer = await self.completer.answer(query)
        return types.CompletionList(is_incomplete=True, items=items.list_items(query, answer))

    def move_cursor(self, uri: str, position: types.Position) -> None:
        """Handle a moved cursor: stop a generation that does not fit it, and prepare the engine's cache there."""
        document = self.documents.get(uri)
        if document is None:
            return
        self.quiet.update(document)
        place = document.place(position)
        if self.completer.cursor_moved(document, place):
            self.preparer.paused_at(document, place)
        else:
            self.preparer.now(document, place)

    def accepted(self, item: ItemName) -> None:
        """Handle the acceptance of a whole suggestion, and prepare the engine's cache for the request after it."""
        self.client_events.accepted(item)
        self.preparer.repeat_soon()

    async def next_edits(self, query: NextEditQuery, *, elsewhere: bool) -> dict[str, list[dict[str, Any]]]:
        """Answer `draftline/nextEdit` and `textDocument/copilotInlineEdit`: the edits, the first one first.

        Args:
            query: The request.
            elsewhere: Whether the edits may be of another document than the query names.
        """
        document = self.documents.get(query.uri)
        if document is None:
            return {"edits": []}
        family = family_of(document.language)
        opened = [one for one in reversed(list(self.documents)) if one is not document and not one.notebook]
        alike = [one for one in opened if family_of(one.language) == family]
        for each in (document, *alike[:MAX_OTHERS]):
            await self.policy.consult(each)
        if not self._wants_next_edits(query, document):
            return {"edits": []}
        others = (other for other in alike if self._wants_next_edits(replace(query, version=None), other))
        edits = await self.next_editor.edits(document, invoked=query.invoked, others=others, elsewhere=elsewhere)
        return {"edits": [edit.message() for edit in edits]}

    async def edit(self, wanted: EditMessage) -> dict[str, str]:
        """Answer `draftline/edit`."""
        return asdict(await self.selection_editor.edit(wanted))

    def _wants_next_edits(self, query: NextEditQuery, document: Document) -> bool:
        return is_wanted(query, document, self._settings.of(document.home).next_edit, self.policy)

    def switch(self, wanted: Switch) -> str:
        """Switch a document's file, language or workspace off or on; return the sentence for the status."""
        document = self.documents.get(wanted.uri)
        return EmptyReason.NOT_OPEN.sentence if document is None else self.quiet.switch(wanted, document)

    async def _prepare(self, document: Document, place: Place) -> None:
        version = document.version
        await self.policy.consult(document)
        if document.version != version or self.documents.get(document.uri) is not document:
            return
        if self.policy.refusal(document, place) is None and self.quiet.silence(document) is not EmptyReason.SNOOZED:
            settings, _ = self._settings.for_request(document)
            await self.engine.prepare(self._builder.build(document, place, settings))

    def _query(self, uri: str, position: types.Position, *, invoked: bool) -> Query | None:
        document = self.documents.get(uri)
        if document is None:
            self.recorder.telemetry.refused("", EmptyReason.NOT_OPEN)
            return None
        self.quiet.update(document)
        place = document.place(position)
        self.preparer.paused_at(document, place)
        asyncio.get_running_loop().call_later(BUSY_AFTER_S, self._update_busy)
        settings, arm = self._settings.for_request(document)
        if self.engine.saves_battery:
            settings = replace(settings, ahead=False)
        return Query(
            document=document,
            version=document.version,
            place=place,
            position=document.position(place),
            situation=situation_at(document, place),
            invoked=invoked,
            received=self.policy.clock(),
            settings=settings,
            arm=arm,
            profile=self._profile,
        )

    def _send_partial(self, query: Query, answer: Answer, done: bool) -> None:  # noqa: FBT001 - callbacks are called by position
        self.recorder.streamed(query, answer)
        self.client_events.offered(query, answer)
        self._server.protocol.notify(PARTIAL_COMPLETION, items.partial_params(query, answer, done=done))

    def _update_busy(self) -> None:
        """Set the status to busy or ready. Leave the states of a starting or failed engine as they are."""
        now = StatusKind.BUSY if self.completer.working else StatusKind.READY
        if self.status.status.kind in (StatusKind.BUSY, StatusKind.READY):
            self.status.update(kind=now)

    def _note_answer(self, query: Query, answer: Answer) -> None:
        if not self.completer.working:  # else the timer of the request that still waits sets the status
            self._update_busy()
        self.recorder.answered(query, answer)
        if answer.remainders:
            self.client_events.offered(query, answer)
        if answer.reason is EmptyReason.NOT_READY:
            self.engine.wake()
        elif answer.reason is not None and answer.reason.lasting:
            is_secret = answer.reason is EmptyReason.SECRET_FILE
            self._lasting = self.feed.secret_of(query.document.home) if is_secret else answer.reason.sentence
            self.status.update(message=self._lasting)
        elif self.status.status.message == self._lasting:  # of another document or an earlier position
            self.engine.say_again()
            self._update_busy()

    def _refusal_of_file(self, uri: str) -> EmptyReason | None:
        return self.feed.refusal_of(uri) or self.sending.refusal(uri)

    def _consent_given(self, fault: str) -> None:
        """Handle the user's answer about a workspace: do what waited for it, and show where text goes."""
        self.engine.say_again()
        if fault:
            self.status.update(message=fault)
        self._in_background(self.feed.scan())
        self.preparer.repeat_soon()

    def _new_progress(self) -> LoadingProgress:
        return LoadingProgress(self._server.work_done_progress if self._shows_progress else None)

    def _engine_ready(self) -> None:
        """Send the workspace to a new engine, and prepare its cache for the user's last position."""
        self.preparer.repeat_soon()
        self._in_background(self.feed.scan())

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
