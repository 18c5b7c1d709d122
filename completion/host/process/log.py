"""The host's log: a rotated file that never contains source text."""

from __future__ import annotations

import asyncio
import logging
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any

from completion.paths import writing_to
from drafting.state_files import require_file

_FILE_BYTES = 1_000_000
_OLD_FILES = 2


_MOST_CHARACTERS = 10_000  # of a record, with its traceback: words of a client or of a server may be in it


def cut(line: str) -> str:
    """Return as much of a record as a log takes: several times the longest of draftline's own."""
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}… ({len(line)} characters)"


class NoTextFormatter(logging.Formatter):
    """Formats an exception as its traceback and type, without its message, which may quote source text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record, cut."""
        return cut(super().format(record))

    def formatException(  # noqa: N802 - the name is logging's
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        """Return the frames and the type of an exception."""
        kind, _, frames = ei
        return "".join(traceback.format_tb(frames)) + (kind.__name__ if kind else "")


def configure_log(path: Path, level: str) -> None:
    """Write this process's log, draftline's own messages from a level on, to a file that is rotated at one megabyte.

    No level logs the text of a request.

    Raises:
        StorageError: The file cannot be written.
    """
    require_file(path)
    with writing_to(path.parent, "DRAFTLINE_STATE_DIR"):
        handler = RotatingFileHandler(path, maxBytes=_FILE_BYTES, backupCount=_OLD_FILES, encoding="utf-8")
    handler.setFormatter(NoTextFormatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("completion").setLevel(level)


def log_loop_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Log exceptions that no task caught. asyncio's default handler would print their messages."""

    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        logging.getLogger(__name__).error("Uncaught exception on the event loop", exc_info=context.get("exception"))

    loop.set_exception_handler(handle)
