"""Remembers the documents on which hosts ended, so that no document ends one host after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from completion.errors import DocumentRefusedError
from completion.request import CompletionRequest

HOSTS = 2
"""Hosts that may end on a document in a row: the first one may have ended for another reason."""
REFUSED_S = 60.0
"""Time after which a changed version of such a document is sent again."""


@dataclass(slots=True)
class _Deaths:
    """The hosts that ended on a document since its last answer.

    Attributes:
        versions: Hashes of the document's texts that were sent to them.
        last_s: When the last one ended.
    """

    count: int = 0
    versions: set[int] = field(default_factory=set)
    last_s: float = 0.0


class FatalDocuments:
    """Counts the hosts that ended while they worked on a document.

    Args:
        clock: Seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._deaths: dict[str, _Deaths] = {}

    def host_ended(self, request: CompletionRequest) -> None:
        """Count a host that ended before it answered a request."""
        deaths = self._deaths.setdefault(request.document, _Deaths())
        deaths.count += 1
        deaths.versions.add(_version(request))
        deaths.last_s = self._clock()

    def answered(self, request: CompletionRequest) -> None:
        """Forget what happened on a document: a host answered."""
        self._deaths.pop(request.document, None)

    def check(self, request: CompletionRequest) -> None:
        """Refuse a request on which hosts would end again.

        Raises:
            DocumentRefusedError: Too many hosts ended on its document.
        """
        deaths = self._deaths.get(request.document)
        if deaths is None or deaths.count < HOSTS:
            return
        left_s = deaths.last_s + REFUSED_S - self._clock()
        if left_s > 0 or _version(request) in deaths.versions:
            raise DocumentRefusedError(
                f"{deaths.count} engines ended while they completed this document. It is not sent again until it is "
                f"changed and {max(left_s, 0):.0f} s have passed. The engine's log says more (`draftline doctor`)."
            )


def _version(request: CompletionRequest) -> int:
    """The same for every cursor in the same text."""
    return hash(request.prefix + request.suffix)
