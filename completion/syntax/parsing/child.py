"""The child process that runs functions for `process.py`, and the messages between the two."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pickle
import signal
import struct
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import IO, Any

if sys.platform == "linux":
    import resource

_LENGTH = struct.Struct("<Q")
_MOST_BYTES = 256 << 20  # of a message: several times that of the largest document
FAILED = b"!"
"""First byte of an answer that names the error with which a function failed; JSON never starts with it."""
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS of prctl.h
_TRIM_THRESHOLD = -1  # M_TRIM_THRESHOLD of glibc's malloc.h
_KEPT_BYTES = 128 << 10  # glibc's default, which it raises to twice the largest text that was freed


def write(pipe: IO[bytes], message: bytes) -> None:
    """Send a message with its length before it."""
    pipe.write(_LENGTH.pack(len(message)))
    pipe.write(message)
    pipe.flush()


def read(pipe: IO[bytes]) -> bytes:
    """Return the next message.

    Raises:
        EOFError: The other process ended.
    """
    header = pipe.read(_LENGTH.size)
    length = _LENGTH.unpack(header)[0] if len(header) == _LENGTH.size else 0
    message = pipe.read(length) if length <= _MOST_BYTES else b""
    if not message:
        raise EOFError("The process at the other end of the pipe ended, or sends what is no message.")
    return message


def _serve(cpu_limit_s: float, memory_limit_bytes: int) -> None:
    """Run calls until the parent ends. Limits of 0 are none."""
    calls, results = sys.stdin.buffer, sys.stdout.buffer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C in a terminal
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
    if sys.platform == "linux" and memory_limit_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit_bytes, memory_limit_bytes))
        for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
            resource.setrlimit(limit, (0, 0))  # a text that takes it over writes no file and starts no process
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    with contextlib.suppress(EOFError):
        while True:
            _answer(calls, results, cpu_limit_s)


def _answer(calls: IO[bytes], results: IO[bytes], cpu_limit_s: float) -> None:
    """Run the next call. No text of it is in memory afterwards, unless the function keeps it.

    Raises:
        EOFError: The parent ended.
    """
    call = read(calls)
    with _linux_cpu_limit(cpu_limit_s):
        result = _result(call)
    write(results, result)


def _result(call: bytes) -> bytes:
    """Return the outcome of a call as data that needs no trust: its result as JSON, or the name of its error.

    The text of an error stays here: it may quote the document.
    """
    try:
        function, arguments, named = pickle.loads(call)  # noqa: S301  from our own parent
        result = function(*arguments, **named)
    except MemoryError:
        os._exit(1)
    # The boundary of the process: every error of the function is named in the parent.
    except Exception as error:  # noqa: BLE001
        return FAILED + type(error).__name__.encode()
    return json.dumps(result, ensure_ascii=False, default=_plain).encode("utf-8", "replace")


def _plain(value: Any) -> object:  # noqa: ANN401  a dataclass or a set
    return {field.name: getattr(value, field.name) for field in fields(value)} if is_dataclass(value) else list(value)


@contextlib.contextmanager
def _linux_cpu_limit(seconds: float) -> Iterator[None]:
    """Let the kernel kill this process if the block takes more CPU time; 0 is no limit."""
    if sys.platform == "linux":
        signal.setitimer(signal.ITIMER_PROF, seconds)
    yield
    if sys.platform == "linux":
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    _serve(float(sys.argv[1]), int(sys.argv[2]))
