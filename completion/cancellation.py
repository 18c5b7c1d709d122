"""A token that says that nobody waits for the answer, or that somebody else waits; it goes down as a parameter."""

from __future__ import annotations

import threading
import time

from completion.errors import CancelledError


class CancelToken:
    """Set once, by any thread; checked between two model steps or chunks."""

    __slots__ = ("_cancelled_s", "_event", "_hurry")

    def __init__(self) -> None:
        self._event = threading.Event()
        self._hurry = threading.Event()
        self._cancelled_s = 0.0

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Ask the work to stop at its next check."""
        if not self._event.is_set():
            self._cancelled_s = time.perf_counter()
            self._event.set()

    def since_s(self) -> float:
        """How long ago `cancel` was called; 0 where it was not."""
        return time.perf_counter() - self._cancelled_s if self._event.is_set() else 0.0

    @property
    def hurried(self) -> bool:
        """Whether `hurry` was called."""
        return self._hurry.is_set()

    def hurry(self) -> None:
        """Ask the work to leave out what it can: somebody else waits."""
        self._hurry.set()

    def raise_if_cancelled(self) -> None:
        """End the work here if nobody waits for it.

        Raises:
            CancelledError: `cancel` was called.
        """
        if self._event.is_set():
            raise CancelledError("The request was cancelled.")
