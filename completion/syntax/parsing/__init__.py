"""The way to call functions that parse: directly, or in another process (`process.py`).

The child process imports the modules of these functions, and this one with them. So they import little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from completion.cancellation import CancelToken

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Parsing(Protocol):
    """Runs functions that parse. The functions, their arguments and their results must be picklable."""

    def __call__(self, function: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Call a module-level function and return its result.

        Raises:
            ParseLimitError: The call exceeded a bound on time or memory.
            CancelledError: The watched token was cancelled.
        """

    def watch(self, cancel: CancelToken, document: str = "") -> None:
        """Set the token that cancels the next calls, and the document that they are for, in the caller's context."""

    def raise_if_cancelled(self) -> None:
        """Raise if the watched token was cancelled.

        Raises:
            CancelledError: The watched token was cancelled.
        """

    def close(self) -> None:
        """Release the resources."""


class InProcess:
    """Calls functions directly, without bounds: for trusted texts."""

    def __call__(self, function: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Call the function and return its result."""
        return function(*arguments, **named)

    def watch(self, cancel: CancelToken, document: str = "") -> None:
        """Do nothing: a direct call cannot be cancelled."""

    def raise_if_cancelled(self) -> None:
        """Do nothing: no token is watched."""

    def close(self) -> None:
        """Do nothing."""


IN_PROCESS = InProcess()
"""The default for direct callers: tests, benchmarks and scripts."""
