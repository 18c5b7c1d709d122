"""What a client knows of its engine host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What is known of the host.

    Attributes:
        state: "starting", "loading", "ready", "error", or "gone" after it ended.
        percent: How much of the loading is done, 0 to 100.
        sentence: What happens now, or what went wrong and what to do.
        code: The error's stable name in state "error".
    """

    state: str = "gone"
    percent: float = 0.0
    sentence: str = ""
    model: str = ""
    device: str = ""
    code: str = ""
    pid: int = 0


def status_of(health: Mapping[str, Any]) -> EngineStatus:
    """Read the host's answer to `/health`."""
    return EngineStatus(
        state=health["state"],
        percent=health["percent"],
        sentence=health["sentence"],
        model=health["model"],
        device=health["device"],
        code=health["code"],
        pid=health["pid"],
    )
