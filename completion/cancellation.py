"""A token that says that nobody waits for the answer any more; it goes down as a parameter."""

from __future__ import annotations

import threading

from completion.errors import CancelledError


class CancelToken:
    """Set once, by any thread; checked between two model steps or chunks."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Ask the work to stop at its next check."""
        self._event.set()

    def raise_if_cancelled(self) -> None:
        """End the work here if nobody waits for it.

        Raises:
            CancelledError: `cancel` was called.
        """
        if self._event.is_set():
            raise CancelledError("The request was cancelled.")
