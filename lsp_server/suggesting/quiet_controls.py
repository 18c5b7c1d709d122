"""The user's quiet controls: manual mode, the snooze, and what is switched off by setting or command."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from completion.errors import StorageError
from lsp_server.documents.documents import Document
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.empty_reason import EmptyReason
from lsp_server.messages import OffScope, Switch
from lsp_server.settings.shared_file import HashedAnswers
from lsp_server.settings.table import Settings
from lsp_server.status import StatusReporter
from lsp_server.wire.document_uri import path_of


@dataclass(slots=True)
class QuietControls:
    """What keeps suggestions away from one client because its user wants so.

    Each method that changes something returns the sentence for the status, which it also updates.
    """

    status: StatusReporter
    settings: Callable[[str], Settings]
    folders: WorkspaceFolders
    switched_off: HashedAnswers  # by command, for all servers of this user
    clock: Callable[[], float]
    _snoozed_until: float = -math.inf
    _snooze_end: str = ""
    _end_timer: asyncio.TimerHandle | None = None
    _document: Document | None = None
    _off_until_closed: set[str] = field(default_factory=set)  # documents on no disk: a later one is another one

    def off(self, document: Document) -> EmptyReason | None:
        """Return why a document gets no suggestions at all; None if nothing that holds for it is switched off."""
        settings = self.settings(document.home)
        if not settings.enabled:
            return EmptyReason.DISABLED
        if document.language in settings.languages_off:
            return EmptyReason.LANGUAGE_OFF
        off = (scope for scope in OffScope if self._is_off(scope, self._name(scope, document)))
        return next((EmptyReason[f"{scope.name}_OFF"] for scope in off), None)

    def silence(self, document: Document | None) -> EmptyReason | None:
        """Return why there are no automatic suggestions in a document now; None if there are."""
        if self.clock() < self._snoozed_until:
            return EmptyReason.SNOOZED
        is_manual = self.settings(document.home if document else "").trigger == "manual"
        return EmptyReason.MANUAL if is_manual else None

    def snooze(self, minutes: float) -> str:
        """Make no automatic suggestions for some minutes, or with an infinity until the server ends."""
        self._stop_timer()
        self._snoozed_until = self.clock() + 60 * minutes
        self._snooze_end = "the server is restarted"
        if math.isfinite(minutes):
            self._snooze_end = time.strftime("%H:%M", time.localtime(time.time() + 60 * minutes))
            self._end_timer = asyncio.get_running_loop().call_later(60 * minutes, self.update)
        return self.update()

    def resume(self) -> str:
        """End the snooze."""
        self._stop_timer()
        self._snoozed_until = -math.inf
        return self.update()

    def switch(self, wanted: Switch, document: Document) -> str:
        """Switch a document's file, language or workspace off or on, and remember it for all servers.

        The settings `enabled` and `languages_off` stay as they are.
        """
        name = self._name(wanted.scope, document)
        if not name:
            return "The file belongs to no folder that is open."
        is_off = not self._is_off(wanted.scope, name) if wanted.is_off is None else wanted.is_off
        try:
            if wanted.scope is OffScope.FILE and path_of(name) is None:
                (self._off_until_closed.add if is_off else self._off_until_closed.discard)(name)
            else:
                self.switched_off.set(wanted.scope, name, answer=is_off or None)
        except StorageError as error:
            return f"{self.update(document)} This lasts until the server ends. {error}"
        return self.update(document) or f"Completion is switched on for this {wanted.scope}."

    def update(self, document: Document | None = None) -> str:
        """Update the status for the document where the user is; None for the last one. Return its sentence."""
        self._document = document or self._document
        reason = (self.off(self._document) if self._document else None) or self.silence(self._document)
        sentence = reason.sentence if reason else ""
        if reason is EmptyReason.SNOOZED:
            sentence = f"{sentence.removesuffix('.')} until {self._snooze_end}."
        self.status.update(quiet=sentence)
        return sentence

    def document_closed(self, uri: str) -> None:
        """Forget a closed document."""
        self._off_until_closed.discard(uri)

    def close(self) -> None:
        """Stop the timer, and forget the document."""
        self._stop_timer()
        self._document = None

    def _stop_timer(self) -> None:
        if self._end_timer is not None:
            self._end_timer.cancel()

    def _is_off(self, scope: OffScope, name: str) -> bool:
        return name in self._off_until_closed or self.switched_off.get(scope, name) is True

    def _name(self, scope: OffScope, document: Document) -> str:
        """Return what a scope means for a document: a URI or a language identifier; "" without a workspace folder."""
        if scope is OffScope.LANGUAGE:
            return document.language
        if scope is OffScope.FILE:
            return document.home
        path = path_of(document.home)
        folder = self.folders.folder_of(path) if path else None
        return folder.uri if folder else ""
