"""Which clients use which documents and workspaces; what the last of them closes or leaves behind is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from completion.request import Closing

CLIENT_HEADER = "Draftline-Client"
"""Names the client of a request; a lease under the same name says how long the client lives."""


@dataclass(slots=True)
class _Used:
    """What one client uses."""

    documents: set[str] = field(default_factory=set)
    workspaces: set[str] = field(default_factory=set)


class HostClients:
    """The clients with a name and a lease. What others use is left to the engine's memory budgets.

    Args:
        forget: Called with what nobody uses any more.
    """

    def __init__(self, forget: Callable[[Closing], None]) -> None:
        self._forget = forget
        self._clients: dict[str, _Used] = {}

    @contextmanager
    def connected(self, name: str) -> Iterator[None]:
        """While a client's lease is open; its name is its own, and its alone."""
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
        """Note what a client uses; "" is nothing, and stands for what clients without keys share."""
        used = self._clients.get(name)
        if used is not None:
            used.documents |= {document} - {""}
            used.workspaces |= {workspace} - {""}

    def close(self, name: str, closing: Closing) -> None:
        """A client no longer uses something."""
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
