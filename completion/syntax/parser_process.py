"""Runs functions that parse other people's text in a child process with bounds on time and memory.

tree-sitter recovers from errors in steps that cannot be interrupted, and one such step may take time and memory that
grow faster than the square of the text: 6 kB of `A=>` take its Java grammar ten seconds, 60 kB of `A<` more memory
than a machine has. No scan of the text foretells it. The kernel ends the child at its bounds, the caller gets
`ParseLimitError`, and the next call starts another child.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, ParamSpec, Protocol, TypeVar, cast

from completion.cancellation import CancelToken
from completion.errors import ParseLimitError

if sys.platform != "win32":
    import resource
    import signal

CPU_LIMIT_S = 1.0
"""CPU time of one call: several times what the largest ordinary document takes."""
MEMORY_LIMIT_BYTES = 512 << 20
"""Address space of the child: several times what the largest ordinary document takes."""
WALL_LIMIT_S = 10.0
"""Longest wait for one call: a child that is stopped or swapped out uses no CPU time."""
REFUSED_CALLS = 100
"""Calls about a document that are refused after one that met a bound: the next keys would meet it again."""
LOOK_S = 0.02
"""Pause between two looks at the cancel token."""

_MOST_REFUSED_DOCUMENTS = 64
_LENGTH = struct.Struct("<Q")
_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Parsing(Protocol):
    """Calls functions that parse. They and their arguments can be pickled, and so can their results."""

    def __call__(self, function: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Call a module-level function.

        Raises:
            ParseLimitError: The call was ended at a bound of time or memory.
            CancelledError: The watched token was cancelled.
        """

    def watch(self, cancel: CancelToken, document: str = "") -> None:
        """Let the calls from now on, which are about a document, end when a token is cancelled."""

    def raise_if_cancelled(self) -> None:
        """End the work on a text here if nobody waits for it.

        Raises:
            CancelledError: The watched token was cancelled.
        """

    def close(self) -> None:
        """Give the resources back."""


class InProcess:
    """Calls directly, without bounds: for texts that the caller trusts."""

    def __call__(self, function: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Call the function."""
        return function(*arguments, **named)

    def watch(self, cancel: CancelToken, document: str = "") -> None:
        """Does nothing: a direct call cannot be ended."""

    def raise_if_cancelled(self) -> None:
        """Does nothing: no token is watched."""

    def close(self) -> None:
        """Does nothing."""


IN_PROCESS = InProcess()
"""The default for direct callers: tests, benchmarks and scripts."""


class ParserProcess:
    """Calls in a child process, which starts with the first call. For use by one thread at a time."""

    def __init__(
        self,
        cpu_limit_s: float = CPU_LIMIT_S,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
        wall_limit_s: float = WALL_LIMIT_S,
    ) -> None:
        self._limits = (str(cpu_limit_s), str(memory_limit_bytes))
        self._wall_limit_s = wall_limit_s
        self._cancel = CancelToken()
        self._document = ""
        self._refused: dict[str, int] = {}  # calls that are still to be refused, by document
        self._child: subprocess.Popen[bytes] | None = None
        self._talk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="parser")

    def __call__(self, function: Callable[_P, _T], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Call a module-level function in the child.

        Raises:
            ParseLimitError: The call was ended at a bound of time or memory.
            CancelledError: The watched token was cancelled; the child finishes the call before the next one.
        """
        self.raise_if_cancelled()
        self._raise_if_refused()
        call = pickle.dumps((function, arguments, named), pickle.HIGHEST_PROTOCOL)
        try:
            succeeded, result = self._wait(self._talk.submit(self._exchange, call))
        except (OSError, EOFError) as error:
            self._refuse()
            raise ParseLimitError(
                f"Parsing {len(call)} bytes took more than {self._limits[0]} s of CPU time or {self._limits[1]} bytes "
                "of memory and was ended. The text is completed without its grammar."
            ) from error
        if not succeeded:
            raise result
        return cast("_T", result)

    def watch(self, cancel: CancelToken, document: str = "") -> None:
        """Let the calls from now on, which are about a document, end when a token is cancelled."""
        self._cancel, self._document = cancel, document

    def raise_if_cancelled(self) -> None:
        """End the work on a text here if nobody waits for it.

        Raises:
            CancelledError: The watched token was cancelled.
        """
        self._cancel.raise_if_cancelled()

    def close(self) -> None:
        """End the child."""
        self._end()
        self._talk.shutdown()
        if self._child is not None:
            self._child.wait()

    def _refuse(self) -> None:
        if len(self._refused) >= _MOST_REFUSED_DOCUMENTS:
            self._refused.clear()
        if self._document:
            self._refused[self._document] = REFUSED_CALLS

    def _raise_if_refused(self) -> None:
        left = self._refused.pop(self._document, 0)
        if left > 0:
            self._refused[self._document] = left - 1
            raise ParseLimitError(f"Parsing this document met a bound; the next {left} calls are refused, too.")

    def _wait(self, answer: Future[Any]) -> Any:  # noqa: ANN401  what the function returns
        """The child's answer; looks at the cancel token and the clock meanwhile."""
        deadline = time.monotonic() + self._wall_limit_s
        while True:
            with contextlib.suppress(TimeoutError):
                return answer.result(LOOK_S)
            self.raise_if_cancelled()
            if time.monotonic() > deadline:
                self._end()  # the exchange ends with an error

    def _exchange(self, call: bytes) -> Any:  # noqa: ANN401  what the function returns
        """Send a call and read its result. Runs on a thread of its own, for a pipe may block in both directions."""
        child = self._child = self._child or self._start()
        assert child.stdin is not None  # noqa: S101  both are pipes
        assert child.stdout is not None  # noqa: S101
        try:
            _write(child.stdin, call)
            answer = _read(child.stdout)
        except (OSError, EOFError):
            self._child = None
            child.kill()
            child.wait()
            raise
        return pickle.loads(answer)  # noqa: S301  our own child's

    def _start(self) -> subprocess.Popen[bytes]:
        root = str(Path(__file__).parents[2])
        return subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, *self._limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))},
        )

    def _end(self) -> None:
        child = self._child
        if child is not None:
            child.kill()


def _write(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(_LENGTH.pack(len(message)))
    pipe.write(message)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes:
    """The next message.

    Raises:
        EOFError: The other side ended.
    """
    header = pipe.read(_LENGTH.size)
    message = pipe.read(_LENGTH.unpack(header)[0]) if len(header) == _LENGTH.size else b""
    if not message:
        raise EOFError("The other side of the pipe ended.")
    return message


def _serve(cpu_limit_s: float, memory_limit_bytes: int) -> None:
    """Answer calls until the parent ends."""
    calls, results = sys.stdin.buffer, sys.stdout.buffer
    if sys.platform != "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the parent's business
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit_bytes, memory_limit_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            call = _read(calls)
        except EOFError:
            return
        with _cpu_limit(cpu_limit_s):
            result = _result(call)
        _write(results, result)


def _result(call: bytes) -> bytes:
    """The pickled outcome of a call: whether it succeeded, and its result or error."""
    try:
        function, arguments, named = pickle.loads(call)  # noqa: S301  our own parent's
        outcome = (True, function(*arguments, **named))
    except MemoryError:
        os._exit(1)
    # The boundary of the process: whatever a text provokes is raised where the function was called.
    except Exception as error:  # noqa: BLE001
        outcome = (False, error)
    return pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)


@contextlib.contextmanager
def _cpu_limit(seconds: float) -> Iterator[None]:
    """Let the kernel end this process when a block takes more CPU time."""
    if sys.platform == "win32":
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    _serve(float(sys.argv[1]), int(sys.argv[2]))
