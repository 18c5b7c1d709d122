"""Runs functions that parse untrusted text in a child process with bounds on time and memory.

tree-sitter's error recovery cannot be interrupted, and its time and memory can grow faster than the square of the
text: 6 kB of `A=>` take the Java grammar ten seconds, 60 kB of `A<` more memory than a machine has. No scan of the
text predicts it. The kernel, or elsewhere than on Linux the parent, ends the child at its bounds. The caller gets
`ParseLimitError`, and the next call starts another child.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast, get_type_hints

from pydantic import TypeAdapter

from completion.cancellation import NEVER, CancelToken
from completion.errors import CancelledError, ParseLimitError
from completion.paths import module_environment
from completion.syntax.parsing import Parsing
from completion.syntax.parsing.child import FAILED, read, write

BY_KERNEL = sys.platform == "linux"
"""Whether the kernel ends the child at its bounds. Only Linux bounds memory."""
CPU_LIMIT_S = 1.0
"""CPU time of one call in seconds: several times that of the largest ordinary document."""
MEMORY_LIMIT_BYTES = 512 << 20
"""Address space of the child in bytes: several times that of the largest ordinary document."""
WALL_LIMIT_S = 10.0
"""Maximum wait for one call in seconds: a child that is stopped or swapped out uses no CPU time."""
REFUSED_CALLS = 100
"""Number of calls for a document that are refused after one exceeded a bound: they would exceed it too."""
WITHDRAWN_S = 0.05
"""CPU time in seconds that a call may take whose caller was cancelled. An ordinary text takes less, also on a busy
machine, and is then cached for the next call; what takes longer is ended with the child."""
POLL_INTERVAL_S = 0.02
"""Interval between two checks of the cancel token, and of a child's bounds without the kernel, in seconds."""

_MAX_REFUSED_DOCUMENTS = 64  # beyond which all of them get another chance
_MAX_NAME = 100  # of an error, in bytes
_CHILD = "completion.syntax.parsing.child"
_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")


class ParserProcess(Parsing):
    """Calls functions in a child process, which starts at the first call, or before. Not thread-safe.

    Args:
        cpu_limit_s: CPU time of one call in seconds.
        memory_limit_bytes: Address space of the child in bytes, without the kernel its resident memory.
        wall_limit_s: Maximum wait for one call in seconds.
        by_kernel: Whether the kernel ends the child at its bounds; otherwise this process looks at it.
    """

    def __init__(
        self,
        cpu_limit_s: float = CPU_LIMIT_S,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
        wall_limit_s: float = WALL_LIMIT_S,
        *,
        by_kernel: bool = BY_KERNEL,
    ) -> None:
        self._limits = (cpu_limit_s, memory_limit_bytes)
        self._wall_limit_s = wall_limit_s
        self._by_kernel = by_kernel
        self._earlier_cpu_s = 0.0  # CPU time of the child before the current call
        self._watched: ContextVar[tuple[CancelToken, str]] = ContextVar("watched", default=(NEVER, ""))
        self._refused: dict[str, int] = {}  # number of calls still to refuse, by document
        self._child: subprocess.Popen[bytes] | None = None
        self._killed: subprocess.Popen[bytes] | None = None  # it may still be the child, and serves no further call
        self._running: tuple[bytes, float] | None = None  # the call in the child, and when it began
        self._killing = threading.Lock()  # so that no other call than a running one is ended
        self._pipe_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="parser")

    def __call__(self, function: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Call a module-level function in the child and return its result.

        Raises:
            ParseLimitError: The call exceeded a bound on time or memory, or is refused.
            CancelledError: The watched token was cancelled. The call is withdrawn.
        """
        self.raise_if_cancelled()
        self._raise_if_refused()
        call = pickle.dumps((function, arguments, named), pickle.HIGHEST_PROTOCOL)
        try:
            answer = self._wait(self._pipe_thread.submit(self._exchange, call), call)
            return cast("_T", _result_of(function, answer))
        except (OSError, EOFError, ValueError) as error:
            self._killed = self._child
            self._refuse()
            raise ParseLimitError(
                f"Parsing {len(call)} bytes took more than {self._limits[0]} s of CPU time or {self._limits[1]} bytes "
                "of memory, or failed, and was stopped. The text is completed without its grammar."
            ) from error

    def start(self) -> None:
        """Start the child on another thread. If it cannot start, the first call says so."""
        self._pipe_thread.submit(self._living_child)

    def rest(self) -> None:
        """End the child on another thread, which gives back its memory, until the next call or `watch`."""
        self._pipe_thread.submit(self._end)

    def watch(self, cancel: CancelToken, document: str = "") -> None:
        """Set the token that cancels the next calls, and the document that they are for. Start a child that rested."""
        self._watched.set((cancel, document))
        if self._child is None:
            self.start()

    def raise_if_cancelled(self) -> None:
        """Raise if the watched token was cancelled.

        Raises:
            CancelledError: The watched token was cancelled.
        """
        self._watched.get()[0].raise_if_cancelled()

    def close(self) -> None:
        """Kill the child."""
        if self._child is not None:
            self._child.kill()  # which ends the exchange that the thread may wait for
        self._pipe_thread.shutdown(cancel_futures=True)
        self._end()  # the thread may have started another child meanwhile

    def _refuse(self) -> None:
        if len(self._refused) >= _MAX_REFUSED_DOCUMENTS:
            self._refused.clear()
        _, document = self._watched.get()
        if document:
            self._refused[document] = REFUSED_CALLS

    def _raise_if_refused(self) -> None:
        _, document = self._watched.get()
        remaining = self._refused.pop(document, 0)
        if remaining > 0:
            self._refused[document] = remaining - 1
            raise ParseLimitError(
                f"Parsing this document exceeded a bound; {remaining} calls for it are refused, this one included."
            )

    def _wait(self, answer: Future[bytes], call: bytes) -> bytes:
        """Return the child's answer; check the cancel token and the clock while waiting."""
        while True:
            with contextlib.suppress(TimeoutError):
                return answer.result(POLL_INTERVAL_S)
            try:
                self.raise_if_cancelled()
            except CancelledError:
                if not answer.cancel():
                    self._withdraw(answer, call)
                raise
            self._kill(call, after_s=0.0 if not self._by_kernel and self._exceeds_bounds() else self._wall_limit_s)

    def _exceeds_bounds(self) -> bool:
        child = self._child
        if child is None:
            return False
        return _cpu_s(child) - self._earlier_cpu_s > self._limits[0] or _memory_bytes(child) > self._limits[1]

    def _exchange(self, call: bytes) -> bytes:
        """Send a call and return its answer. Runs on its own thread, because a pipe can block in both directions."""
        child = self._living_child()
        assert child.stdin is not None  # noqa: S101  both are pipes
        assert child.stdout is not None  # noqa: S101
        self._earlier_cpu_s = _cpu_s(child)
        self._running = call, time.monotonic()
        try:
            write(child.stdin, call)
            return read(child.stdout)
        except (OSError, EOFError):
            self._end()
            raise
        finally:
            with self._killing:
                self._running = None

    def _living_child(self) -> subprocess.Popen[bytes]:
        if self._child is self._killed:
            self._end()
        if self._child is None:
            limits = self._limits if self._by_kernel else (0, 0)
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", _CHILD, *map(str, limits)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=module_environment(),
            )
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()

    def _withdraw(self, answer: Future[bytes], call: bytes) -> None:
        """Kill the child once a call has used the CPU for `WITHDRAWN_S`, or for its whole time without using it."""
        if answer.done():
            return
        child = self._child
        if self._running and child is not None:  # else the child starts
            self._kill(call, after_s=0.0 if _cpu_s(child) - self._earlier_cpu_s >= WITHDRAWN_S else self._wall_limit_s)
        again = threading.Timer(WITHDRAWN_S, self._withdraw, (answer, call))
        again.daemon = True
        again.start()

    def _kill(self, call: bytes, after_s: float = 0.0) -> None:
        """Kill the child if it has run a call for so long: the exchange ends with an error."""
        with self._killing:
            if self._running and self._running[0] is call and time.monotonic() - self._running[1] >= after_s:
                self._killed = self._child
                if self._child is not None:
                    self._child.kill()


def _result_of(function: Callable[..., Any], answer: bytes) -> Any:  # noqa: ANN401  what the function returns
    """Read an answer of the child as data of the type that the function declares: a text may have taken the child over.

    Raises:
        ValueError: It is none.
        RuntimeError: The function failed.
    """
    if answer[:1] == FAILED:
        name = answer[1:_MAX_NAME].decode("ascii", "replace")
        raise RuntimeError(f"{function.__name__} failed with {name} in the parser's process.")
    return _results_of(function).validate_json(answer)


@cache
def _results_of(function: Callable[..., Any]) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(function).get("return", Any))


def _cpu_s(child: subprocess.Popen[bytes]) -> float:
    """Return the CPU time of a child in seconds, zero if it has ended."""
    if sys.platform == "linux":  # which knows the clock of each process by its number, without psutil's import
        with contextlib.suppress(OSError):
            return time.clock_gettime(~child.pid << 3 | 2)
    else:
        import psutil  # noqa: PLC0415 - Linux does without it

        with contextlib.suppress(psutil.Error):
            times = psutil.Process(child.pid).cpu_times()
            return float(times.user + times.system)
    return 0.0


def _memory_bytes(child: subprocess.Popen[bytes]) -> int:
    """Return the resident memory of a child in bytes, zero if it has ended."""
    import psutil  # noqa: PLC0415 - Linux does without it

    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(child.pid).memory_info().rss)
    return 0
