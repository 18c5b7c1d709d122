"""Keeps track of the documents and workspaces that clients use, so that the engine forgets those without a user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from completion.request import Closing, CompletionRequest

CLIENT_HEADER = "Draftline-Client"
"""Header with the client's name. The client is connected while it holds a lease with the same name."""
_BETWEEN = "\0"
"""Separator between a document's key and its client's name; no header can contain it."""


def document_of(key: str) -> str:
    """Return the key that the client gave to a document."""
    return key.partition(_BETWEEN)[0]


def _own_key(name: str, document: str) -> str:
    return f"{document}{_BETWEEN}{name}" if name and document else document


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
        self._clients: dict[str, _Used] = {}

    @contextmanager
    def connected(self, name: str) -> Iterator[None]:
        """Count a client as connected within the block. A second lease with the same name has no effect."""
        if not name or name in self._clients:
            yield
            return
        self._clients[name] = _Used()
        try:
            yield
        finally:
            used = self._clients.pop(name)
            self._forget_unused(used.documents, used.workspaces)

    def own(self, name: str, request: CompletionRequest) -> CompletionRequest:
        """Note the document and workspace of a client's request, and return it with a document key of the client's own.

        Two editor windows may have different texts of one document: neither ends the other's requests, and each has a
        KV session.
        """
        request = replace(request, document=self.document(name, request.document))
        self.uses(name, request.workspace)
        return request

    def document(self, name: str, document: str) -> str:
        """Note a document that a client uses, and return the client's own key of it."""
        key = _own_key(name, document)
        if (used := self._clients.get(name)) and key:
            used.documents.add(key)
        return key

    def uses(self, name: str, workspace: str) -> None:
        """Note a workspace that a client uses; "" stands for none."""
        if (used := self._clients.get(name)) and workspace:
            used.workspaces.add(workspace)

    def close(self, name: str, closing: Closing) -> None:
        """Note documents and workspaces that a client no longer uses."""
        documents = {_own_key(name, document) for document in closing.documents}
        if used := self._clients.get(name):
            used.documents -= documents
            used.workspaces.difference_update(closing.workspaces)
        self._forget_unused(documents, closing.workspaces)

    def _forget_unused(self, documents: Iterable[str], workspaces: Iterable[str]) -> None:
        others = self._clients.values()
        closing = Closing(
            tuple(documents), tuple(key for key in workspaces if not any(key in other.workspaces for other in others))
        )
        if closing != Closing():
            self._forget(closing)
