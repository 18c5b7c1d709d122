"""Keeps track of the documents and workspaces that clients use, so that the engine forgets those without a user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from completion.request import Closing

CLIENT_HEADER = "Draftline-Client"
"""Header with the client's name. The client is connected while it holds a lease with the same name."""


@dataclass(slots=True)
class _Used:
    """The documents and workspaces that one client uses."""

    documents: set[str] = field(default_factory=set)
    workspaces: set[str] = field(default_factory=set)


class HostClients:
    """The clients that have a name and a lease. For other clients, only the engine's memory budgets apply.

    Args:
        forget: Called with the documents and workspaces that no client uses any more.
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

    def uses(self, name: str, *, document: str = "", workspace: str = "") -> None:
        """Note a document or workspace that a client uses; "" stands for none."""
        used = self._clients.get(name)
        if used is not None:
            used.documents |= {document} - {""}
            used.workspaces |= {workspace} - {""}

    def close(self, name: str, closing: Closing) -> None:
        """Note documents and workspaces that a client no longer uses."""
        if used := self._clients.get(name):
            used.documents.difference_update(closing.documents)
            used.workspaces.difference_update(closing.workspaces)
        self._forget_unused(closing.documents, closing.workspaces)

    def _forget_unused(self, documents: Iterable[str], workspaces: Iterable[str]) -> None:
        others = self._clients.values()
        closing = Closing(
            tuple(key for key in documents if not any(key in other.documents for other in others)),
            tuple(key for key in workspaces if not any(key in other.workspaces for other in others)),
        )
        if closing != Closing():
            self._forget(closing)
