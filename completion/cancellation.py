"""A token that cancels or hurries a request; every stage gets it as a parameter."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from completion.errors import CancelledError


class CancelToken:
    """The state of one request's cancellation. Any thread may set it; the work checks it between steps and chunks.

    Attributes:
        hurried: Whether `hurry` was called.
    """

    __slots__ = ("_callbacks", "_cancelled_s", "_flag", "_hurried", "hurried")

    def __init__(self) -> None:
        self.hurried = False
        self._flag = ctypes.c_int64(0)
        self._cancelled_s = 0.0
        self._callbacks: list[Callable[[], None]] = []
        self._hurried: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return bool(self._flag.value)

    @property
    def address(self) -> int:
        """Address of an int64 that is 0 until `cancel` is called, for compiled code; valid as long as the token."""
        return ctypes.addressof(self._flag)

    def cancel(self) -> None:
        """Make the work stop at its next check."""
        if not self.cancelled:
            self._cancelled_s = time.perf_counter()
            self._flag.value = 1
            for callback in tuple(self._callbacks):
                callback()

    @contextmanager
    def calling(self, callback: Callable[[], None], hurried: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Call a function when `cancel` is called during the block, or at once if it was called before.

        It runs on the thread that cancels, perhaps twice, and must neither wait nor raise. The same holds for
        `hurried`, which is called for `hurry`.
        """
        self._callbacks.append(callback)
        self._hurried.append(hurried)
        try:
            if self.cancelled:
                callback()
            if self.hurried:
                hurried()
            yield
        finally:
            self._callbacks.remove(callback)
            self._hurried.remove(hurried)

    def since_s(self) -> float:
        """Return the time since `cancel` was called, in seconds; 0 if it was not called."""
        return time.perf_counter() - self._cancelled_s if self.cancelled else 0.0

    def hurry(self) -> None:
        """Make the work skip what is optional, because another request waits."""
        self.hurried = True
        for callback in tuple(self._hurried):
            callback()

    def raise_if_cancelled(self) -> None:
        """Check the token.

        Raises:
            CancelledError: `cancel` was called.
        """
        if self.cancelled:
            raise CancelledError("The request was cancelled.")


NEVER = CancelToken()
"""A token that nobody cancels."""
