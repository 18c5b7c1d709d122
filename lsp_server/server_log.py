"""The server's log on standard error: never source text, at no level."""

from __future__ import annotations

import logging

_OURS = ("lsp_server", "completion")
# pygls formats whole messages into its records, in tracebacks too; below these levels it tells nothing of use.
_PYGLS_LEVEL = logging.ERROR


class BodyFreeFormatter(logging.Formatter):
    """Leaves out everything that a foreign record was filled in with: it may be a message's body."""

    def format(self, record: logging.LogRecord) -> str:
        """Our own records as they are; others as their template and the type of their exception."""
        head = f"{self.formatTime(record)} {record.levelname} {record.name}: "
        if record.name.startswith(_OURS):
            return head + super().format(record)
        error = record.exc_info[0] if record.exc_info else None
        return head + record.msg.partition("\n")[0] + (f" ({error.__name__})" if error else "")


def configure_log() -> None:
    """Write warnings to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(BodyFreeFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("pygls").setLevel(_PYGLS_LEVEL)


def set_level(level: str) -> None:
    """Change how much of our own is written."""
    for name in _OURS:
        logging.getLogger(name).setLevel(level.upper())
