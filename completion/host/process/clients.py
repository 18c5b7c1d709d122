"""Who uses which documents and workspaces: users share none, and the engine forgets what no client uses any more."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from completion.edits import NextEditRequest
from completion.request import Closing, CompletionRequest, Message, WorkspaceUpdate

CLIENT_HEADER = "Draftline-Client"
"""Header with the client's name. The client is connected while it holds a lease with the same name."""
KEPT_CONVERSATIONS = 4
"""Number of a user's last conversations that the engine keeps: chat programs also ask for titles meanwhile."""
_BETWEEN = "\0"
"""Separator between a key and its owner's name; neither headers nor users' names can contain it."""
_CONVERSATION = "conversation:"
"""Start of the key of a conversation."""
_COMMAND = "command:"
"""Start of the key of a text that commands of the terminal complete."""

_Sent = TypeVar("_Sent", bound=CompletionRequest | NextEditRequest | WorkspaceUpdate)


def conversation_key(messages: Sequence[Message]) -> str:
    """Return the document of a conversation: its next question has the same one, and so finds what is cached.

    It depends on the messages up to the user's first one.
    """
    end = next((number for number, message in enumerate(messages, 1) if message.role == "user"), len(messages))
    return _CONVERSATION + hashlib.blake2b(repr(messages[:end]).encode(), digest_size=16).hexdigest()


def command_key(name: str) -> str:
    """Return the document of a text that commands complete.

    Two runs at once do not end each other, and a later one finds what is cached.
    """
    return _COMMAND + name


def is_shared(key: str) -> bool:
    """Return whether independent requests may have a document's key, so that none makes another one needless."""
    return document_of(key) == "" or key.startswith((_CONVERSATION, _COMMAND))


def document_of(key: str) -> str:
    """Return the key that the client gave to a document."""
    return key.partition(_BETWEEN)[0]


def lasting_key(key: str) -> str:
    """Return the user's key of a document without the client's name, which ends with the client."""
    document, *client = key.rsplit(_BETWEEN, 2)
    return _BETWEEN.join((document, *client[1:]))


def owner_of(key: str) -> str:
    """Return whose a document or workspace is: the user, else the client, else ""."""
    return key.rpartition(_BETWEEN)[2] if _BETWEEN in key else ""


@dataclass(frozen=True, slots=True)
class Client:
    """A sender of requests.

    Attributes:
        name: Name of an editor's window; "" for programs that have none.
        user: Name that belongs to the sender's token; "" for the host's own user.
    """

    name: str = ""
    user: str = ""

    def document(self, key: str) -> str:
        """Return the client's own key of a document. Texts without a document have one for each user."""
        if self.user:
            return _BETWEEN.join((key, self.name, self.user))
        return f"{key}{_BETWEEN}{self.name}" if self.name and key else key

    def workspace(self, key: str) -> str:
        """Return the user's own key of a workspace. What belongs to none has a key for each user, too."""
        return f"{key}{_BETWEEN}{self.user}" if self.user else key


@dataclass(slots=True)
class _Used:
    """The documents and workspaces that one client uses."""

    documents: set[str] = field(default_factory=set)
    workspaces: set[str] = field(default_factory=set)


class HostClients:
    """The clients that have a name and a lease. For other clients, only the engine's memory budgets apply.

    Args:
        forget: Called with the keys of documents and workspaces that no client uses any more.
    """

    def __init__(self, forget: Callable[[Closing], None]) -> None:
        self._forget = forget
        self._clients: dict[Client, _Used] = {}
        self._conversations: dict[str, list[str]] = {}  # keys of each user's last ones, the latest at the end

    @contextmanager
    def connected(self, client: Client) -> Iterator[None]:
        """Count a client as connected within the block. A second lease with the same name has no effect."""
        if not client.name or client in self._clients:
            yield
            return
        self._clients[client] = _Used()
        try:
            yield
        finally:
            used = self._clients.pop(client)
            self._forget_unused(used.documents, used.workspaces)

    def own(self, client: Client, sent: _Sent) -> _Sent:
        """Note the document and workspace of what a client sends, and return it with keys of the client's own.

        Two editor windows may have different texts of one document: neither ends the other's requests, and each has a
        KV session. No user's text serves another user.
        """
        used, keys = self._clients.get(client, _Used()), dict[str, str]()
        if isinstance(sent, CompletionRequest | NextEditRequest):
            keys["document"] = client.document(sent.document)
            used.documents.update([keys["document"]] if sent.document else ())
        if isinstance(sent, CompletionRequest | WorkspaceUpdate):
            keys["workspace"] = client.workspace(sent.workspace)
            used.workspaces.update([keys["workspace"]] if sent.workspace else ())
        if isinstance(sent, CompletionRequest) and sent.document.startswith(_CONVERSATION):
            self._keep(keys["document"], client.user)
        return replace(sent, **keys)  # type: ignore[arg-type] # each has the fields of its keys

    def close(self, client: Client, closing: Closing) -> None:
        """Note documents and workspaces that a client no longer uses."""
        documents, workspaces = map(client.document, closing.documents), map(client.workspace, closing.workspaces)
        closed = _Used(set(documents), set(workspaces))
        if used := self._clients.get(client):
            used.documents -= closed.documents
            used.workspaces -= closed.workspaces
        self._forget_unused(closed.documents, closed.workspaces)

    def _keep(self, conversation: str, user: str) -> None:
        """Note a conversation of a user as the last one, and forget those that are too many now."""
        others = [key for key in self._conversations.get(user, ()) if key != conversation]
        known = [*others, conversation]
        self._conversations[user] = known[-KEPT_CONVERSATIONS:]
        self._forget_unused(known[:-KEPT_CONVERSATIONS], ())

    def _forget_unused(self, documents: Iterable[str], workspaces: Iterable[str]) -> None:
        others = self._clients.values()
        closing = Closing(
            tuple(documents), tuple(key for key in workspaces if not any(key in other.workspaces for other in others))
        )
        if closing != Closing():
            self._forget(closing)
