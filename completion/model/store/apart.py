"""Runs a step in a process of its own, so that the memory it takes for whole tensors is returned at its end."""

from __future__ import annotations

import os
import pickle
import pkgutil
import subprocess
import sys
from contextlib import nullcontext
from threading import Thread
from typing import IO, cast

from completion.errors import ModelError
from completion.paths import module_environment
from completion.progress import Progress, called_after


def run_apart(function: str, *arguments: object, progress: Progress, limit_s: float | None = None) -> None:
    """Call `function(*arguments, progress)` in a child process.

    Without a limit it is called in this process if that has torch and is large already.

    Args:
        function: Its name as "package.module:function", which only the child imports.
        arguments: They are pickled.
        progress: Called with what the function reports.
        limit_s: The child is ended after this time, in seconds.

    Raises:
        ModelError: The child ended before the function did, for example for lack of memory or at its limit.
        Exception: Whatever the function raises.
    """
    if limit_s is None and "torch" in sys.modules:
        pkgutil.resolve_name(function)(*arguments, progress)
        return
    command = [sys.executable, "-P", "-m", __name__, function]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=module_environment()) as child:
        calls, messages = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        try:
            calls.write(pickle.dumps(arguments))
            calls.flush()
            with nullcontext() if limit_s is None else called_after(limit_s, child.kill):
                _follow(messages, progress)
        except (EOFError, BrokenPipeError):
            raise ModelError(
                f"Preparing the model ended with exit status {child.wait()}, perhaps for lack of memory. "
                "Close other programs and try again."
            ) from None
        finally:
            child.kill()  # if the progress callback raised; without effect at the end


def _follow(messages: IO[bytes], progress: Progress) -> None:
    """Report progress until the child's function returns.

    Raises:
        EOFError: The child ended before.
        Exception: Whatever the function raised.
    """
    while (message := pickle.load(messages)) is not None:  # noqa: S301  from our own child
        if isinstance(message, Exception):
            raise message
        progress(*message)


def _serve(function: str) -> None:
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries may print

    def send(message: object) -> None:
        pickle.dump(message, messages)
        messages.flush()

    arguments = pickle.load(sys.stdin.buffer)  # noqa: S301  from our own parent
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        pkgutil.resolve_name(function)(*arguments, lambda sentence, fraction: send((sentence, fraction)))
    # The boundary of the process: every error of the function is raised again in the parent.
    except Exception as error:  # noqa: BLE001
        send(error)
    else:
        send(None)


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # there is nothing to read: it returns when the parent has ended
    os._exit(1)


if __name__ == "__main__":
    _serve(sys.argv[1])
