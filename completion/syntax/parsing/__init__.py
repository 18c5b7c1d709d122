"""The way to call functions that parse: directly, or in another process (`process.py`).

The child process imports the modules of these functions, and this one with them. So they import little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from completion.cancellation import CancelToken

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Parsing:
    """Calls functions that parse directly, without bounds: for trusted texts.

    For another process, functions, arguments and results must be picklable.
    """

    def __call__(self, function: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Call a module-level function and return its result."""
        return function(*arguments, **named)

    def watch(self, cancel: CancelToken, document: str = "") -> None:
        """Do nothing: a direct call cannot be cancelled."""

    def raise_if_cancelled(self) -> None:
        """Do nothing: no token is watched."""

    def close(self) -> None:
        """Do nothing."""


IN_PROCESS = Parsing()
"""The default for direct callers: tests, benchmarks and scripts."""
