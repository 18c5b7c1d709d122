"""The server's log on standard error. It contains no source text at any level."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from completion.host.process.log import cut

_OURS = ("lsp_server", "completion")
# pygls logs whole messages, which contain source text. Only its errors are logged, without their arguments.
_PYGLS_LEVEL = logging.ERROR


class BodyFreeFormatter(logging.Formatter):
    """Formats records of other packages without their arguments, which may contain a message's body."""

    def format(self, record: logging.LogRecord) -> str:
        """Format draftline's own records whole, others as their template and the type of their exception."""
        head = f"{self.formatTime(record)} {record.levelname} {record.name}: "
        if record.name.startswith(_OURS):
            return cut(head + super().format(record))
        error = record.exc_info[0] if record.exc_info else None
        return cut(head + str(record.msg).partition("\n")[0]) + (f" ({error.__name__})" if error else "")


def configure_log() -> None:
    """Send warnings and errors to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(BodyFreeFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("pygls").setLevel(_PYGLS_LEVEL)


def ignore_late_wakeups(loop: asyncio.AbstractEventLoop) -> None:
    """Keep an error without effect out of the log: a socket wakes a read that was cancelled in the same turn.

    anyio's Unix sockets wake a read with `add_reader(socket, future.set_result)`, also when the future is cancelled.
    """

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        is_wakeup = context["message"].startswith("Exception in callback Future.set_result")
        if not (is_wakeup and isinstance(context.get("exception"), asyncio.InvalidStateError)):
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)


def set_level(level: str) -> None:
    """Set the log level of draftline's own packages."""
    for name in _OURS:
        logging.getLogger(name).setLevel(level.upper())
